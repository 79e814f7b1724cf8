"""Output of ``lsmkv filter-lab``: the verdict, the settings side by side, and the heat."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from lsmkv.tools.bars import Bars
from lsmkv.tools.drawing import Sheet
from lsmkv.tools.filter_lab import Replay, SettingReads
from lsmkv.tools.lab.heat import Heat, LevelHeat, TableHeat
from lsmkv.tools.lab.outcome import Outcome
from lsmkv.tools.lab.verdict import RULE
from lsmkv.tools.text import count, size, wrap

_WIDEST = 120
_NARROWEST_WITH_BARS = 72
_HOTTEST = 5
_LABEL = 24  # columns
_LOG_SCALE = "wasted, on a log scale"

WASTED_STYLE, CHOSEN_STYLE = "red", "bold green"


def print_report(console: Console, outcome: Outcome) -> None:
    """Print it all, in at most 120 columns, or fewer on a narrower terminal."""
    report = _Report(console, _WIDEST)
    report.line("lsmkv filter-lab: what other filters would save", "bold")
    report.words(outcome.verdict.sentence, CHOSEN_STYLE if outcome.verdict.setting else "bold")
    report.line()
    report.words(_about(outcome))
    report.line()
    report.settings(outcome.replay, outcome.verdict.setting)
    report.line()
    report.heat(outcome.heat)
    report.line()
    report.words(RULE, "dim")


class _Report(Sheet):
    """The parts of the report."""

    def words(self, text: str, style: str = "") -> None:
        """A paragraph."""
        for line in wrap(text, self.width):
            self.line(line, style)

    def settings(self, replay: Replay, chosen: str | None) -> None:
        """A line for each setting, with a bar of the wasted reads where there is room."""
        names = max(len("filters"), *(len(one.setting) for one in replay.results))
        head = (
            f"{'filters':{names}}{'blocks read':>12}{'per Get':>9}{'wasted':>9}"
            f"{'memory':>11}{'measured':>9}"
        )
        room = self.width - len(head) - 2 if self.width >= _NARROWEST_WITH_BARS else 0
        scale = next((one for one in (_LOG_SCALE, "log scale") if len(one) <= room), "")
        self.line(f"{head}  {scale}".rstrip(), "dim")
        most = max(one.wasted_reads for one in replay.results)
        bars = Bars(most, room, fine=self.fine, log=True)
        for one in replay.results:
            line = Text(_figures(one, names, replay.gets))
            line.stylize(CHOSEN_STYLE if one.setting == chosen else "")
            if scale:
                line.append("  ").append(bars.draw(one.wasted_reads), WASTED_STYLE)
            line.rstrip()
            self.line(line)
        self.words(
            "Measured is the rate of false positives. Memory is that of the filters with their"
            " offsets, as open tables hold them.",
            "dim",
        )

    def heat(self, heat: Heat) -> None:
        """Bars of the wasted reads by level, and the tables with the most of them."""
        self.line("Wasted reads, as stored", "bold")
        levels = heat.levels()
        if not levels:
            self.line("The store has no tables.")
            return
        scans = count(heat.scans, "prefix scan") if heat.scans else ""
        room = max(16, (self.width - _LABEL) // 2)
        heading = f"{'by level':{_LABEL}}{count(heat.gets, 'Get'):{room}}{scans}"
        self.line(heading.rstrip(), "dim")
        for one in levels:
            label = f"level {one.level}   {count(one.tables, 'table')}"
            self._heat_row(label, one, levels, room, bool(heat.scans))
        hottest = _hottest(heat)
        if hottest:
            self.line("hottest tables", "dim")
            for table in hottest:
                label = f"{table.number:06}.ldb  level {table.level}"
                self._heat_row(label, table, levels, room, bool(heat.scans))
        self.words(
            "Counted are data blocks that did not hold the key; bars are on a log scale.", "dim"
        )
        if heat.scans:
            reads = sum(one.scans for one in levels) / heat.scans
            self.words(
                "The prefixes are absent, and scans ask none of these filters: each reads"
                f" {reads:.1f} blocks on average, whatever the setting."
            )

    def _heat_row(
        self,
        label: str,
        row: LevelHeat | TableHeat,
        levels: list[LevelHeat],
        room: int,
        with_scans: bool,
    ) -> None:
        """A label, and the wasted reads of Gets and of scans with their bars."""
        most = max(max(one.gets, one.scans) for one in levels)
        bars = Bars(most, room - 12, fine=self.fine, log=True)
        line = Text(f"{label:{_LABEL}}")
        for figure in (row.gets, row.scans) if with_scans else (row.gets,):
            drawn = bars.draw(figure)
            line.append(f"{figure:<9,}").append(drawn, WASTED_STYLE)
            line.append(" " * (room - 9 - len(drawn)))
        line.rstrip()
        self.line(line)


def _about(outcome: Outcome) -> str:
    replay = outcome.replay
    tables = count(len(replay.stored.tables), "table")
    text = (
        f"{count(replay.gets, 'Get')}: {outcome.source}. {replay.found:,} found a value."
        f" {tables} with {count(replay.entries, 'entry')}; no block cache."
    )
    if replay.from_memory:
        text += f" A memtable answered {count(replay.from_memory, 'Get')}."
    return text


def _figures(one: SettingReads, names: int, gets: int) -> str:
    rate = one.false_positive_rate
    return (
        f"{one.setting:{names}}{one.blocks_read:12,}{one.blocks_read / max(gets, 1):9.3f}"
        f"{one.wasted_reads:9,}{size(one.filter_bytes):>11}"
        f"{'-' if rate is None else f'{rate:.2%}':>9}"
    )


def _hottest(heat: Heat) -> list[TableHeat]:
    """The tables with the most wasted reads of Gets, or else of scans; [] if there is one alone."""
    if len(heat.tables) < 2:
        return []
    tables = [table for table in heat.tables if table.gets + table.scans > 0]
    return sorted(tables, key=lambda table: (-table.gets, -table.scans, table.number))[:_HOTTEST]

"""What ``lsmkv filter-lab`` prints: the verdict, the settings side by side, and the heat."""

from __future__ import annotations

import textwrap
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from lsmkv.tools.bars import EIGHTHS, WASTED, Bars, can_encode, split_bar
from lsmkv.tools.lab.heat import Heat
from lsmkv.tools.lab.reads import Replay, SettingReads
from lsmkv.tools.lab.verdict import RULE, Verdict
from lsmkv.tools.text import count, size

_WIDEST = 120
_NARROWEST_WITH_BARS = 72
_HOTTEST = 5

USED_STYLE, WASTED_STYLE, CHOSEN_STYLE = "cyan", "red", "bold green"


class Outcome(NamedTuple):
    """All that the lab found out about one store."""

    path: str
    source: str
    """Where the keys come from, in words."""
    seed: int
    replay: Replay
    heat: Heat
    verdict: Verdict

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        replay = self.replay
        return {
            "path": self.path,
            "keys": self.source,
            "seed": self.seed,
            "gets": replay.gets,
            "from_memory": replay.from_memory,
            "found": replay.found,
            "entries": replay.entries,
            "unsafe_order": replay.unsafe_order,
            "settings": [one.to_dict(replay.gets) for one in replay.results],
            "heat": {
                "scans": self.heat.scans,
                "tables": [table._asdict() for table in self.heat.tables],
            },
            "verdict": self.verdict._asdict() | {"rule": RULE},
        }


def print_report(console: Console, outcome: Outcome) -> None:
    """Print it all, in at most 120 columns, or fewer on a narrower terminal."""
    report = _Report(console)
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


class _Report:
    """The parts of the report, each printed to a console and fitted to its width."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._width = min(console.width, _WIDEST) - 1
        self._fine = can_encode(console, EIGHTHS + WASTED)

    def line(self, text: str = "", style: str = "") -> None:
        """One line."""
        self._print(Text(text, style=style))

    def words(self, text: str, style: str = "") -> None:
        """A paragraph."""
        for line in textwrap.wrap(text, self._width, break_on_hyphens=False):
            self.line(line, style)

    def settings(self, replay: Replay, chosen: str | None) -> None:
        """A line for each setting, with a bar of the blocks read where there is room."""
        names = max(len("filters"), *(len(one.setting) for one in replay.results))
        head = (
            f"{'filters':{names}}{'blocks read':>12}{'per Get':>9}{'wasted':>10}"
            f"{'memory':>11}{'rate':>8}"
        )
        room = self._width - len(head) - 3 if self._width >= _NARROWEST_WITH_BARS else 0
        self.line(head, "dim")
        most = max(one.blocks_read for one in replay.results)
        for one in replay.results:
            line = Text(_figures(one, names, replay.gets))
            line.stylize(CHOSEN_STYLE if one.setting == chosen else "")
            if room > 0:
                used, wasted = split_bar(
                    one.blocks_read - one.wasted_reads,
                    one.wasted_reads,
                    most,
                    room,
                    fine=self._fine,
                )
                line.append("  ").append(used, USED_STYLE).append(wasted, WASTED_STYLE)
            line.rstrip()
            self._print(line)
        if room > 0 and most > 0:
            used, wasted = split_bar(1, 1, 1, 2, fine=self._fine)
            legend = Text(used, USED_STYLE).append(" of use ", "dim")
            legend.append(wasted, WASTED_STYLE).append(" wasted", "dim")
            indent = min(len(head) + 2, self._width - len(legend))
            self._print(Text(" " * indent).append(legend))

    def heat(self, heat: Heat) -> None:
        """Bars of the wasted reads by level, and the tables with the most of them."""
        self.line("Wasted reads, as stored", "bold")
        levels = heat.levels()
        if not levels:
            self.line("The store has no tables.")
            return
        scans = count(heat.scans, "prefix scan") if heat.scans else ""
        room = max(16, (self._width - 24) // 2)
        self.line(f"{'':24}{count(heat.gets, 'Get'):{room}}{scans}".rstrip(), "dim")
        bars = Bars(max(max(one.gets, one.scans) for one in levels), room - 12, fine=self._fine)
        for one in levels:
            label = f"level {one.level}   {count(one.tables, 'table')}"
            line = Text(f"{label:24}")
            for figure in (one.gets, one.scans) if heat.scans else (one.gets,):
                drawn = bars.draw(figure)
                line.append(f"{figure:<9,}").append(drawn, WASTED_STYLE)
                line.append(" " * (room - 9 - len(drawn)))
            line.rstrip()
            self._print(line)
        self.words(_hottest(heat))
        if heat.scans:
            reads = sum(one.scans for one in levels) / heat.scans
            self.words(
                "The prefixes are absent, and scans ask none of these filters: each reads"
                f" {reads:.1f} blocks on average, whatever the setting."
            )

    def _print(self, text: Text) -> None:
        self._console.print(text, soft_wrap=True)


def _about(outcome: Outcome) -> str:
    replay = outcome.replay
    tables = count(len(replay.stored.tables), "table")
    told = (
        f"{count(replay.gets, 'Get')}: {outcome.source}. {replay.found:,} found a value."
        f" {tables} with {count(replay.entries, 'entry')}; no block cache."
    )
    if replay.from_memory:
        told += f" A memtable answered {count(replay.from_memory, 'Get')}."
    return told


def _figures(one: SettingReads, names: int, gets: int) -> str:
    rate = one.false_positive_rate
    return (
        f"{one.setting:{names}}{one.blocks_read:12,}{one.blocks_read / max(gets, 1):9.3f}"
        f"{one.wasted_reads:10,}{size(one.filter_bytes):>11}"
        f"{'-' if rate is None else f'{rate:.2%}':>8}"
    )


def _hottest(heat: Heat) -> str:
    """The tables with the most wasted reads, as a sentence; empty if there is one table alone."""
    tables = [table for table in heat.tables if table.gets + table.scans > 0]
    tables.sort(key=lambda table: (-table.gets - table.scans, table.number))
    if len(heat.tables) < 2 or not tables:
        return ""
    told = [
        f"{table.number:06}.ldb on level {table.level} ({table.gets + table.scans:,})"
        for table in tables[:_HOTTEST]
    ]
    return f"The hottest tables: {', '.join(told)}."

"""What the demo prints: the finding, a chart, how it was measured, the tables, and the finding."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from lsmkv.tools.demo.keys import DataSet
from lsmkv.tools.demo.measure import TEXTBOOK_RATE, Loading, Lookups, Measurement
from lsmkv.tools.demo.reading import TITLES, finding, reading
from lsmkv.tools.demo.run import Outcome, Plan
from lsmkv.tools.text import count, escape, size

_WIDEST = 80
_LONGEST_BAR = 50
_EIGHTHS = " ▏▎▍▌▋▊▉█"

_LEGEND = (
    (
        "blocks",
        "data blocks that lsmkv read from disk; the system may serve them from its own cache",
    ),
    ("checks", "filters asked"),
    ("µs", "wall-clock time, the median of batches"),
    ("measured", "the share of the filters asked about absent keys that said maybe"),
    ("by fill", "the rate that the bits of these filters predict: (ones/m)^k"),
    ("textbook", "the rate for n keys in m bits with k probes: (1-e^(-kn/m))^k"),
)

_UNIT = re.compile(r"(?<=\d) (?=[KMG]?i?B\b)")


def print_report(console: Console, plan: Plan, outcome: Outcome) -> None:
    """Print all that was measured, in at most 80 columns, or fewer on a narrower terminal."""
    report = _Report(console)
    found = finding(outcome.as_loaded, outcome.wrong, outcome.lookups)
    report.title("lsmkv demo: what a filter saves")
    report.item(found, "")
    report.gap()
    report.chart(outcome.as_loaded)
    report.gap()
    report.stores(plan.data, outcome.loadings, plan.directory)
    report.gap()
    report.lookups(len(outcome.questions.present), outcome.questions.example)
    for measurements in (outcome.as_loaded, outcome.compacted):
        if measurements:
            report.gap()
            report.tables(measurements)
    report.gap()
    report.title("What it says")
    for sentence in reading(outcome.as_loaded, outcome.compacted, len(plan.data.expected)):
        report.item(sentence)
    if not outcome.wrong:
        report.item(f"All {count(outcome.lookups, 'answer')} were right.")
    report.item("Your own keys: lsmkv demo --keys FILE. All options: lsmkv demo --help")
    report.gap()
    report.item(found, "")


class _Report:
    """The parts of the report, each printed to a console and wrapped to its width."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._width = min(console.width, _WIDEST) - 1
        self._unicode = _can_encode(console, f"{_EIGHTHS}µ")

    def title(self, text: str) -> None:
        """A bold line."""
        self._print(Text(text, style="bold"))

    def item(self, text: str, mark: str = "- ") -> None:
        """A paragraph behind a mark; a size stays on one line with its unit."""
        filled = textwrap.fill(
            _UNIT.sub("\xa0", text),
            self._width,
            initial_indent=mark,
            subsequent_indent=" " * len(mark),
            break_on_hyphens=False,
        )
        self._print(Text(filled.replace("\xa0", " ")))

    def gap(self) -> None:
        """An empty line."""
        self._print(Text())

    def chart(self, measurements: Sequence[Measurement]) -> None:
        """Bars of the blocks read per Get."""
        self.title("Data blocks read per Get, as loaded")
        groups = (
            ("absent", [one.absent.blocks_per_get for one in measurements]),
            ("exists", [one.present.blocks_per_get for one in measurements]),
        )
        most = max(max(figures) for _, figures in groups)
        room = max(8, min(self._width - 32, _LONGEST_BAR))
        for name, figures in groups:
            for at, (one, figure) in enumerate(zip(measurements, figures, strict=True)):
                label = f"  {name if at == 0 else '':8}{TITLES[one.layout]:13}{figure:7.3f}  "
                self._print(Text(label).append(self._bar(figure, most, room), style="cyan"))

    def stores(self, data: DataSet, loadings: Sequence[Loading], directory: str | None) -> None:
        """What was loaded; ``directory`` is where the stores stay, if they do."""
        told = f"{count(len(data.expected), 'key')}, {size(data.size)} with their values:"
        told += f" {data.title}."
        if data.duplicates:
            told += f" {count(data.duplicates, 'line')} repeated a key; the last one counts."
        if data.blank_lines:
            told += f" {count(data.blank_lines, 'blank line')} left out."
        self.item(told, "")
        self.item(
            "Each filter layout has a store of its own, on disk. Their other options are the same,"
            " lsmkv's defaults.",
            "",
        )
        for one in loadings:
            tables = count(sum(one.tables_per_level.values()), "table")
            levels = list(one.tables_per_level)
            where = f"level {levels[0]}" if len(levels) == 1 else f"levels {levels[0]}-{levels[-1]}"
            speed = f"{len(data.records) / one.seconds:,.0f} keys/s"
            self.item(
                f"{speed}, {tables} on {where}, {size(one.disk_bytes)}",
                f"  {TITLES[one.layout]:12}  ",
            )
        if directory is not None:
            self.item(f"The stores stay in {directory}", "")

    def lookups(self, number: int, example: tuple[bytes, bytes]) -> None:
        """What was looked up, and what the columns of the tables mean."""
        self.item(
            "Each store was flushed, closed and reopened, without a block cache, which would soon"
            " hold all blocks, and without compactions that reads set off. Then came Gets of"
            f" {count(number, 'key')} that exist, in random order, and of as many absent keys:"
            " misspelt ones, which lie between the first and the last key.",
            "",
        )
        for name, key in zip(("exists", "absent"), example, strict=True):
            self._print(Text(f"  {name}  {_shortened(escape(key), self._width - 10)}"))
        self.gap()
        for name, meaning in _LEGEND:
            self.item(meaning, f"  {self._micro(name):10}")

    def tables(self, measurements: Sequence[Measurement]) -> None:
        """One table with the costs and the false positives, or two if it is too wide."""
        first = measurements[0]
        state = "After compact_range()" if first.compacted else "As loaded"
        asked = count(first.overlapping, "table")
        self.title(f"{state}: at most {asked} to ask for a key")
        for line in table(measurements, self._width):
            self._print(Text(self._micro(line.plain), spans=line.spans))

    def _bar(self, figure: float, most: float, room: int) -> str:
        """A bar of at most ``room`` columns; a figure above 0 is always visible."""
        eighths = round(8 * room * figure / most) if most else 0
        if figure and not eighths:
            eighths = 1
        if not self._unicode:
            return "#" * -(-eighths // 8)
        return _EIGHTHS[8] * (eighths // 8) + _EIGHTHS[eighths % 8].strip()

    def _micro(self, text: str) -> str:
        return text if self._unicode else text.replace("µ", "u")

    def _print(self, text: Text) -> None:
        self._console.print(text, soft_wrap=True)


def table(measurements: Sequence[Measurement], width: int) -> list[Text]:
    """What Gets cost, of keys that exist and of absent ones, and beside it the false positives.

    Where ``width`` is too small for both, the false positives come below, a line for each layout.
    """
    costs = [
        Text(f"{'':20}{'per Get':^28}", style="dim"),
        Text(f"{'filters':12}  {'key':6}{'blocks':>7}{'bytes':>7}{'checks':>7}{'µs':>7}"),
    ]
    rates = [
        Text(f"{'false positives':^29}", style="dim"),
        Text(f"{'measured':>10}{'by fill':>9}{'textbook':>10}"),
    ]
    for one in measurements:
        costs.append(Text(f"{TITLES[one.layout]:12}  exists") + _costs(one.present, ""))
        costs.append(Text(f"{'':12}  absent") + _costs(one.absent, "bold"))
        rate = one.absent.positive_rate
        rates.append(Text())
        if rate is None or one.predicted_rate is None:
            rates.append(Text())
        else:
            rates.append(Text(f"{rate:10.2%}{one.predicted_rate:9.2%}{TEXTBOOK_RATE:10.2%}"))
    if len(costs[1]) + len(rates[1]) <= width:
        lines = [left + right for left, right in zip(costs, rates, strict=True)]
        lines.insert(2, Text("-" * len(lines[1]), style="dim"))
    else:
        costs.insert(2, Text("-" * len(costs[1]), style="dim"))
        names = [f"{TITLES[one.layout]:12}  absent" for one in measurements]
        below = [Text(f"{'':20}") + rates[0], Text(f"{'filters':12}  {'key':6}") + rates[1]]
        below.append(Text("-" * len(below[1]), style="dim"))
        below += [Text(name) + rate for name, rate in zip(names, rates[3::2], strict=True) if rate]
        lines = [*costs, Text(), *below] if len(below) > 3 else costs
    for line in lines:
        line.rstrip()
    return lines


def _costs(lookups: Lookups, style: str) -> Text:
    checks = f"{lookups.checks_per_get:.2f}" if lookups.filters_asked else "-"
    return (
        Text()
        .append(f"{lookups.blocks_per_get:7.3f}", style=style)
        .append(f"{lookups.bytes_per_get:7,.0f}{checks:>7}")
        .append(f"{lookups.microseconds_per_get:7.1f}")
    )


def _can_encode(console: Console, text: str) -> bool:
    try:
        text.encode(console.encoding)
    except UnicodeEncodeError:
        return False
    return True


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."

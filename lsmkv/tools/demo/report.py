"""The demo on a terminal: a summary, or all that was measured."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from lsmkv.tools.bars import Bars, can_encode
from lsmkv.tools.demo.measure import Loading, Lookups, Measurement
from lsmkv.tools.demo.reading import TITLES, findings, headline, reading
from lsmkv.tools.demo.run import Outcome, Plan
from lsmkv.tools.demo.timing import BATCH, ROUNDS
from lsmkv.tools.drawing import Sheet
from lsmkv.tools.sample_keys import DataSet
from lsmkv.tools.text import count, escape, size

_WIDEST = 80
_LONGEST_BAR = 50

_LEGEND = (
    (
        "blocks",
        "data blocks that lsmkv read from disk; the system may serve them from its own cache",
    ),
    ("checks", "filters asked"),
    (
        "µs",
        f"wall-clock time: the stores take turns, each batch of {BATCH} Gets counts at the fastest"
        f" of its {ROUNDS} rounds, and this is the batches' median",
    ),
    ("measured", "the share of the filters asked about absent keys that said maybe"),
    ("by fill", "the rate to expect of these filters, from their bits"),
    ("textbook", "the rate for n keys in m bits with k probes: (1-e^(-kn/m))^k"),
    ("", "both are 1/256 for a fuse filter"),
    ("bits", "the size of the filters, in bits a key"),
)

_UNIT = re.compile(r"(?<=\d) (?=[KMG]?i?B\b)")


def print_summary(console: Console, plan: Plan, outcome: Outcome) -> None:
    """Print a sentence, a table and bars: 25 lines at most, with the default stores."""
    report = _Report(console)
    measured, keys = outcome.as_loaded, len(plan.data.expected)
    report.title("lsmkv demo: what a filter saves")
    report.item(headline(measured, keys, outcome.wrong, outcome.lookups), "")
    report.line()
    report.item(
        f"{count(keys, 'key')}: {plan.data.title}. At most"
        f" {count(measured[0].overlapping, 'table')} to ask for a key, no block cache;"
        f" {count(len(outcome.questions.present), 'Get')} of either kind.",
        "",
    )
    report.line()
    report.small_table(measured, keys)
    report.line()
    report.title("Data blocks read from disk for each Get of an absent key")
    report.bars([one.absent.blocks_per_get for one in measured], measured)
    report.line()
    report.item("lsmkv demo --details prints the rest; --keys FILE measures your own keys.", "")


def print_report(console: Console, plan: Plan, outcome: Outcome) -> None:
    """Print all that was measured, in at most 80 columns, or fewer on a narrower terminal."""
    report = _Report(console)
    keys = len(plan.data.expected)
    found = findings(outcome.as_loaded, keys, outcome.wrong, outcome.lookups)
    report.title("lsmkv demo: what a filter saves")
    for number, sentence in enumerate(found, 1):
        report.item(sentence, f"{number}. " if len(found) > 1 else "")
    report.line()
    report.stores(plan.data, outcome.loadings, plan.directory)
    report.line()
    report.lookups(len(outcome.questions.present), outcome.example)
    for measurements in (outcome.as_loaded, outcome.compacted):
        if measurements:
            report.line()
            report.tables(measurements, keys)
    report.line()
    report.title("In detail")
    for sentence in reading(outcome.as_loaded):
        report.item(sentence)
    if not outcome.wrong:
        report.item(f"All {count(outcome.lookups, 'answer')} were right.")
    report.item("Your own keys: lsmkv demo --keys FILE. All options: lsmkv demo --help")
    report.line()
    report.picture(outcome.as_loaded)
    if outcome.wrong:
        report.line()
        report.item(found[0], "")


class _Report(Sheet):
    """The parts of the report."""

    def __init__(self, console: Console) -> None:
        super().__init__(console, _WIDEST)
        self._greek = can_encode(console.encoding, "µ")

    def title(self, text: str) -> None:
        """A bold line."""
        self.line(text, "bold")

    def item(self, text: str, mark: str = "- ") -> None:
        """A paragraph after a mark; a size stays on one line with its unit."""
        filled = textwrap.fill(
            _UNIT.sub("\xa0", text),
            self.width,
            initial_indent=mark,
            subsequent_indent=" " * len(mark),
            break_on_hyphens=False,
        )
        self.line(filled.replace("\xa0", " "))

    def picture(self, measurements: Sequence[Measurement]) -> None:
        """Print bars of the blocks read per Get."""
        self.title("Data blocks read per Get, as loaded")
        most = max(
            max(one.absent.blocks_per_get, one.present.blocks_per_get) for one in measurements
        )
        self.line("  a key that is not there")
        self.bars([one.absent.blocks_per_get for one in measurements], measurements, most)
        self.line("  a key that is there")
        self.bars([one.present.blocks_per_get for one in measurements], measurements, most)

    def bars(
        self,
        figures: Sequence[float],
        measurements: Sequence[Measurement],
        most: float | None = None,
    ) -> None:
        """Print a bar for each layout; the longest one stands for ``most`` blocks."""
        bars = Bars(
            most or max(figures), max(8, min(self.width - 27, _LONGEST_BAR)), fine=self.fine
        )
        for one, figure in zip(measurements, figures, strict=True):
            line = Text(f"    {TITLES[one.layout]:13}").append(f"{figure:6.3f}", "bold")
            self.line(line.append("  ").append(bars.draw(figure), style=color(one)))

    def small_table(self, measurements: Sequence[Measurement], keys: int) -> None:
        """Print blocks and time of a Get, and the filters' bits a key."""
        self.line(Text(f"{'':12}{'absent key':^16}{'existing key':^18}", style="dim"))
        head = f"{'filters':12}" + f"{'blocks':>8}{'µs':>7}" * 2 + f"{'bits a key':>12}"
        self.line(self._micro(head))
        self.line("-" * len(head), "dim")
        for one in measurements:
            line = Text(f"{TITLES[one.layout]:12}")
            line.append(f"{one.absent.blocks_per_get:8.3f}", f"bold {color(one)}")
            line.append(f"{one.absent.times.per_get:7.1f}")
            line.append(f"{one.present.blocks_per_get:8.3f}{one.present.times.per_get:7.1f}")
            bits = f"{one.bits(keys):.2f}" if one.filter_bytes else "-"
            self.line(line.append(f"{bits:>12}"))

    def stores(self, data: DataSet, loadings: Sequence[Loading], directory: str | None) -> None:
        """Report the loaded data; ``directory`` is the place of the stores, if they are kept."""
        text = f"{count(len(data.expected), 'key')}, {size(data.size)} with their values:"
        text += f" {data.title}."
        if data.duplicates:
            text += f" {count(data.duplicates, 'line')} repeated a key; the last one counts."
        if data.blank_lines:
            text += f" {count(data.blank_lines, 'blank line')} left out."
        self.item(text, "")
        self.item(
            "Each kind of filter has its own store, on disk. Their other options are the same,"
            " lsmkv's defaults. Each was loaded once, one after the other: the speeds are rough.",
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
        """Report the lookups, and explain the columns of the tables."""
        self.item(
            "Each store was flushed, closed and reopened, without a block cache, which would soon"
            " hold all blocks, and without compactions that reads set off. Then came Gets of"
            f" {count(number, 'key')} that exist, in random order, and of as many absent keys:"
            " misspelt ones, which lie between the first and the last key.",
            "",
        )
        for name, key in zip(("exists", "absent"), example, strict=True):
            self.line(f"  {name}  {_shortened(escape(key), self.width - 10)}")
        self.line()
        for name, meaning in _LEGEND:
            self.item(meaning, f"  {self._micro(name):10}")

    def tables(self, measurements: Sequence[Measurement], keys: int) -> None:
        """One table with the costs and the false positives, or two if it is too wide."""
        first = measurements[0]
        state = "After compact_range()" if first.compacted else "As loaded"
        asked = count(first.overlapping, "table")
        self.title(f"{state}: at most {asked} to ask for a key")
        for line in table(measurements, keys, self.width):
            self.line(Text(self._micro(line.plain), spans=line.spans))
        self.item(self._micro(spread(measurements)), "")

    def _micro(self, text: str) -> str:
        return text if self._greek else text.replace("µ", "u")


def spread(measurements: Sequence[Measurement]) -> str:
    """Report by how much the times of one run of the demo differ."""
    times = [kind.times for one in measurements for kind in (one.present, one.absent)]
    most = max(one.spread for one in times)
    return (
        f"µs: a store's slowest round took up to {most:.2f} times as long as its fastest. Compare"
        " the stores of one run: another run may be slower or faster as a whole."
    )


def color(one: Measurement) -> str:
    """Yellow is what is read without filters, green what is left with them."""
    return "yellow" if one.layout == "off" else "green"


def table(measurements: Sequence[Measurement], keys: int, width: int) -> list[Text]:
    """A table of the cost of Gets, of existing and of absent keys, with the false positives and the
    filter bits for each of the store's ``keys``.

    Where ``width`` is too small for both, the false positives come below, a line for each layout.
    """
    costs = [
        Text(f"{'':19}{'per Get':^28}", style="dim"),
        Text(f"{'filters':12} {'key':6}{'blocks':>7}{'bytes':>7}{'checks':>7}{'µs':>7}"),
    ]
    rates = [
        Text(f"{'false positives':^27}", style="dim"),
        Text(f"{'measured':>9}{'by fill':>8}{'textbook':>9}{'bits':>6}"),
    ]
    for one in measurements:
        costs.append(Text(f"{TITLES[one.layout]:12} exists") + _costs(one.present, ""))
        costs.append(Text(f"{'':12} absent") + _costs(one.absent, f"bold {color(one)}"))
        rates += [Text(), Text(_rates(one, keys))]
    if len(costs[1]) + len(rates[1]) <= width:
        lines = [left + right for left, right in zip(costs, rates, strict=True)]
        lines.insert(2, Text("-" * len(lines[1]), style="dim"))
    else:
        costs.insert(2, Text("-" * len(costs[1]), style="dim"))
        names = [f"{TITLES[one.layout]:12} absent" for one in measurements]
        rates = [rate[1:] for rate in rates]
        below = [Text(f"{'':19}") + rates[0], Text(f"{'filters':12} {'key':6}") + rates[1]]
        below.append(Text("-" * len(below[1]), style="dim"))
        below += [Text(name) + rate for name, rate in zip(names, rates[3::2], strict=True) if rate]
        lines = [*costs, Text(), *below] if len(below) > 3 else costs
    for line in lines:
        line.rstrip()
    return lines


def _rates(one: Measurement, keys: int) -> str:
    """The false positives, and the bits a key; nothing if no filter was asked."""
    measured, predicted, textbook = one.absent.positive_rate, one.predicted_rate, one.textbook_rate
    if measured is None or predicted is None or textbook is None:
        return ""
    return f"{measured:9.2%}{predicted:8.2%}{textbook:9.2%}{one.bits(keys):6.2f}"


def _costs(lookups: Lookups, style: str) -> Text:
    checks = f"{lookups.checks_per_get:.2f}" if lookups.filters_asked else "-"
    return (
        Text()
        .append(f"{lookups.blocks_per_get:7.3f}", style=style)
        .append(f"{lookups.bytes_per_get:7,.0f}{checks:>7}")
        .append(f"{lookups.times.per_get:7.1f}")
    )


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."

"""The demo in figures: what it prints as it goes, and the table."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from lsmkv.tools.demo.keys import DataSet
from lsmkv.tools.demo.measure import TEXTBOOK_RATE, Loading, Lookups, Measurement
from lsmkv.tools.demo.reading import TITLES, reading
from lsmkv.tools.text import count, escape, size

_WIDTH = 80
_LONGEST_EXAMPLE = 64

_GROUPS = f"{'':20}{'per Get':^27} {'false positives':^29}".rstrip()
_HEADINGS = (
    f"{'filters':12}  {'key':6}{'blocks':>7}{'bytes':>7}{'checks':>7}{'µs':>7}"
    f"{'measured':>10}{'by fill':>9}{'textbook':>10}"
)

_LEGEND = (
    (
        "blocks",
        "data blocks read from disk: by a pread of lsmkv's, which the system may serve from its"
        " own cache",
    ),
    ("checks", "filters asked"),
    ("µs", "by the clock, the median of batches"),
    ("measured", "of the filters asked about absent keys, how many said maybe"),
    ("by fill", "what the bits of these very filters predict: (ones/m)^k"),
    ("textbook", "what n keys in m bits with k probes predict: (1-e^(-kn/m))^k"),
)


class Report:
    """Tells the demo's story on a console, step by step as it goes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._width = min(console.width, _WIDTH) - 1

    def begin(self, data: DataSet, directory: str | None) -> None:
        """What is loaded; ``directory`` is where the stores stay, if they do."""
        self._title("lsmkv demo: what a filter saves")
        told = f"{count(len(data.expected), 'key')}, {size(data.size)} with their values:"
        told += f" {data.title}."
        if data.duplicates:
            told += f" {count(data.duplicates, 'line')} came again; the last one counts."
        if data.blank_lines:
            told += f" {count(data.blank_lines, 'blank line')} left out."
        self._paragraph(told)
        self._paragraph(
            "Each filter layout gets a load and a store of its own, on disk. Whatever else can"
            " be set is the same for all, and lsmkv's default."
        )
        if directory is not None:
            self._line(f"The stores stay in {directory}", style="dim")
        self._console.print()

    def loaded(self, loading: Loading, records: int) -> None:
        """One store is there."""
        tables = sum(loading.tables_per_level.values())
        levels = list(loading.tables_per_level)
        where = f"level {levels[0]}" if len(levels) == 1 else f"levels {levels[0]}-{levels[-1]}"
        self._line(
            f"{TITLES[loading.layout]:12}  loaded in {loading.seconds:.1f} s,"
            f" {records / loading.seconds:,.0f} keys/s: {count(tables, 'table')} on {where},"
            f" {size(loading.disk_bytes)}"
        )

    def asking(self, lookups: int, example: tuple[bytes, bytes]) -> None:
        """What is looked up."""
        self._console.print()
        self._paragraph(
            "Flushed, closed and reopened, without a block cache: soon all blocks would be in it."
            " Compactions that reads set off are off, too."
            f" Now Gets of {count(lookups, 'key')} that exist, in random order, and of as many that"
            " do not: they are misspelt, and lie between the first and the last key."
        )
        self._line(f"exists  {_shortened(escape(example[0]))}")
        self._line(f"absent  {_shortened(escape(example[1]))}")
        self._console.print()
        for name, meaning in _LEGEND:
            self._item(meaning, f"  {name:10}")

    def measured(self, measurements: Sequence[Measurement]) -> None:
        """The table."""
        first = measurements[0]
        state = "After compact_range()" if first.compacted else "As loaded"
        self._console.print()
        self._title(f"{state}: at most {count(first.overlapping, 'table')} to ask for a key")
        for line in table(measurements):
            self._console.print(line, soft_wrap=True)

    def end(
        self,
        as_loaded: Sequence[Measurement],
        compacted: Sequence[Measurement],
        keys: int,
        wrong: int,
    ) -> None:
        """What it means."""
        self._console.print()
        self._title("What it says")
        for sentence in reading(as_loaded, compacted, keys):
            self._item(sentence)
        lookups = sum(one.present.gets + one.absent.gets for one in (*as_loaded, *compacted))
        if wrong:
            self._item(f"{wrong:,} of {lookups:,} answers were WRONG.")
        else:
            self._item(f"All {lookups:,} answers were right.")
        self._console.print()
        self._line("Your own keys: lsmkv demo --keys FILE. All options: lsmkv demo --help")

    def _title(self, text: str) -> None:
        self._console.print(Text(text, style="bold"))

    def _paragraph(self, text: str) -> None:
        self._item(text, "")

    def _line(self, text: str, style: str = "") -> None:
        self._console.print(Text("  " + text, style=style), soft_wrap=True)

    def _item(self, text: str, mark: str = "- ") -> None:
        filled = textwrap.fill(
            text,
            self._width,
            initial_indent=mark,
            subsequent_indent=" " * len(mark),
            break_on_hyphens=False,
        )
        self._console.print(Text(filled), soft_wrap=True)


def table(measurements: Sequence[Measurement]) -> list[Text]:
    """Two lines for each layout: Gets of keys that exist, and of keys that do not."""
    lines = [Text(_GROUPS, style="dim"), Text(_HEADINGS)]
    lines.append(Text("-" * len(_HEADINGS), style="dim"))
    for one in measurements:
        exists = Text(f"{TITLES[one.layout]:12}  exists")
        lines.append(exists.append_text(_costs(one.present, "")))
        absent = Text(f"{'':12}  absent").append_text(_costs(one.absent, "bold"))
        rate = one.absent.positive_rate
        if rate is not None and one.predicted_rate is not None:
            absent.append(f"{rate:10.2%}{one.predicted_rate:9.2%}{TEXTBOOK_RATE:10.2%}")
        lines.append(absent)
    return lines


def _costs(lookups: Lookups, style: str) -> Text:
    checks = f"{lookups.checks_per_get:.2f}" if lookups.filters_asked else "-"
    return (
        Text()
        .append(f"{lookups.blocks_per_get:7.3f}", style=style)
        .append(f"{lookups.bytes_per_get:7,.0f}{checks:>7}")
        .append(f"{lookups.microseconds_per_get:7.1f}")
    )


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_EXAMPLE else text[: _LONGEST_EXAMPLE - 3] + "..."

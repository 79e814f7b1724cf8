"""Output of ``lsmkv stats`` for a shard set: the shards as bars, and the memory of a reader."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from lsmkv.engine.util.text import quoted
from lsmkv.shards import ShardEntry, Shards, ShardsStats, VersionDocument
from lsmkv.tools.bars import Bars
from lsmkv.tools.drawing import Sheet
from lsmkv.tools.text import count, printable, size

_WIDEST = 120
_FIRST, _LAST = 20, 4
"""The shards that are shown where there are more than these."""


def draw_shards(shards: Shards, console: Console) -> list[Text]:
    """The lines to print of shards that are all open, as wide as the console, at most 120."""
    return list(_Drawing(shards.url, shards.document, shards.stats(), console).lines())


class _Drawing(Sheet):
    """Draws a version, part by part."""

    def __init__(
        self, url: str, document: VersionDocument, stats: ShardsStats, console: Console
    ) -> None:
        super().__init__(console, _WIDEST)
        self._url = url
        self._document = document
        self._stats = stats
        self._sizes = [_bytes(entry) for entry in document.shards]
        self._room = max(8, min(self.width // 6, 24))
        self._pairs = max(10, len(f"{document.pairs:,}")) + 2

    def lines(self) -> Iterator[Text]:
        """All parts, with an empty line between them."""
        document = self._document
        shards = count(len(document.shards), "shard")
        summary = f"version {document.number}, {shards}, {count(document.pairs, 'pair')}"
        yield Text(f"{printable(self._url)}: {summary}, {size(document.bytes)}", style="bold")
        yield Text()
        yield from self._shards()
        yield Text()
        yield from self._reader()

    def _shards(self) -> Iterator[Text]:
        shards = self._document.shards
        gap = " " * self._room
        pairs = f"{'pairs':>{self._pairs}}"
        yield Text(f"{'shard':>5}{'tables':>8}{pairs}{'size':>11}  {gap}  keys from", "dim")
        bars = Bars(max([*self._sizes, 1]), self._room, fine=self.fine)
        hidden = len(shards) - _FIRST - _LAST
        for number, entry in enumerate(shards):
            if hidden > 1 and _FIRST <= number < len(shards) - _LAST:
                if number == _FIRST:
                    least, most = min(self._sizes), max(self._sizes)
                    summary = f"{hidden:,} more; all have from {size(least)} to {size(most)}"
                    yield Text(f"{'...':>5}  {summary}", "dim")
                continue
            bar = Text(bars.draw(self._sizes[number]), style="cyan")
            bar.pad_right(self._room - len(bar))
            first = quoted(entry.first) if entry.first else "the first one"
            line = Text(self._row(f"{number}", _tables(entry), entry.pairs, self._sizes[number]))
            line = line.append("  ").append_text(bar).append(f"  {first}", style="dim")
            line.truncate(self.width, overflow="ellipsis" if self.fine else "crop")
            yield line
        tables = sum(map(_tables, shards))
        yield Text(self._row("all", tables, self._document.pairs, sum(self._sizes)))

    def _row(self, name: str, tables: int, pairs: int, held: int) -> str:
        return f"{name:>5}{tables:>8,}{pairs:>{self._pairs},}{size(held):>11}"

    def _reader(self) -> Iterator[Text]:
        stats, document = self._stats, self._document
        held = f"{size(stats.metadata_bytes)} of indexes and filters"
        share = stats.metadata_bytes / max(document.pairs, 1)
        yield Text(f"in memory  {held}, {share:.2f} bytes a pair")
        yield Text(f"filters    {printable(document.filter_policy or 'none')}")
        if document.prefix_extractor is not None:
            yield Text(f"prefixes   {printable(document.prefix_extractor)}")
        created = document.created[:16].replace("T", " ")
        yield Text(f"build      {printable(document.build)}, published {created} UTC")
        total = stats.requests.total
        retries = f", {count(total.retries, 'retry')}" if total.retries else ""
        listings = count(stats.requests.list.requests, "listing")
        yield Text(
            f"requests   {total.requests:,} by this command: {listings}{retries},"
            f" {size(total.bytes_read)} read"
        )


def _bytes(entry: ShardEntry) -> int:
    return sum(file.size for _, file in entry.objects())


def _tables(entry: ShardEntry) -> int:
    return sum(file.name.endswith((".ldb", ".sst")) for file in entry.files)

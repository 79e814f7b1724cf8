"""The steps of a lookup, as records: what an :class:`~lsmkv.Explanation` consists of."""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass

from lsmkv.engine.util.outline import Line, Tone
from lsmkv.engine.util.record import Record
from lsmkv.engine.util.text import count, quoted, size


@dataclass(frozen=True)
class KeyVersion(Record):
    """One version of the key."""

    where: str
    """``memtable``, ``immutable memtable``, or the table's file name."""
    sequence: int
    deleted: bool
    value_size: int
    """Bytes; 0 for a deletion."""

    def __str__(self) -> str:
        what = "a deletion" if self.deleted else count(self.value_size, "byte")
        return f"{what} in {self.where}, write {self.sequence:,}"


@dataclass(frozen=True)
class FilterStep(Record):
    """One filter that the lookup asked."""

    layout: str
    """``block``: the filter of the block's 2 KiB of file; ``table``: that of the whole table."""
    policy: str
    size: int
    """Bytes of the filter."""
    positions: tuple[int, ...]
    """The bits of a Bloom filter that were probed, up to the first one that is not set."""
    values: tuple[bool, ...]
    """For each of these positions, True if its bit is set."""
    may_match: bool
    """False means that the filter rules the key out."""
    slots: tuple[int, ...] = ()
    """The bytes of a fuse filter that were read."""
    slot_values: tuple[int, ...] = ()
    """The contents of these slots."""
    fingerprint: int | None = None
    """The key's, in a fuse filter: the key may be there if the values, xored, are this."""

    def outline(self, tone: Tone) -> list[Line]:
        """The filter and its answer, with the bits that decide it."""
        answer = "maybe" if self.may_match else "no"
        text = f"filter per {self.layout}, {self.policy}, {count(self.size, 'byte')}: {answer}"
        lines = [Line(2, tone, text)]
        if self.positions:
            bits = zip(self.positions, self.values, strict=True)
            shown = ", ".join(f"{position}={value:d}" for position, value in bits)
            lines.append(Line(3, "quiet", f"bits probed: {shown}"))
        if self.fingerprint is not None:
            read = zip(self.slots, self.slot_values, strict=True)
            shown = ", ".join(f"{slot}={value:02x}" for slot, value in read)
            xored = functools.reduce(operator.xor, self.slot_values, 0)
            text = f"slots read: {shown}; xored {xored:02x}, fingerprint {self.fingerprint:02x}"
            lines.append(Line(3, "quiet", text))
        return lines


@dataclass(frozen=True)
class BlockStep(Record):
    """A data block."""

    offset: int
    size: int
    """Bytes as stored, the trailer of 5 not counted."""
    cached: bool
    """True if the block was in the block cache."""
    bytes_read: int
    """Its bytes as stored, the trailer included; 0 if the lookup does not read them, because the
    block was in the cache or the identity check has read it."""
    compression: str
    plain_size: int
    """Bytes once decompressed."""
    by_identity_check: bool = False
    """True if the identity check reads the block when the Get opens the table, so that the lookup
    finds it in the cache."""

    def source(self) -> str:
        """The source from which the lookup gets the block, in words."""
        if self.by_identity_check:
            return "read by the identity check"
        return "from the cache" if self.cached else "read"

    def searched(self, wasted: bool) -> str:
        """The block, in the words for one that the lookup searches."""
        text = f"block at {self.offset}: {self.source()}{' (wasted)' if wasted else ''}"
        if self.bytes_read:
            text += f", {count(self.bytes_read, 'byte')}"
        if self.compression != "none":
            text += f", {self.compression}"
        return f"{text}, {count(self.plain_size, 'byte')} plain"

    def spared(self) -> str:
        """The block, in the words for one that a filter rules out."""
        cost = "it is in the cache" if self.cached else f"{count(self.bytes_read, 'byte')} saved"
        if self.by_identity_check:
            cost = self.source()
        return f"block at {self.offset}: not searched, {cost}"


@dataclass(frozen=True)
class TableStep(Record):
    """One table whose range covers the key.

    If it was not asked, its filters and its block are those that a Get would use.
    """

    level: int
    name: str
    size: int
    smallest: bytes
    largest: bytes
    """User keys."""
    asked: bool
    """False if the Get had its answer before it reached this table."""
    index_key: bytes | None
    """The separator in the index that ends the block: at or above all of the block's keys and below
    those of the next one, and not always a key itself; None if the key lies past the last one."""
    filters: tuple[FilterStep, ...]
    block: BlockStep | None
    """The data block that is searched; None where the index or a filter ruled it out."""
    spared: BlockStep | None
    """The data block that would be searched if no filter had ruled it out."""
    wasted: bool
    """True if the table was asked and its block lacked the key, with or without a filter."""
    wrong: bool
    """True if a filter rules the key out although the block holds it: the filter is wrong."""
    verdict: str
    metadata_reads: int = 0
    """Reads of footer, index, metaindex and filters with which the Get opens the table; 0 if it is
    open."""
    identity_check_reads: int = 0
    """Reads of the table's first data block when the Get opens it, which check that the file is the
    one that the MANIFEST names; 0 if it is open."""

    def outline(self) -> list[Line]:
        """The table's steps, in the order in which they are taken."""
        lines = [Line(1, self._tone(), f"level {self.level}, {self.name}: {self.verdict}")]
        keys = f"{quoted(self.smallest)} .. {quoted(self.largest)}"
        lines.append(Line(2, "quiet", f"range: {keys}, {size(self.size)}"))
        if not self.asked:
            return lines
        if self.index_key is not None:
            separator = f"the separator {quoted(self.index_key)}"  # it need not be a key
            lines.append(Line(2, "quiet", f"index: the block up to {separator}"))
        for step in self.filters:
            lines += step.outline(self._tone_of_filter(step))
        if self.block is not None:
            tone: Tone = "wasted" if self.wasted else "read"
            lines.append(Line(2, tone, self.block.searched(self.wasted)))
        if self.spared is not None:
            lines.append(Line(2, "saved", self.spared.spared()))
        return lines

    def _tone(self) -> Tone:
        if not self.asked:
            return "quiet"
        if self.wasted or self.wrong:
            return "wasted"
        if self.spared is not None:
            return "saved"
        return "plain" if self.block is None else "read"

    def _tone_of_filter(self, step: FilterStep) -> Tone:
        if not step.may_match:
            return "wasted" if self.wrong else "saved"
        return "wasted" if self.wasted else "plain"

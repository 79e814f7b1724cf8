"""EXPLAIN for a Get: the steps of a lookup, as data.

``DB.explain`` calls it without a lock, for one view of the store.  Explaining changes nothing in
the store: no counter is increased, no block enters the block cache, and no seek is charged to a
table.  It reads more than the Get would, to show which older versions the answer hides; what the
Get itself would have read is reported separately.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lsmkv.db.memtable import MemTable
from lsmkv.db.store import Store
from lsmkv.db.version import escape
from lsmkv.errors import CorruptionError
from lsmkv.filter.bloom import BloomFilterPolicy
from lsmkv.format.keys import (
    KIND_VALUE,
    TAG_SIZE,
    sequence_in,
    unpack,
)
from lsmkv.format.version_edit import FileMetaData
from lsmkv.table.format import BLOCK_TRAILER_SIZE
from lsmkv.table.inspection import BlockLook, FilterLook, look
from lsmkv.table.reader import Table
from lsmkv.util.text import count

_CODECS = {0: "none", 1: "snappy", 2: "zstd", 4: "deflate"}


@dataclass(frozen=True)
class KeyVersion:
    """One version of the key."""

    where: str
    """``memtable``, ``immutable memtable``, or the table's file name."""
    sequence: int
    deleted: bool
    value_size: int
    """Bytes; 0 for a deletion."""


@dataclass(frozen=True)
class FilterStep:
    """One filter that the lookup asked."""

    layout: str
    """``block``: the filter of the block's 2 KiB of file; ``table``: that of the whole table."""
    policy: str
    size: int
    """Bytes of the filter."""
    positions: tuple[int, ...]
    """The bits of a Bloom filter that were probed, up to the first one that is not set."""
    may_match: bool
    """False means that the filter rules the key out."""


@dataclass(frozen=True)
class BlockStep:
    """The data block that was searched."""

    offset: int
    size: int
    """Bytes as stored, the trailer of 5 not counted."""
    cached: bool
    """Whether it was in the block cache; else it is read from the file."""
    bytes_read: int
    compression: str
    plain_size: int
    """Bytes once decompressed."""


@dataclass(frozen=True)
class TableStep:
    """One table whose range covers the key."""

    level: int
    name: str
    size: int
    smallest: bytes
    largest: bytes
    """User keys."""
    asked: bool
    """False if the Get had its answer before it reached this table."""
    index_key: bytes | None
    """User key of the index entry that names the block; None if the key lies past the last one."""
    filters: tuple[FilterStep, ...]
    block: BlockStep | None
    """None where the index or a filter ruled it out."""
    verdict: str


@dataclass(frozen=True)
class Explanation:
    """The steps of a Get of one key; ``str()`` is text, ``to_dict()`` is plain data.

    ``DB.explain`` makes one and states errors and cost; this is plain data.

    >>> import lsmkv
    >>> with lsmkv.DB(":memory:") as db:
    ...     for key in (b"ant", b"cow"):
    ...         db.put(key, b"v")
    ...     db.flush()
    ...     told = db.explain(b"bee")
    >>> told.found, told.blocks_searched, told.blocks_without_filters
    (False, 0, 1)
    >>> told.tables[0].verdict
    'a filter says no: no block is read'
    """

    key: bytes
    found: bool
    memtables: tuple[str, ...]
    """Those that were looked at, newest first."""
    tables: tuple[TableStep, ...]
    """Those whose range covers the key, in the order in which they are asked."""
    chosen: KeyVersion | None
    """The version that answers; a deletion answers with a miss."""
    shadowed: tuple[KeyVersion, ...]
    """Older versions that it hides, newest first."""
    missed: tuple[KeyVersion, ...]
    """Versions that the Get does not see, since a filter wrongly says no: a filter policy that is
    at fault, or one that does not go with the comparator."""
    blocks_searched: int
    """Data blocks that the Get looks into."""
    blocks_read: int
    """How many of these blocks are not in the block cache."""
    bytes_read: int
    blocks_without_filters: int
    """Data blocks that it would look into if there were no filters."""
    bytes_without_filters: int
    """Their bytes as stored, as if none were cached."""
    at_hand: bool
    """Whether the value is kept at hand, since the key is asked for again and again: a Get returns
    it then without asking the tables, which are told here all the same."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data; keys are escaped text, so that it can go out as JSON.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
        ...     db.put(b"k", b"v")
        ...     told = db.explain(b"k").to_dict()
        >>> told["key"], told["chosen"]["where"]
        ('k', 'memtable')
        """
        plain: dict[str, Any] = _plain(asdict(self))
        return plain

    def __str__(self) -> str:
        """The steps in words, a line each."""
        lines = [f"get {_quote(self.key)}: {self._answer()}"]
        lines += [
            f"  {name}: {'answers' if self._is_from(name) else 'does not know the key'}"
            for name in self.memtables
        ]
        for table in self.tables:
            lines += _describe(table)
        if self.chosen is None and not self.tables:
            lines.append("  no table's range covers the key")
        if self.at_hand:
            lines.append("  kept at hand: as long as these tables stay, a Get asks none of them")
        for version in self.missed:
            lines.append(f"  missed, since a filter is wrong: {_describe_version(version)}")
        for version in self.shadowed:
            lines.append(f"  hidden: {_describe_version(version)}")
        lines.append(
            f"  searched {count(self.blocks_searched, 'data block')} ({self.blocks_read:,} from the"
            f" file, {count(self.bytes_read, 'byte')}); without filters"
            f" {self.blocks_without_filters:,} ({count(self.bytes_without_filters, 'byte')})"
        )
        return "\n".join(lines)

    def _is_from(self, where: str) -> bool:
        return self.chosen is not None and self.chosen.where == where

    def _answer(self) -> str:
        if self.chosen is None:
            return "not there"
        if self.chosen.deleted:
            return f"deleted, {_describe_version(self.chosen)}"
        return f"found, {_describe_version(self.chosen)}"


class Explainer:
    """Explains lookups in one view of a store, which it holds meanwhile."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._view = store.open_view()
        self._versions: list[KeyVersion] = []
        self._missed: list[KeyVersion] = []
        self._tables: list[TableStep] = []
        self._memtables: list[str] = []
        self._blocks_searched = 0
        self._blocks_read = 0
        self._bytes_read = 0
        self._blocks_without = 0
        self._bytes_without = 0

    def explain(self, key: bytes) -> Explanation:
        """The whole story of ``key``."""
        view = self._view
        self._look_into("memtable", view.memtable, key)
        if view.immutable is not None:
            self._look_into("immutable memtable", view.immutable, key)
        at_hand = not self._versions and key in view.version.row_cache.values
        key_hash = self._store.key_hash(key)
        for level, file in view.version.candidates(self._store.order.of(key)):
            self._ask(level, file, key, key_hash)
        chosen = self._versions[0] if self._versions else None
        return Explanation(
            key=key,
            found=chosen is not None and not chosen.deleted,
            memtables=tuple(self._memtables),
            tables=tuple(self._tables),
            chosen=chosen,
            shadowed=tuple(self._versions[1:]),
            missed=tuple(self._missed),
            blocks_searched=self._blocks_searched,
            blocks_read=self._blocks_read,
            bytes_read=self._bytes_read,
            blocks_without_filters=self._blocks_without,
            bytes_without_filters=self._bytes_without,
            at_hand=at_hand,
        )

    def _look_into(self, name: str, memtable: MemTable, key: bytes) -> None:
        """Note the memtable's versions of the key, from the newest on."""
        if not self._versions:
            self._memtables.append(name)
        for row in memtable.versions(key):
            deleted = row[0] != KIND_VALUE
            self._versions.append(KeyVersion(name, sequence_in(row), deleted, len(row) - TAG_SIZE))

    def _ask(self, level: int, file: FileMetaData, key: bytes, key_hash: int) -> None:
        """One table, as the Get does it; and then, for what it hides, without regard to filters."""
        asked = not self._versions
        table = self._store.tables.peek(file)
        name = table.path.rsplit("/", 1)[-1]
        found = look(table, key, key_hash)
        filters = tuple(self._filter_step(step, key_hash) for step in found.filters)
        verdict = "the key lies past its last index entry"
        block: BlockStep | None = None
        if found.block is not None:
            versions = self._versions_in(table, found.block, key, name)
            ruled_out = any(not step.may_match for step in filters)
            if ruled_out:
                verdict = "a filter says no: no block is read"
                if versions:
                    verdict += "; the block holds the key all the same: this filter is wrong"
            else:
                block = _block_step(found.block)
                verdict = "found" if versions else "not in the block"
                if filters and not versions:
                    verdict += ": a false positive of the filter"
            if asked:
                self._count(found.block, ruled_out)
            if asked and ruled_out:
                self._missed += versions
            else:
                self._versions += versions
        self._tables.append(
            TableStep(
                level=level,
                name=name,
                size=file.size,
                smallest=file.smallest[:-8],
                largest=file.largest[:-8],
                asked=asked,
                index_key=None if found.index_key is None else found.index_key[:-8],
                filters=filters,
                block=block,
                verdict=verdict if asked else "not asked: the answer is known",
            )
        )

    def _count(self, block: BlockLook, ruled_out: bool) -> None:
        self._blocks_without += 1
        self._bytes_without += block.stored_size
        if not ruled_out:
            self._blocks_searched += 1
            if not block.cached:
                self._blocks_read += 1
                self._bytes_read += block.stored_size

    def _filter_step(self, asked: FilterLook, key_hash: int) -> FilterStep:
        policy = self._store.options.filter_policy
        positions: tuple[int, ...] = ()
        if isinstance(policy, BloomFilterPolicy) and key_hash >= 0:
            positions = tuple(policy.probed_positions(key_hash, asked.data))
        return FilterStep(
            layout=asked.layout,
            policy="" if policy is None else policy.name,
            size=len(asked.data),
            positions=positions,
            may_match=asked.may_match,
        )

    def _versions_in(
        self, table: Table, block: BlockLook, key: bytes, name: str
    ) -> list[KeyVersion]:
        """The versions of the key in a block, newest first; any in the next block are left out."""
        compare = self._store.comparator.user_comparator.compare
        found: list[KeyVersion] = []
        for internal_key, value in zip(*block.entries, strict=True):
            try:
                user_key, sequence, kind = unpack(internal_key)
            except CorruptionError as error:
                raise CorruptionError(error.reason, table.path, block.offset) from None
            if compare(user_key, key) == 0:
                found.append(KeyVersion(name, sequence, kind != KIND_VALUE, len(value)))
        return found


def _block_step(block: BlockLook) -> BlockStep:
    return BlockStep(
        offset=block.offset,
        size=block.stored_size - BLOCK_TRAILER_SIZE,
        cached=block.cached,
        bytes_read=0 if block.cached else block.stored_size,
        compression=_CODECS.get(block.compression, str(block.compression)),
        plain_size=block.plain_size,
    )


def _describe(table: TableStep) -> list[str]:
    lines = [
        f"  level {table.level} {table.name}"
        f" [{_quote(table.smallest)} .. {_quote(table.largest)}]: {table.verdict}"
    ]
    if not table.asked:
        return lines
    if table.index_key is not None:
        lines.append(f"    index: the block up to {_quote(table.index_key)}")
    for step in table.filters:
        bits = f", bits {', '.join(map(str, step.positions))}" if step.positions else ""
        answer = "maybe" if step.may_match else "no"
        lines.append(f"    filter per {step.layout}, {count(step.size, 'byte')}{bits}: {answer}")
    if table.block is not None:
        block = table.block
        source = "from the cache" if block.cached else f"read, {count(block.bytes_read, 'byte')}"
        codec = "" if block.compression == "none" else f", {block.compression}"
        lines.append(
            f"    block at {block.offset}: {source}{codec}, {count(block.plain_size, 'byte')} plain"
        )
    return lines


def _describe_version(version: KeyVersion) -> str:
    what = "a deletion" if version.deleted else count(version.value_size, "byte")
    return f"{what} in {version.where}, write {version.sequence:,}"


def _quote(key: bytes) -> str:
    return f"'{escape(key)}'"


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return escape(value)
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value

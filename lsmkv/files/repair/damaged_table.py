"""Reads a table that may be damaged: the data blocks that can be read, and the holes between them.

Surveys and plans of repairs use it; it only reads the file, and takes no lock.

An intact index states where the blocks are, and between which keys an unreadable block lies.
Without an index the blocks are searched for.  They are adjacent, and each ends in a type byte and a
checksum of everything from its first byte on.  So a checksum is computed from the start of a block
until the next four bytes equal it: that is the block's end. (Each candidate has a chance of 2^-32
of a false match.)  After a damaged block the start of the next one is unknown too, and every likely
position is tried, all in one pass.
"""

from __future__ import annotations

import errno
import operator
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, Never

from lsmkv.engine.env.base import RandomAccessFile
from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.filter.key_hashes import KeyHashes
from lsmkv.engine.filter.policy import FilterPolicy
from lsmkv.engine.format.keys import MAX_SEQUENCE, TAG_SIZE, InternalKeyComparator, unpack
from lsmkv.engine.options import Options
from lsmkv.engine.table.block import Block
from lsmkv.engine.table.filter_block import (
    BLOCK_FILTER_PREFIX,
    PREFIX_FILTER_PREFIX,
    TABLE_FILTER_PREFIX,
    FilterBlockReader,
    FilterReader,
    TableFilterReader,
    count_denied,
)
from lsmkv.engine.table.format import (
    BLOCK_TRAILER_SIZE,
    FOOTER_SIZE,
    BlockHandle,
    Footer,
    read_block,
)
from lsmkv.engine.table.metadata import usable_policies
from lsmkv.engine.util.coding import decode_varint32
from lsmkv.engine.util.compression import NO_COMPRESSION, codec_of
from lsmkv.engine.util.copying import refuse_copy
from lsmkv.files.repair.sealed_blocks import SealFinder, find_sealed_end

CheckKeys = Callable[[list[bytes]], None]
"""A check that raises :class:`CorruptionError` unless all keys can be keys of entries."""

OUT_OF_ORDER = "keys out of order"
"""The reason of a hole whose block is otherwise intact: the comparator may be the wrong one."""

_READERS: Final[dict[bytes, Callable[[FilterPolicy, bytes], FilterReader]]] = {
    BLOCK_FILTER_PREFIX: FilterBlockReader,
    TABLE_FILTER_PREFIX: TableFilterReader,
}
_WINDOW = 64 * 1024
_STEP = 16 * 1024
_LOOK_AHEAD = 16
_SECTOR = 4096
_REACH = 1024 * 1024
"""The end of one block is searched for within this distance, or within twice the size of the
largest block seen.  A larger block is found by the search that tries every likely start."""


class Problem:  # noqa: PLW1641 - it changes, so it has no hash
    """Damage at an offset of a file.  Plain data: it raises nothing and costs nothing.

    >>> Problem(offset=7, size=3, reason="bad checksum")
    Problem(7, 3, 'bad checksum')
    """

    __slots__ = ("offset", "reason", "size")

    def __init__(self, offset: int, size: int, reason: str) -> None:
        self.offset = offset
        self.size = size
        """Bytes that cannot be used because of it; 0 if that is unknown."""
        self.reason = reason

    def __repr__(self) -> str:
        return f"Problem({self.offset}, {self.size}, {self.reason!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Problem) or type(self) is not type(other):
            return False
        return self._state() == other._state()

    def _state(self) -> tuple[object, ...]:
        return self.offset, self.size, self.reason

    def __reduce__(self) -> tuple[Any, ...]:
        return Problem, (self.offset, self.size, self.reason)


class Hole(Problem):
    """One or several data blocks that cannot be read, and what is known of their keys.

    The keys sort after ``lower`` and not after ``upper``, which are internal keys; None is no
    bound.  Raises nothing.  Costs nothing, and :meth:`may_hold` a probe of the blocks' filters.

    >>> hole = Hole(4096, 900, "block checksum mismatch", None, None, [])
    >>> hole.user_range, hole.missing, hole.lost
    ((None, None), 0, 900)
    >>> hole.has_filter, hole.may_hold(b"any key")
    (False, True)
    """

    __slots__ = ("_filters", "first_sequence", "last_sequence", "lower", "missing", "upper")

    def __init__(
        self,
        offset: int,
        size: int,
        reason: str,
        lower: bytes | None,
        upper: bytes | None,
        filters: list[FilterReader],
    ) -> None:
        """``filters`` are those of a block at ``offset``."""
        super().__init__(offset, size, reason)
        self.lower = lower
        self.upper = upper
        self.missing = 0
        """Bytes after it that the file lacks, according to the size that the MANIFEST states: data,
        and the rest of the table after the data."""
        self.first_sequence = 0
        """A lower bound of the sequences of lost entries."""
        self.last_sequence = MAX_SEQUENCE
        """An upper bound of these sequences."""
        self._filters = filters

    def __repr__(self) -> str:
        problem = f"{self.offset}, {self.size}, {self.reason!r}"
        return f"Hole({problem}, {self.lower!r}, {self.upper!r})"

    def __reduce__(self) -> Never:
        refuse_copy("a hole in a table", "it asks the filters of the file")

    def _state(self) -> tuple[object, ...]:
        return self.offset, self.size, self.reason, self.lower, self.upper, self.missing

    @property
    def user_range(self) -> tuple[bytes | None, bytes | None]:
        """The user keys between which its keys lie, both inclusive; None is no bound."""
        lower = None if self.lower is None else unpack(self.lower)[0]
        upper = None if self.upper is None else unpack(self.upper)[0]
        return lower, upper

    @property
    def lost(self) -> int:
        """Bytes that cannot be read or are missing."""
        return self.size + self.missing

    @property
    def has_filter(self) -> bool:
        """True if there is a filter for the block."""
        return any(reader.filter_for(self.offset) is not None for reader in self._filters)

    def may_hold(self, user_key: bytes) -> bool:
        """False if a filter rules ``user_key`` out.  The caller compares it with the bounds."""
        hashes = KeyHashes(user_key)
        return all(reader.may_match(self.offset, hashes) for reader in self._filters)


class FoundBlock(NamedTuple):
    """One data block that can be read."""

    offset: int
    size: int
    keys: list[bytes]
    values: list[bytes]


class Salvage:
    """Reads one table without relying on any part of it.  The caller owns and closes the file.

    ``problems`` lists the damage in footer, index, metaindex and filters; ``pieces`` reads the
    data.  Raises ``OSError`` (except EIO, which is damage here) and
    :class:`UnsupportedCompressionError`, and nothing else.
    """

    def __init__(self, options: Options, file: RandomAccessFile, check_keys: CheckKeys) -> None:
        self._options = options
        self._file = file
        self._check_keys = check_keys
        comparator = InternalKeyComparator(options.comparator)
        self._compare = comparator.compare
        self._is_bytewise = comparator.order.is_bytewise
        self.problems: list[Problem] = []
        self.false_negatives = 0
        """Keys of the blocks read so far that a Get misses because a filter wrongly says no."""
        self.has_index = False
        self._index_keys: list[bytes] = []
        self._handles: list[BlockHandle] = []
        self._filters: list[FilterReader] = []
        self._reach = _REACH
        footer = self._read_footer()
        if footer is not None:
            self._read_index(footer.index)
            self._read_filters(footer.metaindex)

    def pieces(self) -> Iterator[FoundBlock | Hole]:
        """Yield the data blocks and the holes in key order.  O(size of the file)."""
        for piece in self._read_by_index() if self.has_index else self._search_blocks():
            if isinstance(piece, FoundBlock):
                user_keys = [key[:-TAG_SIZE] for key in piece.keys]
                self.false_negatives += count_denied(self._filters, piece.offset, user_keys)
            yield piece

    def codec_of(self, block: FoundBlock) -> int:
        """The codec of a block that was found; no compression if it can no longer be read."""
        end = block.offset + block.size - BLOCK_TRAILER_SIZE
        try:
            kind = _read(self._file, end, 1)[0]
            return codec_of(kind, _read(self._file, block.offset, 1))
        except (CorruptionError, IndexError):
            return NO_COMPRESSION

    # Metadata

    def _read_footer(self) -> Footer | None:
        start = self._file.size - FOOTER_SIZE
        try:
            if start < 0:
                raise CorruptionError(f"{self._file.size} bytes are too few for a footer")
            return Footer.decode(_read(self._file, start, FOOTER_SIZE))
        except CorruptionError as error:
            self.problems.append(Problem(max(start, 0), FOOTER_SIZE, error.reason))
            return None

    def _read_index(self, handle: BlockHandle) -> None:
        try:
            keys, values = self._entries(handle)
            handles: list[BlockHandle] = []
            end = 0
            for value in values:
                block, _ = BlockHandle.decode(value)
                if block.offset < end:
                    raise CorruptionError("blocks that overlap")
                end = block.offset + block.size + BLOCK_TRAILER_SIZE
                handles.append(block)
            self._check_keys(keys)
            self._check_rising(None, keys)
        except CorruptionError as error:
            self.problems.append(_problem("index", handle, error))
            return
        self._index_keys = keys
        self._handles = handles
        self.has_index = True

    def _read_filters(self, handle: BlockHandle) -> None:
        try:
            keys, values = self._entries(handle)
        except CorruptionError as error:
            self.problems.append(_problem("metaindex", handle, error))
            return
        policies = {policy.name.encode(): policy for policy in usable_policies(self._options)}
        for key, value in zip(keys, values, strict=True):
            if not key.startswith((BLOCK_FILTER_PREFIX, TABLE_FILTER_PREFIX, PREFIX_FILTER_PREFIX)):
                continue
            where = handle
            try:
                where, _ = BlockHandle.decode(value)
                contents = self._contents(where)
                for prefix, reader in _READERS.items():
                    policy = policies.get(key.removeprefix(prefix))
                    if policy is not None and key.startswith(prefix):
                        self._filters.append(reader(policy, contents))
            except CorruptionError as error:
                self.problems.append(_problem("filter", where, error))

    # Data

    def _read_by_index(self) -> Iterator[FoundBlock | Hole]:
        lower: bytes | None = None
        for number, handle in enumerate(self._handles):
            upper = self._index_keys[number]
            size = handle.size + BLOCK_TRAILER_SIZE
            try:
                keys, values = self._entries(handle)
                self._check_data(lower, keys)
                if self._compare(keys[-1], upper) > 0:
                    raise CorruptionError("a block runs past its index key")
                yield FoundBlock(handle.offset, size, keys, values)
            except CorruptionError as error:
                yield Hole(handle.offset, size, error.reason, lower, upper, self._filters)
            lower = upper

    def _search_blocks(self) -> Iterator[FoundBlock | Hole]:
        """Search for blocks from the file's first byte on."""
        at = 0
        lower: bytes | None = None
        while at < self._file.size:
            start = at
            end = self._end_of_block(at)
            piece = None if end < 0 else self._check_block(start, end, lower)
            if end >= 0 and piece is None:
                return  # an intact block that holds no data: the data blocks come before it
            if piece is None:
                start, piece = self._next_block(at, lower)
            if start > at:
                # Which blocks were there is unknown, and so is which filters are theirs.
                upper = piece.keys[0] if isinstance(piece, FoundBlock) else None
                yield Hole(at, start - at, "no block can be found here", lower, upper, [])
            if piece is None:
                return
            yield piece
            at = start + piece.size
            if isinstance(piece, FoundBlock):
                lower = piece.keys[-1]
                self._reach = max(self._reach, 2 * piece.size)
        # The file ends with data: what came after it is unknown.
        yield Hole(at, 0, "the table is cut short", lower, None, [])

    def _end_of_block(self, start: int) -> int:
        """Return the end of the block at ``start``, without its checksum; -1 if no block starts
        there."""
        limit = min(self._file.size - 4, start + self._reach)
        crc = -1
        for at in range(start, limit, _WINDOW):
            length = min(_WINDOW, limit - at)
            end, crc = find_sealed_end(self._window(at, length + 4), length, crc)
            if end >= 0:
                return at + end
        return -1

    def _next_block(self, at: int, lower: bytes | None) -> tuple[int, FoundBlock | None]:
        """Return the start of the first readable data block at or after ``at``, and the block.

        If there is none: where the index begins, or the end of the file; and None.
        """
        finder = SealFinder(at)
        limit = self._file.size - 4
        for base in range(at, limit, _STEP):
            length = min(_STEP, limit - base)
            window = self._window(base, length + _LOOK_AHEAD)
            starts = [
                skip for skip in range(length) if base + skip == at or may_begin_block(window, skip)
            ]
            for start, end in finder.feed(window, length, starts):
                try:
                    if _is_index(*self._entries(_handle(start, end)), start):
                        return start, None
                except CorruptionError:
                    continue
                piece = self._check_block(start, end, lower)
                if isinstance(piece, FoundBlock):
                    return start, piece
        return self._file.size, None

    def _check_block(self, start: int, end: int, lower: bytes | None) -> FoundBlock | Hole | None:
        """The block whose checksum fits, or a hole; None if it is not a data block."""
        size = end + 4 - start
        try:
            keys, values = self._entries(_handle(start, end))
            if not keys or _is_index(keys, values, start):
                return None
            self._check_keys(keys)
        except CorruptionError:
            return None
        try:
            self._check_rising(lower, keys)
        except CorruptionError as error:
            return Hole(start, size, error.reason, lower, None, [])
        return FoundBlock(start, size, keys, values)

    def _window(self, at: int, length: int) -> bytes:
        """Bytes of the file; zeros for sectors that cannot be read, and after the end."""
        try:
            return _read(self._file, at, length).ljust(length, b"\0")
        except CorruptionError:
            if at % _SECTOR + length <= _SECTOR:
                return bytes(length)
        step = _SECTOR - at % _SECTOR
        parts = [self._window(at, step)]
        for here in range(at + step, at + length, _SECTOR):
            parts.append(self._window(here, min(_SECTOR, at + length - here)))
        return b"".join(parts)

    def _entries(self, handle: BlockHandle) -> tuple[list[bytes], list[bytes]]:
        return Block(self._contents(handle), self._options.max_block_bytes).entries()

    def _contents(self, handle: BlockHandle) -> bytes:
        try:
            return read_block(self._file, handle, self._options.max_block_bytes)
        except OSError as error:
            raise _damage(error) from None

    def _check_data(self, lower: bytes | None, keys: list[bytes]) -> None:
        if not keys:
            raise CorruptionError("an empty data block")
        self._check_keys(keys)
        self._check_rising(lower, keys)

    def _check_rising(self, lower: bytes | None, keys: list[bytes]) -> None:
        if self._is_bytewise:
            # Nearly always no two keys have the same user key: a third of the time, interpreted.
            rising = keys if lower is None else [lower, *keys]
            users = [key[:-TAG_SIZE] for key in rising]
            if all(map(operator.lt, users, users[1:])):
                return
        for key in keys:
            if lower is not None and self._compare(lower, key) >= 0:
                raise CorruptionError(OUT_OF_ORDER)
            lower = key


def may_begin_block(data: bytes, at: int) -> bool:
    """True if a data block may start at ``at``: a cheap test, which saves computing a checksum.

    A block's first entry shares no bytes, and its key has at least the eight bytes of a tag.
    Snappy writes the uncompressed length and a literal before it; zstd and zlib have magic bytes.
    (Raw deflate may begin with any byte: such a block is only found right after a readable one.)
    """
    if at + 3 > len(data):
        return False
    if data[at] == 0:
        return data[at + 1] >= 8
    if data[at : at + 4] == b"\x28\xb5\x2f\xfd" or data[at] == 0x78:
        return True
    try:
        _, position = decode_varint32(data, at)
    except CorruptionError:
        return False
    if position >= len(data) or data[position] & 3 != 0:
        return False
    length = data[position] >> 2
    position += 1 if length < 60 else length - 58
    return position + 1 < len(data) and data[position] == 0 and data[position + 1] >= 8


def _is_index(keys: list[bytes], values: list[bytes], start: int) -> bool:
    """Return True if a block is the index: all of its values are handles of adjacent blocks, from
    the file's first byte to an offset before ``start``."""
    expected = 0
    for value in values:
        try:
            handle, end = BlockHandle.decode(value)
        except CorruptionError:
            return False
        if end != len(value) or handle.offset != expected:
            return False
        expected += handle.size + BLOCK_TRAILER_SIZE
    return bool(keys) and expected <= start


def _handle(start: int, end: int) -> BlockHandle:
    """The handle of a block whose type byte is just before ``end``."""
    return BlockHandle(start, end - 1 - start)


def _problem(what: str, handle: BlockHandle, error: CorruptionError) -> Problem:
    return Problem(handle.offset, handle.size + BLOCK_TRAILER_SIZE, f"{what}: {error.reason}")


def _read(file: RandomAccessFile, offset: int, length: int) -> bytes:
    try:
        return file.read(offset, length)
    except OSError as error:
        raise _damage(error) from None


def _damage(error: OSError) -> Exception:
    """Return the damage of an unreadable sector; any other ``OSError`` unchanged."""
    if error.errno != errno.EIO:
        return error
    return CorruptionError(f"cannot be read: {error.strerror}")

"""Reads what can be read of a table that may be damaged: good blocks, and the holes between them.

Where the index is good it says where the blocks lie, and what a bad block held is known within
bounds.  Without an index the blocks themselves are found: they adjoin, and each ends in a type byte
and a checksum of everything from its first byte on, so that running one checksum forward until the
four bytes that follow agree with it finds the end (by chance, once in 2^32 candidates).  Behind a
bad block, where the next one begins is not known either: all likely places are tried at once.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator

from lsmkv.env.base import RandomAccessFile
from lsmkv.errors import CorruptionError
from lsmkv.format.keys import TAG_SIZE, InternalKeyComparator
from lsmkv.options import Options
from lsmkv.table.block import Block
from lsmkv.table.filter_block import (
    BLOCK_FILTER_PREFIX,
    TABLE_FILTER_PREFIX,
    FilterBlockReader,
    FilterReader,
    TableFilterReader,
    count_denied,
)
from lsmkv.table.format import (
    BLOCK_TRAILER_SIZE,
    FOOTER_SIZE,
    BlockHandle,
    Footer,
    read_block,
)
from lsmkv.util.checksum import SealFinder, find_sealed_end
from lsmkv.util.coding import decode_varint32

CheckKeys = Callable[[list[bytes]], None]
"""Raises :class:`CorruptionError` if these cannot be keys of entries."""

OUT_OF_ORDER = "keys out of order"
"""The reason of a hole whose block is whole but for that: the comparator may be the wrong one."""

_WINDOW = 64 * 1024
_STEP = 16 * 1024
_LOOK_AHEAD = 16
_SECTOR = 4096
_REACH = 1024 * 1024
"""No farther than this is the end of one block looked for, or twice the size of the largest one
seen; a larger one is found as one of many that may begin anywhere."""


class Problem:
    """Something wrong at a place in a file."""

    __slots__ = ("offset", "reason", "size")

    def __init__(self, offset: int, size: int, reason: str) -> None:
        self.offset = offset
        self.size = size
        """Bytes that it makes useless; 0 where that cannot be said."""
        self.reason = reason

    def __repr__(self) -> str:
        return f"Problem({self.offset}, {self.size}, {self.reason!r})"


class Hole(Problem):
    """One data block, or several, that cannot be read, and what is known of their keys.

    They sort after ``lower`` and not after ``upper``; None is no bound.
    """

    __slots__ = ("_filters", "lower", "upper")

    def __init__(
        self,
        offset: int,
        size: int,
        reason: str,
        lower: bytes | None,
        upper: bytes | None,
        filters: list[FilterReader],
    ) -> None:
        """``filters`` speak for a block at ``offset``."""
        super().__init__(offset, size, reason)
        self.lower = lower
        self.upper = upper
        self._filters = filters

    @property
    def has_filter(self) -> bool:
        """Whether a filter tells more than the bounds do."""
        return any(reader.filter_for(self.offset) is not None for reader in self._filters)

    def may_hold(self, user_key: bytes) -> bool:
        """False only if no filter lets ``key`` pass; the bounds are the caller's to look at."""
        return all(reader.may_match(self.offset, user_key, -1) for reader in self._filters)


class Found:
    """One data block that can be read."""

    __slots__ = ("keys", "offset", "size", "values")

    def __init__(self, offset: int, size: int, keys: list[bytes], values: list[bytes]) -> None:
        self.offset = offset
        self.size = size
        self.keys = keys
        self.values = values


class Salvage:
    """One table, looked at without trust.  The file stays the caller's.

    ``problems`` lists what is wrong with footer, index, metaindex and filters; ``pieces`` goes
    through the data.  Only ``OSError`` (but for EIO, which is damage here) and
    :class:`UnsupportedCompressionError` are raised.
    """

    def __init__(self, options: Options, file: RandomAccessFile, check_keys: CheckKeys) -> None:
        self._options = options
        self._file = file
        self._check_keys = check_keys
        self._compare = InternalKeyComparator(options.comparator).compare
        self.problems: list[Problem] = []
        self.denied = 0
        """Keys, of the blocks gone through so far, that lookups miss: a filter denies them."""
        self.has_index = False
        self._index_keys: list[bytes] = []
        self._handles: list[BlockHandle] = []
        self._filters: list[FilterReader] = []
        self._reach = _REACH
        footer = self._read_footer()
        if footer is not None:
            self._read_index(footer.index)
            self._read_filters(footer.metaindex)

    def pieces(self) -> Iterator[Found | Hole]:
        """The data blocks in the order of their keys, good or not.  O(size of the file)."""
        for piece in self._by_index() if self.has_index else self._by_search():
            if isinstance(piece, Found):
                user_keys = [key[:-TAG_SIZE] for key in piece.keys]
                self.denied += count_denied(self._filters, piece.offset, user_keys)
            yield piece

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
        policy = self._options.filter_policy
        for key, value in zip(keys, values, strict=True):
            if not key.startswith((BLOCK_FILTER_PREFIX, TABLE_FILTER_PREFIX)):
                continue
            where = handle
            try:
                where, _ = BlockHandle.decode(value)
                contents = self._contents(where)
                if policy is None:
                    continue
                if key == BLOCK_FILTER_PREFIX + policy.name.encode():
                    self._filters.append(FilterBlockReader(policy, contents))
                elif key == TABLE_FILTER_PREFIX + policy.name.encode():
                    self._filters.append(TableFilterReader(policy, contents))
            except CorruptionError as error:
                self.problems.append(_problem("filter", where, error))

    # Data

    def _by_index(self) -> Iterator[Found | Hole]:
        lower: bytes | None = None
        for number, handle in enumerate(self._handles):
            upper = self._index_keys[number]
            size = handle.size + BLOCK_TRAILER_SIZE
            try:
                keys, values = self._entries(handle)
                self._check_data(lower, keys)
                if self._compare(keys[-1], upper) > 0:
                    raise CorruptionError("a block runs past its index key")
                yield Found(handle.offset, size, keys, values)
            except CorruptionError as error:
                yield Hole(handle.offset, size, error.reason, lower, upper, self._filters)
            lower = upper

    def _by_search(self) -> Iterator[Found | Hole]:
        """Every block that can be found, from the file's first byte on."""
        at = 0
        lower: bytes | None = None
        while at < self._file.size:
            start = at
            end = self._end_of_block(at)
            piece = None if end < 0 else self._judge(start, end, lower)
            if end >= 0 and piece is None:
                return  # a whole block, but none of data: these come first
            if piece is None:
                start, piece = self._next_block(at, lower)
            if start > at:
                # Which blocks lay there is not known, and so neither which filters speak for them.
                upper = piece.keys[0] if isinstance(piece, Found) else None
                yield Hole(at, start - at, "no block can be made out", lower, upper, [])
            if piece is None:
                return
            yield piece
            at = start + piece.size
            if isinstance(piece, Found):
                lower = piece.keys[-1]
                self._reach = max(self._reach, 2 * piece.size)
        # The file ends with data: nobody knows what came after it.
        yield Hole(at, 0, "the table is cut short", lower, None, [])

    def _end_of_block(self, start: int) -> int:
        """Where the block at ``start`` ends, but for its checksum; -1 if none begins there."""
        limit = min(self._file.size - 4, start + self._reach)
        crc = -1
        for at in range(start, limit, _WINDOW):
            length = min(_WINDOW, limit - at)
            end, crc = find_sealed_end(self._window(at, length + 4), length, crc)
            if end >= 0:
                return at + end
        return -1

    def _next_block(self, at: int, lower: bytes | None) -> tuple[int, Found | None]:
        """The first good data block from ``at`` on, and where it begins.

        If there is none: where the index begins, or the file's end.
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
                piece = self._judge(start, end, lower)
                if isinstance(piece, Found):
                    return start, piece
        return self._file.size, None

    def _judge(self, start: int, end: int, lower: bytes | None) -> Found | Hole | None:
        """A block that is whole; None if it is not one of data."""
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
        return Found(start, size, keys, values)

    def _window(self, at: int, length: int) -> bytes:
        """Bytes of the file; zeros for sectors that cannot be read, and behind the end."""
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
        for key in keys:
            if lower is not None and self._compare(lower, key) >= 0:
                raise CorruptionError(OUT_OF_ORDER)
            lower = key


def may_begin_block(data: bytes, at: int) -> bool:
    """Whether a data block's first bytes may stand at ``at``: a cheap look, to spare checksums.

    A block's first entry shares nothing, and its key has a tag of eight bytes at least.  Snappy
    puts the length of the whole and a literal before that; zstd and zlib begin in their own ways.
    (Raw deflate may begin with any byte: such a block is only found right behind a good one.)
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
    """Whether all values are the handles of blocks that follow each other, from the file's first
    byte to somewhere before ``start``: that is an index."""
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
    """Of a block with its type byte just before ``end``."""
    return BlockHandle(start, end - 1 - start)


def _problem(what: str, handle: BlockHandle, error: CorruptionError) -> Problem:
    return Problem(handle.offset, handle.size + BLOCK_TRAILER_SIZE, f"{what}: {error.reason}")


def _read(file: RandomAccessFile, offset: int, length: int) -> bytes:
    try:
        return file.read(offset, length)
    except OSError as error:
        raise _damage(error) from None


def _damage(error: OSError) -> Exception:
    """A sector that cannot be read is damage; any other failure stays one."""
    if error.errno != errno.EIO:
        return error
    return CorruptionError(f"cannot be read: {error.strerror}")

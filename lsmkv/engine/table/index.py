"""The index of an open table: a key and a handle for each of its data blocks, decoded.

The index key of a data block is an internal key at or after the last one of the block, and before
the first one of the next.  A table makes its index when it is opened; it is immutable, and
any thread may use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from librt.vecs import append, vec
from mypy_extensions import i64

from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.format.keys import MAX_SEQUENCE, TAG_SIZE, sequence_in, user_key_of
from lsmkv.engine.table.format import BLOCK_TRAILER_SIZE, BlockHandle
from lsmkv.engine.util.search import SortedKeys

if TYPE_CHECKING:
    from lsmkv.engine.format.key_order import KeyOrder


_OBJECT = 40
"""Bytes of memory of a ``bytes`` object in addition to its content, rounded as the allocator
does."""
_FOR_EACH = 2 * 8 + 2 * 8 + 8
"""For each data block: two references to keys, its place, and its entry in the block cache."""


class TableIndex:
    """Data blocks by number, from 0 on in the order of the file.

    All methods but :meth:`block_for` are O(1)."""

    def __init__(
        self, keys: list[bytes], handles: list[bytes], order: KeyOrder, limit: int
    ) -> None:
        """``keys`` and ``handles`` are the entries of the index block; no block may end beyond
        ``limit``.

        :class:`CorruptionError` for a bad handle, or a key that is not an internal key.
        """
        self.keys = keys
        """The index keys."""
        self._sort_keys: list[Any] = order.of_all([user_key_of(key) for key in keys])
        self._sorted = SortedKeys(self._sort_keys)
        offsets = vec[i64](capacity=len(handles))
        sizes = vec[i64](capacity=len(handles))
        for handle in handles:
            block, _ = BlockHandle.decode(handle)
            if block.offset + block.size + BLOCK_TRAILER_SIZE > limit:
                raise CorruptionError(f"{block} lies beyond the end of the file")
            offsets = append(offsets, block.offset)
            sizes = append(sizes, block.size + BLOCK_TRAILER_SIZE)
        self.offsets = offsets
        """Start of each data block."""
        self.sizes = sizes
        """The size of each in the file, trailer included."""
        self.memory: i64 = _held(keys)
        """About how many bytes the index takes in memory."""

    def __len__(self) -> int:
        """The number of data blocks."""
        return len(self.keys)

    def block_for(self, sort_key: Any, sequence: i64) -> i64:
        """The number of the first block that may hold the user key in a version at or before
        ``sequence``, or any later key.  O(log of the number of blocks).

        Returns the number of blocks if there is none.  If ``sequence`` is -1, all versions of the
        key are skipped: the block is the first that may hold a later key.  ``sort_key`` is the user
        key's sort key (:meth:`~lsmkv.engine.format.key_order.KeyOrder.of`).
        """
        at = self._sorted.first_at_or_after(sort_key)
        if sequence < MAX_SEQUENCE:
            # The versions of one key may be spread over several blocks.
            sort_keys = self._sort_keys
            while at < len(sort_keys) and not sort_key < sort_keys[at]:
                key = self.keys[at]
                if sequence_in(key[len(key) - TAG_SIZE :]) <= sequence:
                    break
                at += 1
        return at

    def end(self, number: i64) -> i64:
        """Return the end of a block, including its trailer."""
        return self.offsets[number] + self.sizes[number]

    def adjoins(self, number: i64) -> bool:
        """Return True if a block begins where the one before it ends.

        Blocks need not be adjacent, but every known writer makes them so.
        """
        return self.offsets[number] == self.end(number - 1)

    def handle(self, number: i64) -> BlockHandle:
        """The block handle."""
        return BlockHandle(self.offsets[number], self.sizes[number] - BLOCK_TRAILER_SIZE)


def _held(keys: list[bytes]) -> i64:
    """About what these internal keys, their user keys and the rest of an index take in memory."""
    total: i64 = 0
    for key in keys:
        total += 2 * (len(key) + _OBJECT) + _FOR_EACH
    return total

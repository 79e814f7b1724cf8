"""A block: sorted entries with shared prefixes, and restart points to search by.

An entry is ``varint32 shared, varint32 unshared, varint32 value length, key suffix, value``; its
key is the first ``shared`` bytes of the key before it, then the suffix.  At a restart point (every
16th entry of a data block, every entry of an index) the key is whole.  After the entries stand the
restart points' offsets and their number, each a fixed32.

The keys of data blocks are internal keys, and :meth:`Block.get` and
:class:`~lsmkv.engine.table.block_iterator.BlockIterator` rely on that.  :meth:`Block.entries` reads
any block.  Many threads may use a block without a lock: it is immutable, except that it may keep
its decoded form.

An entry of a few bytes may encode a key of megabytes, which it shares with the one before it, so
that a small block could encode more keys than fit into memory.  The sum of the shared lengths in a
block is therefore bounded.  (Source: LevelDB, ``table/block.cc``.)

Fast paths: a search builds no key.  The number of bytes that an entry shares with the one before it
mostly decides how it compares.  Where that search is slower than bisection (interpreted, by 3 us,
and with a custom comparator), a block is decoded and bisected from then on.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Final

from librt.strings import read_i64_le

from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.format.key_order import KeyOrder
from lsmkv.engine.format.keys import MAX_SEQUENCE, TAG_SIZE, Entry, user_key_of
from lsmkv.engine.util.coding import MAX_UINT32, decode_fixed32, decode_varint32
from lsmkv.engine.util.compression import DEFAULT_MAX_BLOCK_BYTES
from lsmkv.engine.util.search import IS_COMPILED, common, is_below

if TYPE_CHECKING:
    from mypy_extensions import i64

_SEARCHES_BEFORE_DECODING: Final = 4
"""Decoding costs about as much as this many searches, and most blocks are evicted before."""


class Block:
    """The reader of one block.  Every length is checked before it is used."""

    __slots__ = (
        "_decoded", "_orders", "_restarts", "_searches", "data", "end", "max_shared", "place",
    )  # fmt: skip

    def __init__(
        self, data: bytes, max_shared: int = DEFAULT_MAX_BLOCK_BYTES, size: i64 = -1
    ) -> None:
        """The block is in the first ``size`` bytes of ``data``, or in all; no trailer is read.

        :class:`CorruptionError` if it is not a block.  It also counts as damaged if its keys share
        more than ``max_shared`` bytes in total.
        """
        if size < 0:
            size = len(data)
        count: i64 = decode_fixed32(data, size - 4)
        if count > (size - 4) // 4:
            raise CorruptionError(f"{count} restart points do not fit the block", None, 0)
        self.data = data
        self.place: i64 = 0
        """Table and block number in one, if a block cache has it as its latest; else 0."""
        self.max_shared: i64 = max_shared
        self._restarts: i64 = count
        self.end: i64 = size - 4 - 4 * count
        """End of the entries in ``data``."""
        self._searches: i64 = 0
        self._decoded: tuple[list[bytes], list[bytes]] | None = None
        self._orders: list[Any] | None = None  # no list: most blocks are never decoded

    def header(self, at: i64) -> tuple[i64, i64, i64, i64]:
        """An entry's three lengths, and the offset of its key's suffix; all checked."""
        data = self.data
        # Three bytes can be read: the number of restart points follows the entries.
        shared: i64 = data[at]
        unshared: i64 = data[at + 1]
        size: i64 = data[at + 2]
        begin = at + 3
        if (shared | unshared | size) >= 128:
            shared, begin = decode_varint32(data, at)
            unshared, begin = decode_varint32(data, begin)
            size, begin = decode_varint32(data, begin)
        if begin + unshared + size > self.end:
            raise CorruptionError("an entry runs past the block", None, at)
        return shared, unshared, size, begin

    def entries(self) -> tuple[list[bytes], list[bytes]]:
        """All keys and all values, in order; two lists of one length."""
        if self._decoded is not None:
            return self._decoded
        data = self.data
        end = self.end
        at: i64 = 0
        keys: list[bytes] = []
        values: list[bytes] = []
        key = b""
        spent: i64 = 0
        while at < end:
            shared, unshared, size, at = self.header(at)
            if shared > 0 and spent > self.max_shared:
                raise CorruptionError("keys share more bytes than a block may hold", None, at)
            spent += shared
            if shared > len(key):
                raise CorruptionError("an entry shares more than the previous key has", None, at)
            key = key[:shared] + data[at : at + unshared]
            at += unshared
            keys.append(key)
            values.append(data[at : at + size])
            at += size
        return keys, values

    def restart_before(self, user_key: bytes, order: KeyOrder) -> i64:
        """Offset of the last restart point whose user key is before this one; else of the first."""
        data = self.data
        bytewise = order.is_bytewise
        low: i64 = 0
        high: i64 = self._restarts - 1
        while low < high:
            middle = (low + high + 1) >> 1
            shared, unshared, _size, at = self.header(self._restart(middle))
            if shared != 0:
                raise CorruptionError("the key of a restart point is incomplete", None, at)
            size = unshared - TAG_SIZE
            if size < 0:
                raise CorruptionError("a key shorter than its tag", None, at)
            if bytewise:
                before = is_below(data, at, size, user_key)
            else:
                before = order.compare(data[at : at + size], user_key) < 0
            if before:
                low = middle
            else:
                high = middle - 1
        return 0 if low == 0 else self._restart(low)

    def _restart(self, index: i64) -> i64:
        at = self.end + 4 * index
        # Eight bytes can be read: the number of restart points follows the last one.
        offset: i64 = read_i64_le(self.data, at) & MAX_UINT32
        if offset > self.end or (offset == self.end and self.end > 0):
            raise CorruptionError("a restart point beyond the entries", None, at)
        return offset

    def _get_decoded(
        self, user_key: bytes, sequence: i64, order: KeyOrder
    ) -> tuple[i64, bytes | None]:
        """Return the result of :meth:`get`, by bisection of all keys: the plain search.

        It is used with custom comparators, and by interpreted code that searches a block often.
        """
        keys, values = self.entries()
        orders = self._orders
        if orders is None:
            orders = order.of_all([user_key_of(key) for key in keys])
            if not order.is_bytewise or not IS_COMPILED:
                self._orders = orders
                self._decoded = keys, values
        wanted = order.of(user_key)
        at: i64 = bisect_left(orders, wanted)
        while at < len(keys) and not wanted < orders[at]:
            key = keys[at]
            tag: i64 = read_i64_le(key, len(key) - TAG_SIZE)
            if (tag >> 8) & MAX_SEQUENCE <= sequence:
                return tag, values[at]
            at += 1
        return 0, None

    # Beyond the tour: parts and checks

    def __len__(self) -> int:
        """Its size in bytes, for a cache's charge."""
        return self.end + 4 * self._restarts + 4

    def first_key(self) -> bytes:
        """The first entry's key; empty if the block has no entries."""
        if self.end == 0:
            return b""
        _, unshared, _, at = self.header(0)
        return self.data[at : at + unshared]

    @property
    def last_restart(self) -> i64:
        """Offset of the last restart point."""
        return 0 if self._restarts == 0 else self._restart(self._restarts - 1)

    def restart_points(self) -> list[int]:
        """Offsets of the entries whose keys are whole."""
        return [self._restart(index) for index in range(self._restarts)]

    def check(self) -> None:
        """Raise :class:`CorruptionError` unless the restart points ascend from the first entry, and
        each is an entry with a complete key, as searches expect."""
        whole: set[int] = set() if self.end > 0 else {0}
        at: i64 = 0
        while at < self.end:
            shared, unshared, size, key_at = self.header(at)
            if shared == 0:
                whole.add(at)
            at = key_at + unshared + size
        points = self.restart_points()
        if points[:1] != [0] or points != sorted(set(points)) or not whole.issuperset(points):
            raise CorruptionError("invalid restart points", None, self.end)

    # Fast paths: entries whose tag is not split off, and a search that builds no key

    def tagged_entries(self) -> list[Entry]:
        """All entries; :class:`CorruptionError` for a key shorter than a tag."""
        data = self.data
        end = self.end
        most = self.max_shared
        found: list[Entry] = []
        user_key = b""
        tagged = b""
        at: i64 = 0
        spent: i64 = 0
        while at < end:
            shared, unshared, size, at = self.header(at)
            middle: i64 = at + unshared - TAG_SIZE
            stop: i64 = at + unshared + size
            if shared == 0 and unshared >= TAG_SIZE:
                user_key = data[at:middle]
                tagged = data[middle:stop]
            else:
                if spent > most:
                    raise CorruptionError("keys share more bytes than a block may hold", None, at)
                spent += shared
                if unshared >= TAG_SIZE and shared <= len(user_key):
                    user_key = user_key[:shared] + data[at:middle]
                    tagged = data[middle:stop]
                else:  # a part of the tag is shared
                    key = user_key + tagged[:TAG_SIZE]
                    if shared > len(key):
                        raise CorruptionError(
                            "an entry shares more than the previous key has", None, at
                        )
                    key = key[:shared] + data[at : at + unshared]
                    if len(key) < TAG_SIZE:
                        raise CorruptionError("a key shorter than its tag", None, at)
                    user_key = key[: len(key) - TAG_SIZE]
                    tagged = key[len(key) - TAG_SIZE :] + data[at + unshared : stop]
            found.append((user_key, tagged))
            at = stop
        return found

    def get(self, user_key: bytes, sequence: i64, order: KeyOrder) -> tuple[i64, bytes | None]:
        """The newest version of a user key at or before ``sequence``: its tag, and its value.

        0 and None if the block has no such version.  The tag is read as a signed 64-bit
        number, with the kind in its lowest byte, so it is negative for sequences from 2^55 on.
        O(log of the restart points), then a restart interval.
        """
        if not order.is_bytewise or (not IS_COMPILED and self._is_searched_often()):
            return self._get_decoded(user_key, sequence, order)
        data = self.data
        end = self.end
        if self._restarts == 0 or end == 0:
            return 0, None
        at = self.restart_before(user_key, order)
        wanted: i64 = len(user_key)
        matched: i64 = 0  # bytes that the key before has in common with ``user_key``
        ended = True  # whether they are all of that user key
        before: i64 = 0  # the length of the internal key before
        while at < end:
            # The lengths, as header reads them, which here takes no call.
            shared: i64 = data[at]
            unshared: i64 = data[at + 1]
            size: i64 = data[at + 2]
            if (shared | unshared | size) < 128 and at + 3 + unshared + size <= end:
                at += 3
            else:
                shared, unshared, size, at = self.header(at)
            if shared > before:
                raise CorruptionError("an entry shares more than the previous key has", None, at)
            before = shared + unshared
            length = before - TAG_SIZE
            if length < 0:
                raise CorruptionError("a key shorter than its tag", None, at)
            if shared > matched:
                if ended and length != matched:
                    # It shares a part of the tag of the entry before.
                    return self._get_decoded(user_key, sequence, order)
                # Otherwise it compares as the entry before, or has the same user key.
            elif length < shared:
                return self._get_decoded(user_key, sequence, order)
            else:
                limit = length if length < wanted else wanted
                begin = at - shared
                matched = common(data, begin, user_key, shared, limit)
                if matched < limit:
                    if data[begin + matched] > user_key[matched]:
                        return 0, None
                    ended = False
                elif length > wanted:
                    return 0, None
                elif length < wanted:
                    ended = True
                else:
                    at += unshared
                    tag = read_i64_le(data, at - TAG_SIZE)
                    if sequence >= MAX_SEQUENCE or (tag >> 8) & MAX_SEQUENCE <= sequence:
                        return tag, data[at : at + size]
                    return self._get_older(data[at - TAG_SIZE : at], user_key, at + size, sequence)
            at += unshared + size
        return 0, None

    def _get_older(
        self, tag: bytes, user_key: bytes, at: i64, sequence: i64
    ) -> tuple[i64, bytes | None]:
        """:meth:`get`, continued at the entry at an offset, after a version whose tag is too
        new."""
        data = self.data
        key = user_key + tag
        while at < self.end:
            shared, unshared, size, at = self.header(at)
            if shared > len(key):
                raise CorruptionError("an entry shares more than the previous key has", None, at)
            older = key[:shared] + data[at : at + unshared]
            if len(older) != len(key) or not older.startswith(user_key):
                break
            at += unshared
            found: i64 = read_i64_le(older, len(user_key))
            if (found >> 8) & MAX_SEQUENCE <= sequence:
                return found, data[at : at + size]
            key = older
            at += size
        return 0, None

    def _is_searched_often(self) -> bool:
        """Count a search.  Returns whether there were enough of them that decoding the block
        pays."""
        self._searches += 1
        return self._searches >= _SEARCHES_BEFORE_DECODING

"""A block: sorted entries with shared prefixes, and restart points to search by.

An entry is ``varint32 shared, varint32 unshared, varint32 value length, key suffix, value``; its
key is the first ``shared`` bytes of the key before it, then the suffix.  At a restart point (every
16th entry of a data block, every entry of an index) the key is whole.  After the entries stand the
restart points' offsets and their number, each a fixed32.

Source: LevelDB, ``table/block_builder.cc``, ``table/block.cc``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from librt.strings import BytesWriter, read_i64_le, write_i64_le

from lsmkv.errors import CorruptionError
from lsmkv.util.coding import (
    MAX_UINT32,
    append_fixed32,
    append_varint,
    decode_fixed32,
    decode_varint32,
)
from lsmkv.util.comparator import SortKey
from lsmkv.util.compression import DEFAULT_MAX_BLOCK_BYTES
from lsmkv.util.search import IS_COMPILED, common, is_below

if TYPE_CHECKING:
    from mypy_extensions import i64

TAG_SIZE: Final = 8
"""Bytes at the end of a key that tell one version of it from another."""

Row = tuple[bytes, bytes]
"""An entry in two pieces: its key but for a *tail* of some bytes; the tail, and the value behind.

So merging and building go by what orders the keys, and never take apart nor join the rest.
"""

# A few bytes of a block may stand for a key of megabytes, which it shares with the one before it:
# a small block can stand for keys beyond any memory.  The sum of the shared lengths in a block is
# therefore bounded.


_LARGE: Final = 1 << 20
"""Of blocks of so many bytes a builder does not keep the room for the next one."""

_SEARCHES_BEFORE_DECODING = 4
"""Decoding costs about as much as so many searches, and most blocks are evicted before."""


class BlockBuilder:
    """``(add* finish reset)*``; keys come in strictly rising order, which the caller sees to.

    Once the keys of a block have shared ``max_shared`` bytes, the next ones are written whole.
    No such block comes of LevelDB's default settings.
    """

    def __init__(self, restart_interval: int, max_shared: int = DEFAULT_MAX_BLOCK_BYTES) -> None:
        if restart_interval < 1:
            raise ValueError(f"restart_interval must be at least 1, not {restart_interval}")
        self._restart_interval = restart_interval
        self._max_shared = max_shared
        self._bytes = BytesWriter()
        self.reset()

    def reset(self) -> None:
        """Begin a new block."""
        if len(self._bytes) < _LARGE:
            self._bytes.truncate(0)
        else:
            self._bytes = BytesWriter()
        self._restarts = [0]
        self._since_restart: i64 = 0
        self._interval: i64 = self._restart_interval  # 0 once every key has to be whole
        self._shared_bytes: i64 = 0
        self.last_key = b""
        self._finished = False

    @property
    def empty(self) -> bool:
        """Whether nothing was added since the last reset."""
        return len(self._bytes) == 0

    def size_estimate(self) -> int:
        """Bytes that :meth:`finish` would return now: exact."""
        return len(self._bytes) + 4 * len(self._restarts) + 4

    def add(self, key: bytes, value: bytes) -> None:
        """Append one entry.  O(len(key) + len(value))."""
        if self._finished:
            raise ValueError("add after finish: reset the builder first")
        shared: i64 = 0
        if self._since_restart < self._interval:
            last = self.last_key
            shorter: i64 = min(len(last), len(key))
            while shared < shorter and last[shared] == key[shared]:
                shared += 1
        else:
            self._restarts.append(len(self._bytes))
            self._since_restart = 0
        unshared: i64 = len(key) - shared
        size: i64 = len(value)
        data = self._bytes
        _append_header(data, shared, unshared, size)
        data.write(key[shared:])
        data.write(value)
        self._shared_bytes += shared
        if self._shared_bytes > self._max_shared:
            self._interval = 0
        self.last_key = key
        self._since_restart += 1

    def add_rows(
        self, heads: list[bytes], rests: list[bytes], at: i64, stop: i64, tail: i64, full: i64
    ) -> i64:
        """Append the rows from ``at`` to ``stop``, or until the block has grown to ``full`` bytes.

        Their heads are in the order of their bytes.  Returns how far it got: it stops, too, before
        a row out of order, or that only :meth:`add` can append, as the first one of a block.
        """
        if self._finished or self.empty:
            return at
        data = self._bytes
        restarts = self._restarts
        since: i64 = self._since_restart
        interval: i64 = self._interval
        spent: i64 = self._shared_bytes
        most: i64 = self._max_shared
        size: i64 = len(data)
        room: i64 = full - 4 * len(restarts) - 4
        last = self.last_key[: len(self.last_key) - tail]
        common = b""  # what the last key is known to begin with
        known: i64 = 0
        begun = at
        while at < stop and size < room:
            head = heads[at]
            rest = rests[at]
            shared: i64 = 0
            if since < interval:
                shorter: i64 = len(last) if len(last) < len(head) else len(head)
                if known > 0 and head.startswith(common):
                    shared = known
                while shared < shorter and last[shared] == head[shared]:
                    shared += 1
                if shared == shorter or last[shared] > head[shared]:
                    break  # one is the beginning of the other, and tails matter
                if shared < known or shared > known + 3:
                    common = head[:shared]
                    known = shared
            else:
                if head <= last:
                    break
                restarts.append(size)
                room -= 4
                since = 0
                known = 0
            unshared: i64 = len(head) - shared + tail
            length: i64 = len(rest) - tail
            _append_header(data, shared, unshared, length)
            spent += shared
            if spent > most:
                interval = 0
            data.write(head[shared:])
            data.write(rest)
            size = len(data)
            last = head
            since += 1
            at += 1
        if at > begun:
            self.last_key = last + rests[at - 1][:tail]
        self._since_restart = since
        self._interval = interval
        self._shared_bytes = spent
        return at

    def finish(self) -> bytes:
        """The block's bytes."""
        if self._finished:
            raise ValueError("finish twice: reset the builder first")
        self._finished = True
        data = self._bytes
        for restart in self._restarts:
            append_fixed32(data, restart)
        append_fixed32(data, len(self._restarts))
        return data.getvalue()


def _append_header(data: BytesWriter, shared: i64, unshared: i64, size: i64) -> None:
    """Write the three lengths before an entry."""
    if (shared | unshared | size) < 128:
        end: i64 = len(data) + 3
        write_i64_le(data, shared | unshared << 8 | size << 16)
        data.truncate(end)
    else:
        append_varint(data, shared)
        append_varint(data, unshared)
        append_varint(data, size)


class Block:
    """The reader of one block.  Bounds are checked as bytes are used: damage never goes further."""

    __slots__ = ("_decoded", "_orders", "_restarts", "_searched", "data", "end", "max_shared")

    def __init__(self, data: bytes, max_shared: int = DEFAULT_MAX_BLOCK_BYTES) -> None:
        """``data`` is the block without its trailer; :class:`CorruptionError` if it holds none.

        A block is damaged, too, if its keys go on sharing after ``max_shared`` bytes.
        """
        count = decode_fixed32(data, len(data) - 4)
        if count > (len(data) - 4) // 4:
            raise CorruptionError(f"{count} restart points do not fit the block", None, 0)
        self.data = data
        self.max_shared: i64 = max_shared
        self._restarts: i64 = count
        self.end: i64 = len(data) - 4 - 4 * count
        """Where the entries end in ``data``."""
        self._searched: i64 = 0
        self._decoded: tuple[list[bytes], list[bytes]] | None = None
        self._orders: list[Any] | None = None  # no list: most blocks are never decoded

    def __len__(self) -> int:
        """Bytes held, for a cache's charge."""
        return len(self.data)

    def first_key(self) -> bytes:
        """The first entry's key; the empty key of a block without entries."""
        if self.end == 0:
            return b""
        _, unshared, _, at = self.header(0)
        return self.data[at : at + unshared]

    def newest(self, name: bytes) -> tuple[i64, bytes | None]:
        """Tag and value of the first entry whose key is ``name`` but for its tag; else 0 and None.

        A tag is the last eight bytes of a key, as a little-endian number.  For keys that sort, but
        for their tags, as bytes.  A binary search over the restart points, then a walk that puts no
        key together: how much an entry shares with the one before tells, mostly, how it compares.
        Interpreted, that walk takes 3 us; a block that is searched often is decoded then, and
        searched by bisection.
        """
        if not IS_COMPILED and self._is_decoded(_without_tag):
            return self._newest_decoded(name)
        data = self.data
        end = self.end
        if self._restarts == 0 or end == 0:
            return 0, None
        at = self.restart_below(name, TAG_SIZE)
        wanted: i64 = len(name)
        matched: i64 = 0  # bytes that the key before has in common with ``name``
        ended = True  # and whether they are all of that key
        before: i64 = 0  # its length
        while at < end:
            shared: i64 = data[at]
            unshared: i64 = 128
            size: i64 = 128
            if at + 3 <= end:
                unshared = data[at + 1]
                size = data[at + 2]
            if (shared | unshared | size) < 128 and at + 3 + unshared + size <= end:
                at += 3
            else:
                shared, unshared, size, at = self.header(at)
            if shared > before:
                raise CorruptionError("an entry shares more than the key before it has", None, at)
            before = shared + unshared
            length = before - TAG_SIZE
            if length < 0:
                raise CorruptionError("a key shorter than its tag", None, at)
            if shared > matched:
                if ended and length != matched:
                    return self._newest_slowly(name)  # it shares some of the other's tag
                # Else it is as far below ``name`` as the one before, or has the same place.
            elif length < shared:
                return self._newest_slowly(name)
            else:
                limit = length if length < wanted else wanted
                begin = at - shared
                matched = common(data, begin, name, shared, limit)
                if matched < limit:
                    if data[begin + matched] > name[matched]:
                        return 0, None
                    ended = False
                elif length > wanted:
                    return 0, None
                elif length < wanted:
                    ended = True
                elif unshared < TAG_SIZE:
                    return self._newest_slowly(name)
                else:
                    at += unshared
                    return read_i64_le(data, at - TAG_SIZE), data[at : at + size]
            at += unshared + size
        return 0, None

    def _newest_slowly(self, name: bytes) -> tuple[i64, bytes | None]:
        """:meth:`newest` for what its walk does not decide; O(the block)."""
        keys, values = self.entries()
        for at, key in enumerate(keys):
            if len(key) >= TAG_SIZE and key[: len(key) - TAG_SIZE] == name:
                return read_i64_le(key, len(key) - TAG_SIZE), values[at]
        return 0, None

    def _newest_decoded(self, name: bytes) -> tuple[i64, bytes | None]:
        """:meth:`newest` in a block that was decoded."""
        orders = self._orders
        assert orders is not None
        at = bisect_left(orders, name)
        if at == len(orders) or orders[at] != name:
            return 0, None
        keys, values = self.entries()
        if len(keys[at]) < TAG_SIZE:  # where another search's coarse keys made nothing of it
            raise CorruptionError("a key shorter than its tag")
        return read_i64_le(keys[at], len(name)), values[at]

    def restart_below(self, order: bytes, tail: i64) -> i64:
        """Offset of the last restart point whose key, so cut, is < ``order``; else of the first."""
        data = self.data
        low: i64 = 0
        high: i64 = self._restarts - 1
        while low < high:
            middle = (low + high + 1) >> 1
            shared, unshared, _size, at = self.header(self._restart(middle))
            if shared != 0:
                raise CorruptionError("a restart point whose key is not whole", None, at)
            if unshared < tail:
                raise CorruptionError("a key shorter than its tag", None, at)
            if is_below(data, at, unshared - tail, order):
                low = middle
            else:
                high = middle - 1
        if low == 0:
            return 0
        return self._restart(low)

    def find(
        self,
        target: bytes,
        order: Any,
        compare: Callable[[bytes, bytes], int],
        coarse: SortKey | None,
    ) -> tuple[bytes, bytes] | None:
        """As :meth:`seek`; a block that is searched often is decoded, and searched by bisection.

        ``order`` is the target's coarse key, and ``coarse`` makes the keys'.
        """
        if not self._is_decoded(coarse):
            return self.seek(target, compare)
        orders = self._orders
        assert orders is not None
        keys, values = self.entries()
        at = bisect_left(orders, order)
        while at < len(keys) and not order < orders[at] and compare(keys[at], target) < 0:
            at += 1
        if at == len(keys):
            return None
        return keys[at], values[at]

    def _is_decoded(self, coarse: SortKey | None) -> bool:
        """Whether the entries are at hand, and the coarse keys: of a block that is searched often.

        All searches of a block that come by here give the same ``coarse``.
        """
        if self._decoded is None:
            self._searched += 1
            if self._searched < _SEARCHES_BEFORE_DECODING:
                return False
            decoded = self.entries()
            self._orders = decoded[0] if coarse is None else [coarse(key) for key in decoded[0]]
            self._decoded = decoded
        return True

    def seek(
        self, target: bytes, compare: Callable[[bytes, bytes], int]
    ) -> tuple[bytes, bytes] | None:
        """The first entry whose key is >= ``target``, or None.

        A binary search over the restart points, then a walk of at most one interval.
        """
        data = self.data
        end = self.end
        at: i64 = self._restart_before(target, compare)
        key = b""
        spent: i64 = 0
        while at < end:
            shared, unshared, size, at = self.header(at)
            if shared > len(key):
                raise CorruptionError("an entry shares more than the key before it has", None, at)
            if shared > 0 and spent > self.max_shared:
                raise CorruptionError("keys that share more than a block may hold", None, at)
            spent += shared
            key = key[:shared] + data[at : at + unshared]
            at += unshared
            if compare(key, target) >= 0:
                return key, data[at : at + size]
            at += size
        return None

    def entries(
        self, target: bytes | None = None, compare: Callable[[bytes, bytes], int] | None = None
    ) -> tuple[list[bytes], list[bytes]]:
        """All keys and all values, in order; two lists of one length.

        With a target (and the order), reading starts at the last restart point before it, so that
        some entries below the target may come first.
        """
        if self._decoded is not None and target is None:
            return self._decoded
        data = self.data
        end = self.end
        at: i64 = 0
        if target is not None and compare is not None:
            at = self._restart_before(target, compare)
        keys: list[bytes] = []
        values: list[bytes] = []
        key = b""
        spent: i64 = 0
        while at < end:
            shared: i64 = data[at]
            unshared: i64 = 128
            size: i64 = 128
            if at + 3 <= end:
                unshared = data[at + 1]
                size = data[at + 2]
            if (shared | unshared | size) < 128 and at + 3 + unshared + size <= end:
                at += 3
            else:
                shared, unshared, size, at = self.header(at)
            if shared > 0 and spent > self.max_shared:
                raise CorruptionError("keys that share more than a block may hold", None, at)
            spent += shared
            if shared > len(key):
                raise CorruptionError("an entry shares more than the key before it has", None, at)
            key = key[:shared] + data[at : at + unshared]
            at += unshared
            keys.append(key)
            values.append(data[at : at + size])
            at += size
        return keys, values

    def rows(self, tail: i64) -> list[Row]:
        """All entries as :data:`Row`; :class:`CorruptionError` for a key shorter than ``tail``."""
        data = self.data
        end = self.end
        most = self.max_shared
        rows: list[Row] = []
        head = b""
        rest = b""
        at: i64 = 0
        spent: i64 = 0
        while at < end:
            shared: i64 = data[at]
            unshared: i64 = 128
            size: i64 = 128
            if at + 3 <= end:
                unshared = data[at + 1]
                size = data[at + 2]
            if (shared | unshared | size) < 128 and at + 3 + unshared + size <= end:
                at += 3
            else:
                shared, unshared, size, at = self.header(at)
            middle: i64 = at + unshared - tail
            stop: i64 = at + unshared + size
            if shared == 0 and unshared >= tail:
                head = data[at:middle]
                rest = data[middle:stop]
            else:
                if spent > most:
                    raise CorruptionError("keys that share more than a block may hold", None, at)
                spent += shared
                if unshared >= tail and shared <= len(head):
                    head = head[:shared] + data[at:middle]
                    rest = data[middle:stop]
                else:  # a part of the tail is shared
                    key = head + rest[:tail]
                    if shared > len(key):
                        raise CorruptionError(
                            "an entry shares more than the key before it has", None, at
                        )
                    key = key[:shared] + data[at : at + unshared]
                    if len(key) < tail:
                        raise CorruptionError("a key shorter than its tag", None, at)
                    head = key[: len(key) - tail]
                    rest = key[len(key) - tail :] + data[at + unshared : stop]
            rows.append((head, rest))
            at = stop
        return rows

    @property
    def last_restart(self) -> i64:
        """Offset of the last restart point."""
        return 0 if self._restarts == 0 else self._restart(self._restarts - 1)

    def restart_points(self) -> list[int]:
        """Offsets of the entries whose keys are whole."""
        return [self._restart(index) for index in range(self._restarts)]

    def check(self) -> None:
        """Raise :class:`CorruptionError` unless the restart points rise from the first entry on,
        and each is an entry whose key is whole: searches go by them."""
        whole: set[int] = set() if self.end > 0 else {0}
        at: i64 = 0
        while at < self.end:
            shared, unshared, size, key_at = self.header(at)
            if shared == 0:
                whole.add(at)
            at = key_at + unshared + size
        points = self.restart_points()
        if points[:1] != [0] or points != sorted(set(points)) or not whole.issuperset(points):
            raise CorruptionError("restart points that lead elsewhere", None, self.end)

    def _restart(self, index: i64) -> i64:
        at = self.end + 4 * index
        # Four bytes, and at least four more: behind the last restart point stands their number.
        offset: i64 = read_i64_le(self.data, at) & MAX_UINT32
        if offset > self.end or (offset == self.end and self.end > 0):
            raise CorruptionError("a restart point beyond the entries", None, at)
        return offset

    def _restart_before(self, target: bytes, compare: Callable[[bytes, bytes], int]) -> i64:
        """Offset of the last restart point whose key is < ``target``; of the first if none is."""
        if self._restarts == 0 or self.end == 0:
            return 0
        low: i64 = 0
        high: i64 = self._restarts - 1
        while low < high:
            middle = (low + high + 1) >> 1
            shared, unshared, _, at = self.header(self._restart(middle))
            if shared != 0:
                raise CorruptionError("a restart point whose key is not whole", None, at)
            if compare(self.data[at : at + unshared], target) < 0:
                low = middle
            else:
                high = middle - 1
        return self._restart(low)

    def header(self, at: i64) -> tuple[i64, i64, i64, i64]:
        """An entry's three lengths, and the offset of its key's suffix; all checked."""
        data = self.data
        end = self.end
        if at + 3 <= end:
            a: i64 = data[at]
            b: i64 = data[at + 1]
            c: i64 = data[at + 2]
            if (a | b | c) < 128:
                if at + 3 + b + c > end:
                    raise CorruptionError("an entry runs past the block", None, at)
                return a, b, c, at + 3
        shared, position = decode_varint32(data, at)
        unshared, position = decode_varint32(data, position)
        size, position = decode_varint32(data, position)
        if position + unshared + size > end:
            raise CorruptionError("an entry runs past the block", None, at)
        return shared, unshared, size, position


def _without_tag(key: bytes) -> bytes:
    if len(key) < TAG_SIZE:
        raise CorruptionError("a key shorter than its tag")
    return key[: len(key) - TAG_SIZE]

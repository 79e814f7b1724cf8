"""Walking a block for what a reader sees of it.

Keys here end in a *tag* of eight bytes: one that tells a value (1) from a removal (0), and a
little-endian number of seven.  Of neighbouring keys that differ in their tags alone, the numbers
fall.  (Source: LevelDB, ``db/dbformat.h``.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from librt.strings import read_i64_le

from lsmkv.errors import CorruptionError
from lsmkv.table.block import TAG_SIZE, Block
from lsmkv.util.search import common

if TYPE_CHECKING:
    from mypy_extensions import i64

NO_LIMIT: Final = (1 << 56) - 1
"""As ``newest``: every number counts."""

ALL: Final = 1 << 40
"""As a count: everything that is left."""

PAIRS: Final = 0
"""A key without its tag, and its value."""
SEEN: Final = 1
"""The same, and the key of a removal with None."""
NUMBERED: Final = 2
"""The same, and behind it its number."""


class BlockIterator:
    """Goes through a block once, and hands out keys without their tags, and values.

    Of the keys that differ in their tags alone, the first whose number is at most ``newest`` is
    taken; a removal is told only where that is asked for.  For keys that sort, but for their tags,
    as bytes.
    """

    __slots__ = ("_at", "_block", "_data", "_end", "_newest", "_spent", "_tail", "head", "settled")

    def __init__(self, block: Block, newest: i64, start: bytes, head: bytes, settled: bool) -> None:
        """From the first key on that is ``start`` or more, without its tag.

        ``head`` is the key before, without its tag, if any; ``settled`` says that it was decided
        on: other versions of it are passed over.
        Raises :class:`CorruptionError`, as :meth:`take` does.
        """
        self._block = block
        self._data = block.data
        self._end: i64 = block.end
        self._newest: i64 = newest
        self._at: i64 = 0
        self._spent: i64 = 0
        self._tail = b""
        self.head = head
        """The last key that was met, without its tag."""
        self.settled = settled
        """Whether one of its versions was taken, or is a removal."""
        if start:
            self._seek(start)
        elif self._end > 0 and self._data[0] != 0:
            raise CorruptionError("a first key that is not whole", None, 0)

    @property
    def done(self) -> bool:
        """Whether nothing is left."""
        return self._at >= self._end

    def anew(self) -> BlockIterator:
        """One of the same block, from its beginning."""
        return BlockIterator(self._block, self._newest, b"", b"", False)

    def seek_to_restart(self, stop: bytes | None) -> bytes:
        """Before anything was taken: go to the last restart point whose key is below ``stop``, or
        to the last of all, and past what has that key.

        Returns that key without its tag.  If it is empty, or if it is the block's first, there is
        no seek_to_restart, and this returns the empty key.
        """
        block = self._block
        at: i64 = block.last_restart if stop is None else block.restart_below(stop, TAG_SIZE)
        if at == 0:
            return b""
        shared, unshared, _size, key_at = block.header(at)
        if shared != 0:
            raise CorruptionError("a restart point whose key is not whole", None, at)
        if unshared < TAG_SIZE:
            raise CorruptionError("a key shorter than its tag", None, at)
        head = self._data[key_at : key_at + unshared - TAG_SIZE]
        if head:
            self._at = at
            self.head = head
            self.settled = True
        return head

    def take(self, count: i64, form: i64 = PAIRS) -> list[Any]:
        """The next ``count`` of what is taken, in this form; fewer only at the end of the block."""
        data = self._data
        end = self._end
        newest = self._newest
        limited = newest < NO_LIMIT
        spent = self._spent
        most: i64 = self._block.max_shared
        at = self._at
        head = self.head
        known: i64 = len(head)
        settled = self.settled
        tag: i64 = -1  # where the last key's tag is whole
        prefix = b""  # what the last key begins with, and the next one mostly too
        cut: i64 = 0
        taken: list[Any] = []
        numbered = form == NUMBERED
        while at < end and count > 0:
            shared: i64 = data[at]
            unshared: i64 = 128
            size: i64 = 128
            if at + 3 <= end:
                unshared = data[at + 1]
                size = data[at + 2]
            if (shared | unshared | size) < 128 and at + 3 + unshared + size <= end:
                at += 3
            else:
                shared, unshared, size, at = self._block.header(at)
            if spent > most and shared > 0:
                raise CorruptionError("keys that share more than a block may hold", None, at)
            spent += shared
            value_at: i64 = at + unshared
            if shared <= known and unshared >= TAG_SIZE:
                tag = value_at - TAG_SIZE
                # Mostly a key differs from the one before right behind what they share.
                same = shared + tag - at == known and (
                    tag == at or (data[at] == head[shared] and data[at:tag] == head[shared:])
                )
                if not same:
                    known = shared + tag - at
                    if shared == 0:
                        head = data[at:tag]
                        cut = 0
                    else:
                        if shared != cut:
                            prefix = head[:shared]
                            cut = shared
                        head = prefix + data[at:tag]
                kind: i64 = data[tag]
                number: i64 = 0
                if limited or numbered:
                    number = _number(data, tag)
            else:
                whole = head + (data[tag : tag + TAG_SIZE] if tag >= 0 else self._tail)
                if shared > len(whole):
                    raise CorruptionError(
                        "an entry shares more than the key before it has", None, at
                    )
                whole = whole[:shared] + data[at:value_at]
                known = len(whole) - TAG_SIZE
                if known < 0:
                    raise CorruptionError("a key shorter than its tag", None, at)
                same = whole[:known] == head
                head = whole[:known]
                self._tail = whole[known:]
                tag = -1
                cut = 0
                kind = whole[known]
                number = _number(whole, known)
            at = value_at + size
            if same and settled:
                continue
            settled = number <= newest
            if settled:
                if kind == 1:
                    if numbered:
                        taken.append((head, data[value_at:at], number))
                    else:
                        taken.append((head, data[value_at:at]))
                    count -= 1
                elif kind == 0:
                    if form != PAIRS:
                        taken.append((head, None, number) if numbered else (head, None))
                        count -= 1
                else:
                    raise CorruptionError(f"an internal key of kind {kind}", None, value_at)
        if tag >= 0:
            self._tail = data[tag : tag + TAG_SIZE]
        self._at = at
        self._spent = spent
        self.head = head
        self.settled = settled
        return taken

    def _seek(self, start: bytes) -> None:
        """Go to the first key that is ``start`` or more; no key is put together on the way.

        How much an entry shares with the one before tells, mostly, how it compares.
        """
        data = self._data
        end = self._end
        self.head = start
        if end == 0:
            return
        at: i64 = self._block.restart_below(start, TAG_SIZE)
        if data[at] != 0:
            raise CorruptionError("a restart point whose key is not whole", None, at)
        begun = at
        wanted: i64 = len(start)
        matched: i64 = 0  # bytes that the key before has in common with ``start``
        known: i64 = 0  # its length
        while at < end:
            here = at
            shared: i64 = data[at]
            unshared: i64 = 128
            size: i64 = 128
            if at + 3 <= end:
                unshared = data[at + 1]
                size = data[at + 2]
            if (shared | unshared | size) < 128 and at + 3 + unshared + size <= end:
                at += 3
            else:
                shared, unshared, size, at = self._block.header(at)
            length = shared + unshared - TAG_SIZE
            if shared > matched:
                if matched == known and length != matched:
                    self._seek_slowly(start, begun)  # it shares some of the other's tag
                    return
                # Else it is as far below ``start`` as the one before.
            elif length < shared:
                self._seek_slowly(start, begun)
                return
            else:
                limit = length if length < wanted else wanted
                begin = at - shared
                matched = common(data, begin, start, shared, limit)
                if matched < limit:
                    if data[begin + matched] > start[matched]:
                        self._at = here
                        return
                elif length >= wanted:
                    self._at = here
                    return
            known = length
            at += unshared + size
        self._at = at

    def _seek_slowly(self, start: bytes, at: i64) -> None:
        """:meth:`_seek` for what its walk does not decide: every key is put together."""
        whole = b""
        while at < self._end:
            here = at
            shared, unshared, size, at = self._block.header(at)
            if shared > len(whole):
                raise CorruptionError("an entry shares more than the key before it has", None, at)
            before = whole
            whole = whole[:shared] + self._data[at : at + unshared]
            known: i64 = len(whole) - TAG_SIZE
            if known < 0:
                raise CorruptionError("a key shorter than its tag", None, at)
            key = whole[:known]
            if key > start or (key == start and not self.settled):
                if before:
                    known = len(before) - TAG_SIZE
                    self.head = before[:known]
                    self._tail = before[known:]
                self._at = here
                return
            at += unshared + size
        self._at = at


def _number(key: bytes, tag: i64) -> i64:
    """The number in the tag at ``tag``."""
    return (read_i64_le(key, tag) >> 8) & NO_LIMIT

"""Counts of the members of large sorted sets by block, so that ranks need no walk from an end.

A block is a part of a set's order.  At first a set is one block.  A walk that looks for a rank cuts
the blocks that it passes over, so the next one passes over a block at most.  The counts are in
memory alone: a command that only adds or removes members never pays for them.  They are learned
again after a restart.
"""

from __future__ import annotations

from bisect import bisect_right

_LEAST = 256
"""Members of a block, in sets of up to 2,097,152 members."""
_MOST_BLOCKS = 8192
"""About how many blocks a set may have.  In a larger set they are longer."""
_MOST_IN_ALL = 65_536
"""Blocks of all sets.  Further ones take the place of those of other sets."""
_MOST_SETS = 256

Cut = tuple[bytes, int]
"""The start of a block as a walk cuts it, and the members passed over since the previous cut."""


def separator(low: bytes, high: bytes) -> bytes:
    r"""The shortest bytes after ``low`` that are not after ``high``.

    >>> separator(b"apple", b"april"), separator(b"a", b"a\0b")
    (b'apr', b'a\x00')
    """
    at = 0
    while at < len(low) and low[at] == high[at]:
        at += 1
    return high[: at + 1]


class Blocks:
    """The blocks of one sorted set: where each begins, and its number of members."""

    def __init__(self, size: int) -> None:
        self.starts = [b""]
        self.counts = [size]
        self.walked = 0
        """Members that were counted one by one because no rank of an end was known."""

    def at(self, place: bytes) -> int:
        """The index of the block of a place.  O(log blocks)."""
        return bisect_right(self.starts, place) - 1

    def before(self, at: int) -> int:
        """The number of members before a block.  O(blocks before it)."""
        return sum(self.counts[:at])

    def holding(self, rank: int) -> tuple[int, int]:
        """The index of the block that has the member of a rank, and the member's rank in it."""
        first, last = 0, len(self.counts)
        while last - first > 1:
            middle = (first + last) // 2
            count = sum(self.counts[first:middle])
            if rank < count:
                last = middle
            else:
                first = middle
                rank -= count
        return first, rank

    def end(self, at: int) -> bytes | None:
        """The end of a block; None for the last one."""
        return self.starts[at + 1] if at + 1 < len(self.starts) else None

    def add(self, place: bytes) -> None:
        """Count a member that is added."""
        self.counts[bisect_right(self.starts, place) - 1] += 1

    def remove(self, place: bytes, length: int) -> None:
        """Discount a member that is removed.  Blocks of fewer than ``length`` members, taken
        together, become one."""
        counts = self.counts
        at = bisect_right(self.starts, place) - 1
        counts[at] -= 1
        if at and counts[at] + counts[at - 1] < length:
            counts[at - 1] += counts.pop(at)
            del self.starts[at]
        elif at + 1 < len(counts) and counts[at] + counts[at + 1] < length:
            counts[at] += counts.pop(at + 1)
            del self.starts[at + 1]

    def cut(self, at: int, front: list[Cut], back: list[Cut]) -> None:
        """Cut a block where walks from its two ends have passed."""
        counts = [count for _, count in front]
        behind = [count for _, count in back]
        counts.append(self.counts[at] - sum(counts) - sum(behind))
        self.counts[at : at + 1] = counts + behind[::-1]
        starts = [start for start, _ in back]
        self.starts[at + 1 : at + 1] = [start for start, _ in front] + starts[::-1]


class Ranks:
    """The blocks of sorted sets, by version.

    They hold while :meth:`Blocks.add` and :meth:`Blocks.remove` are called for every member.  If
    one of these changes is undone, :meth:`forget` must be called.
    """

    def __init__(self, least: int = _LEAST) -> None:
        self._least = least
        self._blocks: dict[int, Blocks] = {}

    def block_length(self, size: int) -> int:
        """The number of members per block for a set of this size."""
        return max(self._least, size // _MOST_BLOCKS)

    def forget(self) -> None:
        """Forget all blocks."""
        self._blocks.clear()

    def get(self, version: int) -> Blocks | None:
        """The blocks of a set, if any are known.  O(1)."""
        return self._blocks.get(version)

    def learn(self, version: int, size: int) -> Blocks:
        """The blocks of a set, which get more, or are new."""
        found = self._blocks.pop(version, None)
        if found is None:
            found = Blocks(size)
        kept = len(found.starts) + sum(len(blocks.starts) for blocks in self._blocks.values())
        while self._blocks and (kept > _MOST_IN_ALL or len(self._blocks) >= _MOST_SETS):
            oldest = next(iter(self._blocks))
            kept -= len(self._blocks.pop(oldest).starts)
        self._blocks[version] = found
        return found

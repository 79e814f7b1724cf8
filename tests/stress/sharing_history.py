"""What processes that share a store have seen, and whether one order of all calls explains it.

Each process writes rising numbers under a key of its own, and anybody reads them.  For such keys a
history is linearizable exactly if no read returns less than what was acknowledged before it began,
more than what was begun before it ended, or less than another read that had ended before it began.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import NamedTuple


class Write(NamedTuple):
    """A number that was written, and when; ``ended`` is None if that was not acknowledged."""

    number: int
    began: int
    ended: int | None


class Read(NamedTuple):
    """A number that was read, and when."""

    number: int
    began: int
    ended: int


class History:
    """The calls of all processes."""

    def __init__(self) -> None:
        self.writes: dict[int, list[Write]] = {}
        self.reads: dict[int, list[Read]] = {}
        self.counted: list[int] = []
        self.counts_begun = 0
        self.wrong: list[str] = []
        self.owners = 0
        self.children = 0

    def add(self, name: int, text: str) -> None:
        """Add what the process of that name has written down, until it was killed."""
        begun: Write | None = None
        writes = self.writes.setdefault(name, [])
        for line in text.splitlines(keepends=True):
            if not line.endswith("\n"):
                break
            kind, *words = line.split()
            if kind == "w?":
                begun = Write(int(words[0]), int(words[1]), None)
            elif kind == "w":
                writes.append(Write(*map(int, words)))
                begun = None
            elif kind == "r":
                self._read(int(words[0]), int(words[1]), words[2:])
            elif kind == "b":
                numbers = words[1:-2]
                if len(numbers) != 3 or len(set(numbers)) != 1:
                    self.wrong.append(f"a batch of process {words[0]} was seen as {numbers}")
                self._read(int(words[0]), int(numbers[0]), words[-2:])
            elif kind == "c?":
                self.counts_begun += 1
            elif kind == "c":
                self.counted.append(int(words[0]))
            elif kind == "wrong":
                self.wrong.append(" ".join(words))
            elif kind == "child":
                self.children += 1
            elif kind == "role":
                self.owners += words[0] == "owner"
        if begun is not None:
            writes.append(begun)

    def _read(self, name: int, found: int, times: list[str]) -> None:
        self.reads.setdefault(name, []).append(Read(found, int(times[0]), int(times[1])))

    def violations(self, last: dict[int, int], counter: int) -> list[str]:
        """What no order of the calls explains; ``last`` and ``counter`` are what is left at the
        end."""
        found = list(self.wrong)
        for name, writes in self.writes.items():
            reads = self.reads.get(name, [])
            found += [f"process {name}: {text}" for text in _check(writes, reads)]
            acknowledged = max((one.number for one in writes if one.ended is not None), default=0)
            if last.get(name, 0) < acknowledged:
                found.append(f"process {name}: {last.get(name, 0)} is left of {acknowledged}")
        if len(set(self.counted)) != len(self.counted):
            found.append("two processes counted to the same number")
        if not max(self.counted, default=0) <= counter <= self.counts_begun:
            found.append(f"the counter is {counter} after {self.counts_begun} counts")
        if counter < len(self.counted):
            found.append(f"the counter is {counter}, and {len(self.counted)} were acknowledged")
        return found


class _Largest:
    """The largest number of all that had happened at a time."""

    def __init__(self, events: list[tuple[int, int]]) -> None:
        """``events`` are times with numbers."""
        events.sort()
        self._times = [time for time, _ in events]
        self._numbers = list(accumulate((number for _, number in events), max))

    def before(self, time: int) -> int:
        at = bisect_left(self._times, time)
        return self._numbers[at - 1] if at else 0

    def until(self, time: int) -> int:
        at = bisect_right(self._times, time)
        return self._numbers[at - 1] if at else 0


def _check(writes: list[Write], reads: list[Read]) -> list[str]:
    """For one key."""
    acknowledged = _Largest([(one.ended, one.number) for one in writes if one.ended is not None])
    begun = _Largest([(one.began, one.number) for one in writes])
    read = _Largest([(one.ended, one.number) for one in reads])
    found = []
    for one in reads:
        if one.number < acknowledged.before(one.began):
            found.append(f"{one} is older than {acknowledged.before(one.began)}")
        if one.number > begun.until(one.ended):
            found.append(f"{one}, but no more than {begun.until(one.ended)} was begun")
        if one.number < read.before(one.began):
            found.append(f"{one}, after {read.before(one.began)} had been read")
    return found

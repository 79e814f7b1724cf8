"""Counters of members, which their owner reads: :class:`Counting` and :class:`MemberCounts`.

Where the owner publishes (``publish_stats``), a member makes its own memory when it joins, and
hands its descriptor to the owner with READY.  The owner reads the words when it publishes: no
message is needed for a Get.  ``engine/db/observe/process_words.py`` says what the words are.

A member adds each write to its histogram immediately.  Reads are counted where any store counts
them, and copied into the words periodically (:meth:`Counting.copy`): at every 1,024th Get; with a
write, an iterator, or a read of something new, if the last time was 0.1 s ago; and when the member
leaves.

Everything begins at 0 with each owner, as the owner's own counters do.  While it lives no total
falls: the counts of a member that has gone are kept.  An older release on either side hands over
nothing, or takes nothing.

Fast path: if the owner does not publish, a Get does nothing for this; else it counts down to the
next copy (:class:`~lsmkv.shared.following.CountedReader`).
"""

from __future__ import annotations

import os
import time
from typing import Any, Final

from lsmkv.engine.counters import Counters, reads_of
from lsmkv.engine.db.observe.histogram import bucket_of
from lsmkv.engine.db.observe.process_words import (
    PLACES,
    WITHOUT_OWNER,
    WORDS,
    WRITES,
    places,
)
from lsmkv.engine.util.threads import new_lock
from lsmkv.shared.system.system import System

GETS: Final = 1024
"""The most Gets that are not copied yet."""
_EVERY: Final = 100_000_000
"""Nanoseconds between two copies that are not due for their Gets."""
_MOST_ROWS: Final = 256
"""Processes with separate figures; more are counted together."""

Row = tuple[int, str, list[int]]
"""A process id, a role, and the words."""


class _OwnWords:
    """Words that no other process reads."""

    def __init__(self) -> None:
        self.words: Any = [0] * WORDS


class Counting:
    """Counters that one handle keeps for its owner: in all of its epochs, in new words for each.

    Any thread may call any method.
    """

    def __init__(self, system: System) -> None:
        self._system = system
        self._memory: Any = _OwnWords()
        self._counters: Counters | None = None
        self._copied_values: list[int] = []
        self._copied = 0
        self._copying = new_lock()
        self._lost = 0
        self.is_read = False
        """True if an owner reads the counters."""

    @property
    def words(self) -> list[int]:
        """The counters; in an owner, those of its time as a member."""
        return list(self._memory.words)

    # Joining

    def stop(self) -> None:
        """Stop counting: in an owner, and before another one is joined."""
        self.is_read = False
        self._counters = None
        self._memory = _OwnWords()

    def hand_over(self) -> tuple[Any, int]:
        """New memory, and its descriptor, which is the caller's; -1 if there can be none."""
        try:
            memory, fd = self._system.pages.make_memory(WORDS)
        except OSError:
            return None, -1
        return memory, fd

    def begin(self, memory: Any) -> None:
        """Count in memory that the owner has from now on."""
        self._memory = memory
        self._copying = new_lock()  # a thread of the parent's may have had it, before a fork
        self.is_read = True

    def follow(self, counters: Counters) -> None:
        """Copy these counters from now on, which begin at 0."""
        self._counters = counters
        self._copied_values = [0] * len(reads_of(counters))

    # Counting

    def copy(self) -> None:
        """Copy what reads have counted into the words.  About 5 microseconds."""
        if not self._copying.acquire(False):
            return  # another thread does so, or the call that this one has interrupted
        try:
            counters = self._counters
            if counters is None or not self.is_read:
                return
            values = reads_of(counters)
            words = self._memory.words
            before = self._copied_values
            for at in range(len(values)):
                if values[at] != before[at]:
                    words[at] = values[at]
            self._copied_values = values
            self._copied = time.perf_counter_ns()
        finally:
            self._copying.release()

    def copy_at_times(self) -> None:
        """:meth:`copy`, unless that was less than 0.1 s ago."""
        if self.is_read and time.perf_counter_ns() - self._copied >= _EVERY:
            self.copy()

    def now(self) -> int:
        """Return the time at which a write begins; 0 if writes are not counted."""
        return time.perf_counter_ns() if self.is_read else 0

    def wrote(self, started: int) -> None:
        """Note a write that has happened, and began at that time."""
        if started:
            now = time.perf_counter_ns()
            self._add(WRITES, now - started)
            if now - self._copied >= _EVERY:
                self.copy()

    def lost_owner(self) -> None:
        """Note that the owner has gone; a second call before :meth:`found_owner` has no effect."""
        if not self._lost:
            self._lost = time.perf_counter_ns()

    def found_owner(self) -> None:
        """Note that this process has joined the next owner, or has become it."""
        lost, self._lost = self._lost, 0
        if lost:
            self._add(WITHOUT_OWNER, time.perf_counter_ns() - lost)

    def _add(self, histogram: int, nanoseconds: int) -> None:
        words = self._memory.words
        words[histogram + 1 + bucket_of(nanoseconds)] += 1
        words[histogram] += nanoseconds


# The owner's half


class _Member:
    """The memory of one member."""

    def __init__(self, slot: int, pid: int, memory: Any, layout: list[tuple[str, int]]) -> None:
        self.slot = slot
        self.pid = pid
        self._memory = memory
        self._parts: list[tuple[int, int, int, int]] = []  # begin and end: here, and there
        there = places(layout)
        for name, (begin, end) in PLACES.items():
            at, until = there.get(name, (0, 0))
            if until - at == end - begin:
                self._parts.append((begin, end, at, until))

    def read(self) -> list[int]:
        """Return the words that it has counted."""
        words = [0] * WORDS
        theirs = self._memory.words
        for begin, end, at, until in self._parts:
            words[begin:end] = theirs[at:until]
        return words


class _State:
    """The counters of all members at one moment.  It is replaced, never changed: one thread accepts
    members and sees them leave, and others read."""

    def __init__(self, live: list[_Member], left: dict[int, list[int]], gone: list[int]) -> None:
        self.live = live
        self.left = left
        """By process: the counts of handles that it has closed, while it has others."""
        self.gone = gone


class MemberCounts:
    """An owner's view of its members' counters, in one epoch."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._state = _State([], {}, [0] * WORDS)
        self.wanted = False
        """True if members should count for this process: it publishes."""
        self.own: Counting | None = None
        """Counters of this process's handle from its time as a member."""

    def add(self, slot: int, pid: int, fd: int, layout: object) -> None:
        """Read the member's counters through that descriptor, which is closed, from now on.  If it
        is not such memory, the member is served without its counters."""
        checked = _checked(layout)
        try:
            memory = None
            if self.wanted and checked is not None:
                size = sum([words for _, words in checked])
                memory = self._system.pages.map_memory(fd, size)
        finally:
            self._system.pages.close_descriptor(fd)
        if memory is not None and checked is not None:
            state = self._state
            member = _Member(slot, pid, memory, checked)
            self._state = _State([*state.live, member], state.left, state.gone)

    def refuse(self, fd: int) -> None:
        """Close a descriptor that came without a description."""
        self._system.pages.close_descriptor(fd)

    def end(self, slot: int) -> None:
        """Keep the counts of the member in that slot, whose connection has ended."""
        state = self._state
        live = [one for one in state.live if one.slot != slot]
        if len(live) == len(state.live):
            return
        left = dict(state.left)
        gone = state.gone
        for one in state.live:
            if one.slot == slot:
                total = _sum(left.pop(one.pid, None), one.read())
                if one.pid in [other.pid for other in live]:
                    left[one.pid] = total
                else:
                    gone = _sum(gone, total)
        self._state = _State(live, left, gone)

    def rows(self) -> list[Row]:
        """The owner, each process that has members, and those that have gone."""
        state = self._state
        by_pid = dict(state.left)
        for one in state.live:
            by_pid[one.pid] = _sum(by_pid.get(one.pid), one.read())
        for pid in sorted(by_pid)[_MOST_ROWS:]:
            by_pid[0] = _sum(by_pid.get(0), by_pid.pop(pid))
        own = [0] * WORDS if self.own is None else self.own.words
        found: list[Row] = [(os.getpid(), "owner", own)]
        found += [(pid, "member", words) for pid, words in sorted(by_pid.items())]
        found.append((0, "gone", state.gone))
        return found


def _checked(layout: object) -> list[tuple[str, int]] | None:
    """Return a member's layout of its words; None if it is malformed."""
    found: list[tuple[str, int]] = []
    if not isinstance(layout, list):
        return None
    for one in layout:
        if not isinstance(one, list) or len(one) != 2:
            return None
        name, size = one
        if not isinstance(name, str) or not isinstance(size, int) or not 0 < size <= 1 << 16:
            return None
        found.append((name, size))
    return found


def _sum(one: list[int] | None, other: list[int]) -> list[int]:
    if one is None:
        return other
    return [a + b for a, b in zip(one, other, strict=True)]

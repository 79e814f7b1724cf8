"""Choice of a simulation's next thread: at random, by priorities, or by a given schedule.

A *forced* switch is a choice other than the usual one, in which a thread runs until it must wait.
It is identified by the thread that ran, the number of that thread's decision, and the thread that
runs next.  Decisions are counted for each thread, so a switch keeps its meaning when others are
left out.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from lsmkv.testing.scheduler import Forced, Thread


class AsForced:
    """The usual choices, except for those that are given."""

    def __init__(self, forced: Iterable[Forced] = ()) -> None:
        self._forced = {(thread, decision): to for thread, decision, to in forced}

    def choose(self, thread: Thread, usual: Thread, able: list[Thread]) -> Thread:
        """The thread that is forced here, if it exists and can run."""
        wanted = self._forced.get((thread.number, thread.decisions))
        return next((one for one in able if one.number == wanted), usual)


class RandomWalk:
    """Any thread that can run, each as likely as the others, at a share of the switch points.

    The share is also drawn.  A mistake that shows if a thread is stopped within a few steps needs
    many switches; one that shows if others do much while a thread is stopped needs few.
    """

    SHARES = (1.0, 0.3, 0.1, 0.03)

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._share = rng.choice(self.SHARES)

    def choose(self, thread: Thread, usual: Thread, able: list[Thread]) -> Thread:
        """Any of them, or the usual one."""
        if self._rng.random() >= self._share:
            return usual
        return able[int(self._rng.random() * len(able))]


class Priorities:
    """Probabilistic concurrency testing (PCT): the thread with the highest priority runs.

    Each thread gets a random priority when it appears.  At ``depth - 1`` random decisions out of
    the first ``length`` the running thread gets a lower priority than any other.  With n threads a
    mistake that needs ``depth`` decisions in a certain order shows with a probability of at least 1
    / (n * length ** (depth - 1)).  Random walks do not guarantee that.  (Source: Burckhardt,
    Kothari, Musuvathi, Nagarakatte: A Randomized Scheduler with Probabilistic Guarantees of Finding
    Bugs, ASPLOS 2010.)
    """

    def __init__(self, rng: random.Random, depth: int, length: int) -> None:
        self._rng = rng
        self._priorities: dict[int, float] = {}
        changes = rng.sample(range(1, max(length, depth) + 1), depth - 1)
        self._changes = dict(zip(changes, range(depth - 1), strict=True))
        self._at = 0

    def choose(self, thread: Thread, usual: Thread, able: list[Thread]) -> Thread:
        """The thread with the highest priority."""
        self._at += 1
        priorities = self._priorities
        for one in able:
            if one.number not in priorities:
                priorities[one.number] = 1 + self._rng.random()
        change = self._changes.get(self._at)
        if change is not None:
            priorities[thread.number] = -1.0 - change
        return max(able, key=lambda one: priorities[one.number])

"""Histories of calls on a store, and whether there is an order of them that explains all answers.

A history is linearizable if its calls can be put in an order in which each takes place at one
moment between its begin and its end, and every read gets what the writes before it have left.  The
search is that of Wing and Gong, with the visited states remembered (Lowe: Testing for
linearizability, 2017).  Only one thread runs at a time in a simulation, so a counter is a clock.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

Content = frozenset[tuple[bytes, bytes]]
NEVER = 1 << 60


class NotExplainedError(AssertionError):
    """No order of the calls explains what was read."""


@dataclass(eq=False)
class Call:
    """One call, from its begin to its end; a read that takes longer is one of the moment at which
    it was begun."""

    thread: str
    what: str
    begin: int
    end: int = NEVER
    """When it returned.  A write that never did, or raised, may have happened or not."""
    writes: dict[bytes, bytes | None] = field(default_factory=dict)
    reads: dict[bytes, bytes | None] = field(default_factory=dict)
    """What single keys had."""
    scan: Content | None = None
    """What the whole store had."""
    synced: bool = False
    """Whether it promises that it survives a power cut, and all before it."""

    def __str__(self) -> str:
        end = "?" if self.end == NEVER else str(self.end)
        parts = [f"{self.begin:>5} {end:>5} {self.thread:<10} {self.what}"]
        parts += [f"writes {_in_words(self.writes.items())}"] if self.writes else []
        parts += [f"reads {_in_words(self.reads.items())}"] if self.reads else []
        parts += [f"finds {_in_words(self.scan)}"] if self.scan is not None else []
        return " ".join(parts) + (" synced" if self.synced else "")

    def explains(self, state: dict[bytes, bytes]) -> bool:
        """Whether it reads what is there."""
        if self.scan is not None and self.scan != frozenset(state.items()):
            return False
        return all(state.get(key) == value for key, value in self.reads.items())

    def apply(self, state: Content) -> Content:
        """What is there after it."""
        if not self.writes:
            return state
        after = dict(state)
        for key, value in self.writes.items():
            if value is None:
                after.pop(key, None)
            else:
                after[key] = value
        return frozenset(after.items())


class History:
    """The calls of one life of a store."""

    def __init__(self, start: Content = frozenset()) -> None:
        self.start = start
        self.calls: list[Call] = []
        self._clock = itertools.count()

    def begin(self, thread: str, what: str) -> Call:
        """A call begins."""
        call = Call(thread, what, next(self._clock))
        self.calls.append(call)
        return call

    def end(self, call: Call) -> None:
        """It has returned."""
        call.end = next(self._clock)

    def check(self, left: Content | None = None, power_cut: bool = False) -> None:
        """Raise :class:`NotExplainedError` unless the history is linearizable.

        ``left`` is what the next life has found.  A killed process leaves all that was
        acknowledged; a ``power_cut`` what an earlier moment had, at which everything synced was
        there.
        """
        seen = {value for call in self.calls for value in call.reads.values()}
        for scan in (*(call.scan for call in self.calls), left):
            seen.update(value for _, value in scan or ())
        # A call without an answer matters if somebody has seen a value of it, or may have seen that
        # it has deleted something.
        calls = [
            call
            for call in self.calls
            if call.end != NEVER
            or any(value is None or value in seen for value in call.writes.values())
        ]
        if left is not None and not power_cut:
            calls.append(Call("", "what a kill has left", NEVER - 1, NEVER - 1, scan=left))
        if not _has_order(calls, self.start, left if power_cut else None):
            lines = [str(call) for call in self.calls]
            if left is not None:
                lines.append(f"{'power cut' if power_cut else 'kill'} leaves {_in_words(left)}")
            raise NotExplainedError(
                "\n".join([f"no order explains this, from {_in_words(self.start)} on", *lines])
            )


def _in_words(pairs: Iterable[tuple[bytes, bytes | None]]) -> str:
    """Pairs with the first word of each value, which says who wrote it."""
    words = (
        f"{key.decode()}={'-' if value is None else value.partition(b' ')[0].decode()}"
        for key, value in sorted(pairs)
    )
    return " ".join(words) or "nothing"


def _has_order(calls: list[Call], start: Content, cut_at: Content | None) -> bool:
    """Whether an order explains all that has an end, in which some moment had ``cut_at``, with
    everything synced before it."""
    required = 0
    synced = 0
    for at, call in enumerate(calls):
        required |= (call.end != NEVER) << at
        synced |= (call.synced and call.end != NEVER) << at
    seen: set[tuple[int, Content, bool]] = set()
    todo: list[tuple[int, Content, bool]] = [(0, start, cut_at is None)]
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        done, state, cut = node
        if not cut and state == cut_at and done & synced == synced:
            todo.append((done, state, True))
        if cut and done & required == required:
            return True
        left = [(at, call) for at, call in enumerate(calls) if not done >> at & 1]
        first_end = min((call.end for _, call in left), default=NEVER)
        content = dict(state)
        for at, call in left:
            if call.begin > first_end or not call.explains(content):
                continue
            todo.append((done | 1 << at, call.apply(state), cut))
    return False

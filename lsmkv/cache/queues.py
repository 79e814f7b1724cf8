"""The keys of a queue, which are keys of the cache as any other: :class:`QueueKeys`.

A queue without a name has the integers from 1 to 999,999,999,999,998 as its keys, and one with a
name the str of ``name-`` and 15 digits.  The first key is that of 500 trillion, so that either end
has room.

Pulled entries leave deletions at the ends, over which a scan is slow.  So a queue has *bounds*, a
key of the store: no entry is outside of them.  Every 32nd pull at a side moves that bound, and
whatever adds an entry outside moves it back.  A pull moves a bound to the entry that it has found;
no other may be added beyond it at the same moment.  Therefore all steps that add one read the
bounds, and write them unless it is certain that the new entry is after the one that was found.
That is so for a push to the other side, if the queue has an entry.  A bound that was never moved is
open.  The first such pull only closes it, at the end of all keys, so that a step either sees a
closed bound or was committed before it is moved.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from lsmkv.cache.atomic_steps import Step
from lsmkv.cache.codecs import Codec, DefaultCodec
from lsmkv.cache.keys import HEAD, HEAD_NUMBER, HEAD_STR, LAYOUT, QUEUE, decode_key, head_key
from lsmkv.cache.settings import LATER_LAYOUT
from lsmkv.engine.errors import Error

FIRST: Final = 500_000_000_000_000
_LAST: Final = 999_999_999_999_999
_DIGITS: Final = 15
_EVERY: Final = 32
"""Keys of which one moves a bound when it is pulled."""
_NUMBER_START: Final = head_key(0, DefaultCodec())
_NUMBER_STOP: Final = head_key(_LAST, DefaultCodec())

Side = Literal["front", "back"]


class QueueKeys:
    """The keys of one queue."""

    def __init__(self, prefix: str | None, codec: Codec) -> None:
        self._prefix = prefix
        self._codec = codec
        self.start = head_key(self.key(0), codec)
        self.stop = head_key(self.key(_LAST), codec)
        size = 8 if prefix is None else _DIGITS
        self._head = self.start[:-size]
        self._bounds = QUEUE + self._head[1:]

    def key(self, number: int) -> int | str:
        """The key with a number."""
        return number if self._prefix is None else f"{self._prefix}-{number:015d}"

    def at(self, step: Step, side: Side) -> tuple[bytes, Any] | None:
        """The name and the key of the entry at a side; None if the queue is empty."""
        if side not in ("front", "back"):
            raise ValueError(f"side is 'front' or 'back', not {side!r}")
        front, back = _parts(step.get(self._bounds), len(self.start) - len(self._head))
        names = step.scan(
            start=max(self._head + front, self.start),
            stop=min(self._head + back, self.stop),
            include_stop=True,
            include_value=False,
            reverse=side == "back",
        )
        for name in names:
            if len(name) != len(self.start):  # a float, or a key that is not one of a queue
                continue
            if self._prefix is not None and not name[-_DIGITS:].isdigit():
                continue
            if name in (self.start, self.stop):
                continue
            return name, decode_key(name[len(HEAD) :], self._codec)
        return None

    def next(self, step: Step, side: Side) -> tuple[int | str, bool]:
        """The key of an entry that is added at a side, and whether the queue has an entry."""
        found = self.at(step, side)
        if found is None:
            return self.key(FIRST), False
        last = found[1]
        number = last if isinstance(last, int) else int(last[last.rfind("-") + 1 :])
        number += 1 if side == "back" else -1
        if not 0 < number < _LAST:
            raise Error("a queue has no room at this side")
        return self.key(number), True

    def pass_by(self, step: Step, name: bytes, side: Side) -> None:
        """Move a bound, now and then, to the entry that a step removes at a side."""
        at = name[len(self._head) :]
        if (at[-1] if self._prefix is None else int(at)) % _EVERY:
            return
        stored = step.get(self._bounds)
        front, back = _parts(stored, len(at))
        if stored is None:
            step.put(LAYOUT, LATER_LAYOUT)
        if side == "front":
            front = front[:-1] + b"\1" if front == _open(len(at))[0] else at
        else:
            back = back[:-1] + b"\xfe" if back == _open(len(at))[1] else at
        step.put(self._bounds, front + back)


def queue_of(name: bytes) -> tuple[bytes, bytes] | None:
    """The key of the bounds of the queue to which an entry may belong, and what stands for it
    there."""
    if len(name) == len(_NUMBER_START) and _NUMBER_START < name < _NUMBER_STOP:
        return QUEUE + HEAD_NUMBER[1:], name[len(HEAD_NUMBER) :]
    head, at = name[:-_DIGITS], name[-_DIGITS:]
    if head.startswith(HEAD_STR) and head.endswith(b"-") and at.isdigit():
        return QUEUE + head[1:], at
    return None


def is_within(at: bytes, bounds: bytes) -> bool:
    """True if an entry is within a queue's bounds."""
    front, back = _parts(bounds, len(at))
    return front <= at <= back


def admit(step: Step, name: bytes, side: Side | None) -> None:
    """Extend the bounds of a queue to a new entry, if it belongs to one.

    ``side`` is where it was pushed, to a queue that has an entry; else None.
    """
    found = queue_of(name)
    if found is None:
        return
    key, at = found
    bounds = step.get(key)
    if bounds is None:
        return
    front, back = _parts(bounds, len(at))
    open_front, open_back = _open(len(at))
    if (side == "back" and back == open_back) or (side == "front" and front == open_front):
        return
    step.put(key, min(front, at) + max(back, at))


def _open(size: int) -> tuple[bytes, bytes]:
    return bytes(size), b"\xff" * size


def _parts(bounds: bytes | None, size: int) -> tuple[bytes, bytes]:
    """The two bounds, each of this many bytes; open ones if there are none, or damaged ones."""
    if bounds is None or len(bounds) != 2 * size:
        return _open(size)
    return bounds[:size], bounds[size:]

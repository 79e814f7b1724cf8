"""The keys of a queue, which are keys of the cache as any other: :class:`QueueKeys`.

A queue without a name has the integers from 1 to 999,999,999,999,998 as its keys, and one with a
name the str of ``name-`` and 15 digits.  The first key is that of 500 trillion, so that either end
has room.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from lsmkv.cache.atomic_steps import Step
from lsmkv.cache.codecs import Codec
from lsmkv.cache.keys import HEAD, decode_key, head_key
from lsmkv.engine.errors import Error

FIRST: Final = 500_000_000_000_000
_LAST: Final = 999_999_999_999_999
_DIGITS: Final = 15

Side = Literal["front", "back"]


class QueueKeys:
    """The keys of one queue."""

    def __init__(self, prefix: str | None, codec: Codec) -> None:
        self._prefix = prefix
        self._codec = codec
        self.start = head_key(self.key(0), codec)
        self.stop = head_key(self.key(_LAST), codec)

    def key(self, number: int) -> int | str:
        """The key with a number."""
        return number if self._prefix is None else f"{self._prefix}-{number:015d}"

    def at(self, step: Step, side: Side) -> tuple[bytes, Any] | None:
        """The name and the key of the entry at a side; None if the queue is empty."""
        if side not in ("front", "back"):
            raise ValueError(f"side is 'front' or 'back', not {side!r}")
        names = step.scan(
            start=self.start,
            stop=self.stop,
            include_start=False,
            include_value=False,
            reverse=side == "back",
        )
        for name in names:
            if len(name) != len(self.start):  # a float, or a key that is not one of a queue
                continue
            if self._prefix is not None and not name[-_DIGITS:].isdigit():
                continue
            return name, decode_key(name[len(HEAD) :], self._codec)
        return None

    def next(self, step: Step, side: Side) -> int | str:
        """The key of an entry that is added at a side."""
        found = self.at(step, side)
        if found is None:
            return self.key(FIRST)
        last = found[1]
        number = last if isinstance(last, int) else int(last[last.rfind("-") + 1 :])
        number += 1 if side == "back" else -1
        if not 0 < number < _LAST:
            raise Error("a queue has no room at this side")
        return self.key(number)

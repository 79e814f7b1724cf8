"""A reentrant lock that no signal handler leaves held.

From Python 3.14 on, a signal handler may run between the step of a ``with`` statement that takes a
lock and the first step of its block.  If it raises, as Ctrl-C does, nothing would ever release the
lock.  This module is never compiled: compiled code runs no handler there, but interpreted code does
after a call of compiled code.
"""

from __future__ import annotations

from typing import Any


def released_when_interrupted(kind: Any) -> Any:
    """A class of reentrant locks like ``kind``, that of ``threading.RLock``.

    Its locks are taken with ``with``, by threads that do not hold them yet.
    """

    class ReentrantLock(kind):  # type: ignore[misc]  # which class it is, is known at run time
        """A lock that is released if an exception ends the step that takes it."""

        def __enter__(self) -> bool:
            before = self._is_owned()
            try:
                return bool(self.acquire())
            except BaseException:
                if not before and self._is_owned():
                    self.release()
                raise

    return ReentrantLock

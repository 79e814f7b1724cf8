"""Sections in which signals wait: no handler of the program runs there.

Python runs signal handlers in the main thread, between any two of its steps, and a handler may
raise: ``KeyboardInterrupt``, or the end of a time limit.  An exception between the system call that
opens a descriptor and the step that stores its number loses the descriptor for good.  So code that
acquires or releases a resource of the system is a section::

    with deferred:
        ...
        deferred.deliver()  # where an ``except`` clause would release what was acquired

Within a section, one handler stands in for all of the program's, and notes which signals came.
The program's handlers run at the end of the section, or in :meth:`DeferredSignals.deliver`, and
what they raise is raised there.  Long sections deliver about every millisecond, or, while they wait
for another thread or process, every :data:`LOOK_EVERY` seconds.  Signals of one number that come
during a section are handled once, as the system does with pending signals.  One that comes again
after :data:`LONGEST` seconds ends the section: an exception from elsewhere may have left it open.

Left out: signals without a handler in Python, which end the process or do nothing; and threads
other than the main one, which run no handlers.  There a section does nothing.

A section takes about 5 us, so it is for opening and closing, not for reads and writes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import compress
from time import monotonic
from types import TracebackType
from typing import Any, Final, TypeVar

from lsmkv.engine.util.threads import get_ident

T = TypeVar("T")

LOOK_EVERY: Final = 0.05
"""Seconds after which a waiting section delivers signals."""
LONGEST = 2.0
"""Seconds for which a signal waits at most, if it comes again after that."""
_signal: Any = import_module("_signal")  # not ``signal``, whose functions gevent replaces
_NUMBERS: Final = range(1, _signal.NSIG)
_handler_of: Final[Callable[[int], Any]] = _signal.getsignal
_set_handler: Final[Callable[[int, Any], Any]] = _signal.signal


def _in_main_thread() -> bool:
    """Return True in the main thread, the only one that may set a handler."""
    try:
        _set_handler(_signal.SIGINT, None)
    except TypeError:  # which no handler is
        return True
    except ValueError:
        pass
    return False


class DeferredSignals:
    """The sections of the main thread, which nest.

    Handlers that stay exchanged, since several interrupts came within microseconds, are called at
    once by the one that stands in for them, and changed back at the end of the next section.
    """

    def __init__(self) -> None:
        self._main: object = None  # the number of the main thread, once it is known
        self._depth = 0
        self._undisturbed = 0
        self._own: dict[int, Any] = {}  # the program's handlers, while they are exchanged
        self._pending: dict[int, tuple[Any, Any, float]] = {}
        """By signal: its handler, the frame, and the time when it came first."""
        self._stand_in = self._note  # one object, to be recognized

    def __enter__(self) -> None:
        """Begin a section; if a handler raises here, there is none."""
        if self._main is None and _in_main_thread():
            self._main = get_ident()
        if self._main != get_ident():
            return
        if self._depth > 0:
            self._depth += 1
            return
        try:
            self._exchange()
            self._depth = 1
        except BaseException:
            self._leave()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        if self._depth == 0 or self._main != get_ident():
            return
        if self._depth > 1:
            self._depth -= 1
            return
        self._leave()

    def deliver(self) -> None:
        """Run the handlers of the signals that have come.  They may raise."""
        if not self._pending or self._undisturbed > 0 or self._main != get_ident():
            return
        depth = self._depth
        try:
            self._leave()
        finally:
            self._depth = depth
            self._exchange()

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Part of a section in which nothing is delivered: cleaning up after an error."""
        part = 1 if self._main == get_ident() else 0
        self._undisturbed += part
        try:
            yield
        finally:
            self._undisturbed -= part

    @property
    def is_undisturbed(self) -> bool:
        """True if the calling thread is in such a part."""
        return self._undisturbed > 0 and self._main == get_ident()

    def interruptible(self, wait: Callable[[], T]) -> T:
        """Call a function that waits inside the system: handlers run there immediately.

        No context manager: one that an interrupt has ended would go on when it is collected.
        """
        if self._depth == 0 or self._undisturbed > 0 or self._main != get_ident():
            return wait()
        depth = self._depth
        try:
            self._leave()
            return wait()
        finally:
            self._depth = depth
            self._exchange()

    def wait_for(self, lock: Any) -> None:
        """Wait until another thread has released a lock.  A handler that raises ends the wait."""
        with self:
            while not lock.acquire(True, LOOK_EVERY):
                self.deliver()
            lock.release()

    def _exchange(self) -> None:
        """Exchange the program's handlers."""
        for number in compress(_NUMBERS, map(callable, map(_handler_of, _NUMBERS))):
            handler = _handler_of(number)
            if handler is not self._stand_in:
                self._own[number] = handler
                _set_handler(number, self._stand_in)

    def _leave(self) -> None:
        """Change the handlers back, and run those of the signals that have come."""
        try:
            self._depth = 0
            for number, handler in list(self._own.items()):
                if _handler_of(number) is self._stand_in:
                    _set_handler(number, handler)
                self._own.pop(number, None)  # its handler has run, perhaps, with a section
        finally:
            if self._own:  # a handler that was changed back has raised
                self._leave()
            else:
                self._run_pending()

    def _note(self, number: int, frame: Any) -> None:
        """The handler that stands in for the program's."""
        # A program that has asked for its handler within a section may set this one later.
        handler = self._own.get(number, _signal.default_int_handler)
        now = monotonic()
        first = self._pending.get(number, (None, None, now))[2]
        self._pending[number] = handler, frame, first
        if now - first > LONGEST:
            self._leave()
        elif self._depth == 0:
            self._run_pending()

    def _run_pending(self) -> None:
        """Run the handler of each pending signal, whatever the ones before it raise."""
        for number in list(self._pending):
            handler, frame, _ = self._pending.pop(number, (None, None, 0.0))
            if handler is not None:
                try:
                    handler(number, frame)
                finally:
                    self._run_pending()

    def begin_in_child(self) -> None:
        """In a forked child, whose main thread is the one that has forked."""
        if self._main != get_ident():
            self._main = None
            self._depth = self._undisturbed = 0
            self._pending.clear()
            with self:
                pass  # its end changes the handlers back


deferred: Final = DeferredSignals()
"""The sections of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=deferred.begin_in_child)

"""Calls into compiled code that ignores Ctrl-C."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

_Result = TypeVar("_Result")

# Seconds.  The system may deliver a signal to any thread; only one delivered to the main thread
# ends its wait.
_LOOK = 0.1


class _Call(Generic[_Result]):
    """A call in another thread."""

    def __init__(self, call: Callable[[], _Result]) -> None:
        self._call = call
        self._done = threading.Event()
        self._result: list[_Result] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._result.append(self._call())
        except BaseException as error:
            self._error = error
        finally:
            self._done.set()

    def wait(self) -> _Result:
        while not self._done.wait(_LOOK):
            pass
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # its traceback keeps this frame alive
        return self._result[0]


def interruptible(call: Callable[[], _Result]) -> _Result:
    """Return or raise what ``call`` does.  In the main thread, a signal handler may interrupt it.

    After an interruption the call continues in a daemon thread, and its result is lost.  Only the
    main thread gets signals: in other threads this calls directly.  Cost: a few tenths of a
    millisecond in the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    running = _Call(call)
    try:
        threading.Thread(target=running.run, name="lsmkv-request", daemon=True).start()
    except (
        RuntimeError
    ):  # no thread can be started, for example because the interpreter is shutting down
        return call()
    return running.wait()

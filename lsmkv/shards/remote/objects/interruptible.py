"""Calls into compiled code that does not look for Ctrl-C."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

_Result = TypeVar("_Result")

# Seconds.  The system may give a signal to any thread, and only one that the main thread got itself
# ends its wait.
_LOOK = 0.1


class _Call(Generic[_Result]):
    """One call, made in another thread."""

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
                self._error = None  # its traceback holds this frame
        return self._result[0]


def interruptible(call: Callable[[], _Result]) -> _Result:
    """What ``call`` returns or raises.  In the main thread, a signal's handler may raise meanwhile.

    The call goes on then, in a thread that does not keep the process alive, and what becomes of it
    is lost.  Signals are for the main thread alone: from other threads this calls at once.
    Cost: a few tenths of a millisecond in the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    running = _Call(call)
    try:
        threading.Thread(target=running.run, name="lsmkv-request", daemon=True).start()
    except RuntimeError:  # no thread can be made: the interpreter is shutting down, say
        return call()
    return running.wait()

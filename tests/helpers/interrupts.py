"""Calls that a signal handler interrupts, at each of their steps in turn."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lsmkv

TRACED = str(Path(lsmkv.__file__).parent), contextlib.__file__


class Interrupt(Exception):
    """What the handler raises."""


def interrupt(_number: int, _frame: object) -> None:
    raise Interrupt


def interrupted_at_each_step(
    begin: Callable[[], Any], call: Callable[[Any], object]
) -> Iterator[tuple[Any, bool]]:
    """Call it with something new each time: the signal comes at its first step, at its second, and
    so on, until the call ends before it comes.

    Yields what it was called with, and whether it was interrupted.  A step is a line or a call of
    interpreted code.  Runs in the main thread.
    """

    def trace(frame: Any, event: str, _argument: object) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.startswith(TRACED):
            return None
        if event in ("call", "line"):
            left -= 1
            if left == 0:
                signal.raise_signal(signal.SIGINT)
        return trace

    step = left = 0
    while left <= 0:
        step += 1
        given = begin()
        left = step
        handler, before = signal.signal(signal.SIGINT, interrupt), sys.gettrace()
        sys.settrace(trace)
        try:
            call(given)
            interrupted = False
        except Interrupt:
            interrupted = True
        finally:
            sys.settrace(before)
            signal.signal(signal.SIGINT, handler)
        yield given, interrupted

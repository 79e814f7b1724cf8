"""Loads a student's file and runs checks on it.  Each check ends in an outcome."""

from __future__ import annotations

import contextlib
import logging
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType, ModuleType

from lsmkv.course.failure import CheckFailure
from lsmkv.course.lab import Check, Lab
from lsmkv.errors import RecoveryWarning
from lsmkv.tools.signals import Terminated

PASSED = "passed"
FAILED = "failed"
NOT_WRITTEN = "not written"
ERROR = "error"
STOPPED = "stopped"
"""Outcomes of a check.  A grade may also be "missing": see :mod:`lsmkv.course.grading`."""

_NAME = "student"


@dataclass(frozen=True)
class Result:
    """The result of a check."""

    check: str
    outcome: str
    message: str


class LoadError(Exception):
    """The student's file cannot be run at all."""


def load(path: str) -> ModuleType:
    """Run a student's file.  Raises ``OSError`` if it cannot be read, :class:`LoadError` if it
    fails.

    The source is compiled again each time, because a cache could return the version before a save.
    """
    with open(path, "rb") as file:
        source = file.read()
    module = ModuleType(_NAME)
    module.__file__ = path
    sys.modules[_NAME] = module  # dataclasses look it up there
    try:
        exec(compile(source, path, "exec"), module.__dict__)
    except Terminated:
        raise
    except (Exception, SystemExit) as error:
        raise LoadError(f"the file cannot be run: {_in_one_line(error, path)}") from error
    return module


class OutOfTime(BaseException):
    """The time of a check is over.  Not an ``Exception``, which the student's code might catch."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise :class:`OutOfTime` in the block when its time is over, and again every second.

    This works only in the main thread, and not on Windows: elsewhere the time is not limited.
    """
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return
    is_running = True

    def stop(number: int, frame: FrameType | None) -> None:
        if is_running:
            raise OutOfTime

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1)
    try:
        yield
    finally:
        is_running = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run_one(lab: Lab, path: str, check: Check, seconds: float) -> Result:
    """Run one check of a lab on a file, which is loaded again for it, with a time limit."""
    try:
        with time_limit(seconds):
            return judge(lab, load(path), path, check)
    except LoadError as error:
        return Result(check.name, ERROR, str(error))
    except OutOfTime as error:
        return Result(
            check.name, STOPPED, f"it was stopped after {seconds:g} s{place(error, path)}"
        )


def judge(lab: Lab, module: ModuleType, path: str, check: Check) -> Result:
    """Run one check of a lab on a loaded file."""
    for name in lab.functions:
        if not callable(getattr(module, name, None)):
            module.__dict__.pop(name, None)  # a number, for example, counts as not written
    try:
        with _quiet():
            return Result(check.name, PASSED, check.run(module))
    except Terminated:
        raise
    except (Exception, SystemExit) as error:
        cause = _first_cause(error)
        if isinstance(cause, CheckFailure):
            return Result(check.name, FAILED, str(cause))
        if isinstance(cause, NotImplementedError):
            where = _frame_of(cause, path)
            return Result(
                check.name, NOT_WRITTEN, f"{where.name if where else 'it'} is not written yet"
            )
        if (
            isinstance(cause, AttributeError)
            and cause.obj is module
            and cause.name in lab.functions
        ):
            return Result(check.name, ERROR, f"the file has no function {cause.name}")
        return Result(check.name, ERROR, f"your code raised {_in_one_line(cause, path)}")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the engine's warnings, because the result says what went wrong."""
    logger = logging.getLogger("lsmkv")
    before, logger.disabled = logger.disabled, True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RecoveryWarning)
            yield
    finally:
        logger.disabled = before


def _first_cause(error: BaseException) -> BaseException:
    """The original cause of an engine's error: the engine wraps the errors of its parts."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _frame_of(error: BaseException, path: str) -> traceback.FrameSummary | None:
    """The innermost line of the student's file in an error's traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame for frame in reversed(frames) if frame.filename == path), None)


def _in_one_line(error: BaseException, path: str) -> str:
    """An error in one line, with the student's line that raised it."""
    what = type(error).__name__ + (f": {error}" if str(error) else "")
    return what + place(error, path)


def place(error: BaseException, path: str) -> str:
    """The student's line in an error's traceback, for a message; empty if there is none."""
    frame = _frame_of(error, path)
    return "" if frame is None else f"\n  line {frame.lineno}: {frame.line}"

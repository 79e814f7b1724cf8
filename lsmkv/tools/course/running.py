"""Loads a student's file and runs checks on it: each ends in an outcome, whatever the code does."""

from __future__ import annotations

import contextlib
import logging
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import TypeVar

from lsmkv.tools.course.failure import CheckFailure
from lsmkv.tools.course.lab import Check, Lab

PASSED = "passed"
FAILED = "failed"
NOT_WRITTEN = "not written"
ERROR = "error"
"""Outcomes of a check; a grade may also be "stopped", see :mod:`lsmkv.tools.course.grading`."""

_NAME = "student"

T = TypeVar("T")


@dataclass(frozen=True)
class Result:
    """What became of one check."""

    check: str
    outcome: str
    message: str


class LoadError(Exception):
    """The student's file cannot be run at all."""


def load(path: str) -> ModuleType:
    """Run a student's file.  ``OSError`` if it cannot be read, :class:`LoadError` if it fails.

    The source is compiled anew each time, since a cache could serve what was saved a moment before.
    """
    with open(path, "rb") as file:
        source = file.read()
    module = ModuleType(_NAME)
    module.__file__ = path
    sys.modules[_NAME] = module  # dataclasses look there
    try:
        exec(compile(source, path, "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        raise LoadError(f"the file cannot be run: {_told(error, path)}") from error
    return module


def run_all(lab: Lab, path: str) -> list[Result]:
    """All checks of a lab on a file, in order."""
    return [run_one(lab, path, check) for check in lab.checks]


def run_one(lab: Lab, path: str, check: Check) -> Result:
    """One check of a lab on a file, which is run anew for it."""
    told = run(lab, path, check.name, check.run)
    return told if isinstance(told, Result) else Result(check.name, PASSED, told)


def run(lab: Lab, path: str, name: str, use: Callable[[ModuleType], T]) -> T | Result:
    """What ``use`` makes of a file, which is run for it; if it fails, the result of that, under
    this name."""
    try:
        module = load(path)
    except LoadError as error:
        return Result(name, ERROR, str(error))
    return attempt(lab, module, path, name, use)


def judge(lab: Lab, module: ModuleType, path: str, check: Check) -> Result:
    """One check of a lab on the module that a file has become."""
    told = attempt(lab, module, path, check.name, check.run)
    return told if isinstance(told, Result) else Result(check.name, PASSED, told)


def attempt(
    lab: Lab, module: ModuleType, path: str, name: str, use: Callable[[ModuleType], T]
) -> T | Result:
    """What ``use`` makes of the module that a file has become; if it fails, the result of that,
    under this name."""
    missing = [name for name in lab.functions if not callable(getattr(module, name, None))]
    if missing:
        return Result(name, ERROR, f"the file has no function {missing[0]}")
    try:
        with _quiet():
            return use(module)
    except (Exception, SystemExit) as error:
        cause = _first_cause(error)
        if isinstance(cause, CheckFailure):
            return Result(name, FAILED, str(cause))
        if isinstance(cause, NotImplementedError):
            where = _frame_of(cause, path)
            return Result(name, NOT_WRITTEN, f"{where.name if where else 'it'} is not written yet")
        if isinstance(cause, SystemExit) and _frame_of(cause, path) is None:
            raise  # a signal
        return Result(name, ERROR, f"your code raised {_told(cause, path)}")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep back the engine's warnings, since the result says what went wrong."""
    logger = logging.getLogger("lsmkv")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _first_cause(error: BaseException) -> BaseException:
    """What an error of the engine was made from: the engine wraps what a part of it raises."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _frame_of(error: BaseException, path: str) -> traceback.FrameSummary | None:
    """The innermost line of the student's file on an error's way."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame for frame in reversed(frames) if frame.filename == path), None)


def _told(error: BaseException, path: str) -> str:
    """An error in a line, with the student's line that raised it."""
    what = type(error).__name__ + (f": {error}" if str(error) else "")
    frame = _frame_of(error, path)
    return what if frame is None else f"{what}\n  line {frame.lineno}: {frame.line}"

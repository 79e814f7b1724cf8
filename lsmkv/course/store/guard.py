"""Calls a student's part inside the engine, compares its answer, and sets a failing part aside.

Each call of a part is made twice, by the student's function and by the engine's.  The student's
answer is used if it is the same.  If it is not, or the function raises, the failure is noted with
the student's line, and the part is *aside*: from then on the engine's own function answers.  So a
wrong part cannot damage the store.

While a student's function runs, or the engine's beside it, all parts answer as the engine's: a
student's block builder may call the engine's varints, and a reference solution is the engine's own
code.  A callback that a function gets, such as the question to a filter, is *outside* again.
"""

from __future__ import annotations

import contextlib
import linecache
import os
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from lsmkv.course.failure import Place, shown

_MOST_ARGUMENTS = 3
"""Arguments shown of a call that failed."""


class PartFailure(NamedTuple):
    """A part that failed while the store ran."""

    part: str
    function: str
    what: str
    place: str
    """The student's line, if an exception came from there."""


class _Raised(NamedTuple):
    error: BaseException


class Guard:
    """State of the parts while a store runs.  Any thread may call a part."""

    def __init__(self, folder: str, running: Callable[[str], None] = lambda part: None) -> None:
        """``folder`` has the student's files.  ``running`` is called with the name of the part that
        begins to run, and with an empty one when it ends."""
        self._folder = os.path.abspath(folder)
        self._running = running
        self._local = threading.local()
        self.aside: set[str] = set()
        """The parts that are no longer used."""
        self.failures: list[PartFailure] = []
        self.calls: Counter[str] = Counter()
        """The number of answers of each part that were used."""

    def is_in_use(self, part: str) -> bool:
        """True if a call would go to the student's part."""
        return part not in self.aside and not getattr(self._local, "inside", False)

    @contextlib.contextmanager
    def inside(self, is_inside: bool = True) -> Iterator[None]:
        """Within the block, this thread's calls go to the engine's own functions, or no longer."""
        before = getattr(self._local, "inside", False)
        self._local.inside = is_inside
        try:
            yield
        finally:
            self._local.inside = before

    def outside(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A callback for a student's function, in which parts are the student's again."""

        def call(*arguments: Any) -> Any:
            with self.inside(False):
                return function(*arguments)

        return call

    def compared(
        self,
        part: str,
        function: Callable[..., Any],
        arguments: Sequence[Any],
        reference: Callable[[], Any],
    ) -> Any:
        """The answer of a student's function, if it is the reference's; otherwise the reference's.

        Where the reference raises, that error is raised, and the student's function is not asked.
        """
        if not self.is_in_use(part):
            return reference()
        with self.inside():
            right = reference()
        return self.agreed(part, function, arguments, right)

    def agreed(
        self, part: str, function: Callable[..., Any], arguments: Sequence[Any], right: Any
    ) -> Any:
        """The answer of a student's function if it equals ``right``; otherwise ``right``."""
        got = self.tried(part, function, arguments)
        if isinstance(got, _Raised):
            return right
        if type(got) is not type(right) or got != right:
            name = function.__name__
            self.fail(
                part, name, f"{_called(name, arguments)} is {_short(got)}, not {_short(right)}"
            )
            return right
        self.calls[part] += 1
        return got

    def tried(self, part: str, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
        """Call a student's function; an exception is noted as the part's failure."""
        self._running(part)
        try:
            with self.inside():
                return function(*arguments)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            name = function.__name__
            what = type(error).__name__ + (f": {error}" if str(error) else "")
            self.fail(part, name, f"{_called(name, arguments)} raised {what}", self.place_of(error))
            return _Raised(error)
        finally:
            self._running("")

    def failed(self, answer: Any) -> bool:
        """True if :meth:`tried` returned no answer."""
        return isinstance(answer, _Raised)

    def steps(
        self, part: str, function: Callable[..., Any], arguments: Sequence[Any]
    ) -> Iterator[Any]:
        """Yield from a student's generator, a step at a time; end early if the part fails."""
        found = self.tried(part, function, arguments)
        if self.failed(found):
            return
        iterator = iter(found)

        def following() -> tuple[Any, ...]:
            for one in iterator:
                return (one,)
            return ()

        following.__name__ = function.__name__
        while True:
            one = self.tried(part, following, ())
            if self.failed(one) or not one:
                return
            yield one[0]

    def supply(self, values: Iterable[Any]) -> Iterator[Any]:
        """Values for a student's function, made by the engine as they are taken."""
        iterator = iter(values)
        while True:
            with self.inside(False):
                try:
                    one = next(iterator)
                except StopIteration:
                    return
            yield one

    def fail(self, part: str, function: str, what: str, place: str = "") -> None:
        """Note a failure, and use the engine's own part from now on."""
        if part not in self.aside:
            self.aside.add(part)
            self.failures.append(PartFailure(part, function, what, place))

    def place_of(self, error: BaseException) -> str:
        """The innermost line of the student's files in an exception's traceback."""
        for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
            file = frame.f_code.co_filename
            if os.path.dirname(file) == self._folder:
                text = linecache.getline(file, line).strip()
                name = os.path.basename(file)
                return str(Place(file, line, text, frame.f_code.co_name, name))
        return ""


def _called(name: str, arguments: Sequence[Any]) -> str:
    words = [_short(one) for one in arguments[:_MOST_ARGUMENTS]]
    more = ", ..." if len(arguments) > _MOST_ARGUMENTS else ""
    return f"{name}({', '.join(words)}{more})"


def _short(value: object) -> str:
    text = shown(value)
    return "..." if text.startswith("<") else text if len(text) <= 60 else text[:57] + "..."

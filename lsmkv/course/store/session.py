"""A student's store, as the shell holds it: it asks the process, kills it, and starts it again."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from lsmkv.course.failure import Place
from lsmkv.course.labs.registry import LABS, find
from lsmkv.course.running import PASSED, Limits, run_checks
from lsmkv.course.steps import has_begun
from lsmkv.course.store.guard import PartFailure
from lsmkv.course.store.parts import PARTS, Part, in_use
from lsmkv.course.traces import MOST_BYTES, places_in
from lsmkv.testing.interpreted import ChildFailedError, InterpretedChild

_CHILD = "lsmkv.course.store.child"


def passed_checks(
    folder: str, limits: Limits, advance: Callable[[int], None] = lambda number: None
) -> dict[int, list[str]]:
    """The names of the checks that pass in a student's folder, by lab; labs not begun have none."""
    passed: dict[int, list[str]] = {}
    needed = {part.lab for part in PARTS}
    for lab in LABS:
        path = os.path.abspath(os.path.join(folder, lab.file_name))
        if lab.number in needed and has_begun(lab, path):
            results = run_checks(lab, path, limits)
            passed[lab.number] = [one.check for one in results if one.outcome == PASSED]
        advance(1)
    return passed


class StoreError(ValueError):
    """A request that the store cannot carry out."""


class Session:
    """A store that runs with some of a student's parts.  One thread uses it.

    A part that fails is set aside, and the store continues with the engine's: immediately if it
    raised or was wrong, and by a new process if it ended its process or took too long.
    """

    def __init__(self, folder: str, store: str, parts: Sequence[Part], seconds: float) -> None:
        """``seconds`` is the limit of a request's duration.  Raises :class:`StoreError`."""
        self.folder = os.path.abspath(folder)
        self.store = os.path.abspath(store)
        self.parts = list(parts)
        self._seconds = seconds
        self.failures: list[PartFailure] = []
        """Failures of parts while the store ran; the shell removes them when it has printed
        them."""
        self.aside: set[str] = set()
        self._scratch = tempfile.TemporaryDirectory(prefix="lsmkv-course-")
        self._child: InterpretedChild | None = None
        try:
            self.reopen()
        except BaseException:
            self.kill()
            self._scratch.cleanup()
            raise

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None:
            self.kill()
        with contextlib.suppress(StoreError):
            self.close()
        self.kill()
        self._scratch.cleanup()

    @property
    def used(self) -> list[Part]:
        """The parts that are in use."""
        return [part for part in self.parts if part.name not in self.aside]

    def ask(self, do: str, **arguments: Any) -> Any:
        """Return the store's answer.  Raises :class:`StoreError`."""
        request = {
            **arguments,
            **{"do": do, "seconds": self._seconds, "folder": self.folder, "store": self.store},
            **{"traces": self._path("traces"), "running": self._path("running")},
        }
        if self._child is None:
            raise StoreError("the store is not open: 'reopen' opens it")
        try:
            answer = self._child.ask(request)
        except ChildFailedError as error:
            status = str(error).rpartition(" ")[2]
            self._child = None
            if not self._note_end(status):
                raise StoreError(f"its process has ended with status {status}") from None
            self.reopen()
            raise StoreError("the store was opened again, without that part") from None
        failures = [PartFailure(**one) for one in answer["failures"]]
        self.failures += failures
        self.aside |= {one.part for one in failures}
        if "error" in answer:
            raise StoreError(answer["error"])
        return answer["value"]

    def reopen(self) -> None:
        """Open the store in a new process, after a clean end of the last one."""
        self.close()
        self._child = InterpretedChild(_CHILD)
        self.ask("open", parts=[part.name for part in self.used])

    def kill(self) -> None:
        """Kill the process, as a crash does: what is only in memory is gone."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def close(self) -> None:
        """Close the store, and end its process."""
        if self._child is not None:
            self.ask("close")
            if self._child is not None:
                self._child.close()
                self._child = None

    def _path(self, name: str) -> str:
        return os.path.join(self._scratch.name, name)

    def _note_end(self, status: str) -> bool:
        """Set the part aside that was running when the process ended; False if none was."""
        try:
            with open(self._path("running"), "rb") as file:
                name = file.read().decode().strip()
        except FileNotFoundError:
            return False
        if not name:
            return False
        place = self._place()
        what = f"it did not return within {self._seconds:g} s"
        if place is None:
            what = f"its process has ended with status {status}"
        self.failures.append(PartFailure(name, "", what, "" if place is None else str(place)))
        self.aside.add(name)
        return True

    def _place(self) -> Place | None:
        """The innermost line of the student's files in what the process wrote at its end."""
        with open(self._path("traces"), "rb") as file:
            return next(places_in(file.read(MOST_BYTES), {self.folder}), None)


def state_of(part: Part, passed: dict[int, list[str]], folder: str) -> str:
    """Describe why a part is in use or not."""
    lab = find(str(part.lab))
    path = os.path.join(folder, lab.file_name)
    if part in in_use(passed):
        return "yours"
    if not os.path.exists(path):
        return f"there is no {lab.file_name}"
    if not has_begun(lab, path):
        return "not begun"
    missing = next(name for name in part.checks if name not in passed.get(part.lab, ()))
    return f"the engine's: the check {missing!r} does not pass"

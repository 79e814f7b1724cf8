"""The course in a browser tab: the labs' texts, and their checks in the page's worker.

There the worker is the student's process: the page ends it, if the code does not end.  So the
checks call the student's functions directly.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import io
import os
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from lsmkv.course.failure import place_of
from lsmkv.course.lab import Lab
from lsmkv.course.labs.registry import LABS, find
from lsmkv.course.running import ERROR, PASSED, Code, Result, judge
from lsmkv.course.student import Root

Plain = dict[str, Any]
"""A JSON object."""
Report = Callable[[Plain], object]
"""Takes what is reported while a question is answered."""

FOLDER: Final = "lsmkv-course"
"""The folder in the archive of a student's files."""
_LONGEST: Final = 1 << 20


def labs(_query: Plain, _report: Report) -> Plain:
    """The labs: ``number``, ``title``, and the ``file`` that the student writes."""
    return {
        "labs": [{"number": lab.number, "title": lab.title, "file": lab.file_name} for lab in LABS]
    }


def lab(query: Plain, _report: Report) -> Plain:
    """A lab: its text in Markdown, its hints, its starter file, and the names of its checks."""
    found = find(str(query.get("lab")))
    return {
        "number": found.number,
        "title": found.title,
        "file": found.file_name,
        "text": found.text_without_hints(),
        "hints": found.hints(),
        "starter": found.starter(),
        "checks": [check.name for check in found.checks],
    }


def check(query: Plain, report: Report) -> Plain:
    """Run a lab's checks on ``files``, the sources of all labs by their names.

    Each result is reported as soon as there is one, and what the code prints as ``printed``.
    Returns how many checks passed.
    """
    found = find(str(query.get("lab")))
    files = _files(query)
    printed = _Printed(report)
    passed = 0
    with (
        tempfile.TemporaryDirectory(prefix="lsmkv-tab-") as folder,
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        for name, source in files.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(source)
        for result in _results(found, folder, list(files)):
            passed += result.outcome == PASSED
            report({"check": result.check, "outcome": result.outcome, "message": result.message})
    return {"passed": passed, "checks": len(found.checks)}


def archive(query: Plain, _report: Report) -> Plain:
    """A ZIP archive, in base64, of the folder that ``lsmkv course`` takes: ``files``, and the
    starters of the labs that are not among them."""
    files = _files(query)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as target:
        for one in LABS:
            source = files.get(one.file_name, one.starter())
            target.writestr(f"{FOLDER}/{one.file_name}", source)
    return {"base64": base64.b64encode(content.getvalue()).decode("ascii")}


VIEWS: Final[Mapping[str, Callable[[Plain, Report], Plain]]] = {
    "course/labs": labs,
    "course/lab": lab,
    "course/check": check,
    "course/archive": archive,
}
"""Views of the page, by name."""


def _files(query: Plain) -> dict[str, str]:
    """The student's files; ``ValueError`` for other names."""
    given = query.get("files")
    known = {one.file_name for one in LABS}
    if not isinstance(given, dict) or not set(given) <= known:
        raise ValueError("files must be the sources of labs by their names")
    if not all(isinstance(one, str) and len(one) <= _LONGEST for one in given.values()):
        raise ValueError(f"a source is a text of at most {_LONGEST:,} characters")
    return given


def _results(found: Lab, folder: str, names: list[str]) -> Iterator[Result]:
    """The results of all checks, one after the other."""
    with _loaded(found, folder, names) as code:
        if isinstance(code, str):
            for one in found.checks:
                yield Result(one.name, ERROR, code)
            return
        for one in found.checks:
            yield judge(found, code, one)


@contextlib.contextmanager
def _loaded(found: Lab, folder: str, names: list[str]) -> Iterator[Code | str]:
    """The functions of a student's file, or the reason for which it cannot be run; its modules are
    removed at the end."""
    path, before = list(sys.path), list(sys.meta_path)
    modules = {name.removesuffix(".py"): os.path.join(folder, name) for name in names}
    root = Root()
    try:
        own = os.path.join(folder, found.file_name)
        name = found.file_name.removesuffix(".py")
        try:
            functions = root.load(own, name, found.functions, modules)
        except Exception as error:
            error.__dict__.setdefault("place", root.place_of(error))
            what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            yield f"the file cannot be run: {what}{place_of(error)}"
        else:
            yield Code({one: _placed(root, call) for one, call in functions.items()})
    finally:
        sys.path[:], sys.meta_path[:] = path, before
        for one in modules:
            sys.modules.pop(one, None)


def _placed(root: Root, function: Callable[..., Any]) -> Callable[..., Any]:
    """A student's function, whose exceptions have the line that raised them."""

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except Exception as error:
            error.__dict__.setdefault("place", root.place_of(error))
            raise

    return call


class _Printed(io.TextIOBase):
    """Reports what is printed, up to a limit."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._left = 20_000

    def write(self, text: str) -> int:
        if self._left > 0:
            self._report({"printed": text[: self._left]})
            self._left -= len(text)
        return len(text)

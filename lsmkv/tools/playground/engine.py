"""The questions that the pages ask the engine in their worker, and its answers as plain data.

A question is the name of a view and a JSON object, an answer is a JSON object.  A new view is one
more line in :data:`VIEWS`.
"""

from __future__ import annotations

import errno
import json
import platform
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import lsmkv
from lsmkv.engine.errors import Error
from lsmkv.tools.inspect.api import Api
from lsmkv.tools.inspect.levels import check_result
from lsmkv.tools.inspect.plain import NotThereError
from lsmkv.tools.playground import filters
from lsmkv.tools.playground.console import Console
from lsmkv.tools.playground.dropped import DroppedEnv
from lsmkv.tools.playground.example import example
from lsmkv.tools.playground.hashes import hashes
from lsmkv.tools.playground.story import Story

Plain = dict[str, Any]
"""A JSON object."""
View = Callable[[Plain, Callable[[Plain], object]], Plain]
"""Answers a question; what it takes second is for what is known before the answer is."""


class Engine:
    """Answers a page's worker; the first question about the story makes its store.

    >>> Engine().answer("nothing", "{}")
    '{"refused": "there is no view \\'nothing\\'"}'
    """

    def __init__(self, more: Mapping[str, View] | None = None) -> None:
        """``more`` are views of other programs."""
        self._more = {} if more is None else more
        self._story: Story | None = None
        self._folder: Api | None = None
        self._console: Console | None = None

    def answer(self, view: str, query: str, report: Callable[[str], object] | None = None) -> str:
        """The answer to a question, as JSON; ``{"refused": ...}``, with the reason, if it is wrong.

        ``inspect/`` and a view of the inspector's asks about the open folder; ``act/`` and an
        action does what the inspector's server does when the page posts it.  ``report`` takes what
        is known before the answer is, as JSON.
        """
        kind, _, name = view.partition("/")
        if view not in VIEWS and view not in self._more and kind not in ("inspect", "act"):
            return json.dumps({"refused": f"there is no view {view!r}"})
        try:
            asked = json.loads(query)
            if not isinstance(asked, dict):
                raise ValueError("a question is a JSON object")
            if kind == "inspect":
                return json.dumps(self.folder().answer(name, asked))
            if view == "act/check":
                return json.dumps(self._check(lambda one: _told(report, one)))
            if kind == "act":
                return json.dumps(self.folder().act(name, asked))
            if view in self._more:
                return json.dumps(self._more[view](asked, lambda one: _told(report, one)))
            if view == "console":
                return json.dumps(self._run(asked, lambda one: _told(report, one)))
            return json.dumps(VIEWS[view](self, asked))
        except (Error, NotThereError, OSError, ValueError) as error:
            words = str(error) if self._folder is None else self._folder.reason(error)
            return json.dumps({"refused": words})

    def _run(self, query: Plain, report: Callable[[Plain], object]) -> Plain:
        """Run the statements of ``source`` in the console, and report what they print."""
        source = query.get("source")
        if not isinstance(source, str):
            raise ValueError("source must be a text")
        if self._console is None:
            self._console = Console()
        return {"done": self._console.run(source, lambda text: report({"printed": text}))}

    def _check(self, report: Callable[[Plain], object]) -> Plain:
        """Survey every file of the folder; ``report`` takes how many bytes are done."""

        def progress(done: int, total: int, _: str) -> None:
            report({"done": done, "total": total})

        source = self.folder().source
        source.start_check(progress)
        source.finish_check()
        return check_result(source)

    def open_folder(self, name: str, files: Iterable[Any]) -> str:
        """Open dropped files, which take the place of earlier ones.

        A file has ``name``, ``size``, ``modified`` and ``read(offset, length)``, whose result has
        ``to_bytes()``, and is None if the browser does not give these bytes.
        """
        self.close_folder()
        found = {file.name: _OfBrowser(file) for file in files}
        try:
            self._folder = Api(name, env=DroppedEnv(found))
        except (Error, OSError) as error:
            return json.dumps({"refused": str(error)})
        return json.dumps({"name": name, "files": len(found)})

    def folder(self) -> Api:
        """Return the views of the open folder.  ``ValueError`` if none is open."""
        if self._folder is None:
            raise ValueError("no folder is open")
        return self._folder

    def close_folder(self) -> None:
        """Close the folder, if one is open."""
        if self._folder is not None:
            self._folder.close()
            self._folder = None

    def story(self) -> Story:
        """The store of the story."""
        if self._story is None:
            self._story = Story()
        return self._story

    def close(self) -> None:
        """Close the folder and the store of the story, if they are open; the next question about
        the story begins a new one."""
        self.close_folder()
        self.close_story()

    def close_story(self) -> None:
        """Close the store of the story, if it is open."""
        if self._story is not None:
            self._story.close()
            self._story = None


class _OfBrowser:
    """A file as the worker passes it."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.size = int(file.size)
        self.modified = float(file.modified)

    def read(self, offset: int, length: int) -> bytes:
        data = self._file.read(offset, length)
        if data is None:
            reason = "the browser cannot read it: it has changed, or was removed"
            raise OSError(errno.EIO, reason, self._file.name)
        return bytes(data.to_bytes())


def _told(report: Callable[[str], object] | None, one: Plain) -> None:
    if report is not None:
        report(json.dumps(one))


def _about(engine: Engine, _: Plain) -> Plain:
    """The versions of what runs here."""
    return {"lsmkv": lsmkv.__version__, "python": platform.python_version()}


def _begin(engine: Engine, _: Plain) -> Plain:
    """Begin the story again, with an empty store."""
    engine.close_story()
    return engine.story().load({"keys": 0})


VIEWS: dict[str, Callable[[Engine, Plain], Plain]] = {
    "about": _about,
    "console": lambda engine, query: engine._run(query, lambda one: None),
    "example": lambda _, query: example(query),
    "bloom": lambda _, query: filters.bloom(query),
    "passed": lambda _, query: filters.passed(query),
    "stranger": lambda _, query: filters.stranger(query),
    "others": lambda _, query: filters.others(query),
    "hashes": lambda _, query: hashes(query),
    "story/begin": _begin,
    "story/load": lambda engine, query: engine.story().load(query),
    "story/get": lambda engine, query: engine.story().get(query),
    "story/filter": lambda engine, query: engine.story().filter(query),
    "story/suggest": lambda engine, query: engine.story().suggest(query),
    "story/lookups": lambda engine, query: engine.story().lookups(query),
}
"""The views, by name."""

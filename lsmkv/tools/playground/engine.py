"""The questions that the pages ask the engine in their worker, and its answers as plain data.

A question is the name of a view and a JSON object, an answer is a JSON object.  A new view is one
more line in :data:`VIEWS`.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from typing import Any

import lsmkv
from lsmkv.errors import Error
from lsmkv.tools.playground import filters
from lsmkv.tools.playground.hashes import hashes
from lsmkv.tools.playground.story import Story

Plain = dict[str, Any]
"""A JSON object."""


class Engine:
    """What a page's worker talks to; the first question about the story makes its store.

    >>> Engine().answer("nothing", "{}")
    '{"error": "there is no view \\'nothing\\'"}'
    """

    def __init__(self) -> None:
        self._story: Story | None = None

    def answer(self, view: str, query: str) -> str:
        """The answer to a question, as JSON; ``{"error": ...}``, in words, if it is wrong."""
        if view not in VIEWS:
            return json.dumps({"error": f"there is no view {view!r}"})
        try:
            asked = json.loads(query)
            if not isinstance(asked, dict):
                raise ValueError("a question is a JSON object")
            return json.dumps(VIEWS[view](self, asked))
        except (Error, ValueError) as error:
            return json.dumps({"error": str(error)})

    def story(self) -> Story:
        """The store of the story."""
        if self._story is None:
            self._story = Story()
        return self._story

    def close(self) -> None:
        """Close the store of the story, if there is one; the next question begins a new one."""
        if self._story is not None:
            self._story.close()
            self._story = None


def _about(engine: Engine, _: Plain) -> Plain:
    """The versions of what runs here."""
    return {"lsmkv": lsmkv.__version__, "python": platform.python_version()}


def _begin(engine: Engine, _: Plain) -> Plain:
    """Begin the story again, with an empty store."""
    engine.close()
    return engine.story().load({"keys": 0})


VIEWS: dict[str, Callable[[Engine, Plain], Plain]] = {
    "about": _about,
    "bloom": lambda _, query: filters.bloom(query),
    "passed": lambda _, query: filters.passed(query),
    "stranger": lambda _, query: filters.stranger(query),
    "others": lambda _, query: filters.others(query),
    "hashes": lambda _, query: hashes(query),
    "story/begin": _begin,
    "story/load": lambda engine, query: engine.story().load(query),
    "story/get": lambda engine, query: engine.story().get(query),
    "story/suggest": lambda engine, query: engine.story().suggest(query),
    "story/lookups": lambda engine, query: engine.story().lookups(query),
}
"""What can be asked, by name."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator

import pytest

from lsmkv.tools.playground.engine import VIEWS, Engine


@pytest.fixture
def engine() -> Iterator[Engine]:
    with contextlib.closing(Engine()) as made:
        yield made


def test_answers_are_json(engine: Engine) -> None:
    assert json.loads(engine.answer("about", "{}"))["python"]
    assert json.loads(engine.answer("story/begin", "{}"))["put"] == 0
    assert json.loads(engine.answer("story/load", '{"keys": 10}'))["put"] == 10
    assert json.loads(engine.answer("story/begin", "{}"))["put"] == 0


@pytest.mark.parametrize("view", sorted(set(VIEWS) - {"about", "example", "hashes", "story/begin"}))
def test_wrong_questions_are_answered_with_words(engine: Engine, view: str) -> None:
    assert list(json.loads(engine.answer(view, "{}"))) == ["refused"]


def test_other_views_and_other_text(engine: Engine) -> None:
    assert json.loads(engine.answer("nothing", "{}")) == {"refused": "there is no view 'nothing'"}
    for text in ("not JSON", "[]"):
        assert "refused" in json.loads(engine.answer("about", text))


class Sent:
    """Bytes as the worker passes them."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def to_bytes(self) -> bytes:
        return self._data


class File:
    """A file as the worker passes it."""

    modified = 1.0

    def __init__(self, name: str, content: bytes) -> None:
        self.name = name
        self.content = content
        self.size = len(content)
        self.is_there = True

    def read(self, offset: int, length: int) -> Sent | None:
        return Sent(self.content[offset : offset + length]) if self.is_there else None


@pytest.fixture
def files(engine: Engine) -> list[File]:
    made = json.loads(engine.answer("example", "{}"))["files"]
    return [File(one["name"], base64.b64decode(one["base64"])) for one in made]


def test_a_folder_is_inspected(engine: Engine, files: list[File]) -> None:
    assert json.loads(engine.answer("inspect/levels", "{}")) == {"refused": "no folder is open"}
    opened = json.loads(engine.open_folder("a folder", files))
    assert opened == {"name": "a folder", "files": len(files)}
    found = json.loads(engine.answer("inspect/levels", "{}"))
    assert (found["path"], found["readable"]) == ("a folder", True)
    assert found["facts"]["memtable"]["total"] == 100
    told: list[str] = []
    assert json.loads(engine.answer("act/check", "{}", told.append))["state"] == "done"
    last = json.loads(told[-1])
    assert last["done"] == last["total"] > 0
    for wrong in ("inspect/nothing", "act/nothing", "inspect/get", "inspect/table"):
        assert list(json.loads(engine.answer(wrong, "{}"))) == ["refused"]
    again = json.loads(engine.open_folder("another", files[:1]))
    assert again["name"] == "another"


def test_a_folder_without_a_store_is_refused(engine: Engine) -> None:
    found = json.loads(engine.open_folder("photos", [File("a.jpg", b"")]))
    assert "no database here" in found["refused"]


def test_a_file_that_the_browser_does_not_read_is_reported(
    engine: Engine, files: list[File]
) -> None:
    engine.open_folder("a folder", files)
    for file in files:
        file.is_there = False
    found = json.loads(engine.answer("inspect/levels", "{}"))
    assert "the browser cannot read it" in json.dumps(found)

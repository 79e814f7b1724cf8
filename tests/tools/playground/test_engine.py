from __future__ import annotations

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


@pytest.mark.parametrize("view", sorted(set(VIEWS) - {"about", "hashes", "story/begin"}))
def test_wrong_questions_are_answered_with_words(engine: Engine, view: str) -> None:
    assert list(json.loads(engine.answer(view, "{}"))) == ["refused"]


def test_other_views_and_other_text(engine: Engine) -> None:
    assert json.loads(engine.answer("nothing", "{}")) == {"refused": "there is no view 'nothing'"}
    for text in ("not JSON", "[]"):
        assert "refused" in json.loads(engine.answer("about", text))

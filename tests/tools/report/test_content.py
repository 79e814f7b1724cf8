from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from inspected import HOSTILE, damage, levelled_store

from lsmkv.tools.inspect.api import Api
from lsmkv.tools.report import content
from lsmkv.tools.report.content import Content
from lsmkv.tools.report.page import Answer


def gathered(path: Path, keys: list[bytes] | None = None) -> list[Answer]:
    with contextlib.closing(Api(str(path))) as api:
        return Content(api, keys or []).gather(lambda _: None)


def test_every_view_is_there(tmp_path: Path) -> None:
    answers = gathered(levelled_store(tmp_path / "db"), [b"word 00007", *HOSTILE])
    views = {one.view for one in answers}
    tree = {"levels", "memtable", "table", "block", "history", "history/window"}
    assert views == tree | {"get", "filter", "replay", "scratch"}
    replayed = next(one.answer for one in answers if one.view == "replay")
    assert replayed["outcome"]["gets"] == 1000
    gets = [one for one in answers if one.view == "get"]
    assert gets[0].query == {"key": "word 00007"}
    assert {one.answer["found"] for one in gets} == {True, False}
    assert len(json.dumps([one.answer for one in answers])) < content.MOST_BYTES


def test_what_does_not_fit_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "MOST_BYTES", 60_000)
    monkeypatch.setattr(content, "MOST_TABLES", 3)
    answers = gathered(levelled_store(tmp_path / "db"))
    assert len(json.dumps([one.answer for one in answers])) < 60_000
    levels = answers[0].answer["levels"]
    assert sum(len(level["tables"]) for level in levels) == 3
    assert sum(level["left_out"] for level in levels) > 0


def test_a_damaged_store_is_reported(tmp_path: Path) -> None:
    path = levelled_store(tmp_path / "db")
    table = sorted(path.glob("*.ldb"))[0]
    damage(table, table.stat().st_size - 1)
    answers = gathered(path, [b"word"])
    answer = next(one.answer for one in answers if one.view == "levels")
    assert answer["readable"]  # but for that table
    assert answer["check"]["damaged"] == 1
    listed = [one for level in answer["levels"] for one in level["tables"]]
    assert [one["name"] for one in listed if one.get("problems")] == [table.name]
    assert next(one.answer["error"] for one in answers if one.view == "replay")
    tables = [one.answer for one in answers if one.view == "table"]
    assert any(one["name"] == table.name and one["problems"] for one in tables)


def test_a_store_that_lacks_a_table_is_reported(tmp_path: Path) -> None:
    path = levelled_store(tmp_path / "db")
    table = sorted(path.glob("*.ldb"))[0]
    table.unlink()
    answers = gathered(path)
    answer = next(one.answer for one in answers if one.view == "levels")
    assert not answer["readable"]
    assert table.name in answer["error"]
    assert answer["check"]["damaged"] == 1
    assert not any(one.view == "get" for one in answers)

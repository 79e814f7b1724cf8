from __future__ import annotations

import contextlib
import json
import shutil
import threading
from pathlib import Path

import pytest

import lsmkv
from lsmkv.tools.inspect.api import ACTIONS, VIEWS, Api
from lsmkv.tools.inspect.plain import NotThereError


def test_every_view_answers_with_json(api: Api) -> None:
    name = api.answer("levels", {})["levels"][1]["tables"][0]["name"]
    queries = {
        "table": {"name": name},
        "block": {"name": name, "offset": "0"},
        "filter": {"name": name},
        "filter/probe": {"name": name, "key": "word 00000"},
        "get": {"key": "word 00000"},
        "history/window": {"from": "0"},
        "history/state": {"step": "0"},
    }
    assert set(queries) <= set(VIEWS)
    for view in VIEWS:
        json.dumps(api.answer(view, queries.get(view, {})), allow_nan=False).encode()


def test_every_action_answers(api: Api) -> None:
    for action in ACTIONS:
        assert api.act(action, {"key": "k", "value": "v", "keys": "3"})
    api.source.finish_check()
    api.replays.finish()


def test_unknown_names_are_refused(api: Api) -> None:
    with pytest.raises(NotThereError, match="no view 'x'"):
        api.answer("x", {})
    with pytest.raises(NotThereError, match="no action 'levels'"):
        api.act("levels", {})


def test_the_scratch_store_takes_escaped_keys(api: Api) -> None:
    answer = api.act("scratch/put", {"key": "a\\x00", "value": "\\xff"})
    shown = answer["moments"][-1]["memtable"]["shown"]
    assert {"text": "a\\x00", "bytes": 2} in [one["key"] for one in shown]
    with pytest.raises(ValueError, match="keys must be a number"):
        api.act("scratch/fill", {"keys": "many"})


def test_no_view_shows_the_store_that_took_the_place_of_another(path: Path) -> None:
    with contextlib.closing(Api(str(path))) as api:
        assert api.answer("levels", {})["tables"] > 1
        api.act("check", {})
        api.source.finish_check()
        assert api.answer("levels", {})["check"]["state"] == "done"
        shutil.rmtree(path)
        with lsmkv.DB(path, create_if_missing=True) as db:
            db.put(b"another", b"store")
        for view in set(VIEWS) - {"state", "scratch"}:
            with pytest.raises(lsmkv.DirectoryReplacedError):
                api.answer(view, {"key": "another", "name": "000005.ldb"})
        for action in ("check", "replay"):
            with pytest.raises(lsmkv.DirectoryReplacedError):
                api.act(action, {})
        state = api.answer("state", {})
        assert "another store" in state["replaced"]
        assert state["another"]
        after = api.act("reopen", {})
        assert after["replaced"] == ""
        assert after["opened"] != state["opened"]
        assert api.answer("levels", {})["check"]["state"] == "none"
        assert api.answer("get", {"key": "another"})["found"]


def test_a_store_is_left_once_the_questions_about_it_are_answered(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, go = threading.Event(), threading.Event()

    def slow(api: Api, _: object) -> dict[str, object]:
        asked.set()
        go.wait()
        return {"names": len(api.source.directory.names())}

    monkeypatch.setitem(VIEWS, "slow", slow)
    answers: list[dict[str, object]] = []
    with contextlib.closing(Api(str(path))) as api:
        question = threading.Thread(target=lambda: answers.append(api.answer("slow", {})))
        question.start()
        asked.wait()
        opening = threading.Thread(target=api.act, args=("reopen", {}))
        opening.start()
        opening.join(0.1)
        assert opening.is_alive()
        go.set()
        question.join()
        opening.join()
    assert answers[0]["names"]


def test_what_was_not_replayed_is_of_no_older_state(path: Path) -> None:
    with contextlib.closing(Api(str(path))) as api:
        api.answer("levels", {})
        assert not api.answer("replay", {})["older"]


def test_nothing_is_opened_where_no_store_is(path: Path) -> None:
    with contextlib.closing(Api(str(path))) as api:
        before = api.answer("state", {})["opened"]
        shutil.rmtree(path)
        with pytest.raises(lsmkv.NotFoundError):
            api.act("reopen", {})
        assert api.answer("state", {})["opened"] == before


def test_what_is_of_an_older_state_says_so(path: Path) -> None:
    with contextlib.closing(Api(str(path))) as api:
        api.act("check", {})
        api.source.finish_check()
        api.act("replay", {"settings": "none", "gets": "10"})
        api.replays.finish()
        assert not api.answer("levels", {})["check"]["older"]
        assert not api.answer("replay", {})["older"]
        before = api.answer("state", {})["change"]
        with lsmkv.DB(path) as db:
            db.put(b"k", b"v")
        assert api.answer("state", {})["change"] > before
        assert api.answer("levels", {})["check"]["older"]
        assert api.answer("replay", {})["older"]


def test_the_state_has_the_level_of_a_table(api: Api) -> None:
    for level in api.answer("levels", {})["levels"]:
        for table in level["tables"][:1]:
            assert api.answer("state", {"table": table["name"]})["level"] == level["level"]
    assert api.answer("state", {"table": "999999.ldb"})["level"] is None
    assert "level" not in api.answer("state", {})

from __future__ import annotations

import json

import pytest

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
    told = api.act("scratch/put", {"key": "a\\x00", "value": "\\xff"})
    shown = told["moments"][-1]["memtable"]["shown"]
    assert {"text": "a\\x00", "bytes": 2} in [one["key"] for one in shown]
    with pytest.raises(ValueError, match="keys must be a number"):
        api.act("scratch/fill", {"keys": "many"})

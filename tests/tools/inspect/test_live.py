from __future__ import annotations

import json
import os
from pathlib import Path

from watching import Owner, busy_owner

import lsmkv
from lsmkv.tools.inspect.api import Api
from lsmkv.tools.inspect.live import Live


def test_nothing_is_published() -> None:
    owner = Owner()
    look = Live(owner.directory).look()
    assert (look["pid"], look["publishes"], look["published"]) == (owner.now.pid, False, None)
    assert look["explanation"]["heading"].endswith("has this store open, and publishes nothing.")
    assert look["figures"]["operations"] == look["curves"]["time"] == []


def test_figures_are_those_of_top() -> None:
    owner = busy_owner()
    live = Live(owner.directory)
    live.look()
    owner.operate("get", 10, 2_000)
    owner.publish(2.0)
    look = live.look()
    json.dumps(look, allow_nan=False)
    assert look["explanation"] is None
    assert look["silent_seconds"] == 0.0
    assert look["published"]["pid"] == owner.now.pid
    assert look["curves"]["time"] == [owner.now.time]
    assert look["curves"]["rates"]["get"] == [5.0]
    get = look["figures"]["operations"][0]
    assert (get["name"], get["each_second"]) == ("get", "5.0")
    assert look["figures"]["compaction"]["levels"] == "1 to 2"
    assert {one["name"] for one in look["figures"]["filters"]} >= {
        "asked",
        "expected rate",
        "measured rate",
    }


def test_damage_is_reported() -> None:
    owner = Owner()
    owner.write(b"\x1b[31m")
    look = Live(owner.directory).look()
    assert look["explanation"]["heading"] == "What is published cannot be read"
    assert "\x1b" not in json.dumps(look)


def test_beside_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with lsmkv.DB(path, create_if_missing=True, publish_stats=True) as db:
        db.put(b"ant", b"six legs")
        api = Api(str(path))
        answer = api.answer("live", {})
        while answer["published"] is None:  # until it publishes for the first time
            answer = api.answer("live", {})
        assert answer["published"]["pid"] == os.getpid()
        api.close()

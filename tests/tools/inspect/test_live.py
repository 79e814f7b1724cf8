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
    told = Live(owner.directory).look()
    assert (told["pid"], told["publishes"], told["published"]) == (owner.now.pid, False, None)
    assert told["explanation"]["heading"].endswith("has this store open, and publishes nothing.")
    assert told["figures"]["operations"] == told["curves"]["time"] == []


def test_figures_are_those_of_top() -> None:
    owner = busy_owner()
    live = Live(owner.directory)
    live.look()
    owner.operate("get", 10, 2_000)
    owner.publish(2.0)
    told = live.look()
    json.dumps(told, allow_nan=False)
    assert told["explanation"] is None
    assert told["silent_seconds"] == 0.0
    assert told["published"]["pid"] == owner.now.pid
    assert told["curves"]["time"] == [owner.now.time]
    assert told["curves"]["rates"]["get"] == [5.0]
    get = told["figures"]["operations"][0]
    assert (get["name"], get["each_second"]) == ("get", "5.0")
    assert told["figures"]["compaction"]["levels"] == "1 to 2"
    assert {one["name"] for one in told["figures"]["filters"]} >= {
        "asked",
        "expected rate",
        "measured rate",
    }


def test_damage_is_told() -> None:
    owner = Owner()
    owner.write(b"\x1b[31m")
    told = Live(owner.directory).look()
    assert told["explanation"]["heading"] == "What is published cannot be read"
    assert "\x1b" not in json.dumps(told)


def test_beside_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with lsmkv.DB(path, create_if_missing=True, publish_stats=True) as db:
        db.put(b"ant", b"six legs")
        api = Api(str(path))
        told = api.answer("live", {})
        while told["published"] is None:  # until it publishes for the first time
            told = api.answer("live", {})
        assert told["published"]["pid"] == os.getpid()
        api.close()

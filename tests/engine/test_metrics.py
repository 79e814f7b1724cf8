"""lsmkv.metrics: several stores in one text, also those that other processes have open."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import lsm
from observing import published

import lsmkv
from lsmkv import DB

parser = pytest.importorskip("prometheus_client.openmetrics.parser")


def samples(text: str, name: str) -> dict[str, float]:
    """By store; of a store with levels the sum."""
    found: dict[str, float] = {}
    for family in parser.text_string_to_metric_families(text):
        for one in family.samples:
            if one.name == name:
                found[one.labels["store"]] = found.get(one.labels["store"], 0) + one.value
    return found


def store(path: Path, entries: int, **options: Any) -> DB:
    db = DB(path, create_if_missing=True, **options)
    for number in range(entries):
        db.put(b"%d" % number, b"v")
    return db


def test_several_stores_share_each_metric(tmp_path: Path) -> None:
    with store(tmp_path / "a", 1) as a, store(tmp_path / "b", 2) as b:
        by_path = lsmkv.metrics_text([a, b])
        by_name = lsmkv.metrics_text({"one": a, "other": b})
    assert samples(by_path, "lsmkv_writes_total") == {a.path: 1, b.path: 2}
    assert samples(by_name, "lsmkv_writes_total") == {"one": 1, "other": 2}
    assert by_name.count("# TYPE lsmkv_writes counter") == 1


def test_of_a_path_the_figures_are_those_that_its_owner_publishes(tmp_path: Path) -> None:
    with store(tmp_path / "a", 5, publish_stats=True) as db:
        published(db.path, lambda one: one.stats.writes == 5)
        text = lsmkv.metrics_text([tmp_path / "a"])
        assert samples(text, "lsmkv_writes_total") == {db.path: 5}
        assert samples(text, "lsmkv_publishing") == {db.path: 1}
        assert samples(text, "lsmkv_published_timestamp_seconds")[db.path] > 1e9
        assert samples(text, "lsmkv_operation_seconds_count")[db.path] == 5


def test_a_store_of_another_process(tmp_path: Path) -> None:
    program = (
        "import lsmkv, sys\n"
        "with lsmkv.DB(sys.argv[1], create_if_missing=True, publish_stats=True) as db:\n"
        "    db.put(b'k', b'v')\n"
        "    sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "db")]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as other:
        while not (tmp_path / "db" / "CURRENT").exists():
            assert other.poll() is None
        published(tmp_path / "db", lambda one: one.stats.writes == 1)
        text = lsm("stats", tmp_path / "db", "--openmetrics").out
        other.communicate()
    assert samples(text, "lsmkv_writes_total") == {str(tmp_path / "db"): 1}
    assert samples(text, "lsmkv_publishing") == {str(tmp_path / "db"): 1}


def test_a_store_that_nobody_publishes_shows_its_levels_and_no_counters(tmp_path: Path) -> None:
    with store(tmp_path / "a", 5) as db:
        db.flush()
    text = lsm("stats", tmp_path / "a", "--openmetrics").out
    assert samples(text, "lsmkv_publishing") == {db.path: 0}
    assert samples(text, "lsmkv_level_files") == {db.path: 1}
    assert "_total{" not in text


def test_two_stores_with_one_label_are_refused() -> None:
    with (
        DB(":memory:") as a,
        DB(":memory:") as b,
        pytest.raises(ValueError, match='store=":memory:"'),
    ):
        lsmkv.metrics_text([a, b])


def test_a_single_store_is_no_list_of_stores() -> None:
    with DB(":memory:") as db:
        wrong: Any
        for wrong in (db, "path", Path("path"), b"path"):
            with pytest.raises(TypeError, match="list"):
                lsmkv.metrics_text(wrong)
        for wrong in (None, 5, b"path"):
            with pytest.raises(TypeError, match=f"not {type(wrong).__name__}"):
                lsmkv.metrics_text([wrong])


def test_a_path_without_a_store(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(lsmkv.NotFoundError):
            lsmkv.metrics_text([path])


def test_no_stores_are_an_empty_text() -> None:
    assert lsmkv.metrics_text([]) == "# EOF\n"


def test_the_command_shows_one_form_at_a_time(tmp_path: Path) -> None:
    store(tmp_path / "a", 1).close()
    done = lsm("stats", tmp_path / "a", "--openmetrics", "--json")
    assert done.status == 2
    assert "--openmetrics" in done.err

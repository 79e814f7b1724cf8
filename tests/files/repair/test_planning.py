"""lsmkv.repair.plan: what a repair keeps, rewrites and leaves out, and what is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from stores import put_numbered, rewrite

from lsmkv import DB, MemoryEnv, plan_repair
from lsmkv.engine.env.base import Directory
from lsmkv.files.repair.plan import KEEP, LEAVE_OUT, REWRITE, RepairPlan

OPTIONS: dict[str, Any] = {"block_size": 256, "compression": None}


class Place:
    """A store with two tables on level 0 and one below, and a write in its log."""

    def __init__(self) -> None:
        self.env = MemoryEnv()
        with DB("db", create_if_missing=True, env=self.env, **OPTIONS) as db:
            for value in (b"oldest", b"middle", b"newer", b"newest"):
                put_numbered(db, b"key%02d", range(20), value * 5)
                db.flush()
            db.put(b"log", b"1")
            self.numbers = {
                level: [table.number for table in db.tables() if table.level == level]
                for level in (0, 1, 2)
            }
        assert [len(numbers) for numbers in self.numbers.values()] == [2, 1, 1]
        self.directory: Directory = self.env.open_directory("db")

    def name(self, level: int, at: int = 0) -> str:
        return f"{self.numbers[level][at]:06d}.ldb"

    def flip(self, name: str, offset: int) -> None:
        data = bytearray(self.directory.read_file(name, 1 << 20))
        data[offset] ^= 3
        rewrite(self.directory, name, bytes(data))

    def plan(self, **more: Any) -> RepairPlan:
        return plan_repair("db", env=self.env, **OPTIONS, **more)


def actions(plan: RepairPlan) -> dict[str, str]:
    return {table.survey.name: table.action for table in plan.tables}


@pytest.fixture
def place() -> Place:
    return Place()


def test_a_sound_store_keeps_every_table(place: Place) -> None:
    plan = place.plan()
    assert not plan.needed
    assert plan.by_levels
    assert set(actions(plan).values()) == {KEEP}
    assert [log.operations for log in plan.logs] == [1]
    assert (plan.lost_bytes, plan.stale) == (0, 0)
    assert plan.last_sequence == 81
    assert str(plan).startswith("nothing is damaged\n")


def test_a_lost_block_costs_its_bytes_and_sets_older_versions_aside(place: Place) -> None:
    name = place.name(1)  # above one table, below two
    place.flip(name, 3)
    plan = place.plan()
    assert plan.needed
    assert actions(plan) == {
        place.name(0, 0): KEEP,
        place.name(0, 1): KEEP,
        name: REWRITE,
        place.name(2): REWRITE,
    }
    damaged, below = (
        next(table for table in plan.tables if table.survey.name == one)
        for one in (name, place.name(2))
    )
    assert 0 < damaged.lost_bytes == plan.lost_bytes < damaged.survey.size
    assert 0 < below.stale == plan.stale < 20
    kept = place.plan(keep_stale=True)
    assert kept.stale == 0
    assert actions(kept)[place.name(2)] == KEEP
    text = str(plan)
    assert f"{name}: level 1, rewrite: 1 of" in text
    assert f"lost at 0: {plan.lost_bytes} bytes, keys from 'key00' to 'key" in text
    assert f"set aside: {plan.stale} entries" in text


def test_a_table_of_level_0_stays_newer_than_one_that_is_rewritten(place: Place) -> None:
    """A rewritten table gets a new number, and level 0 goes by the numbers."""
    newer, older = place.name(0, 0), place.name(0, 1)
    place.flip(older, 3)
    found = actions(place.plan())
    assert found[older] == found[newer] == REWRITE
    second = Place()
    second.flip(second.name(0, 0), 3)
    assert actions(second.plan(keep_stale=True))[second.name(0, 1)] == KEEP


@pytest.mark.parametrize("left", [0.0, 0.01, 0.3, 0.5, 0.75, 0.9])
@pytest.mark.parametrize("compression", ["snappy", None])
def test_the_bytes_that_a_cut_table_lacks_are_lost(left: float, compression: Any) -> None:
    env = MemoryEnv()
    with DB("db", create_if_missing=True, env=env, compression=compression) as db:
        for number in range(6000):
            db.put(b"key%06d" % number, b"%d squared is %d" % (number, number * number) * 2)
        db.flush()
        (table,) = db.tables()
    directory = env.open_directory("db")
    whole = directory.read_file(table.name, 1 << 20)
    cut = int(len(whole) * left)
    rewrite(directory, table.name, whole[:cut])
    plan = plan_repair("db", env=env)
    missing = len(whole) - cut
    assert plan.missing_bytes == missing
    assert missing <= plan.lost_bytes <= missing + 4096 + 256  # and the block that was cut
    (planned,) = plan.tables
    hole = planned.survey.holes[-1]
    assert hole.size + hole.missing == plan.lost_bytes
    assert f"{missing:,} bytes missing, keys from" in str(plan)
    report = plan.to_dict()
    assert (report["lost_bytes"], report["missing_bytes"]) == (plan.lost_bytes, missing)
    assert report["tables"][0]["lost"][-1]["missing"] == missing
    if left > 0.01:
        assert planned.reason == f"{missing:,} bytes are missing at its end"


def test_a_table_without_its_last_bytes_alone_loses_no_data(place: Place) -> None:
    name = place.name(2)
    data = place.directory.read_file(name, 1 << 20)
    rewrite(place.directory, name, data[:-20])
    plan = place.plan()
    assert plan.needed
    assert (plan.lost_bytes, plan.missing_bytes) == (0, 0)
    assert "all of its entries can be read" in str(plan)


def test_a_missing_table_is_left_out(place: Place) -> None:
    place.directory.remove(place.name(1))
    plan = place.plan()
    assert plan.needed
    (table,) = [one for one in plan.tables if one.action == LEAVE_OUT]
    assert (table.survey.name, table.reason) == (place.name(1), "missing")
    assert table.survey._stated is not None
    assert plan.missing_bytes == plan.lost_bytes == table.survey._stated.size


def test_without_a_manifest_all_tables_are_merged(place: Place) -> None:
    place.directory.remove("CURRENT")
    for name in place.directory.names():
        if name.startswith("MANIFEST"):
            place.directory.remove(name)
    place.directory.create("000800.log").close()
    plan = place.plan()
    assert not plan.by_levels
    assert set(actions(plan).values()) == {REWRITE}
    assert "no MANIFEST is intact" in str(plan)
    assert plan.last_sequence == 81
    assert plan.highest_number == 800


def test_a_plan_is_plain_data_for_programs(place: Place) -> None:
    place.flip(place.name(2), 3)
    plan = place.plan()
    report = json.loads(json.dumps(plan.to_dict()))
    assert report["needed"] is True
    assert report["lost_bytes"] == plan.lost_bytes
    (lost,) = next(table for table in report["tables"] if table["lost"])["lost"]
    assert (lost["offset"], lost["bytes"], lost["after"]) == (0, plan.lost_bytes, "key00")
    assert lost["to"].startswith("key")
    assert [log["operations"] for log in report["logs"]] == [1]
    assert [problem["file"] for problem in report["problems"]] == [place.name(2)]

from __future__ import annotations

import contextlib
import itertools
import json
from pathlib import Path

from inspected import damage

import lsmkv
from lsmkv.tools.inspect.api import Api
from lsmkv.tools.inspect.levels import check_result, levels
from lsmkv.tools.inspect.source import Source


def test_every_table_is_there(api: Api, made_store: Path) -> None:
    answer = api.answer("levels", {})
    with lsmkv.DB(made_store, read_only=True) as db:
        expected = [(table.level, table.name, table.size) for table in db.tables()]
    listed = [
        (level["level"], table["name"], table["size"])
        for level in answer["levels"]
        for table in level["tables"]
    ]
    assert listed == expected
    assert answer["readable"]
    assert answer["tables"] == len(expected)
    assert answer["bytes"] == sum(size for *_, size in expected)
    assert len({level for level, *_ in listed}) > 1
    json.dumps(answer)


def test_the_axis_of_keys_is_in_order(api: Api) -> None:
    answer = api.answer("levels", {})
    for level in answer["levels"][1:]:
        places = [(table["from"], table["to"]) for table in level["tables"]]
        assert places == sorted(places)
        assert all(0 <= start <= end <= 1 for start, end in places)
        assert all(a[1] < b[0] for a, b in itertools.pairwise(places))
    everything = [table for level in answer["levels"] for table in level["tables"]]
    assert min(table["from"] for table in everything) == 0
    assert max(table["to"] for table in everything) == 1


def test_a_level_that_is_too_full_has_a_score_above_one(tmp_path: Path) -> None:
    path = str(tmp_path / "db")
    with lsmkv.DB(path, create_if_missing=True, background="thread") as db:
        db.put(b"k", b"v")
    with contextlib.closing(Source(path)) as source:
        answer = levels(source)
    assert answer["levels"][0]["limit"] == "4 tables"
    assert answer["levels"][1]["limit"] == "10485760 bytes"
    assert answer["levels"][6]["limit"] == "none"


def test_filters_are_what_tables_have(tmp_path: Path) -> None:
    for bits, filters in ((0, []), (10, ["filter.leveldb.BuiltinBloomFilter2"])):
        path = str(tmp_path / f"db{bits}")
        with lsmkv.DB(path, create_if_missing=True, bloom_filter_bits=bits) as db:
            db.put(b"k", b"v")
            db.flush()
        with contextlib.closing(Source(path)) as source:
            assert levels(source)["facts"]["filters"] == filters


def test_a_store_without_a_table_shows_its_tables_and_the_damage(path: Path) -> None:
    table = sorted(path.glob("*.ldb"))[0]
    table.unlink()  # the store cannot be opened
    with contextlib.closing(Source(str(path))) as source:
        assert not levels(source)["readable"]
        source.finish_check()
        answer = levels(source)
    assert not answer["readable"]
    assert table.name in answer["error"]
    everything = [one for level in answer["levels"] for one in level["tables"]]
    assert [one["name"] for one in everything if one.get("problems")] == [table.name]
    assert answer["check"]["state"] == "done"
    assert answer["check"]["damaged"] == 1


def test_a_damaged_table_is_shown_after_the_check_of_a_store_that_opens(path: Path) -> None:
    table = sorted(path.glob("*.ldb"))[0]
    damage(table, table.stat().st_size - 1)  # the magic number: other tables can be read
    with contextlib.closing(Source(str(path))) as source:
        before = levels(source)
        source.start_check()
        source.finish_check()
        answer = levels(source)
    assert before["readable"]
    assert answer["readable"]
    assert answer["tables"] == before["tables"]
    everything = [one for level in answer["levels"] for one in level["tables"]]
    assert [one["name"] for one in everything if one.get("problems")] == [table.name]
    assert (answer["check"]["state"], answer["check"]["damaged"]) == ("done", 1)
    assert [file["name"] for file in answer["check"]["files"] if file["damaged"]] == [table.name]


def test_a_check_finds_a_damaged_block(path: Path) -> None:
    table = sorted(path.glob("*.ldb"))[0]
    damage(table, 100)
    with contextlib.closing(Source(str(path))) as source:
        assert levels(source)["check"]["state"] == "none"
        source.start_check()
        source.finish_check()
        found = check_result(source)
        answer = levels(source)
    assert answer["readable"]
    damaged = [file for file in found["files"] if file["damaged"]]
    assert [file["name"] for file in damaged] == [table.name]
    assert damaged[0]["problems"][0]["offset"] == 0
    assert any(
        one.get("problems")
        for level in answer["levels"]
        for one in level["tables"]
        if one["name"] == table.name
    )

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lsmkv import BloomFilterPolicy, MemoryEnv
from lsmkv.files import parse_name
from lsmkv.tools.demo.measure import measure
from lsmkv.tools.playground.story import GETS, NAMES, PATH, Story
from lsmkv.tools.text import clipped


@pytest.fixture(scope="module")
def story() -> Iterator[Story]:
    """With all names, put as the page puts them."""
    with contextlib.closing(Story()) as made:
        while made.load({"keys": 2000})["put"] < NAMES:
            pass
        yield made


@pytest.fixture
def empty() -> Iterator[Story]:
    with contextlib.closing(Story()) as made:
        yield made


def test_events_are_the_lines_of_the_log(empty: Story) -> None:
    events: list[str] = []
    states = [empty.load({"keys": 250}) for _ in range(28)]
    for state in states:
        events += state["events"]
    flushes = [line for line in events if re.match(r"Level-[012] table #", line)]
    compactions = [line for line in events if line.startswith("Compacted 4@0 + ")]
    assert len(flushes) == states[-1]["flushes"] > 4
    assert len(compactions) == states[-1]["compactions"] == 1
    assert [state["put"] for state in states] == [250 * n for n in range(1, 29)]
    assert all(0 <= state["memtable"] <= state["write_buffer"] for state in states)


def test_the_same_store_is_made_each_time(story: Story, empty: Story) -> None:
    """Whatever number of names is put at once."""
    levels = story.load({"keys": 0})["levels"]
    while (state := empty.load({"keys": 777}))["put"] < NAMES:
        pass
    assert state["levels"] == levels
    assert [(one["level"], len(one["tables"])) for one in levels] == [(0, 3), (1, 4), (2, 1)]
    for level in levels:
        for table in level["tables"]:
            assert parse_name(table["name"]) is not None
            places = table["blocks"]
            assert places == sorted(places)
            assert sum(size for _, size in places) < table["size"]


def test_a_get_reads_what_is_marked(story: Story) -> None:
    known = {
        (table["name"], offset)
        for level in story.load({"keys": 0})["levels"]
        for table in level["tables"]
        for offset, _ in table["blocks"]
    }
    suggested = story.suggest({})
    assert len(suggested["absent"]) == len(suggested["present"]) == 3
    for kind in ("absent", "wrong", "present"):
        for key in suggested[kind]:
            found = story.get({"key": key})
            asked = [table for table in found["tables"] if table["asked"]]
            read = [table for table in asked if table["block"] is not None]
            spared = [table for table in asked if table["spared"] is not None]
            assert found["found"] == (kind == "present")
            assert len(read) == found["searched"]
            assert len(read) + len(spared) == found["without"]
            assert {(t["name"], t["block"]) for t in read} <= known
            assert {(t["name"], t["spared"]) for t in spared} <= known
            assert sum(t["wasted"] for t in read) == len(read) - found["found"]
    assert [story.get({"key": key})["searched"] for key in suggested["absent"]] == [0, 0, 0]


def test_lookups_are_counted_by_a_replay(story: Story) -> None:
    by_bits = {bits: story.lookups({"per_key": bits, "present": 0}) for bits in (0, 2, 10)}
    blocks = [one["with"]["blocks"] for one in by_bits.values()]
    assert blocks == sorted(blocks, reverse=True)
    assert by_bits[0]["with"]["blocks"] == by_bits[0]["without"]["blocks"] > 3 * GETS
    assert 0 < by_bits[10]["with"]["blocks"] < by_bits[10]["without"]["blocks"] / 20
    for one in by_bits.values():
        assert (one["gets"], one["found"]) == (GETS, 0)
        assert one["with"]["wasted"] == one["with"]["blocks"]
    present = story.lookups({"per_key": 10, "present": GETS})
    assert present["found"] == GETS
    assert present["with"]["blocks"] >= GETS - present["from_memory"]


def test_a_get_asks_the_filter_that_is_shown(story: Story) -> None:
    """The policy gives the same answers, and a bit is set if a key of the filter sets it."""
    suggested = story.suggest({})
    policy = BloomFilterPolicy(10)
    answers: set[tuple[bool, bool]] = set()
    for key in (*suggested["absent"], *suggested["wrong"], *suggested["present"]):
        for table in story.get({"key": key})["tables"]:
            block = table["block"] if table["spared"] is None else table["spared"]
            if not table["asked"] or block is None:
                continue
            found = story.filter({"key": key, "table": table["name"], "block": block})
            data = bytes.fromhex(found["hex"]) + bytes([found["probes"]])
            hashed = policy.key_hash(key.encode())
            assert found["may_match"] == (table["block"] is not None)
            assert found["may_match"] == policy.hash_may_match(hashed, data)
            assert list(found["positions"]) == policy.probed_positions(hashed, data)
            assert found["bits"] == max(64, -(-found["keys"] * 10 // 8) * 8)
            set_bits = [data[at >> 3] >> (at & 7) & 1 for at in found["positions"]]
            assert set_bits == [bool(setters) for setters in found["setters"]]
            if found["present"]:
                assert all(clipped(key.encode(), 60) in setters for setters in found["setters"])
            answers.add((found["may_match"], found["present"]))
    assert answers == {(False, False), (True, False), (True, True)}


def test_lookups_read_what_the_demo_measures(tmp_path: Path) -> None:
    """The same store and keys: ``lsmkv demo`` counts Gets, the story's figures are a replay's."""
    env = MemoryEnv()
    with contextlib.closing(Story(env)) as made:
        while made.load({"keys": 2000})["put"] < NAMES:
            pass
        shown = made.lookups({"per_key": 10, "present": 0})
        absent = made.looked_up(0)
    measured = {}
    for layout in ("off", "block"):
        path = tmp_path / layout
        path.mkdir()
        directory = env.open_directory(PATH)
        for name in directory.names():  # without the log: its names are not asked for
            if name != "LOCK" and not name.endswith(".log"):
                with directory.open(name) as file:
                    (path / name).write_bytes(file.read(0, file.size))
        measured[layout] = measure(
            str(path), layout, [], absent, lambda _: None, compacted=False
        ).absent
    assert shown["without"]["blocks"] == measured["off"].blocks_read > 3 * GETS
    assert shown["without"]["bytes"] == measured["off"].bytes_read
    assert shown["with"]["blocks"] == measured["block"].blocks_read > 0
    assert shown["with"]["bytes"] == measured["block"].bytes_read
    assert shown["with"]["wasted"] == measured["block"].filter_positives


@pytest.mark.parametrize(
    ("call", "query", "words"),
    [
        ("load", {"keys": -1}, "from 0 to 2,000"),
        ("load", {}, "keys must be a number"),
        ("get", {}, "key must be a text"),
        ("get", {"key": "x" * 1025}, "more than 1,024 bytes"),
        ("filter", {"key": "a", "table": "000005.ldb", "block": 0}, "of a block that a Get reads"),
        ("lookups", {"per_key": 31, "present": 0}, "per_key must be from 0 to 30"),
        ("lookups", {"per_key": 10, "present": 201}, "present must be from 0 to 200"),
        ("suggest", {}, "the store is empty"),
    ],
)
def test_wrong_questions(empty: Story, call: str, query: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        getattr(empty, call)(query)

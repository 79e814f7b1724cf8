"""lsmkv.engine.counters: a counter is declared once, and reaches every place where counters are
shown.
"""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from commands import lsm
from observing import published

from lsmkv import DB, LevelStats, Stats
from lsmkv.engine.counters import (
    LEVEL_COUNTERS,
    STORE_COUNTERS,
    LevelCounts,
    LookupCounts,
    ReadCounters,
    StoreCounts,
    names_of,
)
from lsmkv.engine.db.observe.openmetrics import metric_name
from lsmkv.engine.db.observe.published import decode, encode
from lsmkv.engine.util.source import field_docs

API_PAGE = Path(__file__).parents[2] / "docs" / "reference" / "api.md"
DEEP = 3
"""The level whose counters are set."""
STORE = {name: 1000 + at for at, name in enumerate(STORE_COUNTERS)}
LEVEL = {name: 2000 - at for at, name in enumerate(LEVEL_COUNTERS)}


@pytest.fixture
def counted(tmp_path: Path) -> Any:
    """A store that publishes, of which each counter has a number of its own."""
    with DB(tmp_path / "db", create_if_missing=True, publish_stats=True) as db:
        counters = db._open_store().counters
        level = counters.levels[DEEP]
        for counts, numbers in ((counters, STORE), (level, LEVEL)):
            for name, number in numbers.items():
                setattr(counts, name, type(getattr(counts, name))(number))
        yield db


def test_counters_are_listed_as_they_are_declared() -> None:
    """The same compiled and interpreted."""
    assert names_of(StoreCounts()) == STORE_COUNTERS
    assert names_of(LevelCounts()) == LEVEL_COUNTERS
    assert STORE_COUNTERS[:2] == ["gets", "gets_found"]
    assert LEVEL_COUNTERS[:2] == ["tables_asked", "filters_asked"]
    assert LEVEL_COUNTERS[7] == "flushes"
    assert len(STORE_COUNTERS) >= 24
    assert len(LEVEL_COUNTERS) >= 14


def of(names: list[str], record: object) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def test_every_counter_is_a_field_of_the_statistics(counted: DB) -> None:
    stats = counted.stats()
    assert of(STORE_COUNTERS, stats) == STORE
    assert of(LEVEL_COUNTERS, stats.levels[DEEP]) == LEVEL
    assert [one.name for one in fields(Stats)][: 1 + len(STORE)] == ["levels", *STORE]
    assert [one.name for one in fields(LevelStats)][3 : 3 + len(LEVEL)] == [*LEVEL]
    with pytest.raises(AttributeError):
        stats.gets = 5  # type: ignore[misc]


def test_every_counter_is_part_of_a_difference(counted: DB) -> None:
    before = counted.stats()
    nothing = before - before
    assert set(of(STORE_COUNTERS, nothing).values()) == {0}
    assert set(of(LEVEL_COUNTERS, nothing.levels[DEEP]).values()) == {0}


def test_every_counter_is_plain_data(counted: DB) -> None:
    plain = json.loads(json.dumps(counted.stats().to_dict()))
    assert {name: plain[name] for name in STORE} == STORE
    assert {name: plain["levels"][DEEP][name] for name in LEVEL} == LEVEL


def test_every_counter_is_published(counted: DB) -> None:
    found = published(counted.path, lambda one: one.stats.gets == STORE["gets"])
    assert of(STORE_COUNTERS, found.stats) == STORE
    assert of(LEVEL_COUNTERS, found.stats.levels[DEEP]) == LEVEL
    plain = json.loads(encode(found))
    assert plain["stats"] | STORE == plain["stats"]
    assert decode(encode(found)).stats == found.stats


def test_every_counter_is_in_the_json_of_the_command(counted: DB) -> None:
    published(counted.path, lambda one: one.stats.gets == STORE["gets"])
    report = json.loads(lsm("stats", Path(counted.path), "--json").out)
    own, live = report, report["published"]
    assert set(STORE) <= set(own)
    assert set(LEVEL) <= set(own["levels"][0])
    assert {name: live[name] for name in STORE} == STORE
    assert {name: live["levels"][DEEP][name] for name in LEVEL} == LEVEL


def test_every_counter_is_a_metric(counted: DB) -> None:
    text = counted.metrics_text(store="s")
    for name, number in STORE.items():
        sample = f'lsmkv_{metric_name(name)[0]}_total{{store="s"}} {number}'
        assert re.search(rf"(?m)^{re.escape(sample)}(\.0)?$", text)
    for name, number in LEVEL.items():
        sample = f'lsmkv_level_{metric_name(name)[0]}_total{{store="s",level="{DEEP}"}} {number}'
        assert re.search(rf"(?m)^{re.escape(sample)}(\.0)?$", text)


def test_every_counter_says_what_it_means() -> None:
    """The first sentence of which is the help of its metric."""
    meanings = {
        kind.__name__: field_docs(kind.__module__, kind.__name__)
        for kind in (ReadCounters, LevelCounts, LookupCounts, StoreCounts)
    }
    assert set(STORE_COUNTERS) == {*meanings["LookupCounts"], *meanings["StoreCounts"]}
    assert set(LEVEL_COUNTERS) == set(meanings["ReadCounters"]) | set(meanings["LevelCounts"])


@pytest.mark.parametrize("shown", [f"stats.{n}" for n in STORE] + [f"level.{n}" for n in LEVEL])
def test_every_counter_has_its_row_on_the_page(shown: str) -> None:
    page = API_PAGE.read_text(encoding="utf-8")
    assert re.search(rf"(?m)^\|.*`{re.escape(shown)}`.*\|", page)


def test_an_owner_of_before_publishes_no_counter_that_is_new(counted: DB) -> None:
    plain = json.loads(encode(published(counted.path)))
    del plain["stats"]["gets_from_rows"], plain["stats"]["levels"][0]["flushes"]
    stats = decode(json.dumps(plain).encode()).stats
    assert (stats.gets_from_rows, stats.levels[0].flushes) == (0, 0)
    del plain["stats"]["memtable_bytes"]
    with pytest.raises(KeyError):
        decode(json.dumps(plain).encode())

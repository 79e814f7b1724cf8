"""lsmkv.engine.db.observe.processes: figures of processes, from the words they count in."""

from __future__ import annotations

import pytest

from lsmkv import DB, Stats
from lsmkv.engine.counters import LOOKUP_COUNTERS, NUM_LEVELS, READ_COUNTERS
from lsmkv.engine.db.observe.histogram import Histogram, bucket_of
from lsmkv.engine.db.observe.process_words import PLACES, WITHOUT_OWNER, WORDS
from lsmkv.engine.db.observe.processes import all_of, figures_of, with_members


@pytest.fixture
def own() -> Stats:
    with DB(":memory:") as db:
        db.put(b"k", b"v")
        db.flush()
        db.get(b"k")
        db.get(b"l")
        return db.stats()


def words_of(**counted: int) -> list[int]:
    """Words in which counters have a number, those of levels in each level."""
    words = [0] * WORDS
    for name, number in counted.items():
        begin, end = PLACES[name]
        words[begin:end] = [number] * (end - begin)
    return words


def test_the_figures_of_a_member_are_its_words() -> None:
    words = words_of(gets=3, blocks_read=2)
    words[WITHOUT_OWNER] = 1000
    words[WITHOUT_OWNER + 1 + bucket_of(1000)] = 1
    found = figures_of(17, "member", words, None)
    assert (found.pid, found.role, found.writes) == (17, "member", Histogram())
    assert {name: n for name, n in found.counters.items() if n} == {
        "gets": 3,
        "blocks_read": 2 * NUM_LEVELS,
    }
    assert found.without_owner == Histogram.from_buckets([(bucket_of(1000), 1)], 1000)
    assert all_of([found, found], "without_owner").count == 2


def test_the_counters_of_an_owner_are_those_of_its_store(own: Stats) -> None:
    found = figures_of(17, "owner", [0] * WORDS, own)
    assert found.counters["gets"] == own.gets == 2
    assert found.counters["tables_asked"] == sum(level.tables_asked for level in own.levels) > 0


@pytest.mark.parametrize("name", LOOKUP_COUNTERS)
def test_what_members_count_is_added(own: Stats, name: str) -> None:
    found = with_members(own, [words_of(**{name: 3}), words_of(**{name: 40})])
    assert getattr(found, name) == getattr(own, name) + 43
    assert found.writes == own.writes


@pytest.mark.parametrize("name", READ_COUNTERS)
def test_what_members_count_is_added_in_its_level(own: Stats, name: str) -> None:
    found = with_members(own, [words_of(**{name: 3})])
    for before, after in zip(own.levels, found.levels, strict=True):
        assert getattr(after, name) == getattr(before, name) + 3
        assert after.filter_positives == after.filters_asked - after.filter_negatives
        assert after.files == before.files

"""lsmkv.engine.db.observe.process_words: every counter of reads has its words."""

from __future__ import annotations

from lsmkv.engine.counters import NUM_LEVELS, Counters, reads_of
from lsmkv.engine.db.observe.histogram import BUCKETS
from lsmkv.engine.db.observe.process_words import LAYOUT, PLACES, WITHOUT_OWNER, WORDS, WRITES


def test_counters_come_first_in_the_order_in_which_they_are_read() -> None:
    counters = Counters()
    counters.gets_found = 5
    counters.levels[3].blocks_read = 7
    values = reads_of(counters)
    assert len(values) == WRITES
    assert values[PLACES["gets_found"][0]] == 5
    assert values[PLACES["blocks_read"][0] + 3] == 7
    assert sum(values) == 12


def test_places_follow_each_other() -> None:
    at = 0
    for name, size in LAYOUT:
        assert PLACES[name] == (at, at + size)
        at += size
    assert at == WORDS
    assert PLACES["blocks_read"][1] - PLACES["blocks_read"][0] == NUM_LEVELS
    assert WORDS - WITHOUT_OWNER == WITHOUT_OWNER - WRITES == 1 + BUCKETS

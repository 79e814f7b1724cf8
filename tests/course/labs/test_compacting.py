"""The store that lab 11 compacts, and what is said of results that are none."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from labs import load, reference

import lsmkv
from lsmkv.course.failure import CheckFailure
from lsmkv.course.labs.compacting import (
    OPTIONS,
    Entry,
    compacted_by_the_engine,
    entries_in,
    entry_of,
    file_of,
    history,
    in_the_engine,
    lay_out,
    picked_by_the_engine,
    tagged_of,
)
from lsmkv.course.labs.compaction import LAB
from lsmkv.course.labs.formats import LEVELS
from lsmkv.engine.counters import Counters
from lsmkv.engine.db.compact.compaction import CompactionJob
from lsmkv.engine.db.compact.picking import pick_compaction
from lsmkv.engine.db.tree.table_cache import TableCache
from lsmkv.engine.env.local import LocalEnv


def test_entries_are_tagged_and_read_back() -> None:
    for entry in ((b"ant", 7, b"value"), (b"bee", 1 << 40, None), (b"", 1, b"")):
        assert entry_of(entry[0], tagged_of(entry)) == entry


def test_the_store_is_whole_and_needs_a_compaction_of_level_0(tmp_path: Path) -> None:
    lsmkv.DB(str(tmp_path), create_if_missing=True).close()
    with LocalEnv().open_directory(str(tmp_path)) as directory:
        version = lay_out(directory, history())
    assert [len(files) for files in version.levels[:3]] == [5, 4, 2]
    compaction = picked_by_the_engine(version, [None] * LEVELS)
    assert compaction is not None
    assert (compaction.level, len(compaction.inputs)) == (0, 4)
    assert compaction.next_inputs


def compacted_by_a_job(tables: list[list[list[Entry]]], snapshot: int) -> list[Entry]:
    """What a compaction of the engine's leaves of the tables of a store, from end to end."""
    env = lsmkv.MemoryEnv()
    lsmkv.DB("store", create_if_missing=True, env=env).close()
    with env.open_directory("store") as directory:
        version = lay_out(directory, tables)
        compaction = pick_compaction(version, [None] * LEVELS, OPTIONS)
        assert compaction is not None
        numbers = itertools.count(max(version.numbers) + 1)
        cache = TableCache(directory, OPTIONS, Counters())
        job = CompactionJob(
            compaction, directory, cache, OPTIONS, lambda: next(numbers), oldest_pinned=snapshot
        )
        made = [file_of(file) for file in job.run(lambda: None)]
        cache.clear()
        return entries_in(directory, made)


@pytest.mark.parametrize("back", [0, 50, 200, 400])
def test_what_must_be_kept_is_what_the_engines_compaction_keeps(back: int) -> None:
    tables = history()
    last = max(entry[1] for level in tables for run in level for entry in run)
    kept = compacted_by_the_engine(tables, last - back)
    assert kept == compacted_by_a_job(tables, last - back)


def test_a_snapshot_and_a_deeper_level_matter_in_the_store() -> None:
    tables = history()
    last = max(entry[1] for level in tables for run in level for entry in run)
    old = compacted_by_the_engine(tables, last - 200)
    new = compacted_by_the_engine(tables, last)
    assert len(new) < len(old)
    assert any(value is None for _, _, value in new)  # they hide what lies on level 2
    given = {entry for level in tables[:2] for run in level for entry in run}
    assert set(new) < given


@pytest.mark.parametrize(
    ("function", "result", "words"),
    [
        ("level_scores", None, "a list of 6 scores"),
        ("pick", (0, None, []), "a level and two lists of tables"),
        ("pick", None, "your pick returned None"),
        ("compact", iter(()), "a list of entries"),
        ("compact", [b"ant"], "a list of entries"),
        ("write_amplification", 2, "the user put"),
    ],
)
def test_results_that_are_none_are_named(function: str, result: Any, words: str) -> None:
    module = load(reference(LAB))
    setattr(module, function, lambda *arguments: result)
    with pytest.raises(CheckFailure, match=words):
        in_the_engine(module)


def test_an_entry_that_was_invented_is_named() -> None:
    module = load(reference(LAB))
    compact = module.compact
    module.compact = lambda *given: [*compact(*given), (b"zebra", 1, b"")]
    with pytest.raises(CheckFailure, match="in none of the runs"):
        in_the_engine(module)

"""Steps: atomic, counted, and run again in a conflict."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lsmkv
from lsmkv.cache.atomic_steps import Step, Steps
from lsmkv.cache.counters import BASE
from lsmkv.cache.keys import COUNTERS


@pytest.fixture
def db(tmp_path: Path) -> Iterator[lsmkv.SharedDB]:
    with lsmkv.SharedDB(tmp_path / "store", create_if_missing=True) as db:
        yield db


def add_one(step: Step) -> None:
    step.put(b"k", b"v")
    step.count += 1
    step.size += 10
    step.changed = True


def parts_of(db: lsmkv.DB) -> list[bytes]:
    return list(db.iterator(prefix=COUNTERS, include_value=False))


def test_what_a_step_counts_is_in_its_batch(db: lsmkv.SharedDB) -> None:
    for steps in (Steps(db, False), Steps(db, True)):
        before = db.stats().log_writes
        steps.run(add_one)
        assert db.stats().log_writes == before + 1
        assert steps.totals()[:2] == (1, 10) or steps.totals()[:2] == (2, 20)


def test_a_step_that_raises_writes_nothing(db: lsmkv.SharedDB) -> None:
    def fail(step: Step) -> None:
        add_one(step)
        raise KeyError

    for shared in (False, True):
        steps = Steps(db, shared)
        with pytest.raises(KeyError):
            steps.run(fail)
        assert db.get(b"k") is None
        assert steps.totals().entries == 0


def test_a_step_runs_again_after_a_conflict(db: lsmkv.SharedDB) -> None:
    steps = Steps(db, True)
    seen: list[bytes | None] = []

    def slow(step: Step) -> None:
        seen.append(step.get(b"k"))
        if len(seen) < 4:
            db.put(b"k", b"another's %d" % len(seen))
        add_one(step)

    steps.run(slow)
    assert seen == [None, b"another's 1", b"another's 2", b"another's 3"]
    assert steps.totals().entries == 1


def test_handles_add_up_and_leave_one_part(db: lsmkv.SharedDB) -> None:
    first, second = Steps(db, True), Steps(db, True)
    first.run(add_one)
    second.run(add_one)
    second.misses += 3
    assert first.totals().entries == second.totals().entries == 2
    assert len(parts_of(db)) == 2
    first.settle()
    second.settle()
    assert parts_of(db) == [BASE]
    third = Steps(db, True)
    third.refresh()
    assert third.totals() == (2, 20, 0, 3)


def test_parts_of_killed_handles_are_merged_when_there_are_many(db: lsmkv.SharedDB) -> None:
    alive = Steps(db, True)
    alive.run(add_one)
    for _ in range(9):
        Steps(db, True).run(add_one)
    Steps(db, True).merge_if_many()
    assert parts_of(db) == [BASE]
    alive.run(add_one)  # its part was merged: it begins again
    assert alive.totals().entries == 11


def test_numbers_grow_though_the_clock_stands(db: lsmkv.SharedDB) -> None:
    steps = Steps(db, True)
    numbers = [steps.next_number(5.0) for _ in range(3)]
    assert numbers == sorted(set(numbers))
    later = Steps(db, True)
    later.begin_after(numbers[-1])
    assert later.next_number(1.0) > numbers[-1]


def test_reads_are_cleared_everywhere(db: lsmkv.SharedDB) -> None:
    first, second = Steps(db, True), Steps(db, True)
    first.hits, second.misses = 5, 7
    first.run(add_one)
    second.run(add_one)
    assert first.totals()[2:] == (5, 7)
    first.clear_reads()
    assert first.totals() == (2, 20, 0, 0)
    second.run(add_one)
    assert second.totals() == (3, 30, 0, 0)


def test_counters_are_corrected(db: lsmkv.SharedDB) -> None:
    first, second = Steps(db, True), Steps(db, True)
    for steps in (first, second):
        steps.hits = 1
        steps.run(add_one)
    first.correct(7, 70)
    assert first.totals() == second.totals() == (7, 70, 2, 0)

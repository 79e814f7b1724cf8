"""What lab 10 compares a student's recovery with: crashes of a real store, read by the engine."""

from __future__ import annotations

import pytest

import lsmkv
from lsmkv.course.failure import CheckFailure
from lsmkv.course.labs.formats import write
from lsmkv.course.labs.power_cuts import PATH
from lsmkv.course.labs.recovering import (
    BAD_BEGINNING,
    GAP,
    Damage,
    Found,
    batches,
    by_the_engine,
    content_of_tables,
    crash_states,
    engine_replays,
    log_of,
    needed_logs,
    pieces_of,
    pieces_of_log,
    recording,
    require_found,
    why_missing,
)
from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.engine.format.batch import decode_batch
from lsmkv.engine.format.filenames import log_name, manifest_name
from lsmkv.testing.recording import RecordingEnv


def test_a_log_is_read_in_pieces() -> None:
    pieces = batches(1, 0, 2, 0)
    found, damage = pieces_of_log(log_of(pieces))
    assert found == pieces
    assert damage == Damage(len(log_of(pieces[:1])), torn=False)
    assert pieces_of_log(log_of(batches(1, 2))) == (batches(1, 2), None)
    _, tail = pieces_of_log(log_of(batches(1, 2, 0)))
    assert tail is not None
    assert tail.torn
    _, alone = pieces_of_log(b"?" * 10)
    assert alone == Damage(0, torn=True)


def test_the_engine_judges_logs() -> None:
    keys = [b"key5", b"old"]
    found = engine_replays([batches(5, 6, 0)], 4, keys)
    assert found == Found({b"key5": b"value 5", b"key6": b"value 6", b"old": b"old"}, 6)
    assert engine_replays([batches(5, 0), batches(7)], 4, keys) is None


def test_the_engine_replays_log_0_and_keeps_manifests_of_larger_numbers() -> None:
    env = MemoryEnv()
    lsmkv.DB(PATH, create_if_missing=True, env=env).close()
    with env.open_directory(PATH) as directory:
        write(directory, log_name(0), log_of(batches(1)))
    with lsmkv.DB(PATH, env=env) as db:
        assert db.get(b"key1") == b"value 1"
        with env.open_directory(PATH) as directory:
            write(directory, manifest_name(1000), b"not in force")
        db.put(b"key", b"value")
        db.flush()
    with env.open_directory(PATH) as directory:
        assert manifest_name(1000) in directory.names()


def test_crashes_are_of_all_kinds_and_always_the_same() -> None:
    several = torn = inside = refused = 0
    for state in crash_states(20, seed=2):
        with state.env.open_directory(PATH) as directory:
            logs = [name for name in directory.names() if name.endswith(".log")]
            several += len(logs) > 1
            for name in logs:
                _, damage = pieces_of(directory, name)
                torn += damage is not None and damage.torn
                inside += damage is not None and not damage.torn
        refused += by_the_engine(RecordingEnv(state.env)) is None
    assert min(several, torn, inside, refused) > 0
    labels = [state.label for state in crash_states(20, seed=2)]
    recording.cache_clear()
    assert [state.label for state in crash_states(20, seed=2)] == labels


def test_the_tables_alone_lack_what_is_in_the_log() -> None:
    env = MemoryEnv(recording().root)
    with env.open_directory(PATH) as directory:
        tables = content_of_tables(directory)
    found = by_the_engine(RecordingEnv(recording()))
    assert found is not None
    assert tables
    assert tables != found.content


def test_a_loss_is_explained_by_its_cause() -> None:
    assert why_missing([batches(0, 102), batches(103)]) == BAD_BEGINNING
    assert why_missing([[], batches(0, 102)]) == BAD_BEGINNING
    assert why_missing([batches(101, 0), batches(0, 103)]) == GAP
    assert why_missing([[]]) == GAP


def test_the_logs_that_count_are_those_that_the_engine_reads() -> None:
    for state in crash_states(20, seed=2):
        with state.env.open_directory(PATH) as directory:
            logs = needed_logs(directory)
        found = by_the_engine(RecordingEnv(state.env))
        last = [piece for log in logs for piece in log if piece is not None][-1:]
        if found is not None and last:
            sequence, operations = decode_batch(last[0])
            assert found.last_sequence == sequence + len(operations) - 1


def test_what_was_found_is_compared() -> None:
    found = Found({b"a": b"1"}, 5)
    require_found(found, found, "Here", "lsmkv")
    require_found(None, None, "Here", "lsmkv")
    for got, expected, words in (
        (found, None, "Here, writes are missing: lsmkv refuses the store"),
        (None, found, "Here, lsmkv recovers the store, but your replay raises ValueError"),
        (Found({}, 5), found, "lsmkv finds b'1' for the key b'a'"),
        (found._replace(last_sequence=4), found, "the last sequence is 5, but your replay"),
    ):
        with pytest.raises(CheckFailure, match=words):
            require_found(got, expected, "Here", "lsmkv")

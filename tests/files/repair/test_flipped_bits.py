"""Bits that have flipped are found by checksums, and turned back."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from live_copies import STORE, Files
from stores_in_memory import Store, env_of, name_of, only, repaired, tables, without

import lsmkv
from lsmkv.engine.util.checksum import masked_crc32c
from lsmkv.files.repair.flipped_bits import FLIPPED, flipped_bit
from lsmkv.files.repair.report import DAMAGED
from lsmkv.repair import survey_db


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    """A store with a table on level 2, one on level 0, and a log."""
    made = Store()
    made.fill(range(500), b"old value")
    made.db.compact_range()
    made.fill(range(0, 500, 9), b"new value")
    made.db.flush()
    made.fill(range(0, 500, 7), b"newest value")
    with made.db:
        yield made


def with_flips(files: Files, name: str, *bits: int) -> Files:
    content = bytearray(files[name])
    for bit in bits:
        content[bit // 8] ^= 1 << bit % 8
    return files | {name: bytes(content)}


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_every_bit_of_a_message_and_its_checksum_is_found(size: int) -> None:
    message = random.Random(size).randbytes(size)
    masked = masked_crc32c(message)
    assert flipped_bit(message, masked) == -1
    for bit in {0, 1, 8 * size - 1, *random.Random(0).choices(range(8 * size), k=20)}:
        wrong = bytearray(message)
        wrong[bit // 8] ^= 1 << bit % 8
        assert flipped_bit(bytes(wrong), masked) == bit
    for bit in range(32):
        assert flipped_bit(message, masked ^ 1 << bit) == 8 * size + bit


def test_two_bits_of_a_message_are_not_taken_for_one() -> None:
    message = random.Random(1).randbytes(300)
    masked = masked_crc32c(message)
    randomly = random.Random(2)
    for _ in range(100):
        wrong = bytearray(message)
        for bit in randomly.sample(range(2400), 2):
            wrong[bit // 8] ^= 1 << bit % 8
        assert flipped_bit(bytes(wrong), masked) == -1


@pytest.mark.parametrize("kind", [".log", ".ldb", "MANIFEST"])
def test_nothing_is_lost_by_one_flipped_bit_of_any_file(store: Store, kind: str) -> None:
    files = store.files()
    randomly = random.Random(kind)
    for name in only(files, kind):
        for bit in randomly.sample(range(8 * len(files[name])), 12):
            found, plan = repaired(with_flips(files, name, bit))
            assert found == dict(store.db), (name, bit)
            assert (plan.lost_bytes, plan.stale) == (0, 0)


def test_flipped_bits_of_several_blocks_and_records_are_all_turned_back(store: Store) -> None:
    files = store.files()
    log = name_of(files, ".log")
    table = max(tables(files), key=lambda name: len(files[name]))
    damaged = with_flips(files, log, 100, 8 * 500, 8 * 1000)
    damaged = with_flips(damaged, table, 100, 8 * 5000)
    found = survey_db(STORE, env=env_of(damaged))
    flips = {file.name: file.flips for file in found.files if file.flips}
    assert flips == {log: [100, 4000, 8000], table: [100, 40000]}
    assert all(file.severity == DAMAGED for file in found.files if file.flips)
    assert [one.reason for one in found.logs[0].problems] == [FLIPPED] * 3
    assert repaired(damaged)[0] == dict(store.db)


def test_a_flipped_bit_of_the_length_of_a_record_is_found(store: Store) -> None:
    files = store.files()
    log = name_of(files, ".log")
    for bit in range(32, 48):
        found = survey_db(STORE, env=env_of(with_flips(files, log, bit)))
        assert found.logs[0].flips == [bit]
        assert found.logs[0].batches == 72


def test_a_table_that_was_made_of_a_log_with_a_flipped_bit_is_made_of_it_again() -> None:
    made = Store()
    made.fill(range(100), b"value")
    before = made.files()
    made.db.flush()
    log = name_of(before, ".log")
    copied = without(made.files(), ".ldb", ".log") | {log: before[log]}
    found, plan = repaired(with_flips(copied, log, 8 * 700))
    assert found == dict(made.db)
    assert plan.lost_bytes == 0
    made.db.close()


def test_a_log_that_an_opening_set_aside_loses_nothing_by_a_flipped_bit(store: Store) -> None:
    files = store.files()
    log = name_of(files, ".log")
    env = env_of(with_flips(files, log, 8 * 700))
    with pytest.warns(lsmkv.RecoveryWarning):
        lsmkv.DB(STORE, env=env).close()
    plan = lsmkv.repair_db(STORE, env=env)
    assert (plan.lost_bytes, plan.stale) == (0, 0)
    with lsmkv.DB(STORE, env=env) as db:
        assert dict(db) == dict(store.db)
        assert not db.recovery

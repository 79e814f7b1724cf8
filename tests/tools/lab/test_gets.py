"""The keys that the lab looks up: the same for the same seed, and what they are said to be."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from lab_stores import READING, build

import lsmkv
from lsmkv.tools.lab.gets import given_gets, sample, sampled_gets


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("lab") / "store", "block:10")


def test_half_of_them_are_near_misses(store: Path) -> None:
    with lsmkv.DB(store, **READING) as db:
        gets = sampled_gets(db, 1000, 1)
        keys = set(db.iterator(include_value=False))
    assert len(gets.keys) == 1000
    assert len(gets.absent) == 500
    assert Counter(key in keys for key in gets.keys) == {True: 500, False: 500}
    assert not keys & set(gets.absent)
    assert all(min(keys) < key < max(keys) for key in gets.absent)
    assert gets.source == "500 keys of the store, and as many near misses"


def test_the_seed_decides(store: Path) -> None:
    with lsmkv.DB(store, **READING) as db:
        assert sampled_gets(db, 100, 1) == sampled_gets(db, 100, 1) != sampled_gets(db, 100, 2)


def test_a_small_store_gives_all_its_keys() -> None:
    hostile = [b"", b"\x00", b"\xff\xfe", b"k" * 100_000, b"<script>", b"\n"]
    with lsmkv.DB(":memory:") as db:
        for key in hostile:
            db.put(key, b"")
        gets = sampled_gets(db, 100, 1)
        assert set(gets.keys) - set(gets.absent) == set(hostile)
        assert all(key not in db for key in gets.absent)
    assert len(gets.absent) == len(hostile)


def test_an_empty_store_is_refused() -> None:
    with lsmkv.DB(":memory:") as db, pytest.raises(ValueError, match="empty"):
        sampled_gets(db, 10, 1)


def test_progress_is_reported() -> None:
    seen: list[int] = []
    with lsmkv.DB(":memory:") as db:
        with db.write_batch() as batch:
            for number in range(25_000):
                batch.put(b"%d" % number, b"")
        sampled_gets(db, 10, 1, seen.append)
    assert seen == [10_000, 10_000]


def test_given_keys_keep_their_order_and_repeats() -> None:
    gets = given_gets(iter([b"b", b"a", b"b"]), 10, 1, "a list")
    assert gets == ([b"b", b"a", b"b"], [], "3 keys of a list")


def test_too_many_given_keys_are_thinned_evenly() -> None:
    keys = [b"%05d" % number for number in range(50_000)]
    chosen = given_gets(iter(keys), 1000, 1, "a list").keys
    assert len(chosen) == 1000
    assert chosen == sorted(chosen)
    quarters = Counter(int(key) // 12_500 for key in chosen)
    assert all(200 < number < 300 for number in quarters.values())


def test_no_given_keys_are_refused() -> None:
    with pytest.raises(ValueError, match=r"a list: no keys"):
        given_gets(iter([]), 10, 1, "a list")


def test_each_item_has_the_same_chance() -> None:
    rng = random.Random(1)
    counts = Counter(one for _ in range(4000) for one in sample(range(20), 5, rng))
    assert len(counts) == 20
    assert all(850 < number < 1150 for number in counts.values())

"""lsmkv.tools.hash_check: it recognizes keys that suffer from LevelDB's hash."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from commands import lsm
from hypothesis import given
from hypothesis import strategies as st

import lsmkv
from lsmkv.tools.filter_figures import FilterFigures
from lsmkv.tools.hash_check import HashCheck, check_hash, number_between

COUNTING = [b"%016d" % (2 * n) for n in range(5000)]
BINARY = [(2 * n).to_bytes(8, "big") for n in range(5000)]
RANDOM = [random.Random(1).randbytes(16) for _ in range(5000)]


def store(path: Path, keys: Iterable[bytes], **options: Any) -> Path:
    """A store of incompressible values of 100 bytes: some 35 keys a filter of 2 KiB."""
    source = random.Random(2)
    with lsmkv.DB(path, create_if_missing=True, compression=None, **options) as db:
        for key in keys:
            db.put(key, source.randbytes(100))
        db.compact_range()
    return path


def checked(path: Path) -> HashCheck | None:
    with lsmkv.DB(path, read_only=True) as db:
        return check_hash(db, FilterFigures(db.path).look(db.tables()))


def test_keys_that_count_suffer(tmp_path: Path) -> None:
    found = checked(store(tmp_path / "db", COUNTING))
    assert found is not None
    assert found.suffers
    assert found.rate > 0.05
    assert 0.002 < found.expected < 0.02
    done = lsm("stats", tmp_path / "db")
    assert "LevelDB's hash does not suit these sequential keys" in done.out
    expected = f"{found.expected:.2%} are expected to pass a filter, and {found.rate:.2%} measured."
    assert expected in done.out
    level = next(level for level, rate in found.by_level.items() if rate == found.rate)
    rows = [line.split() for line in done.out.splitlines() if line.startswith(f"{level:>5}  block")]
    assert [row[-2:] for row in rows] == [[f"{found.expected:.2%}", f"{found.rate:.2%}"]]
    assert "lsmkv compact DIR --filter bloom64" in done.out
    plain = json.loads(lsm("stats", tmp_path / "db", "--json").out)
    assert plain["hash_check"]["suffers"] is True
    assert plain["hash_check"]["asked"] == found.asked
    assert plain["gets"] == 0  # the store's counters are those from before


def test_the_way_out_is_one(tmp_path: Path) -> None:
    path = store(tmp_path / "db", COUNTING)
    assert lsm("compact", path, "--filter", "bloom64").status == 0
    assert checked(path) is None
    assert "LevelDB's hash" not in lsm("stats", path).out


@pytest.mark.parametrize(
    ("keys", "options"),
    [
        (RANDOM, {}),
        (COUNTING, {"filter_policy": lsmkv.Bloom64Policy()}),
        (COUNTING, {"bloom_filter_bits": 0}),
        ([], {}),
    ],
    ids=["random keys", "another hash", "no filters", "no keys"],
)
def test_others_are_not_checked(tmp_path: Path, keys: list[bytes], options: dict[str, Any]) -> None:
    path = store(tmp_path / "db", keys, **options)
    assert checked(path) is None
    done = lsm("stats", path)
    assert (done.status, "LevelDB's hash" in done.out) == (0, False)
    assert json.loads(lsm("stats", path, "--json").out)["hash_check"] is None


def test_binary_numbers_are_checked(tmp_path: Path) -> None:
    found = checked(store(tmp_path / "db", BINARY))
    assert found is not None
    assert found.asked > 1000


def test_a_few_errors_are_no_proof() -> None:
    assert not HashCheck(100, 29, 0.01, {}).suffers
    assert HashCheck(100, 30, 0.01, {}).suffers
    assert not HashCheck(1000, 30, 0.01, {}).suffers
    assert HashCheck(0, 0, 0.01, {}).rate == 0.0


@given(st.binary(min_size=1, max_size=9), st.binary(min_size=1, max_size=9), st.integers(0, 9))
def test_a_number_between_lies_between(one: bytes, other: bytes, seed: int) -> None:
    low, high = sorted((one, other))
    if low != high:
        found = number_between(low, high, random.Random(seed))
        assert found is None or low < found < high

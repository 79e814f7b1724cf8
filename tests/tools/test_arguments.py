"""Opening the store that a command names, with its comparator found by name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from commands import lsm

import lsmkv
from lsmkv.indexeddb import IndexedDBComparator
from lsmkv.tools.arguments import open_to_read

ONE = bytes.fromhex("0001010103000000000000f03f")
MINUS_ONE = bytes.fromhex("0001010103000000000000f0bf")


@pytest.fixture
def indexeddb(tmp_path: Path) -> Path:
    path = tmp_path / "indexeddb"
    with lsmkv.DB(path, create_if_missing=True, comparator=IndexedDBComparator()) as db:
        db.put(ONE, b"1")
        db.flush()
        db.put(MINUS_ONE, b"-1")
    return path


def test_commands_find_chromiums_comparator_by_name(indexeddb: Path) -> None:
    before = sorted(os.listdir(indexeddb))
    assert lsm("scan", "--hex", "--keys-only", indexeddb) == (
        0,
        f"{MINUS_ONE.hex()}\n{ONE.hex()}\n",
        "",
    )
    assert lsm("get", "--hex", indexeddb, ONE.hex()) == (0, b"1".hex() + "\n", "")
    assert lsm("get", "--hex", indexeddb, "00")[0] == 1
    assert lsm("verify", indexeddb)[0] == 0
    assert lsm("repair", "--plan", indexeddb)[0] == 0
    status, out, _ = lsm("stats", indexeddb)
    assert status == 0
    (total,) = [line.split() for line in out.splitlines() if line.split()[:1] == ["all"]]
    assert total[1] == "1"
    assert sorted(os.listdir(indexeddb)) == before


def test_commands_find_the_reverse_comparator_by_name(tmp_path: Path) -> None:
    order = lsmkv.ReverseBytewiseComparator()
    with lsmkv.DB(tmp_path / "db", create_if_missing=True, comparator=order) as db:
        db.put(b"a", b"1")
        db.put(b"b", b"2")
    assert lsm("scan", tmp_path / "db") == (0, "b\t2\na\t1\n", "")


def test_an_unknown_comparator_is_named(tmp_path: Path) -> None:
    with lsmkv.DB(
        tmp_path / "db",
        create_if_missing=True,
        comparator=lambda a, b: (a > b) - (a < b),
        comparator_name="another.program",
    ):
        pass
    with pytest.raises(lsmkv.ComparatorMismatchError) as caught:
        open_to_read(str(tmp_path / "db"))
    assert caught.value.stored == "another.program"
    status, out, err = lsm("scan", tmp_path / "db")
    assert (status, out) == (2, "")
    assert "another.program" in err
    assert "leveldb.BytewiseComparator" in err

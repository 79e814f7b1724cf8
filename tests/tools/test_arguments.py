"""Opening the store that a command names, with its comparator found by name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from commands import fails, lsm

import lsmkv
from lsmkv.engine.options import OWN_COMPARATORS
from lsmkv.indexeddb import IndexedDBComparator
from lsmkv.tools.app import GROUPS, ORDERED
from lsmkv.tools.arguments import ComparatorName, open_to_read

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


# --comparator


def test_the_option_has_the_comparators_that_lsmkv_provides() -> None:
    assert [str(name) for name in ComparatorName] == list(OWN_COMPARATORS)


def test_every_command_of_the_list_has_the_option() -> None:
    assert {name for members in GROUPS.values() for name in members} > ORDERED
    for name in ORDERED:
        assert "--comparator" in lsm(name, "--help").out


def test_a_new_store_takes_the_comparator(tmp_path: Path) -> None:
    order = ("--comparator", ComparatorName.REVERSE)
    for key in "abc":
        assert lsm("put", tmp_path / "s", key, "1", "--create", *order).status == 0
    assert lsm("keys", tmp_path / "s").out == "c\nb\na\n"
    assert lsm("keys", tmp_path / "s", *order).out == "c\nb\na\n"
    # It held for those commands alone.
    assert lsm("put", tmp_path / "t", "a", "1", "--create").status == 0
    with open_to_read(str(tmp_path / "t")) as db:
        assert db.options.comparator.name == ComparatorName.BYTEWISE


READING = [
    ("get", "a"),
    ("put", "a", "1"),
    ("delete", "a"),
    ("scan",),
    ("keys",),
    ("count",),
    ("export",),
    ("stats",),
    ("explain", "a"),
    ("approximate-sizes",),
    ("verify",),
    ("doctor",),
    ("repair",),
    ("rescue",),
    ("checkpoint", "{new}"),
    ("compact",),
]


@pytest.mark.parametrize("words", READING, ids=lambda words: words[0])
def test_another_comparator_than_the_stores_is_an_error(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    with lsmkv.DB(tmp_path / "s", create_if_missing=True) as db:
        db.put(b"a", b"1")
    name, *rest = [word.format(new=tmp_path / "new") for word in words]
    done = lsm(name, tmp_path / "s", *rest, "--comparator", "idb_cmp1")
    assert done.status == (1 if name == "doctor" else 2)
    assert "leveldb.BytewiseComparator" in done.out + done.err
    assert os.listdir(tmp_path) == ["s"]


def test_repair_and_rescue_use_it_where_no_manifest_names_one(tmp_path: Path) -> None:
    with lsmkv.DB(tmp_path / "s", create_if_missing=True, comparator=IndexedDBComparator()) as db:
        db.put(b"\0\0\0\0\0", b"1")
    next((tmp_path / "s").glob("MANIFEST-*")).unlink()
    for command in ("repair", "rescue"):
        new = tmp_path / command
        asked = ("--into", new, "--comparator", "idb_cmp1")
        assert lsm(command, tmp_path / "s", *asked).status == 0
        with lsmkv.DB(new, read_only=True) as db:
            assert db.options.comparator.name == "idb_cmp1"


def test_an_unknown_comparators_name_is_a_wrong_call(tmp_path: Path) -> None:
    done = lsm("get", tmp_path, "a", "--comparator", "mine")
    assert done.status == 2
    assert "idb_cmp1" in done.err


@pytest.mark.parametrize("words", [("count",), ("verify",), ("stats",), ("get", "a")])
def test_a_shard_set_has_no_comparator(url: Path, words: tuple[str, ...]) -> None:
    fails(lsm(words[0], url, *words[1:], "--comparator", "idb_cmp1"), "shard sets are in bytewise")

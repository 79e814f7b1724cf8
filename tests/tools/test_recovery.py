"""``lsmkv verify`` and ``repair``."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from commands import Done, ctrl_c_at_progress, fails, lsm
from stores import flip, pairs_in, put_numbered

import lsmkv
from lsmkv.engine.options import OWN_COMPARATORS, own_comparator
from lsmkv.indexeddb import IndexedDBComparator
from lsmkv.tools import recovery

SMALL: dict[str, Any] = {"block_size": 512, "compression": None, "seek_compaction": False}


def hashes(path: Path) -> dict[str, str]:
    """Of all files but LOCK, which an opening makes."""
    return {
        str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in path.rglob("*")
        if file.is_file() and file.name != "LOCK"
    }


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """One table of several blocks, and two writes in the log."""
    path = tmp_path / "store"
    with lsmkv.DB(path, create_if_missing=True, **SMALL) as db:
        put_numbered(db, b"\x1b[31m%03d", range(200), b"v" * 20)
        db.flush()
        db.put(b"x", b"1")
        db.put(b"y", b"2")
    return path


def test_verify_names_what_an_opening_left_out_until_it_is_acknowledged(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with lsmkv.DB(store, create_if_missing=True) as db:
        put_numbered(db, b"%d", range(10), b"value")
    (log,) = store.glob("*.log")
    flip(log, 50)
    done = lsm("verify", "-q", store)
    assert (done.status, done.out.split()[:2]) == (3, [log.name, "DAMAGED"])  # not opened yet
    done = lsm("put", store, "k", "v")
    assert done.status == 0
    assert done.err.count("left out: 8 writes") == 1  # not a second time, as a warning of Python
    for _ in range(2):
        done = lsm("verify", "-q", store)
        assert done.status == 3
        assert f"lost/{log.name}  DAMAGED  8 writes in 8 batches" in done.out
        assert (
            "at 28: set aside by recovery: fragment checksum mismatch; 1 write missing" in done.out
        )
        assert "--acknowledge" in done.out
    data = json.loads(lsm("verify", "--json", store).out)
    assert data["verdict"] == "damaged"
    assert data["files"][-1]["name"] == f"lost/{log.name}"
    with lsmkv.DB(store):
        assert lsm("verify", "--acknowledge", store).status == 2  # it is open
    done = lsm("verify", "--acknowledge", store)
    assert (done.status, done.err) == (0, f"lsmkv: acknowledged: lost/{log.name}\n")
    assert lsm("verify", "--acknowledge", store) == Done(0, done.out, "")
    assert log.parent.joinpath("lost", log.name).exists()


@pytest.fixture
def damaged(store: Path) -> Path:
    flip(next(store.glob("*.ldb")), 700)
    return store


# verify


def test_verify_a_sound_store(store: Path) -> None:
    before = hashes(store)
    done = lsm("verify", store)
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[-1] == "all is sound"
    assert lines[0] == "CURRENT          ok"
    (table,) = [line for line in lines if ".ldb" in line]
    assert "level 2" in table or "level 0" in table
    assert "blocks, 200 entries, " in table
    assert any("2 writes in 2 batches" in line for line in lines)
    assert lsm("verify", store, "-q") == Done(0, "", "")
    assert hashes(store) == before


def test_verify_remarks(store: Path) -> None:
    (log,) = store.glob("*.log")
    os.truncate(log, log.stat().st_size - 1)
    done = lsm("verify", store)
    assert done.status == 1
    assert done.out.splitlines()[-1] == "no damage"
    (line,) = [line for line in done.out.splitlines() if log.name in line]
    assert "remark" in line
    quiet = lsm("verify", store, "--quiet")
    assert quiet.status == 1
    assert quiet.out.startswith(log.name)
    assert json.loads(lsm("verify", store, "--json").out)["verdict"] == "remark"


def test_verify_damage(damaged: Path) -> None:
    before = hashes(damaged)
    done = lsm("verify", damaged)
    assert (done.status, done.err) == (3, "")
    assert "\x1b" not in done.out
    assert "DAMAGED" in done.out
    assert "at 5" in done.out
    assert "block checksum mismatch" in done.out
    assert "keys from '\\x1b[31m0" in done.out
    assert done.out.splitlines()[-1] == "1 file damaged; see 'lsmkv repair --plan'"
    figures = json.loads(lsm("verify", damaged, "--json").out)
    assert (figures["path"], figures["verdict"]) == (str(damaged), "damaged")
    (bad,) = [file for file in figures["files"] if file["verdict"] == "damaged"]
    (problem,) = bad["problems"]
    assert set(problem) == {"offset", "bytes", "missing", "reason", "after", "to"}
    assert problem["after"].startswith("\\x1b[31m0")
    assert 0 < bad["entries"] < 200
    assert hashes(damaged) == before


def test_verify_a_missing_file(store: Path) -> None:
    next(store.glob("*.ldb")).unlink()
    done = lsm("verify", store)
    assert done.status == 3
    assert "missing" in done.out


@pytest.mark.parametrize("command", [["verify"], ["repair", "--plan"], ["repair", "--in-place"]])
def test_a_directory_without_a_store_is_refused(tmp_path: Path, command: list[str]) -> None:
    name, *options = command
    fails(lsm(name, tmp_path / "none", *options), "none", "no database here")
    (tmp_path / "empty").mkdir()
    fails(lsm(name, tmp_path / "empty", *options), "no database here")
    assert list((tmp_path / "empty").iterdir()) == []
    (tmp_path / "file").write_text("precious")
    fails(lsm(name, tmp_path / "file", *options), "file")


@pytest.mark.parametrize("command", [["verify"], ["repair", "--plan"], ["repair", "--in-place"]])
def test_a_rocksdb_database_is_refused(tmp_path: Path, command: list[str]) -> None:
    path = tmp_path / "rocks"
    path.mkdir()
    (path / "CURRENT").write_text("MANIFEST-000004\n")
    (path / "MANIFEST-000004").write_bytes(b"not for us" * 9)
    (path / "IDENTITY").write_text("x")
    (path / "OPTIONS-000007").write_text("x")
    (path / "000009.sst").write_bytes(b"rocks" * 99)
    before = hashes(path)
    name, *options = command
    fails(lsm(name, path, *options), "RocksDB")
    assert hashes(path) == before


def test_an_unknown_comparator_is_named(tmp_path: Path) -> None:
    def compare(a: bytes, b: bytes) -> int:
        return (a > b) - (a < b)

    path = tmp_path / "store"
    with lsmkv.DB(path, create_if_missing=True, comparator=compare, comparator_name=b"mine") as db:
        db.put(b"k", b"v")
    fails(lsm("verify", path), "mine")
    fails(lsm("repair", path, "--plan"), "mine")


# repair


def test_repair_prints_its_plan(damaged: Path) -> None:
    before = hashes(damaged)
    done = lsm("repair", damaged, "--plan")
    assert done.status == 0
    assert "\x1b" not in done.out
    assert f"lsmkv: lsmkv repair {damaged} --into NEW " in done.err
    assert f"lsmkv: lsmkv rescue {damaged} " in done.err
    assert lsm("repair", damaged) == done
    assert "rewrite: 1 of " in done.out
    lines = done.out.splitlines()
    assert lines[-2].startswith("kept: 1")
    assert lines[-1].startswith("lost: ")
    figures = json.loads(lsm("repair", damaged, "--plan", "--json").out)
    assert figures["needed"] is True
    assert figures["repaired"] is None
    assert figures["lost_bytes"] > 400
    assert hashes(damaged) == before


def test_repair_into(damaged: Path, tmp_path: Path) -> None:
    before = hashes(damaged)
    new = tmp_path / "new"
    done = lsm("repair", damaged, "--into", new)
    assert (done.status, done.err) == (0, "")
    assert "\x1b" not in done.out
    assert done.out.splitlines()[-1] == f"repaired: {new}"
    found = pairs_in(new)
    assert 150 < len(found) < 202
    assert {b"x", b"y"} < set(found)
    assert lsm("verify", new).status == 0
    assert hashes(damaged) == before


def test_repair_in_place(damaged: Path) -> None:
    name = next(damaged.glob("*.ldb")).name
    spoiled = (damaged / name).read_bytes()
    done = lsm("repair", damaged, "--in-place")
    assert done.status == 0
    assert done.out.splitlines()[-1] == f"repaired: {damaged}"
    assert (damaged / "lost" / name).read_bytes() == spoiled
    assert lsm("verify", damaged).status == 0
    before = hashes(damaged)
    again = lsm("repair", damaged, "--in-place")
    assert again.status == 0
    assert again.out.splitlines()[0] == "nothing is damaged"
    assert again.out.splitlines()[-1] == f"left unchanged: {damaged}"
    assert "repaired" not in again.out
    assert hashes(damaged) == before


def test_repair_as_json(damaged: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    figures = json.loads(lsm("repair", damaged, "--into", new, "--json").out)
    assert figures["repaired"] == str(new)
    assert figures["by_levels"] is True
    assert {table["action"] for table in figures["tables"]} == {"rewrite"}


def test_the_plan_of_a_sound_store_names_no_next_command(store: Path) -> None:
    done = lsm("repair", store)
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("nothing is damaged\n")


def test_repair_takes_one_target(damaged: Path, tmp_path: Path) -> None:
    before = hashes(damaged)
    fails(lsm("repair", damaged, "--in-place", "--into", tmp_path / "new"), "--into NEW")
    assert hashes(damaged) == before


@pytest.mark.parametrize("kind", ["directory", "file", "dangling link", "itself"])
def test_repair_refuses_an_existing_target(damaged: Path, tmp_path: Path, kind: str) -> None:
    new = tmp_path / "new"
    if kind == "directory":
        new.mkdir()
    elif kind == "file":
        new.write_text("precious")
    elif kind == "dangling link":
        new.symlink_to(tmp_path / "nowhere")
    else:
        new = damaged
    before = sorted(os.listdir(tmp_path))
    # It is refused before anything is read, so no plan is printed.
    fails(lsm("repair", damaged, "--into", new), f"{new}: File exists")
    assert sorted(os.listdir(tmp_path)) == before


def test_repair_refuses_a_target_without_a_parent(damaged: Path, tmp_path: Path) -> None:
    fails(lsm("repair", damaged, "--into", tmp_path / "no" / "new"), "no")
    assert not (tmp_path / "no").exists()


def test_a_store_in_use(damaged: Path, tmp_path: Path) -> None:
    with lsmkv.DB(damaged):
        fails(lsm("repair", damaged, "--in-place"))
        fails(lsm("repair", damaged, "--into", tmp_path / "new"))
        assert lsm("verify", damaged).status == 3
    assert not (tmp_path / "new").exists()


def test_repair_sets_stale_entries_aside(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with lsmkv.DB(path, create_if_missing=True, **SMALL) as db:
        for value in (b"old", b"new"):
            put_numbered(db, b"%03d", range(100), value)
            db.flush()
            if value == b"old":
                db.compact_range()
    flip(max(path.glob("*.ldb")), 700)
    plan = json.loads(lsm("repair", path, "--plan", "--json").out)
    assert plan["stale"] > 5
    assert json.loads(lsm("repair", path, "--plan", "--keep-stale", "--json").out)["stale"] == 0
    lsm("repair", path, "--into", tmp_path / "new")
    lsm("repair", path, "--into", tmp_path / "kept", "--keep-stale")
    assert set(pairs_in(tmp_path / "new").values()) == {b"new"}
    assert len(pairs_in(tmp_path / "kept")) == 100


# Comparators


def test_verify_and_repair_of_an_indexeddb_store(tmp_path: Path) -> None:
    path = tmp_path / "store"
    order = IndexedDBComparator()
    start = b"\0\1\1\1\3" + bytes(6)  # then the two highest bytes of a double
    numbers = [start + bytes([16 * (n % 16), 0x40 + n // 16]) for n in range(200)]
    with lsmkv.DB(path, create_if_missing=True, comparator=order, **SMALL) as db:
        for key in numbers:
            db.put(key, b"record")
        db.flush()
    assert lsm("verify", path).status == 0
    table = next(path.glob("*.ldb"))
    flip(table, 700)
    done = lsm("verify", path)
    assert (done.status, done.err) == (3, "")
    done = lsm("repair", path, "--into", tmp_path / "new")
    assert (done.status, done.err) == (0, "")
    found = pairs_in(tmp_path / "new", comparator=order)
    assert 100 < len(found) < 200
    assert lsm("repair", path, "--in-place").status == 0
    assert pairs_in(path, comparator=order) == found


@pytest.mark.parametrize("order", OWN_COMPARATORS)
def test_repair_finds_the_order_of_a_store_without_a_manifest(tmp_path: Path, order: str) -> None:
    path = tmp_path / "store"
    start = b"\0\1\1\1\3" + bytes(6)  # keys of IndexedDB: then the two highest bytes of a double
    keys = [start + bytes([16 * (n % 16), 0x40 + n // 16]) for n in range(300)]
    comparator = own_comparator(order)
    with lsmkv.DB(path, create_if_missing=True, comparator=comparator, **SMALL) as db:
        for key in keys:
            db.put(key, b"v" * 30)
        db.compact_range()
    next(path.glob("MANIFEST-*")).unlink()
    assert lsm("repair", path, "--into", tmp_path / "new").status == 0
    with lsmkv.DB(tmp_path / "new", read_only=True) as db:
        assert db.options.comparator.name == order
        assert len(list(db)) == 300
        db.check()


def test_repair_refuses_tables_in_another_order(tmp_path: Path) -> None:
    """A store of many blocks in an order that lsmkv does not provide, without its MANIFEST."""

    def compare(a: bytes, b: bytes) -> int:
        return (a[::-1] > b[::-1]) - (a[::-1] < b[::-1])

    path = tmp_path / "store"
    options: dict[str, Any] = {"comparator": compare, "comparator_name": b"by the last digit"}
    with lsmkv.DB(path, create_if_missing=True, **options, **SMALL) as db:
        put_numbered(db, b"%04d", range(300), b"v" * 30)
        db.flush()
    next(path.glob("MANIFEST-*")).unlink()
    before = hashes(path)
    fails(lsm("repair", path, "--into", tmp_path / "new"), "comparator")
    fails(lsm("repair", path, "--in-place"), "comparator")
    assert hashes(path) == before
    lsmkv.repair_db(path, **options)
    assert len(pairs_in(path, **options)) == 300


# Ctrl-C


@pytest.mark.parametrize("command", [["verify"], ["repair", "--plan"], ["repair", "--in-place"]])
def test_ctrl_c_changes_nothing(
    damaged: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    before = hashes(damaged)
    with ctrl_c_at_progress(monkeypatch, recovery):
        done = lsm(command[0], damaged, *command[1:])
    assert (done.status, done.out, done.err) == (130, "", "lsmkv: interrupted\n")
    assert hashes(damaged) == before

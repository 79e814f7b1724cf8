"""Databases of LevelDB's relatives are not mistaken for damage, and are left as they are."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import fails, lsm

import lsmkv
from lsmkv import DB
from lsmkv.engine.db.tree.manifest import read_manifest
from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.format.filenames import read_current
from lsmkv.engine.format.foreign import engine_of
from lsmkv.engine.format.keys import KIND_VALUE, pack
from lsmkv.engine.format.version_edit import VersionEdit
from lsmkv.engine.util.checksum import masked_crc32c
from lsmkv.engine.util.coding import encode_string, encode_varint
from lsmkv.files.repair.survey import survey_db

TINY: dict[str, Any] = {"write_buffer_size": 4096, "max_file_size": 1024, "block_size": 256}
ENTRIES = {b"key%04d" % n: b"value %d" % n * 3 for n in range(0, 2000, 5)}
KEY = encode_string(pack(b"key", 1, KIND_VALUE))


def fingerprint(path: Path) -> dict[str, str]:
    """A hash of every file but LOCK, in which the owner leaves its number."""
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in path.iterdir()
        if file.is_file() and file.name != "LOCK"
    }


def record(payload: bytes) -> bytes:
    """A record of a log, short enough for one block."""
    body = b"\x01" + payload
    return masked_crc32c(body).to_bytes(4, "little") + len(payload).to_bytes(2, "little") + body


def made(path: Path, tables: int = 3) -> Path:
    """A store with some disjoint tables on level 2, and a log."""
    with DB(path, create_if_missing=True, **TINY) as db:
        keys = sorted(ENTRIES)
        for part in range(tables):
            for key in keys[part * len(keys) // tables : (part + 1) * len(keys) // tables]:
                db.put(key, ENTRIES[key])
            db.flush()
        db.compact_range()
    return path


def with_manifest(path: Path, change: Callable[[VersionEdit], None], more: bytes = b"") -> Path:
    """Replace the MANIFEST by one of a single record, changed, and ``more`` fields at its end."""
    with LocalEnv().open_directory(str(path)) as directory:
        name = read_current(directory)
        state = read_manifest(directory, name)
    edit = VersionEdit()
    edit.comparator = state.comparator
    edit.log_number = state.log_number
    edit.prev_log_number = state.prev_log_number
    edit.next_file_number = state.next_file_number
    edit.last_sequence = state.last_sequence
    for level, files in enumerate(state.levels):
        for file in files.values():
            edit.add_file(level, file)
    change(edit)
    (path / name).write_bytes(record(edit.encode() + more))
    return path


def unchanged(_edit: VersionEdit) -> None:
    pass


def spread(edit: VersionEdit) -> None:
    """Put each table on a level of its own, from 6 on: with goleveldb's options, level 7 may begin
    at some megabytes."""
    edit.new_files = [(6 + at, file) for at, (_, file) in enumerate(edit.new_files)]


@pytest.fixture
def deep(tmp_path: Path) -> Path:
    """A store as goleveldb may leave it, with tables on ten levels or more."""
    return with_manifest(made(tmp_path / "deep"), spread)


# goleveldb


def test_a_read_only_store_has_all_of_goleveldbs_levels(deep: Path) -> None:
    before = fingerprint(deep)
    with DB(deep, read_only=True) as db:
        deepest = max(table.level for table in db.tables())
        assert deepest > 9
        assert dict(db) == ENTRIES
        assert list(db.iterator(reverse=True)) == sorted(ENTRIES.items(), reverse=True)
        for key in sorted(ENTRIES)[::20]:
            assert db.get(key) == ENTRIES[key]
            assert db.get(key + b"x") is None
        assert db.multi_get([b"key0000", b"key1995"]) == [ENTRIES[b"key0000"], ENTRIES[b"key1995"]]
        stats = db.stats()
        assert [level.level for level in stats.levels] == list(range(deepest + 1))
        assert stats.levels[deepest].files == 1
        assert (db.stats() - stats).gets == 0
        assert db.get_property("leveldb.num-files-at-level8") == "1"
        assert db.get_property(f"leveldb.num-files-at-level{deepest + 1}") is None
        assert f"--- level {deepest} ---" in (db.get_property("leveldb.sstables") or "")
        assert db.explain(b"key1995").tables[-1].level == deepest
        db.verify()
        db.refresh()
        assert dict(db) == ENTRIES
    assert fingerprint(deep) == before


def test_goleveldb_adds_a_level_while_the_store_is_read(tmp_path: Path) -> None:
    path = made(tmp_path / "db")
    with DB(path, read_only=True) as db:
        assert db.get(b"key0000") == ENTRIES[b"key0000"]
        before = db.stats()
        with_manifest(path, spread)
        db.refresh()
        assert dict(db) == ENTRIES
        assert (db.stats() - before).iterators == 1


def test_a_store_with_more_than_seven_levels_is_not_written_to(deep: Path) -> None:
    before = fingerprint(deep)
    for options in ({}, {"create_if_missing": True}, {"paranoid_checks": True}):
        with pytest.raises(lsmkv.ForeignFormatError) as caught:
            DB(deep, **options)  # type: ignore[arg-type]
        message = str(caught.value)
        assert str(deep) in message
        for part in ("goleveldb", "tables on level ", "read_only=True"):
            assert part in message
    for call in (lsmkv.plan_repair, lsmkv.repair_db):
        with pytest.raises(lsmkv.ForeignFormatError, match="goleveldb"):
            call(deep)
    assert fingerprint(deep) == before


def test_verify_finds_nothing_wrong_with_deep_levels(deep: Path) -> None:
    found = survey_db(deep)
    assert found.severity == 0
    assert max(table.level for table in found.tables) > 9


@pytest.mark.parametrize(
    "command", [["compact"], ["repair", "--plan"], ["repair", "--in-place"], ["put", "k", "v"]]
)
def test_commands_say_it_in_one_line(deep: Path, command: list[str]) -> None:
    name, *rest = command
    before = fingerprint(deep)
    done = lsm(name, deep, *rest)
    assert done.status == 2
    assert done.err.count("\n") == 1
    assert "goleveldb" in done.err
    assert fingerprint(deep) == before


def test_commands_that_read_go_on(deep: Path) -> None:
    for command in (["stats"], ["verify"], ["scan", "--limit", "1"], ["get", "key0000"]):
        name, *rest = command
        done = lsm(name, deep, *rest)
        assert done.status == 0, (command, done.err)
        assert done.out
    (manifest,) = deep.glob("MANIFEST-*")
    done = lsm("dump", manifest)
    assert done.status == 0
    assert "AddFile: 8 " in done.out


def test_levels_that_goleveldb_has_emptied_do_no_harm(tmp_path: Path) -> None:
    """It keeps the compaction pointers of all levels."""
    path = made(tmp_path / "db")
    more = b"\x05" + encode_varint(11) + KEY + b"\x06" + encode_varint(9) + encode_varint(5)
    with_manifest(path, unchanged, more)
    with DB(path) as db:
        assert dict(db) == ENTRIES
        db.put(b"new", b"1")
        db.compact_range()
    with DB(path) as db:
        db.check()
        assert dict(db) == {**ENTRIES, b"new": b"1"}


@pytest.mark.parametrize("level", [256, 2**31])
def test_a_level_that_no_store_has_is_damage(tmp_path: Path, level: int) -> None:
    path = made(tmp_path / "db")
    with_manifest(path, unchanged, b"\x06" + encode_varint(level) + b"\x01")
    for read_only in (True, False):
        with pytest.raises(lsmkv.CorruptionError, match="level"):
            DB(path, read_only=read_only)


# Others


ENGINES = [
    ("Riak", [*(f"sst_{level}" for level in range(7))]),
    ("Pebble", ["OPTIONS-000003", "marker.manifest.000001.MANIFEST-000001"]),
    ("RocksDB", ["IDENTITY", "OPTIONS-000007"]),
    ("tag 11", []),
]


@pytest.mark.parametrize(("engine", "names"), ENGINES, ids=[name for name, _ in ENGINES])
def test_a_field_that_leveldb_does_not_have(tmp_path: Path, engine: str, names: list[str]) -> None:
    """The record's checksum fits, so it is as its engine wrote it: here, a new file of Riak's."""
    path = made(tmp_path / "db")
    more = b"\x0b\x01\x05\x10" + KEY + KEY + b"\0\0\0"
    with_manifest(path, unchanged, more)
    for name in names:
        (path / name).mkdir() if name.startswith("sst_") else (path / name).write_bytes(b"")
    before = fingerprint(path)
    for read_only in (True, False):
        with pytest.raises(lsmkv.ForeignFormatError, match=engine):
            DB(path, read_only=read_only)
    for call in (survey_db, lsmkv.plan_repair, lsmkv.repair_db):
        with pytest.raises(lsmkv.ForeignFormatError, match=engine):
            call(path)
    for command in (["verify"], ["repair", "--in-place"], ["stats"]):
        fails(lsm(command[0], path, *command[1:]), engine)
    assert fingerprint(path) == before


def test_riaks_tables_are_not_missing(tmp_path: Path) -> None:
    """They are in directories of their own; its older MANIFESTs have only LevelDB's fields."""
    path = made(tmp_path / "db")
    for level in range(7):
        (path / f"sst_{level}").mkdir()
    for table in path.glob("*.ldb"):
        table.rename(path / "sst_2" / f"{table.stem}.sst")
    for read_only in (True, False):
        with pytest.raises(lsmkv.ForeignFormatError, match=r"Riak \(eleveldb\)"):
            DB(path, read_only=read_only)
    with pytest.raises(lsmkv.ForeignFormatError, match="Riak"):
        lsmkv.repair_db(path)


def test_a_new_database_of_pebbles_gets_no_store_beside_it(tmp_path: Path) -> None:
    """All of its files that LevelDB knows are empty, or in LevelDB's format."""
    for name in ("000002.log", "MANIFEST-000001", "marker.manifest.000001.MANIFEST-000001"):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(lsmkv.ForeignFormatError, match="Pebble"):
        DB(tmp_path, create_if_missing=True)
    with pytest.raises(lsmkv.ForeignFormatError, match="Pebble"):
        lsmkv.repair_db(tmp_path)


@pytest.mark.parametrize("create", [True, False])
def test_pebbles_directory_has_no_current(tmp_path: Path, create: bool) -> None:
    for name, content in {
        "000002.log": b"a record",
        "000005.sst": b"a table",
        "MANIFEST-000001": record(b"\x01" + encode_string(b"leveldb.BytewiseComparator")),
        "OPTIONS-000003": b"[Version]\n  pebble_version=0.1\n",
        "marker.format-version.000001.013": b"",
        "marker.manifest.000001.MANIFEST-000001": b"",
    }.items():
        (tmp_path / name).write_bytes(content)
    before = fingerprint(tmp_path)
    with pytest.raises(lsmkv.ForeignFormatError, match="Pebble"):
        DB(tmp_path, create_if_missing=create)
    with pytest.raises(lsmkv.ForeignFormatError, match="Pebble"):
        lsmkv.plan_repair(tmp_path)
    fails(lsm("dump", tmp_path), "Pebble")
    assert fingerprint(tmp_path) == before


def test_engines_by_their_files() -> None:
    assert engine_of(["CURRENT", "LOCK", "MANIFEST-000000", "000001.log", "CURRENT.bak"]) is None
    assert engine_of(["CURRENT", "OPTIONS-000003"]) == "RocksDB or Pebble"
    assert engine_of(["sst_0"]) is None


def test_damage_is_still_called_damage(tmp_path: Path) -> None:
    path = made(tmp_path / "db")
    (manifest,) = path.glob("MANIFEST-*")
    whole = manifest.read_bytes()
    manifest.write_bytes(whole[:20] + b"\xff" + whole[21:])
    with pytest.raises(lsmkv.CorruptionError):
        DB(path)

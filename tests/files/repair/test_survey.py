"""A survey reports no damage in an intact store, and every damage that matters."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from stores import put_numbered

import lsmkv
from lsmkv import DB
from lsmkv.engine.format.filenames import FileType, parse_filename, table_name
from lsmkv.files.repair.report import DAMAGED, REMARKABLE, SOUND, Survey
from lsmkv.files.repair.survey import survey_db

pytestmark = pytest.mark.usefixtures("quiet")

State = dict[bytes, bytes]
SMALL: dict[str, Any] = {"block_size": 256, "compression": None, "seek_compaction": False}


def content(path: Path) -> State | None:
    """The contents of the store; None if reading it reports damage."""
    try:
        with DB(path, read_only=True, **SMALL) as db:
            return dict(db)
    except lsmkv.CorruptionError:
        return None


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store of a few KB on two levels, with three writes in its log."""
    path = tmp_path / "db"
    with DB(path, create_if_missing=True, **SMALL) as db:
        for number in range(30):
            db.put(b"key%02d" % number, b"old%02d" % number)
        db.compact_range()
        for number in range(0, 30, 3):
            db.put(b"key%02d" % number, b"new%02d" % number)
        db.delete(b"key07")
        db.flush()
        put_numbered(db, b"log%02d", range(3), b"in the log")
    for name in ("LOG", "LOG.old", "LOCK"):
        (path / name).unlink(missing_ok=True)
    return path


def words(found: Survey) -> str:
    return "; ".join(
        f"{file.name} {file.severity} {[problem.reason for problem in file.problems]}"
        f" {file.remarks}"
        for file in found.files
        if file.severity > SOUND
    )


# Sound stores


def test_a_sound_store(store: Path) -> None:
    found = survey_db(store, **SMALL)
    assert found.severity == SOUND, words(found)
    assert found.levels_known
    assert sum(log.operations for log in found.logs) == 3
    with DB(store, read_only=True, **SMALL) as db:
        assert db.verify() == []


def test_a_new_store(tmp_path: Path) -> None:
    DB(tmp_path / "db", create_if_missing=True).close()
    assert survey_db(tmp_path / "db").severity == SOUND


def test_a_store_of_leveldb(tmp_path: Path) -> None:
    plyvel = pytest.importorskip("plyvel")
    path = tmp_path / "db"
    for turn in range(3):
        db = plyvel.DB(str(path), create_if_missing=True, write_buffer_size=65536)
        for number in range(2000):
            db.put(b"key%04d" % (number * 7 % 2000), b"%d" % turn * 30)
        db.close()
        assert survey_db(path).severity <= REMARKABLE
    for table in path.glob("*.ldb"):
        table.rename(table.with_suffix(".sst"))
    assert survey_db(path).severity <= REMARKABLE
    plyvel.repair_db(str(path))
    assert survey_db(path).severity <= REMARKABLE


KILLED = """
import os, sys
engine = __import__(sys.argv[1])
db = engine.DB(sys.argv[2], create_if_missing=True, write_buffer_size=65536)
for number in range(int(sys.argv[3])):
    db.put(b"key%05d" % (number * 7919 % 5000), b"v" * 60)
os._exit(9)
"""


@pytest.mark.parametrize("engine", ["lsmkv", "plyvel"])
def test_after_a_kill(tmp_path: Path, engine: str) -> None:
    if engine == "plyvel":
        pytest.importorskip("plyvel")
    environment = os.environ | {"PYTHONPATH": str(Path(lsmkv.__file__).parents[1])}
    for turn in range(3):
        path = str(tmp_path / "db")
        command = [sys.executable, "-c", KILLED, engine, path, str(1000 + turn * 1500)]
        assert subprocess.run(command, env=environment, check=False).returncode == 9
        found = survey_db(path)
        assert found.severity <= REMARKABLE, words(found)


def test_files_left_over_are_remarked(store: Path) -> None:
    (table, *_) = sorted(store.glob("*.ldb"))
    (manifest,) = store.glob("MANIFEST-*")
    (store / "000900.ldb").write_bytes(table.read_bytes()[:100])
    (store / "000901.dbtmp").write_bytes(b"MANIF")
    (store / "MANIFEST-000002").write_bytes(manifest.read_bytes()[:20])
    (store / "000001.log").write_bytes(b"junk")
    (store / "7.ldb").write_bytes(table.read_bytes())
    (store / "8.log").write_bytes(b"junk")
    (store / table.with_suffix(".sst").name).write_bytes(b"junk")
    (store / "notes.txt").write_text("mine")
    found = survey_db(store, **SMALL)
    assert found.severity == REMARKABLE, words(found)
    odd = {file.name: file for file in found.files if file.severity == REMARKABLE}
    assert set(odd) == {
        "000900.ldb",
        "000901.dbtmp",
        "MANIFEST-000002",
        "000001.log",
        "7.ldb",
        "8.log",
        table.with_suffix(".sst").name,
    }
    assert all(file.remarks for file in odd.values())
    lsmkv.repair_db(store, into=store.parent / "new", **SMALL)
    (store / "8.log").unlink()
    assert content(store.parent / "new") == content(store)


# One byte


def test_every_byte_flipped(store: Path) -> None:
    """Every flip is reported or has no effect, except for one in the log's last record.

    Flips without effect are in the padding of footers and in the last record of the MANIFEST, if
    the tables do not need it.  A flip in the length of the log's last record looks like a torn
    record, and cannot be distinguished from one.
    """
    whole = content(store)
    assert whole is not None
    silent: dict[str, list[int]] = {}
    for file in sorted(store.iterdir()):
        data = file.read_bytes()
        # Every byte of a small store; the largest file is sampled.
        step = 1 if len(data) < 700 else 3
        for offset in range(0, len(data), step):
            file.write_bytes(data[:offset] + bytes([data[offset] ^ 0xFF]) + data[offset + 1 :])
            found = survey_db(store, **SMALL)
            if found.severity < DAMAGED:
                silent.setdefault(file.name, []).append(offset)
                now = content(store)
                if file.suffix == ".log":
                    assert now is not None
                    assert found.severity == REMARKABLE
                    assert {key: whole[key] for key in now} == now
                    assert set(whole) - set(now) == {b"log02"}
                else:
                    assert now == whole, (file.name, offset, words(found))
        file.write_bytes(data)
    assert survey_db(store, **SMALL).severity == SOUND
    (log,) = store.glob("*.log")
    third = log.stat().st_size * 2 // 3
    for name, offsets in silent.items():
        parsed = parse_filename(name)
        assert parsed is not None
        if parsed[1] is FileType.LOG:
            assert set(offsets) <= {third + 4, third + 5}
        elif parsed[1] is FileType.TABLE:
            size = (store / name).stat().st_size
            assert all(size - 48 <= offset < size - 8 for offset in offsets)
        else:
            assert parsed[1] is FileType.MANIFEST


def test_every_truncation(store: Path) -> None:
    whole = content(store)
    assert whole is not None
    for file in sorted(store.iterdir()):
        data = file.read_bytes()
        for length in [*range(0, len(data), 7), len(data) - 1]:
            file.write_bytes(data[:length])
            found = survey_db(store, **SMALL)
            if found.severity < DAMAGED:
                # A log that ends early is how a power cut leaves it: what was written before stays.
                now = content(store)
                assert now is not None
                missing = set(whole) - set(now)
                assert {key: whole[key] for key in now} == now
                lost = sorted(key for key in whole if key.startswith(b"log"))
                assert missing == (
                    set(lost[len(lost) - len(missing) :]) if file.suffix == ".log" else set()
                ), (file.name, length)
        file.write_bytes(data)


def test_every_missing_file(store: Path) -> None:
    for file in sorted(store.iterdir()):
        data = file.read_bytes()
        file.unlink()
        found = survey_db(store, **SMALL)
        assert found.severity == DAMAGED, file.name
        file.write_bytes(data)


def test_survey_and_verify_agree_on_tables(store: Path) -> None:
    rng = random.Random(4)
    for _ in range(60):
        file = rng.choice(sorted(store.glob("*.ldb")))
        data = file.read_bytes()
        offset = rng.randrange(len(data))
        file.write_bytes(data[:offset] + bytes([data[offset] ^ 0x10]) + data[offset + 1 :])
        try:
            with DB(store, read_only=True, **SMALL) as db:
                verified = {os.path.basename(error.path or "") for error in db.verify()}
        except lsmkv.CorruptionError as error:
            verified = {os.path.basename(error.path or "")}
        found = survey_db(store, **SMALL)
        damaged = {table.name for table in found.tables if table.severity == DAMAGED}
        assert damaged == verified, offset
        file.write_bytes(data)


def test_nothing_is_written(store: Path) -> None:
    before = {file.name: file.read_bytes() for file in store.iterdir()}
    survey_db(store, **SMALL)
    lsmkv.plan_repair(store, **SMALL)
    assert {file.name: file.read_bytes() for file in store.iterdir()} == before


# MANIFESTs


def test_the_highest_file_number(store: Path) -> None:
    shutil.copy(min(store.glob("*.ldb")), store / table_name(2**63 - 1))
    assert survey_db(store, **SMALL).severity == REMARKABLE
    with pytest.raises(lsmkv.CorruptionError, match="exhausted"):
        lsmkv.repair_db(store, into=store.parent / "new", **SMALL)
    assert not (store.parent / "new").exists()


@pytest.mark.parametrize("kind", ["symlink", "fifo", "directory"])
@pytest.mark.parametrize("victim", ["table", "log", "manifest", "CURRENT"])
def test_odd_files(store: Path, kind: str, victim: str, tmp_path: Path) -> None:
    """They are refused with their name, without waiting for them or following links."""
    pattern = {"table": "*.ldb", "log": "*.log", "manifest": "MANIFEST-*"}.get(victim, victim)
    file = min(store.glob(pattern))
    shutil.move(file, tmp_path / "elsewhere")
    if kind == "symlink":
        file.symlink_to(tmp_path / "elsewhere")
    elif kind == "fifo":
        os.mkfifo(file)
    else:
        file.mkdir()
    with pytest.raises(lsmkv.IOError, match=file.name):
        survey_db(store, **SMALL)
    with pytest.raises(lsmkv.IOError, match=file.name):
        lsmkv.repair_db(store, **SMALL)
    assert not (store / "lost").exists()


@pytest.mark.parametrize("kind", ["file", "symlink"])
def test_a_lost_that_is_no_directory_is_refused(store: Path, kind: str, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    if kind == "file":
        (store / "lost").write_text("mine")
    else:
        (store / "lost").symlink_to(tmp_path / "elsewhere")
    (store / "CURRENT").unlink()
    before = {file.name: file.read_bytes() for file in store.iterdir() if file.is_file()}
    with pytest.raises(lsmkv.IOError):
        lsmkv.repair_db(store, **SMALL)
    after = {
        file.name: file.read_bytes()
        for file in store.iterdir()
        if file.is_file() and file.name != "LOCK"
    }
    assert after == before
    assert list((tmp_path / "elsewhere").iterdir()) == []


# Beside a writer


def test_a_store_whose_writer_removes_files(tmp_path: Path) -> None:
    """One version is surveyed, and tables that were found intact are not read again."""
    path = tmp_path / "db"
    options: dict[str, Any] = {"write_buffer_size": 4096, "max_file_size": 4096, "block_size": 512}
    with lsmkv.DB(path, create_if_missing=True, **options) as writer:
        turns = 0

        def rewrite(done: int, total: int, phase: str) -> None:
            nonlocal turns
            if turns < 5:
                turns += 1
                put_numbered(writer, b"%04d", range(200), b"turn %d" % turns * 10)
                writer.compact_range()

        put_numbered(writer, b"%04d", range(200), bytes(100))
        writer.compact_range()
        found = survey_db(path, progress=rewrite)
        assert turns == 5
        assert found.severity < DAMAGED
        needed = {table.number for table in found.tables if table.needed}
        assert needed == {table.number for table in writer.tables()}


def test_a_file_that_is_really_missing_beside_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with lsmkv.DB(path, create_if_missing=True) as writer:
        writer.put(b"k", b"v")
        writer.flush()
        (table,) = path.glob("*.ldb")
        table.unlink()

        def write(done: int, total: int, phase: str) -> None:
            writer.put(b"other", bytes(100))

        found = survey_db(path, progress=write)
        (missing,) = found.tables
        assert [problem.reason for problem in missing.problems] == ["missing"]
        assert found.severity == DAMAGED

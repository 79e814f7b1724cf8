"""A store with a mapped log: crashes of it, and what others know of the zeros at the log's end."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from commands import lsm
from processes import python, start
from stores import log_of
from threads import run_threads

import lsmkv
from lsmkv import DB, MemoryEnv, TableWriter
from lsmkv.engine.db.tree.manifest import read_manifest
from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.format.batch import encode_batch
from lsmkv.engine.format.filenames import read_current
from lsmkv.engine.format.log import LogWriter
from lsmkv.testing import CrashState, FaultyEnv, RecordingEnv, explore

KIB = 1024
UNIT = 32 * KIB


@pytest.fixture
def store(tmp_path: Path) -> str:
    """The path of a store that does not exist yet, where logs are mapped."""
    with LocalEnv().open_directory(str(tmp_path)) as directory:
        if not directory.maps_logs:
            pytest.skip("this file system does not keep reservations")
    return str(tmp_path / "store")


WRITE_AND_DIE = """
import os, signal, sys
from lsmkv import DB
db = DB(sys.argv[1], create_if_missing=True)
for n in range(1000):
    db.put(b"%04d" % n, b"v" * (n % 90))
os.kill(os.getpid(), signal.SIGKILL)
"""
WRITTEN = {b"%04d" % n: b"v" * (n % 90) for n in range(1000)}


@pytest.fixture
def killed(store: str) -> str:
    """A store whose owner was killed: zeros follow its log's last record."""
    assert python(WRITE_AND_DIE, store, check=False).returncode == -signal.SIGKILL
    assert log_of(store).stat().st_size % UNIT == 0
    return store


# Crashes


def every_use(env: RecordingEnv) -> None:
    """Creation, rotation, an ingest, a clean close, and a log that is reused."""
    options: dict[str, Any] = {"env": env, "write_buffer_size": 1024, "reuse_logs": True}
    number = 0

    def put(db: DB) -> None:
        nonlocal number
        number += 1
        db.put(b"n", b"%d" % number, sync=number % 3 == 0)
        db.put(b"value", b"%d " % number + bytes(200))
        if number % 3 == 0:
            env.note(number)

    for life in range(2):
        with DB("/db", create_if_missing=True, **options) as db:
            for _ in range(8):
                put(db)
            with TableWriter(f"/{life}.ldb", env=env) as table:
                table.add(b"ingested %d" % life, b"1")
            db.ingest([f"/{life}.ldb"])
            env.note(number)
            put(db)
        env.note(number)


def test_no_crash_loses_what_was_synced() -> None:
    def check(state: CrashState) -> None:
        for paranoid in (True, False):
            options: dict[str, Any] = {"env": state.env, "paranoid_checks": paranoid}
            with DB("/db", create_if_missing=True, reuse_logs=paranoid, **options) as db:
                found = int(db.get(b"n", b"0"))
                assert found >= max((int(str(note)) for note in state.notes), default=0)
                value = int(db.get(b"value", b"0").split(b" ")[0])
                assert found - 1 <= value <= found

    report = explore(every_use, check, mapped_logs=True, points=90)
    assert report.violations == []


def test_any_crash_while_a_store_is_made() -> None:
    """A log of zeros without CURRENT is an empty one: there is no store yet."""

    def create(env: RecordingEnv) -> None:
        with DB("/db", create_if_missing=True, env=env) as db:
            env.note("made")
            db.put(b"k", b"v", sync=True)

    def check(state: CrashState) -> None:
        try:
            DB("/db", env=state.env).close()
        except lsmkv.NotFoundError:
            assert not state.notes
        with DB("/db", create_if_missing=True, env=state.env) as db:
            db.put(b"k", b"v")

    report = explore(create, check, mapped_logs=True)
    assert report.violations == []
    assert report.states > 60


def test_zeros_without_current_are_no_store() -> None:
    for data, is_store in ((bytes(64 * KIB), False), (bytes(64 * KIB - 1) + b"\1", True)):
        env = MemoryEnv()
        directory = env.open_directory("/db", create=True)
        with directory, directory.create("000003.log") as log:
            log.append(data)
        if is_store:
            with pytest.raises(lsmkv.CorruptionError, match="CURRENT is missing"):
                DB("/db", create_if_missing=True, env=env)
        else:
            with pytest.raises(lsmkv.NotFoundError):
                DB("/db", env=env)
            DB("/db", create_if_missing=True, env=env).close()


def test_a_failed_sync_is_final() -> None:
    env = FaultyEnv(mapped_logs=True)
    db = DB("/db", create_if_missing=True, env=env)
    db.put(b"kept", b"1", sync=True)
    db.put(b"lost", b"1")
    env.fail_at(1, OSError(5, "no"), calls={"sync"})
    for _ in range(3):
        with pytest.raises(lsmkv.IOError):
            db.put(b"refused", b"1", sync=True)
    with pytest.raises(lsmkv.IOError):
        db.close()
    with DB("/db", env=env.kill()) as db:
        assert db.get(b"kept") == b"1"


# Readers of the tail


def test_a_clean_close_and_a_rotation_cut_the_log(store: str) -> None:
    db = DB(store, create_if_missing=True)
    db.put(b"k", b"v")
    first = log_of(store)
    assert first.stat().st_size == 64 * KIB
    inode = os.open(first, os.O_RDONLY)
    db.flush()
    assert os.fstat(inode).st_size < 100
    os.close(inode)
    db.put(b"l", b"w")
    db.close()
    assert log_of(store).stat().st_size < 100


def test_a_killed_owners_log_is_read_to_its_last_record(
    killed: str, caplog: pytest.LogCaptureFixture
) -> None:
    with DB(killed, read_only=True, paranoid_checks=True) as view:
        assert dict(view) == WRITTEN
    assert caplog.records == []
    plain = lsm("dump", log_of(killed))
    assert plain.status == 0
    assert plain.out.count("put") >= len(WRITTEN)
    annotated = lsm("dump", "--annotate", log_of(killed))
    assert annotated.status == 0
    assert "zeros: room for more records" in annotated.out
    for dump in (plain, annotated):
        assert "torn" not in dump.out + dump.err
        assert "damage" not in dump.out + dump.err
    assert lsm("verify", killed).status == 0
    plan = lsmkv.repair_db(killed)
    assert plan.lost_bytes == 0
    assert not plan.needed
    with DB(killed, paranoid_checks=True) as db:
        assert dict(db) == WRITTEN


def test_a_reused_log_goes_on_behind_its_last_record(killed: str) -> None:
    content = log_of(killed).read_bytes().rstrip(b"\0")
    for life in range(3):
        with DB(killed, reuse_logs=True, paranoid_checks=True) as db:
            assert db.stats().mapped_log
            db.put(b"life", b"%d" % life)
    now = log_of(killed).read_bytes()
    assert now.startswith(content)
    assert len(now) < len(content) + 200
    with DB(killed, paranoid_checks=True) as db:
        assert dict(db) == WRITTEN | {b"life": b"2"}


def test_leveldb_appends_behind_the_zeros(killed: str) -> None:
    """It goes on at the file's end when it reuses a log."""
    with LocalEnv().open_directory(killed) as directory:
        sequence = read_manifest(directory, read_current(directory)).last_sequence + 1001
        with directory.append_to(log_of(killed).name) as file:
            writer = LogWriter(file, file.size())
            writer.add_record(encode_batch(sequence, [(b"behind", b"1")]))
            writer.add_record(encode_batch(sequence + 1, [(b"behind", b"2" * 50 * KIB)]))
    with DB(killed, read_only=True, paranoid_checks=True) as view:
        assert dict(view) == WRITTEN | {b"behind": b"2" * 50 * KIB}
    with DB(killed, paranoid_checks=True, reuse_logs=True) as db:
        db.put(b"more", b"3")
    plyvel = pytest.importorskip("plyvel")
    other = plyvel.DB(killed, paranoid_checks=True)
    assert dict(other) == WRITTEN | {b"behind": b"2" * 50 * KIB, b"more": b"3"}
    other.close()


def test_leveldb_reads_a_killed_owners_log(killed: str) -> None:
    plyvel = pytest.importorskip("plyvel")
    db = plyvel.DB(killed, paranoid_checks=True)
    assert dict(db) == WRITTEN
    db.close()


@pytest.mark.parametrize("half", [True, False], ids=["data missing", "checksum missing"])
def test_leveldb_refuses_a_torn_record_before_zeros_if_paranoid(killed: str, half: bool) -> None:
    """lsmkv takes it for the end: that write was never acknowledged."""
    plyvel = pytest.importorskip("plyvel")
    log = log_of(killed)
    data = log.read_bytes()
    at = len(data.rstrip(b"\0")) - 30
    log.write_bytes(data[:at] + bytes(len(data) - at) if half else data[: at + 29] + b"\1" * 9
                    + bytes(len(data) - at - 38))  # fmt: skip
    with pytest.raises(plyvel.CorruptionError):
        plyvel.DB(killed, paranoid_checks=True)
    kept = {key: value for key, value in WRITTEN.items() if key != b"0999"}
    with DB(killed, paranoid_checks=True) as db:
        assert dict(db) == kept


def test_a_checkpoint_has_no_zeros(store: str, tmp_path: Path) -> None:
    with DB(store, create_if_missing=True) as db:
        db.put(b"k", b"v")
        db.checkpoint(str(tmp_path / "copy"))
    assert log_of(str(tmp_path / "copy")).stat().st_size < 100
    with DB(tmp_path / "copy", paranoid_checks=True) as copy:
        assert dict(copy) == {b"k": b"v"}


WRITE_UNTIL_TOLD = """
import select, sys
from lsmkv import DB
db = DB(sys.argv[1], create_if_missing=True, write_buffer_size=1 << 20, background="thread")
n = 0
sys.stdout.write("open\\n")
sys.stdout.flush()
while not select.select([0], [], [], 0)[0]:
    for _ in range(50):
        n += 1
        batch = db.write_batch()
        batch.put(b"n", b"%d" % n)
        batch.put(b"value", b"%d " % n + b"x" * (n * 7919 % 3000 * (40 if n % 97 == 0 else 1)))
        batch.write()
print(n)
"""

VIEW = """
import logging, sys
from lsmkv import DB
said = []
logging.getLogger("lsmkv").addHandler(type("H", (logging.Handler,), {
    "emit": lambda self, record: said.append(record.getMessage())})())
last = 0
for _ in range(int(sys.argv[2])):
    with DB(sys.argv[1], read_only=True, paranoid_checks=True) as view:
        for _ in range(3):
            n = int(view.get(b"n", b"0"))
            assert n >= last, (n, last)
            assert view.get(b"value", b"0 ").startswith(b"%d " % n)
            last = n
            view.refresh()
assert not said, said
print(last)
"""


def test_views_beside_a_live_writer_see_no_gap(store: str) -> None:
    """Threads and processes open the log again and again, in the middle of copies."""
    writer = start(WRITE_UNTIL_TOLD, store)
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"open\n"
    said: list[str] = []

    def view() -> None:
        said.append(python(VIEW, store, "12", check=False).stderr)

    assert run_threads(view, view) == []
    out, _ = writer.communicate(b"enough\n")
    assert said == ["", ""]
    with DB(store, paranoid_checks=True) as db:
        assert db.get(b"n") == out.strip()


FORK = """
import os, sys
from lsmkv import DB, Error
db = DB(sys.argv[1], create_if_missing=True)
db.put(b"parent", b"1")
child = os.fork()
if not child:
    try:
        db.put(b"child", b"1")
    except Error as error:
        print(type(error).__name__, flush=True)
    db.close()
    sys.exit(0)
os.waitpid(child, 0)
print(max(os.stat(f"{sys.argv[1]}/{name}").st_size for name in os.listdir(sys.argv[1])
          if name.endswith(".log")), flush=True)
db.put(b"parent", b"2")
os.kill(os.getpid(), 9)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
def test_a_forked_child_never_cuts_the_log(store: str) -> None:
    lines = python(FORK, store, check=False).stdout.splitlines()
    assert lines[-1] == f"{64 * KIB}"
    with DB(store, paranoid_checks=True) as db:
        assert dict(db) == {b"parent": b"2"}


def test_two_threads(store: str, quick_switches: None) -> None:
    with DB(store, create_if_missing=True) as db:

        def write(own: int) -> None:
            for n in range(400):
                db.put(b"%d %d" % (own, n), b"x" * (n * 31 % 900), sync=n % 100 == 0)

        assert run_threads(*[partial(write, own) for own in range(2)]) == []
        expected = dict(db)
    assert len(expected) == 800
    with DB(store, paranoid_checks=True) as db:
        assert dict(db) == expected

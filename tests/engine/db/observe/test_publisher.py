"""lsmkv.engine.db.observe.publisher: a live store is published, a dead one is not taken for
live.
"""

from __future__ import annotations

import errno
import gc
import logging
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from observing import owner_of, published
from processes import python, start
from stores import TINY, GatedEnv, contents, data_files, fill
from threads import background_of
from waiting import wait_until

import lsmkv
from lsmkv import DB, MemoryEnv
from lsmkv.engine.format.filenames import STATS, STATS_NEW
from lsmkv.engine.util import threads
from lsmkv.testing.faulty import FaultyEnv


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store"


def test_what_is_published(path: Path) -> None:
    with DB(path, create_if_missing=True, publish_stats=True, write_buffer_size=9000) as db:
        db.put(b"k", b"v")
        db.get(b"k")
        db.delete(b"k")
        list(db)
        with db.write_batch() as batch:
            batch.put(b"a", b"")
            batch.put(b"b", b"")
        found = published(path, lambda it: it.stats.writes == 3)
        assert found.pid == os.getpid()
        assert found.opened <= found.time
        assert found.stats == db.stats()
        counts = {name: latencies.count for name, latencies in found.latencies.items()}
        assert counts == {"get": 1, "put": 1, "delete": 1, "write": 1, "seek": 1}
        assert found.latencies["get"].percentile(100) > 0
        assert found.compaction is None
        assert not found.flushing
        assert found.stalled_seconds == 0.0
        assert found.write_buffer_size == 9000
        assert found.block_cache_capacity == 32 << 20
        assert found.trace is None
    assert not {STATS, STATS_NEW} & set(os.listdir(path))


def test_it_is_published_again_and_again(path: Path) -> None:
    with DB(path, create_if_missing=True, publish_stats=True, trace=path / "TRACE") as db:
        first = published(path)
        for n in range(10):
            db.put(b"%d" % n, b"")
        later = published(path, lambda it: it.time > first.time)
        assert later.opened == first.opened
        assert (later.stats - first.stats).writes == 10
        assert later.trace == str(path / "TRACE")


def test_a_store_that_does_not_publish_has_no_file(path: Path) -> None:
    with DB(path, create_if_missing=True, trace=path / "TRACE") as db:
        db.put(b"k", b"v")
        assert not {STATS, STATS_NEW} & set(os.listdir(path))
        assert not [one for one in threading.enumerate() if one.name == "lsmkv stats"]


KILLED = """if True:
    import os, sys, lsmkv
    db = lsmkv.DB(sys.argv[1], create_if_missing=True, publish_stats=True)
    db.put(b"k", b"v")
    print("open", flush=True)
    sys.stdin.read()
"""


def test_a_killed_owner_is_recognized(path: Path) -> None:
    with start(KILLED, str(path)) as owner:
        assert owner.stdout is not None
        owner.stdout.readline()
        live = published(path)
        assert live.pid == owner.pid
        owner.send_signal(signal.SIGKILL)
    dead = owner_of(path)
    assert dead.pid is None
    assert dead.published is not None
    assert not dead.publishes
    with DB(path, publish_stats=True) as db:
        assert published(path).pid == os.getpid()
        assert db.get(b"k") == b"v"


def test_what_a_killed_owner_left_is_removed(path: Path) -> None:
    with start(KILLED, str(path)) as owner:
        assert owner.stdout is not None
        owner.stdout.readline()
        published(path)
        owner.send_signal(signal.SIGKILL)
    (path / STATS_NEW).write_bytes(b"{")
    with DB(path, read_only=True):
        assert {STATS, STATS_NEW} <= set(os.listdir(path))  # which writes nothing
    with DB(path):
        assert not {STATS, STATS_NEW} & set(os.listdir(path))


def test_a_half_written_file_of_a_killed_owner_is_no_obstacle(path: Path) -> None:
    DB(path, create_if_missing=True).close()
    (path / STATS_NEW).write_bytes(b"{")
    (path / STATS).write_bytes(b"{")
    with DB(path, publish_stats=True):
        wait_until(lambda: (path / STATS).read_bytes() != b"{")
        assert published(path).pid == os.getpid()


def test_leveldb_opens_the_directory_and_leaves_the_file(path: Path) -> None:
    plyvel = pytest.importorskip("plyvel")
    with start(KILLED, str(path)) as owner:
        assert owner.stdout is not None
        owner.stdout.readline()
        published(path)
        owner.send_signal(signal.SIGKILL)
    before = (path / STATS).read_bytes()
    with DB(path, publish_stats=True, trace=path / "TRACE") as db:
        db.put(b"k2", b"v2")
    (path / STATS).write_bytes(before)
    trace = (path / "TRACE").read_bytes()
    with plyvel.DB(str(path)) as theirs:
        assert dict(theirs) == {b"k": b"v", b"k2": b"v2"}
        assert owner_of(path).pid == os.getpid()  # LevelDB's lock
        theirs.put(b"theirs", b"")
        theirs.compact_range()
    assert (path / STATS).read_bytes() == before
    assert (path / "TRACE").read_bytes() == trace
    with DB(path) as db:
        assert len(list(db)) == 3
    lsmkv.destroy_db(path)
    assert not path.exists()


def test_a_publisher_does_not_keep_the_process(path: Path) -> None:
    script = """if True:
        import sys, lsmkv
        db = lsmkv.DB(sys.argv[1], create_if_missing=True, publish_stats=True)
        db.put(b"k", b"v")
    """
    done = python(script, str(path))
    assert (done.returncode, done.stderr) == (0, "")
    assert STATS not in os.listdir(path)


def test_a_publisher_does_not_keep_the_handle(path: Path) -> None:
    db = DB(path, create_if_missing=True, publish_stats=True)
    published(path)
    handles = [db]
    del db
    with pytest.warns(ResourceWarning, match="unclosed"):
        handles.clear()
    gc.collect()
    assert owner_of(path) == (None, None)
    assert STATS not in os.listdir(path)


FORKED = """if True:
    import os, sys, time, lsmkv
    path = sys.argv[1]
    db = lsmkv.DB(path, create_if_missing=True, publish_stats=True)
    while not os.path.exists(path + "/STATS.json"):
        time.sleep(0.01)
    child = os.fork()
    if child == 0:
        try:
            db.get(b"k")
        except lsmkv.ForkedError:
            db.close()
            sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    seen = os.stat(path + "/STATS.json").st_ino
    while os.stat(path + "/STATS.json").st_ino == seen:  # the parent goes on
        time.sleep(0.01)
    db.close()
    assert not os.path.exists(path + "/STATS.json")
"""


def test_a_forked_child_does_not_publish(path: Path) -> None:
    assert python(FORKED, str(path)).returncode == 0


def test_a_full_disk_costs_the_file_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    env = FaultyEnv()
    with DB("store", env=env, create_if_missing=True, publish_stats=True) as db:
        first = published("store", env=env)
        full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        env.fail_at(1, full, sticky=True, calls={"create"})
        with caplog.at_level(logging.WARNING, "lsmkv"):
            wait_until(lambda: len(env.struck) >= 2)
            db.put(b"k", b"v", sync=True)
            assert db.get(b"k") == b"v"
        warnings = [one for one in caplog.messages if "No statistics are published" in one]
        assert len(warnings) == 1
        assert "No space left" in warnings[0]
        env.heal()
        assert published("store", lambda it: it.time > first.time, env).stats.writes == 1


def test_without_a_thread_the_store_works(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threads.system, "start_new_thread", refuse)
        db = DB(path, create_if_missing=True, publish_stats=True)
    with db:
        db.put(b"k", b"v")
        assert db.get(b"k") == b"v"
        assert STATS not in os.listdir(path)
    assert "No statistics are published: can't start new thread" in caplog.text


@pytest.mark.parametrize("call", ["create", "append", "rename", "exists", "remove"])
def test_any_failing_call_is_survived(call: str) -> None:
    env = FaultyEnv()
    db = DB("store", env=env, create_if_missing=True, publish_stats=True)
    first = published("store", env=env)
    env.fail_at(1, sticky=True, short=call == "append", calls={call})
    if call != "remove":
        wait_until(lambda: env.failures > 0)
    else:
        published("store", lambda it: it.time > first.time, env)
    if call in ("exists", "remove"):  # and it stays that way
        db.close()
        assert not owner_of("store", env).publishes
        return
    env.heal()
    assert published("store", lambda it: it.time > first.time, env).pid == os.getpid()
    db.close()
    with env.open_directory("store") as directory:
        assert not {STATS, STATS_NEW} & set(directory.names())


def test_a_stall_is_seen_while_it_goes_on() -> None:
    env = GatedEnv()
    options: dict[str, Any] = {"create_if_missing": True, "env": env, **TINY}
    with DB("store", publish_stats=True, **options) as db:
        env.open.clear()
        writing, errors = background_of(lambda: fill(db))
        seen = published("store", lambda it: it.stalled_seconds > 0, env)
        assert seen.flushing
        env.open.set()
        writing.join()
        assert errors == []
        db.flush()
        quiet = published("store", lambda it: it.time > seen.time and not it.flushing, env)
        assert quiet.stalled_seconds == 0.0


def test_a_compaction_is_seen_while_it_goes_on() -> None:
    env = GatedEnv()
    with DB("store", create_if_missing=True, publish_stats=True, env=env) as db:
        for _ in range(2):
            fill(db)
            db.flush()
        env.open.clear()
        compacting, errors = background_of(db.compact_range)
        seen = published("store", lambda it: it.compaction is not None, env)
        assert seen.compaction is not None
        assert (seen.compaction.files, seen.compaction.next_files) == (1, 1)
        assert 0 <= seen.compaction.bytes_read <= seen.compaction.bytes
        assert seen.compaction.bytes == sum(table.size for table in db.tables())
        env.open.set()
        compacting.join()
        assert errors == []
        published("store", lambda it: it.compaction is None, env)


def test_a_store_in_memory_publishes_where_only_its_env_looks() -> None:
    env = MemoryEnv()
    with DB("store", create_if_missing=True, env=env, publish_stats=True):
        assert published("store", env=env).pid == os.getpid()
    with DB(":memory:", publish_stats=True) as db:
        db.put(b"k", b"v")
        assert db.get(b"k") == b"v"


def test_read_only_does_not_publish(path: Path) -> None:
    DB(path, create_if_missing=True).close()
    before = contents(str(path))
    with pytest.raises(ValueError, match="cannot be combined with read_only"):
        DB(path, read_only=True, publish_stats=True)
    assert contents(str(path)) == before


def test_a_checkpoint_leaves_the_files_out(path: Path, tmp_path: Path) -> None:
    with DB(path, create_if_missing=True, publish_stats=True, trace=path / "TRACE") as db:
        db.put(b"k", b"v")
        published(path)
        db.checkpoint(tmp_path / "copy")
    assert not {STATS, "TRACE"} & set(data_files(str(tmp_path / "copy")))


def test_a_repair_leaves_the_files_alone(path: Path) -> None:
    with DB(path, create_if_missing=True, trace=path / "TRACE") as db:
        db.put(b"k", b"v")
    (path / STATS).write_bytes(b"{}")
    trace = (path / "TRACE").read_bytes()
    (path / "CURRENT").unlink()
    lsmkv.repair_db(path)
    assert (path / "TRACE").read_bytes() == trace
    assert not {STATS, "TRACE"} & set(os.listdir(path / "lost"))
    with DB(path) as db:
        assert db.get(b"k") == b"v"

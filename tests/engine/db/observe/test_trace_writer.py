"""lsmkv.engine.db.observe.trace_writer: what gets into a trace, and what happens when it cannot."""

from __future__ import annotations

import errno
import logging
import os
import signal
import time
from pathlib import Path

import pytest
from observing import kinds, traced
from processes import start
from threads import run_threads

import lsmkv
from lsmkv import DB, read_trace
from lsmkv.testing.faulty import FaultyEnv


def test_every_nth_operation_of_each_kind_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    with DB(":memory:", trace=path, trace_sample=3) as db:
        for n in range(7):
            db.put(b"%d" % n, b"")
            db.get(b"%d" % n)
    assert read_trace(path).sample == 3
    assert [key for kind, key, _ in kinds(path) if kind == "put"] == [b"0", b"3", b"6"]
    assert [key for kind, key, _ in kinds(path) if kind == "get"] == [b"0", b"3", b"6"]


def test_many_threads_lose_no_operation(tmp_path: Path, quick_switches: None) -> None:
    path = tmp_path / "trace"
    each = 3000
    with DB(":memory:", trace=path) as db:

        def get(name: bytes) -> None:
            for n in range(each):
                db.get(b"%s%d" % (name, n))

        assert run_threads(*[lambda name=name: get(name) for name in (b"a", b"b", b"c")]) == []
    found = [one.key for one in traced(path)]
    assert len(found) == 3 * each
    assert set(found) == {b"%s%d" % (name, n) for name in (b"a", b"b", b"c") for n in range(each)}


def test_long_keys_are_recorded_whole(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    keys = [bytes([n]) * 300_000 for n in range(4)]
    with DB(":memory:", trace=path) as db:
        for key in keys:
            db.get(key)
        assert path.stat().st_size > 600_000  # they are not kept for long
    assert [one.key for one in traced(path)] == keys


def test_an_older_trace_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    for key in (b"first", b"second"):
        with DB(":memory:", trace=path) as db:
            db.get(key)
        assert kinds(path) == [("get", key, None)]
    path.write_bytes(b"")
    with DB(":memory:", trace=str(path)):
        pass
    assert kinds(path) == []
    path.write_bytes(b"notes")
    store = tmp_path / "store"
    with pytest.raises(lsmkv.IOError, match="is not a trace") as caught:
        DB(store, create_if_missing=True, trace=path)
    assert caught.value.errno == errno.EEXIST
    assert path.read_bytes() == b"notes"
    with DB(store, create_if_missing=True, trace=tmp_path / "other"):  # the lock was given up
        pass
    with pytest.raises(lsmkv.IOError, match="a directory"):
        DB(store, trace=tmp_path)
    with pytest.raises(lsmkv.IOError, match="No such file"):
        DB(store, trace=tmp_path / "none" / "trace")


def test_a_full_disk_ends_the_trace_and_not_the_store(caplog: pytest.LogCaptureFixture) -> None:
    env = FaultyEnv()
    env.open_directory("traces", create=True).close()
    with DB(":memory:", env=env, create_if_missing=True, trace="traces/t") as db:
        for n in range(600):
            db.get(b"%d" % n)
        full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        env.fail_at(1, full, sticky=True, short=True, calls={"append"})
        with caplog.at_level(logging.WARNING, "lsmkv"):
            for n in range(2000):
                db.get(b"%d" % n)
        assert len([one for one in caplog.messages if "The trace ends here" in one]) == 1
        env.heal()
        db.put(b"k", b"v")
        assert db.get(b"k") == b"v"
    found = [one.key for one in read_trace("traces/t", env=env)]
    assert found == [b"%d" % n for n in range(len(found))]
    assert len(found) == 512


KILLED = """if True:
    import sys, lsmkv
    db = lsmkv.DB(sys.argv[1], create_if_missing=True, trace=sys.argv[2])
    n = 0
    while True:
        db.put(b"%d" % n, b"")
        n += 1
        if n == 5000:
            print("ready", flush=True)
"""


def test_a_killed_process_leaves_the_operations_before(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    with start(KILLED, str(tmp_path / "store"), str(path)) as owner:
        assert owner.stdout is not None
        owner.stdout.readline()
        live = [one.key for one in traced(path)]  # beside the writer
        owner.send_signal(signal.SIGKILL)
    found = [one.key for one in traced(path)]
    assert found == [b"%d" % n for n in range(len(found))]
    assert len(found) >= len(live) >= 4096


FORKED = """if True:
    import os, sys, lsmkv
    db = lsmkv.DB(":memory:", trace=sys.argv[1])
    db.put(b"before", b"")
    child = os.fork()
    if child == 0:
        try:
            db.put(b"child", b"")
        except lsmkv.ForkedError:
            db.close()
            sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    db.put(b"after", b"")
    db.close()
"""


def test_a_forked_child_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    with start(FORKED, str(path)) as parent:
        assert parent.wait() == 0
    assert kinds(path) == [("put", b"before", 0), ("put", b"after", 0)]


def test_operations_are_written_after_a_second(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    with DB(":memory:", trace=path) as db:
        db.get(b"a")
        assert kinds(path) == []
        time.sleep(1.05)
        db.get(b"b")
        assert kinds(path) == [("get", b"a", None), ("get", b"b", None)]

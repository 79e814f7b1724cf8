"""Code of the program's that runs in the middle of a call, and calls the store: signal handlers and
finalizers, of any method in any method.  Nothing hangs, and nothing is lost.

``make test-nested`` interrupts at every line, and for minutes where this takes a few seconds.
"""

from __future__ import annotations

import gc
import os
import random
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from nested_calls import CALLS, VALUE, Call, World, count_lines, interrupt
from processes import run_python

import lsmkv
from lsmkv import NestedCallError
from lsmkv.engine.options import BackgroundWork

LINES = int(os.environ.get("LSMKV_NESTED_LINES", "1"))
"""In how many lines of each call each other call comes; 0 is all."""
SECONDS = float(os.environ.get("LSMKV_NESTED_SECONDS", "1.5"))

interpreted = pytest.mark.skipif(
    lsmkv.COMPILED, reason="compiled code is not interrupted between two lines"
)


@interpreted
@pytest.mark.usefixtures("signals_are_heard")  # some lines are those of finalizers
@pytest.mark.parametrize("raises", [False, True], ids=["returns", "raises"])
@pytest.mark.parametrize("background", ["thread", "inline"])
@pytest.mark.parametrize("outer", CALLS, ids=[call.name for call in CALLS])
def test_any_call_in_any_other(outer: Call, background: BackgroundWork, raises: bool) -> None:
    rng = random.Random(f"{outer.name} {background} {raises}")
    world = World(background)
    calls = CALLS if LINES == 0 else rng.sample(CALLS, 3)
    for nested in calls:
        lines = list(range(1, count_lines(world, outer, raises) + 1))
        for line in lines if LINES == 0 else rng.sample(lines, min(LINES, len(lines))):
            interrupt(world, outer, nested, line, raises)
    world.db.close()


class Intruders:
    """Calls the store at odd moments, in the main thread, and counts what came of it."""

    def __init__(self, db: lsmkv.DB) -> None:
        self.db = db
        self.model: dict[bytes, bytes] = {}
        self.calls = 0
        self.refused = 0
        self.errors: list[BaseException] = []
        self._depth = 0

    def intrude(self) -> None:
        """Make one call, the next of several kinds."""
        if self._depth > 2:
            return
        self._depth += 1
        self.calls += 1
        key = b"intruder%06d" % self.calls
        try:
            kind = self.calls % 8
            if kind in (0, 1, 2):
                self.db.put(key, VALUE)
                self.model[key] = VALUE
            elif kind == 3:
                assert self.db.get(b"fixed") == VALUE
            elif kind == 4:
                assert next(self.db.iterator(start=b"fixed")) == (b"fixed", VALUE)
            elif kind == 5:
                with self.db.snapshot() as snapshot:
                    assert snapshot.get(b"fixed") == VALUE
            elif kind == 6:
                self.db.delete(b"no such key")
            else:
                self.db.put(key, VALUE, sync=True)
                self.model[key] = VALUE
        except NestedCallError:
            self.refused += 1
        except BaseException as error:
            self.errors.append(error)
        finally:
            self._depth -= 1


def work(db: lsmkv.DB, model: dict[bytes, bytes], turn: int) -> None:
    """A little of everything, in the thread that is interrupted."""
    for number in range(20):
        key = b"outer%07d" % (turn * 20 + number)
        db.put(key, VALUE, sync=number == 0)
        model[key] = VALUE
    with db.write_batch() as batch:
        for number in range(5):
            key = b"batch%07d" % (turn * 5 + number)
            batch.put(key, VALUE)
            model[key] = VALUE
    assert db.get(b"fixed") == VALUE
    keys = list(db.iterator(include_value=False, start=b"outer", stop=b"outer0000100"))
    assert keys == sorted(keys)
    if turn % 20 == 0:
        db.flush()


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[lsmkv.DB]:
    path = str(tmp_path / "db")
    with lsmkv.DB(path, create_if_missing=True, write_buffer_size=100_000) as db:
        db.put(b"fixed", VALUE)
        yield db


def assert_nothing_lost(db: lsmkv.DB, intruders: Intruders, model: dict[bytes, bytes]) -> None:
    assert intruders.errors == []
    expected = {b"fixed": VALUE, **model, **intruders.model}
    assert dict(db) == expected
    db.close()
    with lsmkv.DB(db.path) as again:
        assert dict(again) == expected
        again.check()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
def test_handlers_of_timer_signals(busy: lsmkv.DB) -> None:
    intruders, model = Intruders(busy), dict[bytes, bytes]()

    def handler(_signal: int, _frame: FrameType | None) -> None:
        intruders.intrude()

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.0007)
    try:
        end = time.monotonic() + SECONDS
        turn = 0
        while time.monotonic() < end or intruders.calls < 20:
            work(busy, model, turn)
            turn += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert intruders.calls >= 20
    assert_nothing_lost(busy, intruders, model)


class Garbage:
    """One of a pair that refers to each other, so that the collector finalizes them."""

    def __init__(self, finalize: Callable[[], None]) -> None:
        self.other: Any = None
        weakref.finalize(self, finalize).atexit = False


def test_finalizers_that_the_collector_runs(busy: lsmkv.DB) -> None:
    """They run in any thread that makes an object: in the store's own thread, too."""
    intruders, model = Intruders(busy), dict[bytes, bytes]()
    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        end = time.monotonic() + SECONDS
        turn = 0
        while time.monotonic() < end or intruders.calls < 20:
            for _ in range(3):
                one, two = Garbage(intruders.intrude), Garbage(intruders.intrude)
                one.other, two.other = two, one
                del one, two
            work(busy, model, turn)
            turn += 1
    finally:
        gc.set_threshold(*before)
    assert_nothing_lost(busy, intruders, model)


HANDLER = """
import signal, sys
import lsmkv

db = lsmkv.DB(sys.argv[1], create_if_missing=True)

def handler(*_):
    if sys.argv[2] == "writes":
        db.put(b"handler", b"1")
        db.delete(b"nothing")
        with db.write_batch() as batch:
            batch.put(b"batch", b"1")
        next(db.iterator())
        db.snapshot().close()
    db.close()
    sys.exit(7)

signal.signal(signal.SIGTERM, handler)
for number in range(10**9):
    db.put(b"k%d" % number, bytes(100), sync=sys.argv[3] == "sync")
    if number % 50 == 0:
        print(number, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to handle")
@pytest.mark.parametrize("sync", ["sync", "no sync"])
@pytest.mark.parametrize("does", ["closes", "writes"])
def test_a_handler_that_closes_and_exits_in_the_middle_of_a_put(
    does: str, sync: str, tmp_path: Path
) -> None:
    path = str(tmp_path / "db")
    with subprocess.Popen(
        [sys.executable, "-c", HANDLER, path, does, sync], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for _ in range(3):
            process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=100)
    assert process.returncode == 7
    last = int(output.split()[-1]) if output.split() else 0
    with lsmkv.DB(path) as db:
        assert all(db.get(b"k%d" % number) is not None for number in range(last))
        if does == "writes":
            assert (db.get(b"handler"), db.get(b"batch")) == (b"1", b"1")


AT_EXIT = """
import atexit, sys

def save():
    for number in range(2000):
        db.put(b"%05d" % number, bytes(60))
    assert db.get(b"before") == b"1"
    assert not db.closed

class Saver:
    def __init__(self, db):
        self.db = db

    def __del__(self):
        for number in range(2000, 4000):
            self.db.put(b"%05d" % number, bytes(60))
        assert self.db.get(b"before") == b"1"
        self.db.flush()
        print("saved", flush=True)

atexit.register(save)
import lsmkv
db = lsmkv.DB(sys.argv[1], create_if_missing=True, write_buffer_size=30_000)
db.put(b"before", b"1")
saver = Saver(db)
"""


def test_what_runs_at_the_exit_may_still_save(tmp_path: Path) -> None:
    """What was registered before lsmkv was imported, and the finalizer of a global; more than a
    memtable full each."""
    path = str(tmp_path / "db")
    done = run_python("-X", "dev", "-c", AT_EXIT, path, timeout=100)
    assert (done.returncode, done.stdout, done.stderr) == (0, "saved\n", "")
    with lsmkv.DB(path) as db:
        assert sum(1 for _ in db) == 4001
        db.check()

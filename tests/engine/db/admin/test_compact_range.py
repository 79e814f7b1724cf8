"""A manual compaction reports its progress, and ends when its caller stops it."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from stores import files_at
from threads import background_of

import lsmkv
from lsmkv import DB, MemoryEnv
from lsmkv.engine.db.admin.compact_range import LevelPlan, Meter

OPTIONS: dict[str, Any] = {
    "create_if_missing": True,
    "compression": None,
    "write_buffer_size": 16_000,
    "max_file_size": 16_000,
    "seek_compaction": False,
}
Step = tuple[int, int, str]


class PacedEnv(MemoryEnv):
    """Once armed, a compaction begins no output before its progress was reported, and none while
    the gate is shut."""

    def __init__(self) -> None:
        super().__init__()
        self.armed = False
        self.unpaced = 0
        self.created = 0
        self.reported = threading.Event()
        self.gate = threading.Event()
        self.gate.set()
        self.at_gate = threading.Event()
        self._read = False

    def open_directory(self, path: str, create: bool = False) -> Any:
        directory: Any = super().open_directory(path, create)
        open_file, create_file = directory.open, directory.create

        def opened(name: str) -> Any:
            file = open_file(name)
            read = file.read

            def noted(offset: int, length: int) -> bytes:
                self._read = self._read or offset == 0  # where the first data block lies
                data: bytes = read(offset, length)
                return data

            file.read = noted
            return file

        def created(name: str) -> Any:
            if name.endswith(".ldb"):
                self._before_output()
            return create_file(name)

        directory.open, directory.create = opened, created
        return directory

    def _before_output(self) -> None:
        self.created += 1
        self.at_gate.set()
        self.gate.wait()
        if self.armed and self._read:
            self._read = False
            if not self.reported.wait(60):
                self.unpaced += 1
                self.armed = False
            self.reported.clear()


def fill(db: DB, seed: int, count: int, bound: int = 3000) -> dict[bytes, bytes]:
    """Put that many distinct keys, and return them."""
    rng = random.Random(seed)
    entries = {b"%05d" % n: rng.randbytes(100) for n in rng.sample(range(bound), count)}
    with db.write_batch() as batch:
        for key, value in entries.items():
            batch.put(key, value)
    return entries


def three_levels(db: DB) -> dict[bytes, bytes]:
    """Fill levels 0, 1 and 2 with several tables each, and return the contents."""
    content: dict[bytes, bytes] = {}
    for seed, count, down_to in ((1, 1500, 2), (2, 10, 2), (3, 700, 1), (4, 300, 0), (5, 300, 0)):
        content |= fill(db, seed, count)
        db.flush()
        for level in range(down_to):
            db._background.compact_level(level, None, None)  # which cuts large tables up
    assert [n > 1 for n in files_at(db)] == [True, True, True, *[False] * 4]
    return content


def assert_whole(db: DB, content: dict[bytes, bytes]) -> None:
    """Check that the store is intact, has these contents, and can be written and compacted."""
    db.check()
    assert list(db) == sorted(content.items())
    assert list(db.iterator(reverse=True)) == sorted(content.items(), reverse=True)
    db.put(b"after", b"1")
    db.compact_range()
    assert files_at(db).count(0) == 6
    db.check()
    assert dict(db) == {**content, b"after": b"1"}


@pytest.fixture
def env() -> PacedEnv:
    return PacedEnv()


# Progress


def test_progress_within_every_level(env: PacedEnv) -> None:
    steps: list[Step] = []
    threads: set[int] = set()

    def progress(done: int, total: int, phase: str) -> None:
        steps.append((done, total, phase))
        threads.add(threading.get_ident())
        env.reported.set()

    with DB("/db", env=env, **OPTIONS) as db:
        content = three_levels(db)
        size = [level.bytes for level in db.stats().levels]
        env.armed = True
        db.compact_range(progress=progress)
        env.armed = False
        assert env.unpaced == 0
        assert files_at(db).count(0) == 6
        assert_whole(db, content)
    first, second = size[0] + size[1], sum(size)
    total = first + second
    assert threads == {threading.get_ident()}
    assert {step[1] for step in steps} == {total}
    done = [step[0] for step in steps]
    assert done == sorted(done)
    assert steps[0] == (0, total, "level 0")
    assert steps[-1] == (total, total, "done")
    assert steps.index((first, total, "level 1")) > 0
    assert [step[2] for step in steps] == [*sorted(step[2] for step in steps[:-1]), "done"]
    # Level 0 goes down in one merge, level 1 in several; each tells of its tables as it reads them.
    within = {level: [step[0] for step in steps if step[2] == f"level {level}"] for level in (0, 1)}
    assert len(within[0]) > 4
    assert len(within[1]) > 10
    assert max(within[0]) <= first
    # Not all at the end: most of the bytes are reported while there is more to read.
    assert any(0.2 * first < n < 0.8 * first for n in within[0])
    assert any(first + 0.2 * second < n < first + 0.8 * second for n in within[1])


def test_progress_of_an_empty_store() -> None:
    steps: list[Step] = []
    with DB(":memory:") as db:
        db.compact_range(progress=lambda *step: steps.append(step))
    assert steps == [(0, 0, "level 0"), (0, 0, "done")]


def test_the_total_counts_the_tables_of_the_range_alone() -> None:
    with DB(":memory:", **OPTIONS) as db:
        three_levels(db)

        def total_of(start: bytes | None, stop: bytes | None) -> int:
            steps: list[Step] = []

            def first_only(*step: Any) -> None:
                steps.append(step)
                raise LookupError

            with pytest.raises(LookupError):
                db.compact_range(start, stop, progress=first_only)
            return steps[0][1]

        everything = total_of(None, None)
        size = [level.bytes for level in db.stats().levels]
        assert everything == 2 * size[0] + 2 * size[1] + size[2]
        assert total_of(b"", b"\xff") == everything
        assert total_of(b"x", b"y") == total_of(b"x", None) == 0
        # The table of level 0 reaches over the whole range; of the others, those that cover it.
        one_key = total_of(b"01500", b"01500")
        assert 2 * size[0] < one_key < everything / 2
        assert one_key < total_of(b"01500", None) < everything
        assert one_key < total_of(None, b"01500") < everything


def test_a_level_that_holds_nothing_reads_nothing() -> None:
    steps: list[Step] = []
    with DB(":memory:", **OPTIONS) as db:
        fill(db, 1, 1000)
        db.compact_range()
        deepest = next(n for n, level in enumerate(db.stats().levels) if level.files)
        assert deepest > 0
        db.compact_range(progress=lambda *step: steps.append(step))
    assert {step[:2] for step in steps} == {(0, 0)}
    assert steps[-1] == (0, 0, "done")
    assert len(steps) == deepest + 1


def test_more_to_read_than_was_known() -> None:
    """Writes during the compaction, from the callback too, do not push ``done`` over the total."""
    steps: list[Step] = []
    with DB(":memory:", **OPTIONS) as db:
        content = three_levels(db)

        def progress(done: int, total: int, phase: str) -> None:
            if not steps or steps[-1][2] != phase:
                content.update(fill(db, len(steps), 800))
                db.flush()
            steps.append((done, total, phase))

        db.compact_range(progress=progress)
        done = [step[0] for step in steps]
        assert done == sorted(done)
        assert {step[1] for step in steps} == {done[-1]}
        assert steps[-1][2] == "done"
        assert_whole(db, content)


def test_progress_neither_falls_nor_exceeds_the_total() -> None:
    steps: list[Step] = []
    plan = [LevelPlan(50, 100), LevelPlan(0, 0), LevelPlan(50, 50)]
    meter = Meter(lambda *step: steps.append(step), plan)
    meter.begin(0)
    for moved in (0, 5, 5, 20, 49, 50, 65):
        meter.advance(moved)
    meter.begin(1)
    meter.advance(7)
    meter.begin(2)
    meter.advance(20)
    meter.finish()
    assert steps == [
        *[(n, 150, "level 0") for n in (0, 10, 40, 98, 100)],
        (100, 150, "level 1"),
        *[(n, 150, "level 2") for n in (100, 120)],
        (150, 150, "done"),
    ]


# Ending it


def interrupted(
    env: PacedEnv, expected: type[BaseException], stop: Callable[[], None], at: str
) -> None:
    """Compact until phase ``at`` has reported progress, then call ``stop()``."""
    began: list[int] = []

    def progress(done: int, _total: int, phase: str) -> None:
        if phase != at:
            env.reported.set()
        elif not began:
            began.append(done)
            env.reported.set()
        elif done > began[0]:
            # The thread waits before its first output of this level until this was reported.
            stop()

    with DB("/db", env=env, **OPTIONS) as db:
        content = three_levels(db)
        before = files_at(db)
        env.armed = True
        with pytest.raises(expected):
            db.compact_range(progress=progress)
        env.armed = False
        env.reported.set()
        db._background.wait_until_idle()
        assert env.unpaced == 0
        after = files_at(db)
        if at == "level 0":
            assert after == before
        else:
            assert after[0] == 0  # the merge of level 0 was done, and stays done
        assert after[1] > 0  # that of level 1 was not
        assert_whole(db, content)
    with DB("/db", env=env, **OPTIONS) as db:
        assert dict(db) == {**content, b"after": b"1"}
        db.check()


@pytest.mark.parametrize("at", ["level 0", "level 1"])
def test_an_exception_in_progress_ends_the_compaction(env: PacedEnv, at: str) -> None:
    def stop() -> None:
        raise LookupError("enough")

    interrupted(env, LookupError, stop, at)


@pytest.mark.parametrize("at", ["level 0", "level 1"])
def test_ctrl_c_in_progress(env: PacedEnv, at: str) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        interrupted(env, KeyboardInterrupt, lambda: signal.raise_signal(signal.SIGINT), at)
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.untraced  # as in the storm below
def test_ctrl_c_while_the_caller_waits(env: PacedEnv) -> None:
    main = threading.get_ident()

    def send() -> None:
        env.at_gate.wait()
        signal.pthread_kill(main, signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with DB("/db", env=env, **OPTIONS) as db:
            content = three_levels(db)
            tables = files_at(db)
            created = env.created
            env.gate.clear()
            env.at_gate.clear()
            sender, errors = background_of(send)
            with pytest.raises(KeyboardInterrupt):
                db.compact_range()
            sender.join()
            assert errors == []
            env.gate.set()
            db._background.wait_until_idle()
            assert env.created == created + 1  # it ended at its next step
            assert files_at(db) == tables
            assert_whole(db, content)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_request_may_be_cancelled_while_it_waits(env: PacedEnv) -> None:
    """The request waits for another compaction; cancelled, it leaves the thread nothing to do."""
    with DB("/db", env=env, **OPTIONS) as db:
        content = three_levels(db)
        env.gate.clear()
        env.at_gate.clear()
        first, errors = background_of(db.compact_range)
        env.at_gate.wait()

        def refuse(_moved: int) -> None:
            assert len(db._background._range_compactions) == 2
            raise LookupError

        with pytest.raises(LookupError):
            db._background.compact_level(0, None, None, refuse)
        env.gate.set()
        first.join()
        assert errors == []
        db._background.wait_until_idle()
        assert db._background._range_compactions == []
        assert_whole(db, content)


def test_cancelling_takes_no_lock(env: PacedEnv) -> None:
    """Waiting for a lock, it could be interrupted halfway by a second Ctrl-C."""
    with DB("/db", env=env, **OPTIONS) as db:
        content = three_levels(db)

        def progress(_done: int, _total: int, _phase: str) -> None:
            if db._background._range_compactions:
                db._store.lock.guard.acquire()
                raise LookupError

        env.gate.clear()
        with pytest.raises(LookupError):
            db.compact_range(progress=progress)
        db._store.lock.guard.release()
        env.gate.set()
        db._background.wait_until_idle()
        assert db._background._range_compactions == []
        assert_whole(db, content)


class Interrupted(BaseException):
    """Raised by the signals."""


def compact_in_a_storm(db: DB) -> None:
    """The frame that a signal looks for."""
    db.compact_range(progress=lambda *step: None)


class Storm:
    """Signals that raise during a compaction and its cleaning up, but not after it."""

    def __init__(self) -> None:
        self._raging = False

    def begin(self, seconds: float) -> None:
        """Send the first signal after this time."""
        self._raging = True
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def end(self) -> None:
        """Send no more signals, not even one that a pending signal would request."""
        self._raging = False
        signal.setitimer(signal.ITIMER_REAL, 0)

    def strike(self, _number: int, frame: FrameType | None) -> None:
        """Request the next signal at the end: a fixed period is too short for a slow machine."""
        while frame is not None and frame.f_code is not compact_in_a_storm.__code__:
            frame = frame.f_back
        if self._raging:
            signal.setitimer(signal.ITIMER_REAL, 0.00003)
        if frame is not None:
            raise Interrupted


@pytest.mark.untraced  # coverage's tracer, interrupted in taking its own lock, never gives it back
@pytest.mark.usefixtures("signals_are_heard")
def test_many_signals_in_a_row() -> None:
    """The signals follow each other so fast that several hit one compaction."""
    rng = random.Random(3)
    storm = Storm()
    before = signal.signal(signal.SIGALRM, storm.strike)
    ended = 0
    try:
        with DB(":memory:", **OPTIONS) as db:
            content = fill(db, 999, 100, bound=600)
            started = time.perf_counter()
            compact_in_a_storm(db)
            usual = time.perf_counter() - started
            for n in range(150):
                content |= fill(db, n, 100, bound=600)
                storm.begin(rng.uniform(0.1, 3.0) * usual)
                started = time.perf_counter()
                try:
                    compact_in_a_storm(db)
                    usual = time.perf_counter() - started  # a busy machine goes now slow, now fast
                except Interrupted:
                    ended += 1
                storm.end()
                # A request that is not removed would keep the thread busy for ever.
                db._background.wait_until_idle()
            assert ended > 20
            assert_whole(db, content)
    finally:
        storm.end()
        signal.signal(signal.SIGALRM, before)


# Closing


def test_closing_from_another_thread(env: PacedEnv) -> None:
    db = DB("/db", env=env, **OPTIONS)
    content = three_levels(db)
    created = env.created
    env.gate.clear()
    env.at_gate.clear()
    compacting, errors = background_of(lambda: db.compact_range(progress=lambda *step: None))
    env.at_gate.wait()
    closing, more_errors = background_of(db.close)
    compacting.join()  # the caller does not wait for the merge to notice
    assert [type(error) for error in errors] == [lsmkv.ClosedError]
    env.gate.set()
    closing.join()
    assert more_errors == []
    assert env.created == created + 1  # the merge ended at its next step
    with DB("/db", env=env, **OPTIONS) as db:
        assert_whole(db, content)


def test_closing_from_the_callback(env: PacedEnv) -> None:
    db = DB("/db", env=env, **OPTIONS)
    content = three_levels(db)
    with pytest.raises(lsmkv.ClosedError):
        db.compact_range(progress=lambda *step: db.close())
    with DB("/db", env=env, **OPTIONS) as db:
        assert_whole(db, content)


# Beside others


def test_ingests_called_by_the_callback(env: PacedEnv) -> None:
    """Ingested entries hide those of the running compaction, wherever its outputs are put."""
    taken: list[int] = []
    with DB("/db", env=env, **OPTIONS) as db:
        content = three_levels(db)

        def progress(_done: int, _total: int, phase: str) -> None:
            n = len(taken)
            if n < 12:
                taken.append(n)
                part = {b"%05d" % at: b"%d %s" % (n, phase.encode()) for at in range(n, 3000, 97)}
                with lsmkv.TableWriter(f"/{n}", env=env) as table:
                    for key in sorted(part):
                        table.add(key, part[key])
                db.ingest([f"/{n}"])
                content.update(part)
                assert dict(db) == content

        with db.snapshot() as snapshot:
            before = dict(content)
            db.compact_range(progress=progress)
            assert dict(snapshot) == before
        assert len(taken) >= 3
        assert_whole(db, content)


def test_cancelling_leaves_no_file(env: PacedEnv) -> None:
    with DB("/db", env=env, **OPTIONS) as db:
        content = three_levels(db)

        def stop(done: int, _total: int, _phase: str) -> None:
            if done > 0:
                raise LookupError

        for _ in range(3):
            try:
                db.compact_range(progress=stop)
            except LookupError:
                pass
            db._background.wait_until_idle()
            with env.open_directory("/db") as directory:
                tables = [name for name in directory.names() if name.endswith(".ldb")]
            assert len(tables) == sum(files_at(db))
        assert_whole(db, content)

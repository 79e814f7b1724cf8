"""Ingest: TableWriter's tables become the newest write of a store, completely or not at all."""

from __future__ import annotations

import os
import pathlib
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import pytest
from drawn_stores import drawn_store
from hooked import HookedEnv, ignore
from states import Case, Drawing, states
from threads import background_of, run_threads
from trees import key_of, key_text, order_of, words_text

import lsmkv
from lsmkv import DB, TableWriter
from lsmkv.engine.env.base import Env
from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.engine.format.filenames import FileType, parse_filename
from lsmkv.engine.options import Options
from lsmkv.engine.table.builder import TableBuilder
from lsmkv.testing.durable import NameModel, Tails
from lsmkv.testing.faulty import FaultyEnv

pytestmark = pytest.mark.usefixtures("quiet")

PATH = "/db"
TINY: dict[str, Any] = {"write_buffer_size": 1024, "max_file_size": 1024, "block_size": 256}
State = dict[bytes, bytes]


def some(first: int, last: int, what: bytes = b"value") -> State:
    return {b"key%05d" % n: b"%s %d " % (what, n) * 4 for n in range(first, last)}


def large(first: int, last: int) -> State:
    """Values that cannot be compressed."""
    return {b"key%05d" % n: random.Random(n).randbytes(200) for n in range(first, last)}


def write_table(env: Env | None, path: Any, entries: State, **options: Any) -> str:
    with TableWriter(path, env=env, **options) as table:
        for key, value in sorted(entries.items()):
            table.add(key, value)
    return str(path)


def fill(db: DB, entries: State) -> None:
    with db.write_batch() as batch:
        for key, value in entries.items():
            batch.put(key, value)


def opened(env: Env, **options: Any) -> DB:
    return DB(PATH, create_if_missing=True, env=env, **options)


def reopened(env: Env, **options: Any) -> State:
    """The contents after opening again with ``paranoid_checks``; the store is intact."""
    with DB(PATH, env=env, paranoid_checks=True, **options) as db:
        db.check()
        return dict(db)


def names_of(env: Env, kind: FileType) -> list[str]:
    with env.open_directory(PATH) as directory:
        parsed = {name: parse_filename(name) for name in directory.names()}
    return sorted(name for name, what in parsed.items() if what is not None and what[1] is kind)


def tables_named(db: DB) -> int:
    return sum(level.files for level in db.stats().levels)


# Against what is there


OLD = some(0, 30, b"old")
NEW = some(10, 40, b"new")


def answer(drawing: Drawing, words: list[str]) -> str:
    """Of the store that is drawn, and of files, by their numbers: ``1: banana=yellow``."""
    env = MemoryEnv()
    comparator = order_of(drawing)
    for label, text in drawing:
        if label.isdigit():
            with TableWriter(f"/{label}", env=env, comparator=comparator) as table:
                for pair in text.split():
                    key, _, value = pair.partition("=")
                    table.add(key_of(key), value.encode())
    match words:
        case ["ingest", *files]:
            store = [(label, text) for label, text in drawing if not label.isdigit()]
            with drawn_store(store, writable_in=env) as db:
                before, tables = db.snapshot(), {table.number for table in db.tables()}
                old = dict(before)
                db.ingest(iter([f"/{file}" for file in files]))
                pairs, last = list(db), db.snapshot().sequence
                assert list(before) == list(old.items())
                assert (last > before.sequence) == ({t.number for t in db.tables()} != tables)
                assert [db.get(key) for key, _ in pairs] == [value for _, value in pairs]
                assert list(db.iterator(reverse=True)) == pairs[::-1]
                for key in {key for key, value in pairs if old.get(key) != value}:
                    chosen = db.explain(key).chosen
                    assert chosen is not None
                    assert chosen.sequence == last
                by_level = [f"L{at} {n}" for at, n in enumerate(levels(db)) if n]
                db.check()
                assert reopened(copied(env), comparator=comparator) == dict(pairs)
                db.compact_range()
                assert list(db) == pairs
                before.close()
            with env.open_directory("/") as directory:  # the files are not taken away
                assert set(files) <= set(directory.names())
            texts = [f"{key_text(key)}={value.decode()}" for key, value in pairs]
            return f"{words_text(texts)}, {words_text(by_level)}"
    raise NotImplementedError


@states("ingest.txt")
def test_states(case: Case) -> None:
    case.check(answer, draws="memtable|L[0-6]|order|[1-9]")


def copied(env: MemoryEnv) -> MemoryEnv:
    """A copy of the directory as a killed process would leave it."""
    copy = MemoryEnv()
    with (
        env.open_directory(PATH) as source,
        copy.open_directory(PATH, create=True) as target,
        env.mutex,  # the background thread may remove a file meanwhile
    ):
        for name in source.names():
            with source.open(name) as file, target.create(name) as made:
                made.append(file.read(0, file.size))
    return copy


def test_earlier_snapshots_and_iterators_do_not_see_an_ingest() -> None:
    env = MemoryEnv()
    path = write_table(env, "/new.ldb", NEW)
    with opened(env, block_size=128) as db:
        fill(db, OLD)
        db.flush()
        db.delete(b"key00000")
        before = dict(db)
        snapshot = db.snapshot()
        forward, backward, raw = db.iterator(), db.iterator(reverse=True), db.raw_iterator()
        seen = [next(forward) for _ in range(15)]
        seen_back = [next(backward) for _ in range(15)]
        raw.seek(b"key00020")
        db.ingest([path])
        after = db.snapshot()
        assert snapshot.sequence < after.sequence
        assert dict(snapshot) == before
        assert all(snapshot.get(key) == before.get(key) for key in NEW)
        assert dict(seen + list(forward)) == before
        assert dict(seen_back + list(backward)) == before
        raw.next()
        assert (raw.key(), raw.value()) == (b"key00021", before[b"key00021"])
        db.put(b"key00020", b"newer")
        db.flush()
        db.compact_range()
        assert dict(snapshot) == before
        assert dict(after) == {**before, **NEW}
        assert db.multi_get([b"key00020", b"key00021"]) == [b"newer", NEW[b"key00021"]]
        for held in (snapshot, after, forward, backward, raw):
            held.close()


def test_readers_during_the_commit_do_not_see_an_ingest() -> None:
    """Neither before nor after the commit: a snapshot does not change."""
    env = HookedEnv()
    path = write_table(env, "/new.ldb", NEW)
    with opened(env) as db:
        fill(db, OLD)
        db.flush()
        held: list[lsmkv.Snapshot] = []
        iterators: list[lsmkv.Iterator] = []

        def before(call: str, about: str) -> None:
            if "MANIFEST" in about:
                held.append(db.snapshot())
                iterators.append(db.iterator())
                assert db.get(b"key00010") == OLD[b"key00010"]

        env.before = before
        db.ingest([path])
        env.before = ignore
        assert held
        assert all(dict(snapshot) == OLD for snapshot in held)
        assert all(dict(iterator) == OLD for iterator in iterators)
        assert dict(db) == {**OLD, **NEW}
        db.compact_range()
        assert all(dict(snapshot) == OLD for snapshot in held)
        for snapshot in held:
            snapshot.close()


def test_a_transaction_conflicts_with_an_ingest() -> None:
    env = MemoryEnv()
    path = write_table(env, "/new.ldb", {b"a": b"new"})
    with opened(env) as db:
        db.put(b"a", b"old")
        db.put(b"b", b"old")
        watching, other = db.transaction(), db.transaction()
        assert watching.get(b"a") == b"old"
        watching.put(b"c", b"1")
        assert other.get(b"b") == b"old"
        other.put(b"b", b"1")
        db.ingest([path])
        assert watching.get(b"a") == b"old"
        with pytest.raises(lsmkv.ConflictError, match="'a'"):
            watching.commit()
        other.commit()
        with db.transaction() as later:
            assert later.get(b"a") == b"new"
            later.put(b"a", b"newer")
        assert dict(db) == {b"a": b"newer", b"b": b"1"}


# Where the tables go


def levels(db: DB) -> list[int]:
    return [level.files for level in db.stats().levels]


def test_tables_skip_the_first_levels_of_an_empty_store() -> None:
    env = MemoryEnv()
    path = write_table(env, "/new.ldb", large(0, 200), block_size=256)
    with opened(env, max_file_size=1024, block_size=256) as db:
        db.ingest([path])
        assert levels(db)[:3] == [0, 0, len(names_of(env, FileType.TABLE))]
        on_level_2 = db.stats().levels[2]
        assert 800 < on_level_2.bytes / on_level_2.files < 2000


def test_an_ingest_that_overlaps_level_0_is_one_table_there() -> None:
    env = MemoryEnv()
    path = write_table(env, "/new.ldb", large(0, 200))
    with opened(env, max_file_size=1024, block_size=256) as db:
        for _ in range(3):  # levels 2, 1, 0
            fill(db, {b"key": b"", b"key9": b""})
            db.flush()
        assert levels(db)[:3] == [1, 1, 1]
        db.ingest([path])
        assert levels(db)[:3] == [2, 1, 1]
        assert db.get(b"key00007") == large(7, 8)[b"key00007"]
        db.put(b"key00007", b"newer")
        db.flush()
        assert db.get(b"key00007") == b"newer"
        db.check()


def test_an_ingest_waits_while_level_0_is_full() -> None:
    env = HookedEnv()
    main = threading.get_ident()
    never = threading.Event()

    def before(call: str, about: str) -> None:
        if call == "create" and threading.get_ident() != main:
            never.wait(0.004)  # compaction lags behind

    parts = [
        {key: b"%d" % turn + value for key, value in large(0, 100).items()} for turn in range(30)
    ]
    paths = [write_table(env, f"/{turn}", part) for turn, part in enumerate(parts)]
    with opened(env, max_file_size=1024, block_size=256) as db:
        env.before = before
        most = 0
        for path in paths:
            db.ingest([path])
            most = max(most, levels(db)[0])
        env.before = ignore
        assert 8 <= most <= 12
        assert dict(db) == parts[-1]


def test_tables_stay_above_a_compaction_that_is_running() -> None:
    """The ingest does not wait, and stays above outputs that no version names yet.

    The outputs may cover a gap between the inputs.
    """
    env = HookedEnv()
    path = write_table(env, "/new.ldb", some(5000, 5010))
    expected: State = {}
    with opened(env, compression="none") as db:
        for _ in range(2):
            for first in (0, 9000):
                part = {
                    b"key%05d" % n: random.Random(n).randbytes(2000)
                    for n in range(first, first + 250)
                }
                fill(db, part)
                db.flush()
                expected.update(part)
        assert levels(db)[:4] == [0, 2, 2, 0]
        compacting, renamed, never = threading.Event(), threading.Event(), threading.Event()
        main = threading.get_ident()

        def before(call: str, about: str) -> None:
            if call == "rename" and threading.get_ident() == main:
                renamed.set()
            if call == "append" and ".ldb" in about and threading.get_ident() != main:
                compacting.set()
                renamed.wait(30)
                never.wait(0.005)  # lets the other thread go on

        compaction = threading.Thread(target=db.compact_range)
        env.before = before
        compaction.start()
        assert compacting.wait(30)
        db.ingest([path])
        during = levels(db)
        env.before = ignore
        compaction.join()
        assert during[:4] == [0, 3, 2, 0]  # the compaction, of level 1, had not ended
        expected.update(some(5000, 5010))
        assert dict(db) == expected
        assert levels(db)[:4] == [0, 1, 1, 0]
        db.compact_range()
        assert dict(db) == expected
        db.check()
    assert reopened(env) == expected


def test_pending_outputs_are_not_removed() -> None:
    """A flush that commits meanwhile removes obsolete files only."""
    env = HookedEnv()
    path = write_table(env, "/new.ldb", large(0, 100))
    with opened(env, max_file_size=1024) as db:
        made: list[str] = []

        def before(call: str, about: str) -> None:
            if call == "create" and about.endswith(".ldb") and len(made) < 5:
                env.before = ignore
                flushing = threading.Thread(target=flush)
                flushing.start()
                flushing.join()
                made.append(about)
                env.before = before

        def flush() -> None:
            db.put(b"other", b"%d" % len(made))
            db.flush()

        env.before = before
        db.ingest([path])
        env.before = ignore
        assert len(made) == 5
        assert dict(db) == {**large(0, 100), b"other": b"4"}
        db.check()
    assert reopened(env) == {**large(0, 100), b"other": b"4"}


# Beside other writers


@pytest.mark.parametrize("phase", ["tables", "publishing"])
@pytest.mark.parametrize("operations", [1, 0, 20_000])
def test_writes_while_the_tables_are_made_are_older(phase: str, operations: int) -> None:
    """Few writes; or as many as the file has bytes (0), or more, which make it start again."""
    env = MemoryEnv()
    path = write_table(env, "/new.ldb", NEW)
    with opened(env, write_buffer_size=64 * 1024) as db:
        for _ in range(3):  # levels 2, 1 and 0 are taken, so that all goes to level 0
            fill(db, OLD)
            db.flush()
        written: list[int] = []

        def progress(done: int, total: int, what: str) -> None:
            nonlocal operations
            if what == phase and not written:
                operations = operations or total - 2
                with db.write_batch() as batch:
                    for n in range(operations):
                        batch.put(b"key00020", b"%d" % n)
                    batch.put(b"meanwhile", b"1")
                    batch.delete(b"key00030")
                written.append(db.snapshot().sequence)
                assert db.get(b"key00020") == b"%d" % (operations - 1)

        db.ingest([path], progress=progress)
        assert written
        assert db.snapshot().sequence > written[0]
        expected = {**OLD, **NEW, b"meanwhile": b"1"}
        assert dict(db) == expected
        assert {key: db.get(key) for key in expected} == expected
        db.put(b"key00020", b"newest")
        assert db.get(b"key00020") == b"newest"
        expected[b"key00020"] = b"newest"
        assert reopened(copied(env)) == expected
    assert reopened(env) == expected


def test_writers_and_readers_continue_during_an_ingest() -> None:
    env = MemoryEnv()
    turns = 12
    paths = [write_table(env, f"/{n}", some(0, 300, b"%d" % n)) for n in range(turns)]
    done = threading.Event()
    with opened(env, write_buffer_size=8 * 1024, max_file_size=8 * 1024) as db:
        db.ingest([paths[0]])

        def write() -> None:
            own = threading.get_ident() % 10_000
            n = 0
            while not done.is_set():
                key = b"own %d %d" % (own, n % 50)
                db.put(key, b"%d" % n)
                assert db.get(key) == b"%d" % n
                n += 1

        def read() -> None:
            newest = 0
            while not done.is_set():
                first, *rest = db.multi_get([b"key%05d" % n for n in (0, 77, 150, 299)])
                assert first is not None
                turn = int(first.split()[0])
                assert all(int((value or b"-1").split()[0]) == turn for value in rest)
                assert turn >= newest
                newest = turn
                turns_seen = {value.split()[0] for _, value in db.iterator(prefix=b"key")}
                assert len(turns_seen) == 1

        threads = [background_of(work) for work in (write, write, read, read)]
        for path in paths[1:]:
            db.ingest([path])
        done.set()
        for thread, errors in threads:
            thread.join()
            assert errors == []
        db.check()
        expected = dict(db)
    assert {k: v for k, v in expected.items() if k.startswith(b"key")} == some(
        0, 300, b"%d" % (turns - 1)
    )
    assert reopened(env) == expected


def test_many_ingests_at_once() -> None:
    env = MemoryEnv()
    paths = [write_table(env, f"/{n}", some(n * 10, n * 10 + 100, b"%d" % n)) for n in range(6)]
    with opened(env, **TINY) as db:
        assert run_threads(*[partial(db.ingest, [path]) for path in paths]) == []
        found = dict(db)
        assert found.keys() == some(0, 150).keys()
        for key, value in found.items():
            assert value in [some(0, 200, b"%d" % n)[key] for n in range(6)]
        db.check()
    assert reopened(env) == found


# Kills, power cuts, failing calls


def base_store() -> FaultyEnv:
    """A store with tables on three levels and writes in the log, and two files to ingest."""
    env = FaultyEnv()
    with opened(env, **TINY) as db:
        for n in range(3):
            fill(db, some(0, 20, b"%d" % n))
            db.flush()
        fill(db, some(15, 25, b"log"))
    write_table(env, "/a.ldb", some(5, 18, b"a"), block_size=128)
    write_table(env, "/b.ldb", some(10, 30, b"b"), block_size=128)
    return env.kill()


BASE = {**some(0, 20, b"2"), **some(15, 25, b"log")}
STATES = [
    BASE,
    {**BASE, b"before": b"1"},
    {**BASE, b"before": b"1", **some(5, 18, b"a"), **some(10, 30, b"b")},
    {**BASE, b"before": b"1", **some(5, 18, b"a"), **some(10, 30, b"b"), b"key00012": b"after"},
]


class Stage:
    """How far a run has come in STATES."""

    def __init__(self) -> None:
        self.begun = 0
        self.acknowledged = 0
        self.durable = 0

    def step(self, call: Callable[[], object], durable: bool) -> None:
        self.begun += 1
        call()
        self.acknowledged = self.begun
        if durable:
            self.durable = self.begun


def run_through(env: FaultyEnv, stage: Stage) -> None:
    db = opened(env, **TINY)
    try:
        stage.step(lambda: db.put(b"before", b"1"), False)
        stage.step(lambda: db.ingest(["/a.ldb", "/b.ldb"]), True)
        stage.step(lambda: db.put(b"key00012", b"after"), False)
    finally:
        try:
            db.close()
        except lsmkv.IOError:
            pass


def judge(env: FaultyEnv, least: int, most: int) -> None:
    found = reopened(env, **TINY)
    assert found in STATES[least : most + 1]
    assert reopened(env, **TINY) == found
    # Obsolete files are removed.
    with DB(PATH, env=env, **TINY) as db:
        assert len(names_of(env, FileType.TABLE)) == tables_named(db)


def test_kills_and_power_cuts_at_every_call() -> None:
    base = base_store()
    n = 0
    while True:
        n += 1
        env = base.kill()
        env.fail_at(n, sticky=True, short=n % 2 == 0)
        stage = Stage()
        try:
            run_through(env, stage)
        except lsmkv.IOError:
            pass
        judge(env.kill(), stage.acknowledged, stage.begun)
        for model in NameModel:
            cut = env.power_cut(model, random.Random(n), tails=list(Tails)[n % 4])
            judge(cut, stage.durable, stage.begun)
        if env.failures == 0:
            break
    assert n > 80


@pytest.mark.parametrize("calls", [{"sync"}, {"append", "truncate", "file_size"}])
def test_no_ingest_after_the_log_has_failed(calls: set[str]) -> None:
    """The log may hold an unacknowledged write, which would come back after the ingest."""
    env = FaultyEnv()
    write_table(env, "/new.ldb", NEW)
    db = opened(env)
    env.fail_at(1, short=True, sticky=True, calls=calls)
    with pytest.raises(lsmkv.IOError):
        db.put(b"key00010", b"x" * 100, sync=True)
    env.heal()
    with pytest.raises(lsmkv.IOError, match="reopen the store"):
        db.ingest(["/new.ldb"])
    assert dict(db) == {}
    with pytest.raises(lsmkv.IOError):
        db.close()
    with DB(PATH, env=env) as db:
        db.ingest(["/new.ldb"])
        assert dict(db) == NEW
    assert reopened(env) == NEW


def test_a_killed_process_loses_nothing(tmp_path: pathlib.Path) -> None:
    """The log after an ingest begins with a much higher sequence than the log before it ends."""
    entries = some(0, 3000, b"new")
    write_table(None, tmp_path / "new.ldb", entries)
    program = textwrap.dedent(
        """
        import os, sys
        import lsmkv
        db = lsmkv.DB(sys.argv[1] + "/db", create_if_missing=True)
        for n in range(2000, 4000):
            db.put(b"key%05d" % n, b"old")
        db.ingest([sys.argv[1] + "/new.ldb"])
        for n in range(10):
            db.put(b"after%d" % n, b"1")
        db.delete(b"key00000")
        os._exit(0)
        """
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)
    expected = {b"key%05d" % n: b"old" for n in range(2000, 4000)}
    expected.update(entries)
    expected.update({b"after%d" % n: b"1" for n in range(10)})
    del expected[b"key00000"]
    for engine in ("read only", "leveldb", "lsmkv"):
        directory = str(tmp_path / engine)
        subprocess.run(["cp", "-r", str(tmp_path / "db"), directory], check=True)
        if engine == "leveldb":
            plyvel = pytest.importorskip("plyvel")
            with plyvel.DB(directory, paranoid_checks=True) as theirs:
                assert dict(theirs.iterator(verify_checksums=True)) == expected
        elif engine == "lsmkv":
            with DB(directory, paranoid_checks=True) as db:
                assert dict(db) == expected
        else:
            with DB(directory, paranoid_checks=True, read_only=True) as db:
                assert dict(db) == expected


@pytest.mark.parametrize("written", [0, 1])
@pytest.mark.parametrize("held", [b"", b"memtable"])
def test_a_manifest_without_the_ingest_is_not_intact(written: int, held: bytes) -> None:
    """Losing the last record would silently undo the ingest; a missing log reveals it."""
    env = MemoryEnv()
    path = write_table(env, "/new.ldb", NEW)
    with opened(env) as db:
        fill(db, OLD)
        db.flush()
        if held:
            db.put(held, b"1")
        db.ingest([path])
        for n in range(written):
            db.put(b"after", b"%d" % n)
        copy = copied(env)
    (name,) = names_of(copy, FileType.MANIFEST)
    with copy.open_directory(PATH) as directory:
        with directory.open(name) as file:
            data = file.read(0, file.size)
        directory.remove(name)
        with directory.create(name) as file:
            file.append(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(lsmkv.CorruptionError):
        DB(PATH, env=copy)


class Interrupted(BaseException):
    """Raised by the signal handler, as KeyboardInterrupt is."""


@pytest.mark.usefixtures("signals_are_heard")
def test_ctrl_c_at_any_moment() -> None:
    env = MemoryEnv()
    turns = 120
    rng = random.Random(3)
    paths = [write_table(env, f"/{n}", some(0, 60, b"%d" % n)) for n in range(turns)]

    def strike(_number: int, _frame: FrameType | None) -> None:
        raise Interrupted

    old = signal.signal(signal.SIGALRM, strike)
    outcomes = set()
    try:
        with opened(env, write_buffer_size=4096, max_file_size=2048) as db:
            # As long as the last one that nothing interrupted: a machine that stalls in one of
            # them misleads the next strike, not all that follow.
            started = time.perf_counter()
            db.ingest([paths[0]])
            usual = time.perf_counter() - started
            shown = 0
            for turn in range(1, turns):
                db.put(b"between", b"%d" % turn)
                interrupted = False
                started = time.perf_counter()
                try:
                    try:
                        signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.0001, 3 * usual))
                        db.ingest([paths[turn]])
                    finally:
                        signal.setitimer(signal.ITIMER_REAL, 0)
                    usual = time.perf_counter() - started
                except Interrupted:
                    interrupted = True
                    usual *= 1.1
                db.put(b"settles", b"")
                turns_seen = {int(value.split()[0]) for _, value in db.iterator(prefix=b"key")}
                assert turns_seen in ({shown}, {turn})
                assert interrupted or turns_seen == {turn}
                outcomes.add((interrupted, turns_seen == {turn}))
                (shown,) = turns_seen
                assert db.get(b"between") == b"%d" % turn
            db.check()
            expected = dict(db)
            assert reopened(copied(env)) == expected
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert {(True, False), (False, True)} <= outcomes
    assert reopened(env) == expected


# Files that are none


def hostile_files(env: MemoryEnv) -> dict[str, type[Exception]]:
    """Write files under ``/``; return the error that each must raise."""
    write_table(env, "/sound", NEW, block_size=256)
    with env.open_directory("/") as directory:
        with directory.open("sound") as file:
            data = file.read(0, file.size)
        for name, content in {
            "nothing": b"",
            "text": b"a,b,c\n" * 100,
            "zeros": bytes(5000),
            "truncated": data[:-1],
            "half": data[: len(data) // 2],
            "headless": data[100:],
            "flipped": data[:50] + bytes([data[50] ^ 4]) + data[51:],
        }.items():
            with directory.create(name) as made:
                made.append(content)
    backwards = lsmkv.ReverseBytewiseComparator()
    with TableWriter("/backwards", env=env, comparator=backwards) as table:
        for key in sorted(NEW, reverse=True):
            table.add(key, b"")
    plain_table(env, "plain", [(b"longer than a tag", b"1"), (b"much longer than a tag", b"2")])
    plain_table(env, "deletion", [(b"a" + bytes(8), b"")])
    plain_table(env, "kind", [(b"a" + b"\x02" + bytes(7), b"")])
    plain = b"\x01" + bytes(7)
    inside = [(b"a" + plain, b""), (b"b\x01\x07" + bytes(6), b""), (b"c" + plain, b"")]
    plain_table(env, "inside", inside)
    plain_table(env, "sequence", [(b"a" + b"\x01" + bytes(7), b""), (b"b\x01\x07" + bytes(6), b"")])
    return {
        **dict.fromkeys(
            ["nothing", "text", "zeros", "truncated", "half", "headless", "flipped", "backwards"],
            lsmkv.CorruptionError,
        ),
        **dict.fromkeys(["plain", "deletion", "kind", "inside", "sequence"], ValueError),
        "missing": lsmkv.IOError,
        "missing/file": lsmkv.IOError,
        "db": lsmkv.IOError,
    }


def plain_table(env: MemoryEnv, name: str, entries: list[tuple[bytes, bytes]]) -> None:
    """A table with any keys."""
    with env.open_directory("/") as directory, directory.create(name) as file:
        builder = TableBuilder(Options(), file)
        for key, value in entries:
            builder.add(key, value)
        builder.finish()


def test_files_that_cannot_be_ingested() -> None:
    env = MemoryEnv()
    with opened(env) as db:
        fill(db, OLD)
        for name, error in hostile_files(env).items():
            for files in ([f"/{name}"], ["/sound", f"/{name}"], [f"/{name}", "/sound"]):
                with pytest.raises(error) as caught:
                    db.ingest(files)
                assert name.split("/")[0] in str(caught.value)
                if error is ValueError:
                    assert "not made by TableWriter" in str(caught.value)
                assert dict(db) == OLD
                assert len(names_of(env, FileType.TABLE)) == tables_named(db)
        db.ingest(["/sound"])
        assert dict(db) == {**OLD, **NEW}


def test_every_byte_flipped() -> None:
    env = MemoryEnv()
    write_table(env, "/sound", some(0, 12), block_size=128)
    with env.open_directory("/") as directory:
        with directory.open("sound") as file:
            data = file.read(0, file.size)
        harmless = 0
        with opened(env) as db:
            for at in range(len(data)):
                name = f"flipped{at}"
                with directory.create(name) as made:
                    made.append(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])
                try:
                    db.ingest([f"/{name}"])
                except lsmkv.CorruptionError as error:
                    assert name in str(error)  # noqa: PT017
                    assert dict(db) in ({}, some(0, 12))
                else:  # padding in the footer
                    harmless += 1
                    assert dict(db) == some(0, 12)
    assert harmless < 45


def test_unusual_files_and_tables_of_a_store(tmp_path: pathlib.Path) -> None:
    write_table(None, tmp_path / "new.ldb", NEW)
    (tmp_path / "link").symlink_to("new.ldb")
    os.mkfifo(tmp_path / "fifo")
    with DB(tmp_path / "db", create_if_missing=True) as db:
        fill(db, OLD)
        db.flush()
        for name in ("link", "fifo", "", "db"):
            with pytest.raises((lsmkv.IOError, ValueError)):
                db.ingest([tmp_path / name if name else f"{tmp_path}/"])
        for own in (tmp_path / "db").iterdir():
            with pytest.raises((lsmkv.CorruptionError, ValueError)):
                db.ingest([own])
        assert dict(db) == OLD
        db.ingest([tmp_path / "new.ldb"])
        assert dict(db) == {**OLD, **NEW}


def test_a_file_that_changes_meanwhile() -> None:
    """The file is examined at its ends first, and changed before it is read."""
    env = MemoryEnv()
    paths = [write_table(env, f"/{n}", some(n * 100, n * 100 + 100)) for n in range(2)]
    with opened(env) as db:

        def progress(_done: int, _total: int, what: str) -> None:
            with env.open_directory("/") as directory:
                if directory.exists("other"):
                    directory.rename("other", "1")

        write_table(env, "/other", some(50, 60))
        with pytest.raises(lsmkv.CorruptionError, match="modified during the ingest"):
            db.ingest(paths, progress=progress)
        assert dict(db) == {}


# The call


def test_wrong_arguments(tmp_path: pathlib.Path) -> None:
    with DB(":memory:") as db:
        for one in ("new.ldb", b"new.ldb", tmp_path / "new.ldb"):
            with pytest.raises(TypeError, match="into a list"):
                db.ingest(one)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            db.ingest([1])  # type: ignore[list-item]
        with pytest.raises(TypeError):
            db.ingest(None)  # type: ignore[arg-type]


def test_a_store_in_memory_ingests_files_on_disk(tmp_path: pathlib.Path) -> None:
    write_table(None, tmp_path / "new.ldb", NEW)
    with DB(":memory:") as db:
        db.ingest([tmp_path / "new.ldb"])
        assert dict(db) == NEW


def test_read_only_and_closed(tmp_path: pathlib.Path) -> None:
    write_table(None, tmp_path / "new.ldb", NEW)
    with DB(tmp_path / "db", create_if_missing=True):
        pass
    with (
        DB(tmp_path / "db", read_only=True) as db,
        pytest.raises(lsmkv.ReadOnlyError),
    ):
        db.ingest([tmp_path / "new.ldb"])
    with pytest.raises(lsmkv.ClosedError):
        db.ingest([tmp_path / "new.ldb"])


def test_progress_in_bytes() -> None:
    env = MemoryEnv()
    paths = [write_table(env, f"/{n}", some(n * 1000, n * 1000 + 500)) for n in range(3)]
    with env.open_directory("/") as directory:
        total = sum(directory.size(path[1:]) for path in paths)
    with opened(env) as db:
        seen: list[tuple[int, int, str]] = []
        db.ingest(paths, progress=lambda *step: seen.append(step))
    assert {step[1] for step in seen} == {total}
    assert [step[0] for step in seen] == sorted({step[0] for step in seen})
    assert [step[2] for step in seen] == ["tables"] * (len(seen) - 1) + ["publishing"]
    assert len(seen) >= 4
    assert seen[-1][0] == total


@pytest.mark.parametrize("phase", ["tables", "publishing"])
def test_an_exception_in_the_callback_ends_the_ingest(phase: str) -> None:
    env = MemoryEnv()
    path = write_table(env, "/new.ldb", NEW)
    with opened(env) as db:

        def progress(_done: int, _total: int, what: str) -> None:
            if what == phase:
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            db.ingest([path], progress=progress)
        assert dict(db) == {}
        assert names_of(env, FileType.TABLE) == []
        db.ingest([path])
        assert dict(db) == NEW


@pytest.mark.parametrize("phase", ["tables", "publishing"])
def test_an_ingest_whose_callback_closes_the_store(phase: str) -> None:
    env = MemoryEnv()
    path = write_table(env, "/new.ldb", NEW)
    db = opened(env)

    def progress(_done: int, _total: int, what: str) -> None:
        if what == phase:
            db.close()

    with pytest.raises(lsmkv.ClosedError):
        db.ingest([path], progress=progress)
    assert reopened(env) == {}
    assert names_of(env, FileType.TABLE) == []


def test_an_ingest_while_another_thread_closes_the_store() -> None:
    """Closing waits for the ingest, so nothing is written to a released directory."""
    env = HookedEnv()
    path = write_table(env, "/new.ldb", large(0, 500))
    db = opened(env, max_file_size=1024)
    made: list[str] = []
    env.before = lambda call, about: made.append(about) if call == "create" else None
    begun, closing = threading.Event(), threading.Event()

    def progress(_done: int, _total: int, _what: str) -> None:
        begun.set()
        closing.wait(30)

    thread, outcome = background_of(lambda: db.ingest([path], progress=progress))
    assert begun.wait(30)
    closer = threading.Thread(target=db.close)
    closer.start()
    while not db._opened.store.closing:
        threading.Event().wait(0.001)
    closing.set()
    closer.join()
    assert names_of(env, FileType.TABLE) == []
    assert len(made) < 5  # it did not go on to the end
    thread.join()
    assert [type(error) for error in outcome] == [lsmkv.ClosedError]
    assert reopened(env) == {}


# Beside each other, beside compactions, beside forks


def test_two_ingests_whose_callbacks_close_the_store() -> None:
    """Each close would wait for the other's ingest."""
    env = MemoryEnv()
    path = write_table(env, "/new.ldb", NEW)
    db = opened(env)
    both = threading.Barrier(2)

    def progress(_done: int, _total: int, what: str) -> None:
        if what == "tables":
            both.wait(30)
            db.close()

    threads = [background_of(lambda: db.ingest([path], progress=progress)) for _ in range(2)]
    for thread, errors in threads:
        thread.join(20)
        assert [type(error) for error in errors] == [lsmkv.ClosedError]
    assert db.closed
    assert reopened(env) == {}
    assert names_of(env, FileType.TABLE) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("late", [False, True])
def test_a_child_forked_by_the_callback_writes_nothing(tmp_path: pathlib.Path, late: bool) -> None:
    """The child shares the unfinished table with its parent, and would write into it."""
    entries = large(0, 10 if late else 20_000)  # one block is read last of all, too
    write_table(None, tmp_path / "new.ldb", entries)
    program = textwrap.dedent(
        """
        import os, sys
        import lsmkv
        db = lsmkv.DB(sys.argv[1] + "/db", create_if_missing=True, max_file_size=1 << 28)
        children = []
        late = int(sys.argv[2])
        def progress(done, total, what):
            if what == "tables" and (late or not children):
                children.append(os.fork())
                if children[-1]:
                    assert os.waitpid(children[-1], 0)[1] == 0
        try:
            db.ingest([sys.argv[1] + "/new.ldb"], progress=progress)
            assert children and all(children)
        except lsmkv.ForkedError:
            assert children[-1] == 0
            os._exit(0)
        assert len(dict(db)) == (10 if late else 20_000)
        """
    )
    arguments = [sys.executable, "-W", "ignore", "-c", program, str(tmp_path), str(int(late))]
    subprocess.run(arguments, check=True)
    with DB(tmp_path / "db", paranoid_checks=True) as db:
        db.check()
        assert dict(db) == entries


def test_a_compaction_of_other_keys_does_not_force_level_0() -> None:
    """Every table on level 0 costs each Get a lookup, and a dozen stall all writers."""
    env = HookedEnv()
    path = write_table(env, "/new.ldb", {b"z" + key: value for key, value in large(0, 200).items()})
    with opened(env, max_file_size=2048, block_size=256, write_buffer_size=4096) as db:
        for _ in range(2):
            fill(db, large(0, 100))
            db.flush()
        compacting, published = threading.Event(), threading.Event()
        main = threading.get_ident()

        def before(call: str, about: str) -> None:
            if threading.get_ident() != main and call == "append" and about.endswith(".ldb"):
                compacting.set()
                published.wait(0.05)

        def progress(_done: int, _total: int, what: str) -> None:
            if what == "publishing":
                env.before = before
                compaction.start()
                assert compacting.wait(30)

        compaction = threading.Thread(target=db.compact_range)
        db.ingest([path], progress=progress)
        published.set()
        env.before = ignore
        after = levels(db)
        compaction.join()
        assert after[0] <= 2
        assert sum(after[1:]) >= 12
        db.check()
        assert len(dict(db)) == 300


def test_ingests_of_one_size_make_no_table_twice() -> None:
    """The ingest that begins first ends first, and has the lower sequence."""
    env = HookedEnv()
    paths = [write_table(env, f"/{n}", some(0, 40, b"%d" % n), compression=None) for n in range(2)]
    with env.open_directory("/") as directory:
        assert directory.size("0") == directory.size("1")
    with opened(env) as db:
        begun, may_end = threading.Event(), threading.Event()
        created: list[str] = []

        def wait(_done: int, _total: int, what: str) -> None:
            if what == "publishing":
                begun.set()
                may_end.wait(30)

        def before(call: str, about: str) -> None:
            if call == "create" and about.endswith(".ldb"):
                created.append(about)

        second = threading.Thread(target=lambda: db.ingest([paths[1]], progress=wait))

        def begin_the_second(_done: int, _total: int, what: str) -> None:
            if what == "publishing":
                second.start()
                assert begun.wait(30)

        env.before = before
        db.ingest([paths[0]], progress=begin_the_second)
        assert dict(db) == some(0, 40, b"0")
        may_end.set()
        second.join()
        env.before = ignore
        assert dict(db) == some(0, 40, b"1")
        assert len(created) == 2


def test_files_left_by_a_second_ctrl_c_are_removed_by_the_next_commit() -> None:
    env = HookedEnv()
    path = write_table(env, "/new.ldb", large(0, 100))
    with opened(env, max_file_size=2048) as db:

        def before(call: str, about: str) -> None:
            if call == "remove" and about.endswith(".ldb"):
                raise Interrupted

        def progress(_done: int, _total: int, what: str) -> None:
            if what == "publishing":
                env.before = before
                raise Interrupted

        with pytest.raises(Interrupted):
            db.ingest([path], progress=progress)
        env.before = ignore
        assert len(names_of(env, FileType.TABLE)) > 3
        db.put(b"a", b"1")
        db.flush()
        assert len(names_of(env, FileType.TABLE)) == tables_named(db) == 1
        db.ingest([path])
        assert dict(db) == {**large(0, 100), b"a": b"1"}


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="descriptors cannot be counted")
def test_no_descriptor_is_left_open(tmp_path: pathlib.Path) -> None:
    good = write_table(None, tmp_path / "good.ldb", large(0, 400))
    data = pathlib.Path(good).read_bytes()
    flipped = tmp_path / "flipped.ldb"
    flipped.write_bytes(data[:30_000] + bytes([data[30_000] ^ 1]) + data[30_001:])
    with DB(tmp_path / "db", create_if_missing=True, max_file_size=4096) as db:

        def give_up(_done: int, _total: int, _what: str) -> None:
            raise ZeroDivisionError

        before = sorted(os.listdir("/proc/self/fd"))
        for _ in range(3):
            with pytest.raises(lsmkv.CorruptionError):
                db.ingest([good, flipped])
            with pytest.raises(ZeroDivisionError):
                db.ingest([good], progress=give_up)
            with pytest.raises(lsmkv.IOError):
                db.ingest([good, tmp_path / "missing"])
        assert sorted(os.listdir("/proc/self/fd")) == before
        assert [name for name in os.listdir(tmp_path / "db") if name.endswith(".ldb")] == []
        assert len([name for name in os.listdir(tmp_path / "db") if name.endswith(".log")]) == 1

"""Random programs with ingests against a dict, with kills, power cuts, failures, threads."""

from __future__ import annotations

import pathlib
import random
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import lsmkv
from lsmkv import DB, TableWriter, WriteBatch
from lsmkv.env.durable import NameModel, Tails
from lsmkv.env.faulty import FaultyEnv
from lsmkv.env.memory import MemoryEnv

pytestmark = pytest.mark.usefixtures("quiet")

TINY: dict[str, Any] = {"write_buffer_size": 1024, "max_file_size": 1024, "block_size": 128}
KEYS = 120
State = dict[bytes, bytes]


def key_of(n: int) -> bytes:
    return b"%03d" % n


def table(env: Any, path: str, entries: State) -> str:
    with TableWriter(path, env=env, block_size=64) as writer:
        for key in sorted(entries):
            writer.add(key, entries[key])
    return path


def found_in(env: Any, path: str = "/db", **options: Any) -> State:
    with DB(path, env=env, **{**TINY, **options}) as db:
        db.check()
        entries = dict(db)
        assert {key: db.get(key) for key in entries} == entries
        return entries


class Program:
    """Random operations on a store, and its expected contents after each."""

    def __init__(self, seed: int, env: Any, root: str = "") -> None:
        self.rng = random.Random(seed)
        self.env = env
        self.root = root
        self.made = 0
        self.meanwhile: set[bytes] = set()
        """Keys that were written while the last ingest was made."""
        self.state: State = {}
        self.states: list[State] = [{}]
        self.durable = 0
        """Which of the states a power cut leaves, or a later one."""
        self.held: list[tuple[lsmkv.Snapshot, State]] = []
        self.iterators: list[tuple[lsmkv.Iterator, list[tuple[bytes, bytes]]]] = []
        self.db = self.opened()

    def opened(self) -> DB:
        rng = self.rng
        return DB(
            f"{self.root}/db",
            create_if_missing=True,
            env=self.env,
            paranoid_checks=rng.random() < 0.5,
            reuse_logs=rng.random() < 0.5,
            **TINY,
        )

    def value(self) -> bytes:
        self.made += 1
        return b"%d " % self.made * self.rng.randrange(25)

    def step(self) -> None:
        """Run one operation; an exception leaves ``state`` unchanged and ``after`` set."""
        rng = self.rng
        kind = rng.choices(
            ["write", "batch", "transaction", "ingest", "flush", "compact", "sync"],
            [30, 10, 5, 12, 4, 3, 3],
        )[0]
        self.after = dict(self.state)
        changed = getattr(self, kind)()
        if self.after != self.state:
            self.state = self.after
            self.states.append(self.after)
        if kind == "sync" or (kind == "ingest" and changed):
            self.durable = len(self.states) - 1

    def change(self) -> tuple[bytes, bytes | None]:
        key = key_of(self.rng.randrange(KEYS))
        value = None if self.rng.random() < 0.3 else self.value()
        if value is None:
            self.after.pop(key, None)
        else:
            self.after[key] = value
        return key, value

    def write(self) -> bytes:
        key, value = self.change()
        if value is None:
            self.db.delete(key)
        else:
            self.db.put(key, value)
        return key

    def batch(self) -> None:
        batch = WriteBatch()
        for _ in range(self.rng.randrange(12)):
            key, value = self.change()
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        self.db.write(batch)

    def transaction(self) -> None:
        """Run a transaction, perhaps with an ingest meanwhile, which may write one of its keys."""
        rng = self.rng
        read = key_of(rng.randrange(KEYS))
        transaction = self.db.transaction()
        try:
            assert transaction.get(read) == self.state.get(read)
            transaction.put(b"transaction", value := self.value())
            if rng.random() < 0.5:
                part = self.ingest()
                if read in part or read in self.meanwhile:
                    with pytest.raises(lsmkv.ConflictError):
                        transaction.commit()
                    return
            self.state = self.after  # the ingest is acknowledged
            self.states.append(dict(self.after))
            self.after = {**self.after, b"transaction": value}
            transaction.commit()
        finally:
            transaction.rollback()

    def ingest(self) -> State:
        rng = self.rng
        paths: list[str] = []
        merged: State = {}
        for _ in range(rng.randrange(1, 4)):
            low = rng.randrange(KEYS)
            chosen = range(low, rng.randrange(low, KEYS), rng.choice((1, 2, 30)))
            part = {key_of(n): self.value() for n in chosen}
            self.made += 1
            paths.append(table(self.env, f"{self.root}/{self.made}.ldb", part))
            merged.update(part)
        self.meanwhile.clear()
        self.after = {**self.state, **merged}

        def progress(_done: int, _total: int, _what: str) -> None:
            """Make writes that are older than the ingest."""
            if rng.random() < 0.3:
                self.after = dict(self.state)
                self.meanwhile.add(self.write())
                self.state = self.after
                self.states.append(self.after)
                self.after = {**self.state, **merged}

        self.db.ingest(paths, progress=progress)
        return merged

    def flush(self) -> None:
        self.db.flush()

    def compact(self) -> None:
        low, high = sorted(key_of(self.rng.randrange(KEYS)) for _ in range(2))
        self.db.compact_range(
            *self.rng.choice([(None, None), (low, high), (low, None), (None, high)])
        )

    def sync(self) -> None:
        self.db.sync()

    def look(self) -> None:
        """Check earlier snapshots and iterators, and the present store."""
        rng = self.rng
        if rng.random() < 0.1 and len(self.held) < 4:
            self.held.append((self.db.snapshot(), dict(self.state)))
        if rng.random() < 0.1 and len(self.iterators) < 4:
            reverse = rng.random() < 0.5
            entries = sorted(self.state.items(), reverse=reverse)
            self.iterators.append((self.db.iterator(reverse=reverse), entries))
        for iterator, entries in self.iterators:
            for _ in range(rng.randrange(4)):
                assert next(iterator, None) == (entries.pop(0) if entries else None)
        key = key_of(rng.randrange(KEYS))
        assert self.db.get(key) == self.state.get(key)
        if rng.random() < 0.1:
            assert dict(self.db) == self.state
            assert dict(self.db.iterator(reverse=True)) == self.state
            for snapshot, state in self.held:
                assert dict(snapshot) == state
                assert snapshot.get(key) == state.get(key)
        if rng.random() < 0.05:
            self.let_go()

    def let_go(self) -> None:
        for held, _ in (*self.held, *self.iterators):
            held.close()
        self.held.clear()
        self.iterators.clear()

    def reopen(self) -> None:
        self.let_go()
        self.db.close()
        self.durable = len(self.states) - 1
        self.db = self.opened()
        assert dict(self.db) == self.state

    def end(self) -> None:
        self.let_go()
        self.db.check()
        self.db.close()
        assert found_in(self.env, f"{self.root}/db") == self.state


@pytest.mark.parametrize("seed", range(12))
def test_killed_at_any_time(seed: int) -> None:
    """Every way of opening shows the same contents, twice, and the program continues."""
    program = Program(seed, FaultyEnv())
    rng = program.rng
    for _ in range(120):
        program.step()
        program.look()
        if rng.random() < 0.1:
            kinds = [{"paranoid_checks": True}, {"reuse_logs": True}, {"read_only": True}, {}]
            killed = program.env.kill()
            for options in rng.sample(kinds, 2):
                assert found_in(killed, **options) == program.state
        if rng.random() < 0.03:
            program.reopen()
        elif rng.random() < 0.03:  # the killed one goes on, the other is forgotten
            program.let_go()
            program.env, forgotten = program.env.kill(), program.db
            program.db = program.opened()
            assert dict(program.db) == program.state
            forgotten.close()
    program.end()


@pytest.mark.parametrize("seed", range(12))
def test_power_cuts_at_any_time(seed: int) -> None:
    """The contents are those of some moment at or after the last ingest."""
    program = Program(100 + seed, FaultyEnv())
    rng = program.rng
    for _ in range(100):
        program.step()
        if rng.random() < 0.2:
            names = rng.choice(list(NameModel))
            tails = rng.choice(list(Tails))
            cut = program.env.power_cut(names, rng, tails=tails)
            try:
                found = found_in(cut, paranoid_checks=rng.random() < 0.5)
            except (lsmkv.CorruptionError, lsmkv.RecoveryWarning):
                # A hole with writes behind it: paranoid checks refuse it, others warn.
                assert tails is Tails.HOLES
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", lsmkv.RecoveryWarning)
                    found = found_in(cut)
            assert found in program.states[program.durable :]
            assert found_in(cut, read_only=True) == found
            if rng.random() < 0.2:
                program.let_go()
                program.db.close()
                program.env = cut
                program.db = program.opened()
                program.state = found
                program.states = [found]
                program.durable = 0
    program.end()


@pytest.mark.parametrize("seed", range(30))
def test_failing_calls(seed: int) -> None:
    """A failed operation is done or not done, alike in the open store and the next."""
    program = Program(200 + seed, FaultyEnv())
    rng = program.rng
    failures = 0
    for _ in range(120):
        if rng.random() < 0.2:
            program.env.fail_at(
                rng.randrange(1, 60), sticky=rng.random() < 0.3, short=rng.random() < 0.5
            )
        try:
            program.step()
            program.env.heal()
            program.look()
        except lsmkv.IOError:
            failures += 1
            program.env.heal()
            allowed = [program.state, program.after]
            assert dict(program.db) in allowed
            assert found_in(program.env.kill()) in allowed
            program.let_go()
            try:
                program.db.close()
            except lsmkv.IOError:
                pass
            program.db = program.opened()
            program.state = dict(program.db)
            assert program.state in allowed
    program.end()
    assert failures > 0


@pytest.mark.parametrize("seed", range(3))
def test_leveldb_and_lsmkv_in_turn(seed: int, tmp_path: pathlib.Path) -> None:
    plyvel = pytest.importorskip("plyvel")
    program = Program(300 + seed, None, str(tmp_path))
    rng = program.rng
    for _ in range(6):
        for _ in range(15):
            program.step()
            program.look()
        program.let_go()
        program.db.close()
        with plyvel.DB(f"{tmp_path}/db", paranoid_checks=True, write_buffer_size=65536) as theirs:
            assert dict(theirs.iterator(verify_checksums=True)) == program.state
            assert all(theirs.get(key) == program.state[key] for key in program.state)
            for _ in range(20):
                program.after = program.state
                key, value = program.change()
                if value is None:
                    theirs.delete(key)
                else:
                    theirs.put(key, value)
            if rng.random() < 0.5:
                theirs.compact_range()
            assert dict(theirs) == program.state
        program.db = program.opened()
        program.states = [program.state]
        program.durable = 0
        assert dict(program.db) == program.state
    program.end()


# Threads


class Crowd:
    """Threads that use one store at once; what each may see is known.

    Ingest ``n`` of a thread writes that number to all keys of the thread's range.  A thread's
    ingests follow each other, so the number only rises, and all keys have the same one.
    """

    def __init__(self, env: MemoryEnv) -> None:
        self.env = env
        self.db = DB("/db", create_if_missing=True, env=env, **TINY)
        self.done = threading.Event()
        self.errors: list[BaseException] = []
        self.acknowledged = [0, 0, 0]
        self.counter = 0

    def ingest(self, thread: int, turns: int) -> None:
        for n in range(1, turns + 1):
            part = {b"%d %02d" % (thread, at): b"%d" % n for at in range(30)}
            path = table(self.env, f"/{thread}-{n}", part)
            self.db.ingest([path])
            self.acknowledged[thread] = n
            assert self.db.get(b"%d 07" % thread) == b"%d" % n

    def write(self) -> None:
        n = 0
        while not self.done.is_set():
            n += 1
            self.db.put(b"own", b"%d" % n, sync=n % 7 == 0)
            assert self.db.get(b"own") == b"%d" % n

    def count(self) -> None:
        while not self.done.is_set():
            try:
                with self.db.transaction() as transaction:
                    counted = int(transaction.get(b"counter") or 0)
                    transaction.put(b"counter", b"%d" % (counted + 1))
                self.counter += 1
            except lsmkv.ConflictError:
                pass

    def judge(self, entries: State, least: list[int]) -> list[int]:
        seen: list[int] = []
        for thread in range(3):
            values = {
                int(value) for key, value in entries.items() if key.startswith(b"%d " % thread)
            }
            assert len(values) <= 1
            seen += values or {0}
            assert seen[-1] >= least[thread]
        return seen

    def read(self) -> None:
        newest = [0, 0, 0]
        while not self.done.is_set():
            newest = [max(pair) for pair in zip(newest, self.acknowledged, strict=True)]
            with self.db.snapshot() as snapshot:
                seen = self.judge(dict(snapshot), newest)
                self.judge(dict(self.db.iterator(reverse=True)), seen)
                assert self.judge(dict(snapshot.iterator(reverse=True)), newest) == seen
            newest = seen

    def copy(self) -> None:
        for n in range(4):
            least = list(self.acknowledged)
            self.db.checkpoint(f"/copy{n}")
            self.judge(found_in(self.env, f"/copy{n}", paranoid_checks=True), least)
            with DB("/db", env=self.env, read_only=True) as view:
                self.judge(dict(view), least)

    def tidy(self) -> None:
        while not self.done.is_set():
            self.db.compact_range(b"0", b"2", progress=lambda *_: None)
            self.db.flush()

    def run(self, works: list[Callable[[], None]], until: int) -> None:
        """Run all threads; wait until the first ``until`` of them end by themselves."""

        def guarded(work: Callable[[], None]) -> None:
            try:
                work()
            except BaseException as error:
                self.errors.append(error)
                self.done.set()

        threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads[:until]:
            thread.join()
        self.done.set()
        for thread in threads:
            thread.join()


@pytest.mark.usefixtures("quick_switches")
def test_all_operations_at_once() -> None:
    env = MemoryEnv()
    crowd = Crowd(env)
    ingests = [lambda at=at: crowd.ingest(at, 12) for at in range(3)]
    crowd.run(
        [*ingests, crowd.copy, crowd.write, crowd.count, crowd.read, crowd.read, crowd.tidy], 4
    )
    assert crowd.errors == []
    db = crowd.db
    assert crowd.judge(dict(db), [12] * 3) == [12] * 3
    assert int(db.get(b"counter") or 0) == crowd.counter
    db.check()
    expected = dict(db)
    db.close()
    assert found_in(env, paranoid_checks=True) == expected
    # Nothing is left lying about.
    with env.open_directory("/db") as directory, DB("/db", env=env) as db:
        tables = [name for name in directory.names() if name.endswith(".ldb")]
        assert len(tables) == len(db.tables())


@pytest.mark.usefixtures("quick_switches")
@pytest.mark.parametrize("delay", [0.001, 0.01, 0.03, 0.06])
def test_closed_during_all_operations(delay: float) -> None:
    """Every thread gets ClosedError and no other error; acknowledged writes are kept."""
    env = MemoryEnv()
    crowd = Crowd(env)

    def close() -> None:
        threading.Event().wait(delay)
        crowd.db.close()

    ingests = [lambda at=at: crowd.ingest(at, 10**6) for at in range(3)]
    crowd.run([close, *ingests, crowd.write, crowd.count, crowd.read, crowd.tidy], 1)
    assert {type(error) for error in crowd.errors} <= {lsmkv.ClosedError}
    found = found_in(env, paranoid_checks=True)
    seen = crowd.judge(found, crowd.acknowledged)
    assert all(
        n <= acknowledged + 1 for n, acknowledged in zip(seen, crowd.acknowledged, strict=True)
    )
    assert int(found.get(b"counter", b"0")) in (crowd.counter, crowd.counter + 1)

"""``refresh`` of a read-only store reads what is new, and shows what a fresh open shows."""

from __future__ import annotations

import os
import pathlib
import random
from typing import Any

import pytest
from crashed_stores import TORN, fresh, logs_of, record
from numbered import PATH
from refreshed import check_equals_fresh

import lsmkv
from lsmkv import DB, MemoryEnv
from lsmkv.engine.env.base import Env
from lsmkv.engine.format.log import BLOCK_SIZE
from lsmkv.testing.faulty import FaultyEnv

TINY: dict[str, Any] = {
    "write_buffer_size": 4096,
    "max_file_size": 2048,
    "block_size": 256,
    "background": "thread",
}


class Writing:
    """A writer that does something at random, and the state that it leaves."""

    def __init__(self, rng: random.Random, path: str, env: Env | None, mapped: bool) -> None:
        self.rng = rng
        self.path = path
        self.options: dict[str, Any] = {"env": env, "mapped_log": mapped, **TINY}
        self.db = DB(path, create_if_missing=True, **self.options)
        self.keys = [b"key%03d" % n for n in range(60)]
        self.state: dict[bytes, bytes] = {}

    def put(self) -> None:
        for _ in range(self.rng.choice((1, 1, 5, 40))):
            key = self.rng.choice(self.keys)
            self.state[key] = self.rng.randbytes(self.rng.choice((3, 30, 200)))
            self.db.put(key, self.state[key])

    def delete(self) -> None:
        key = self.rng.choice(self.keys)
        self.state.pop(key, None)
        self.db.delete(key)

    def write(self) -> None:
        with self.db.write_batch() as batch:
            for key in self.rng.sample(self.keys, 5):
                self.state[key] = self.rng.randbytes(20)
                batch.put(key, self.state[key])

    def put_large(self) -> None:
        self.state[b"large"] = self.rng.randbytes(2 * BLOCK_SIZE)
        self.db.put(b"large", self.state[b"large"])

    def flush(self) -> None:
        self.db.flush()

    def compact(self) -> None:
        self.db.compact_range()

    def reopen(self) -> None:
        self.db.close()
        self.db = DB(self.path, reuse_logs=self.rng.random() < 0.5, **self.options)

    def nothing(self) -> None:
        """No write, but a refresh all the same."""

    def step(self) -> None:
        names = (
            ["put"] * 12 + ["delete", "write"] * 2 + ["put_large", "flush", "compact", "nothing"]
        )
        getattr(self, self.rng.choice([*names, "reopen"]))()


@pytest.fixture(params=["memory", "mapped memory", "files", "mapped files"])
def place(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> tuple[str, Env | None, bool]:
    """A path, the env that it is in, and whether logs are mapped there."""
    mapped = "mapped" in request.param
    if "memory" in request.param:
        return "/db", MemoryEnv(mapped_logs=mapped), mapped
    return str(tmp_path / "db"), None, mapped


@pytest.mark.parametrize("seed", range(3))
def test_a_refreshed_view_equals_a_fresh_one(
    place: tuple[str, Env | None, bool], seed: int
) -> None:
    path, env, mapped = place
    writing = Writing(random.Random(seed), path, env, mapped)
    view = DB(path, read_only=True, env=env)
    kept: list[tuple[lsmkv.Snapshot, dict[bytes, bytes]]] = []
    with view:
        for _ in range(40):
            for _ in range(writing.rng.choice((0, 1, 1, 3))):
                writing.step()
            view.refresh()
            assert dict(view) == writing.state
            if writing.rng.random() < 0.3:
                check_equals_fresh(view, path, env, [*writing.keys, b"large"])
            if writing.rng.random() < 0.2:
                kept.append((view.snapshot(), dict(writing.state)))
            kept = kept[-4:]
            for snapshot, state in kept:
                check_snapshot(snapshot, state)
        writing.db.close()


def check_snapshot(snapshot: lsmkv.Snapshot, state: dict[bytes, bytes]) -> None:
    """It shows its own state, or says that it cannot."""
    try:
        assert dict(snapshot) == state
        assert {key: snapshot.get(key) for key in state} == state
    except lsmkv.StaleViewError:
        pass


def test_a_refresh_with_nothing_new_opens_no_file(tmp_path: pathlib.Path) -> None:
    env = FaultyEnv(mapped_logs=True)
    with DB("/db", create_if_missing=True, env=env) as writer:
        for n in range(1000):
            writer.put(b"%d" % n, bytes(100))
        with DB("/db", read_only=True, env=env) as view:
            mark = len(env.history)
            view.refresh()
            calls = env.history[mark:]
            # This env cannot tell whether names have changed: CURRENT is read, and they are listed.
            assert calls.count("open") <= 1
            assert len(calls) < 30


def test_an_iterator_keeps_its_sequence_while_the_view_moves_on() -> None:
    env = MemoryEnv()
    with DB("/db", create_if_missing=True, env=env) as writer:
        for n in range(2000):
            writer.put(b"%04d" % n, b"old")
        with DB("/db", read_only=True, env=env) as view:
            started = view.iterator()
            first = next(started)
            for n in range(0, 2000, 2):
                writer.put(b"%04d" % n, b"new")
                writer.delete(b"%04d" % (n + 1))
            view.refresh()
            assert view.get(b"0000") == b"new"
            assert view.get(b"0001") is None
            assert [first, *started] == [(b"%04d" % n, b"old") for n in range(2000)]


# Directories that are replaced


def other_store(path: str) -> None:
    with DB(path, create_if_missing=True) as db:
        db.put(b"k", b"other")


@pytest.mark.skipif(os.name == "nt", reason="no open directory can be renamed there")
@pytest.mark.parametrize("what", ["renamed", "replaced", "removed"])
def test_a_directory_that_was_replaced_is_noticed(tmp_path: pathlib.Path, what: str) -> None:
    path = tmp_path / "db"
    with DB(path, create_if_missing=True, **TINY) as db:
        for n in range(100):
            db.put(b"%03d" % n, bytes(60))
        db.flush()
    with DB(path, read_only=True) as view, DB(path, read_only=True) as held:
        snapshot = held.snapshot()  # which has opened all tables
        if what == "removed":
            lsmkv.destroy_db(path)
        else:
            path.rename(tmp_path / "old")
        if what == "replaced":
            other_store(str(path))
        reads = [view.refresh, lambda: view.get(b"050"), lambda: list(view.iterator())]
        for read in [*reads, view.snapshot, view.verify, view.refresh]:
            with pytest.raises(lsmkv.DirectoryReplacedError, match="open the store again"):
                read()
        assert snapshot.get(b"050") == bytes(60)
        assert len(list(snapshot)) == 100


def test_a_view_whose_log_ends_in_a_torn_record_is_read_on() -> None:
    """It may be a write that is under way: only what follows is read, not everything."""
    env = fresh()
    logs_of(env, [record(1, 1, 2, 3) + TORN])
    with DB(PATH, env=env, read_only=True) as view:
        start = len(env.history)
        view.refresh()
        assert env.history[start:].count("names") == 1  # where everything is read: 3
        assert len(dict(view)) == 3

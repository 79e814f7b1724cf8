"""lsmkv.engine.db.tree.store_lock: which nested calls are refused, and which are done
afterwards.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from hooked import HookedEnv
from nested_calls import VALUE

import lsmkv
from lsmkv import ClosedError, NestedCallError


class IntrudingEnv(HookedEnv):
    """Makes a call whenever a thread of the store makes or removes a file."""

    def __init__(self) -> None:
        super().__init__(self._intrude)
        self.main = threading.get_ident()
        self.intrude: Callable[[], None] | None = None
        self.intrusions = 0

    def _intrude(self, call: str, name: str) -> None:
        changes = call in ("create", "remove", "sync directory")
        if changes and self.intrude is not None and threading.get_ident() != self.main:
            self.intrusions += 1
            self.intrude()


def test_finalizers_on_a_thread_of_the_store() -> None:
    """There a write waits for nothing: not for a writer that waits for that very thread."""
    env = IntrudingEnv()
    model: dict[bytes, bytes] = {}
    refused: list[str] = []
    options: dict[str, Any] = {"write_buffer_size": 4000, "max_file_size": 4000}
    db = lsmkv.DB("db", create_if_missing=True, env=env, background="thread", **options)

    def intrude() -> None:
        key = b"intruder%05d" % env.intrusions
        assert db.get(b"fixed") == VALUE
        assert next(db.iterator(start=b"fixed")) == (b"fixed", VALUE)
        db.put(key, VALUE)
        model[key] = VALUE
        for call in (db.flush, db.sync, db.compact_range, lambda: db.put(key, b"", sync=True)):
            try:
                call()
            except NestedCallError as error:
                refused.append(str(error))

    db.put(b"fixed", VALUE)
    model[b"fixed"] = VALUE
    env.intrude = intrude
    for number in range(500):
        key = b"%05d" % number
        db.put(key, VALUE)
        model[key] = VALUE
    db.flush()
    env.intrude = None
    assert env.intrusions > 20
    assert len(refused) == 4 * env.intrusions
    db.put(b"last", VALUE)  # the next writer writes what is left
    model[b"last"] = VALUE
    assert dict(db) == model
    db.close()
    with lsmkv.DB("db", env=env) as again:
        assert dict(again) == model


def test_close_on_a_thread_of_the_store_is_done_by_the_owners_next_call() -> None:
    env = IntrudingEnv()
    db = lsmkv.DB("db", create_if_missing=True, env=env, background="thread")
    db.put(b"k", b"v")
    env.intrude = db.close
    try:
        db.flush()
    except ClosedError:
        pass
    env.intrude = None
    assert db.closed
    with pytest.raises(ClosedError):
        db.get(b"k")
    with lsmkv.DB("db", env=env) as again:  # the lock is free
        assert again.get(b"k") == b"v"


class SyncedEnv(HookedEnv):
    """Makes a call in the middle of each sync of a log, which a writer runs under its lock."""

    def __init__(self) -> None:
        super().__init__(self._intrude)
        self.intrude: Callable[[], None] | None = None

    def _intrude(self, call: str, name: str) -> None:
        if call == "sync" and name.endswith(".log") and self.intrude is not None:
            self.intrude()


def test_what_would_wait_for_the_interrupted_call_is_refused() -> None:
    env = SyncedEnv()
    refused: dict[str, str] = {}
    with lsmkv.DB("db", create_if_missing=True, env=env) as db:
        transaction = db.transaction()
        transaction.put(b"t", b"")
        with lsmkv.TableWriter("bulk.ldb", env=env) as table:
            table.add(b"bulk", b"")

        def intrude() -> None:
            env.intrude = None
            for name, call in {
                "put": lambda: db.put(b"x", b"", sync=True),
                "commit": transaction.commit,
                "sync": db.sync,
                "flush": db.flush,
                "compact_range": db.compact_range,
                "rewrite_tables": db.rewrite_tables,
                "checkpoint": lambda: db.checkpoint("copy"),
                "ingest": lambda: db.ingest(["bulk.ldb"]),
            }.items():
                with pytest.raises(NestedCallError) as caught:
                    call()
                refused[name] = str(caught.value)
            db.put(b"nested", b"1")
            assert db.get(b"nested") is None  # it is not acknowledged yet

        env.intrude = intrude
        db.put(b"outer", b"1", sync=True)
        assert dict(db) == {b"nested": b"1", b"outer": b"1"}
    assert len(refused) == 8
    assert refused["put"].startswith("a write with sync=True is not possible here")


def test_a_call_after_the_interrupted_one_was_closed_finds_it_closed() -> None:
    env = SyncedEnv()
    db = lsmkv.DB("db", create_if_missing=True, env=env)
    found: list[str] = []

    def intrude() -> None:
        env.intrude = None
        db.put(b"nested", b"1")
        db.close()
        assert db.closed
        for call in (lambda: db.get(b"k"), lambda: db.put(b"k", b""), db.iterator):
            with pytest.raises(ClosedError) as caught:
                call()
            found.append(str(caught.value))

    env.intrude = intrude
    db.put(b"outer", b"1", sync=True)
    assert found == ["the database is closed"] * 3
    with lsmkv.DB("db", env=env) as again:  # the lock is free
        assert dict(again) == {b"nested": b"1", b"outer": b"1"}

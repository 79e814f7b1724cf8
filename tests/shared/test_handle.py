"""A handle of a shared store in forked children, and in calls that interrupt others."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from others import Other, new

import lsmkv

Start = Callable[..., Other]


# Forks


def test_a_forked_child_joins_its_parent(path: Path) -> None:
    with new(path) as db:
        db.put(b"k", b"v")
        iterator, snapshot = db.iterator(), db.snapshot()
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            said = [repr(db.get(b"k")), db.role]
            db.put(b"child", b"1")
            for call in (lambda: list(iterator), lambda: snapshot.get(b"k")):
                try:
                    call()
                except lsmkv.ForkedError:
                    said.append("forked")
            os.write(write, " ".join(said).encode())
            os._exit(0)
        os.waitpid(child, 0)
        assert os.read(read, 1000) == b"b'v' member forked forked"
        os.close(read)
        os.close(write)
        assert db.get(b"child") == b"1"
        assert list(iterator) == [(b"k", b"v")]


def test_what_a_child_inherits_of_a_transaction(path: Path, other: Start) -> None:
    other(create_if_missing=True)
    with new(path) as db:
        transaction = db.transaction()
        transaction.put(b"k", b"v")
        child = os.fork()
        if child == 0:
            try:
                transaction.commit()
            except lsmkv.ForkedError:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        transaction.commit()
        assert db.get(b"k") == b"v"


def test_a_fork_disturbs_no_call_of_another_thread(path: Path, other: Start) -> None:
    """Its connection is the parent's: the child closes its copy, and does not end it."""
    owner = other(create_if_missing=True)
    with new(path) as db:
        found: list[int] = []
        waiting = threading.Thread(target=lambda: found.append(db.wait_for_change(0)))
        waiting.start()
        joined = db._part.joined  # type: ignore[union-attr]
        while not joined._used:
            time.sleep(0.001)
        used = set(joined._used)
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        time.sleep(0.05)
        assert joined._used == used
        owner("db.put(b'k', b'v')")
        waiting.join()
        assert found == [1]


def test_the_children_of_a_pool(path: Path) -> None:
    with new(path) as db:
        with multiprocessing.get_context("fork").Pool(3) as pool:
            pool.starmap(db.put, [(b"%d" % n, b"v") for n in range(30)])
        assert len(list(db)) == 30


def test_a_child_of_a_killed_owner_does_not_answer_for_it(path: Path, other: Start) -> None:
    owner = other(create_if_missing=True)
    child = owner("import os, time; child = os.fork(); child or (time.sleep(60), os._exit(0))")
    assert child is None
    owner.kill()
    with new(path) as db:
        db.put(b"k", b"v")
        assert db.role == "owner"


# Interrupts


@pytest.mark.skipif(lsmkv.COMPILED, reason="methods of compiled classes cannot be replaced")
def test_a_nested_call_while_the_next_owner_is_joined(path: Path, other: Start) -> None:
    """As a signal handler asks: it cannot wait for the call that it has interrupted."""
    owner = other(create_if_missing=True)
    with new(path) as db:
        owner.kill()
        entrance = db._entrance
        nested: list[str] = []
        real = entrance._join

        def join() -> object:
            if not nested:
                try:
                    db.put(b"nested", b"1")
                except lsmkv.NestedCallError:
                    nested.append("refused")
            return real()

        entrance._join = join  # type: ignore[method-assign, assignment]
        db.put(b"k", b"v")
        assert nested == ["refused"]
        assert dict(db) == {b"k": b"v"}

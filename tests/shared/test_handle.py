"""A handle of a shared store in forked children, and in calls that interrupt others."""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from others import Other, new
from processes import IS_DARWIN

import lsmkv
from lsmkv import SharedDB

Start = Callable[..., Other]


# Forks


def in_child(what: Callable[[], Any]) -> Any:
    """What it returns in a forked child, by JSON; the text of an error that it raises."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = what()
        except BaseException as error:
            answer = repr(error)
        os.write(write, json.dumps(answer).encode())
        os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        answer = json.loads(pipe.read())
    os.waitpid(child, 0)
    return answer


def descriptors() -> set[str]:
    """What the open descriptors of this process lead to: sockets and others by their numbers."""
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        try:
            found.add(f"{fd} {os.readlink(f'/proc/self/fd/{fd}')}")
        except FileNotFoundError:
            pass  # that of the listing
    return found


ROLES = pytest.mark.parametrize("role", ["owner", "member"])


@pytest.mark.skipif(IS_DARWIN, reason="it has no /proc")
@ROLES
def test_a_child_has_closed_what_is_its_parents_before_it_does_anything(
    path: Path, other: Start, role: str
) -> None:
    """``LOCK`` and the leases, the listener, connections, and what its thread waits for."""
    if role == "member":
        other(create_if_missing=True)
    before = descriptors()
    with new(path) as db:
        member = other()
        db.put(b"k", b"v")
        assert db.role == role
        made = {one.split(" ", 1)[1] for one in descriptors() - before}
        kinds = {"socket:", "/SHARED"} | ({"/LOCK", "[eventpoll]"} if role == "owner" else set())
        assert all(any(kind in name for name in made) for kind in kinds)
        left = {one.split(" ", 1)[1] for one in in_child(lambda: sorted(descriptors() - before))}
        ends = ("/LOCK", "/SHARED", "[eventpoll]", "[eventfd]")
        inherited = left & made
        assert [one for one in inherited if one.endswith(ends) or one.startswith("socket:")] == []
        assert member("db.get(b'k')") == b"v"  # and the parent's are open
        db.put(b"k", b"w")
        assert member("db.get(b'k')") == b"w"


@ROLES
def test_what_a_child_inherits_is_its_parents(path: Path, other: Start, role: str) -> None:
    if role == "member":
        other(create_if_missing=True)
    with new(path) as db:
        db.put(b"k", b"v")
        assert db.role == role
        iterator, snapshot, batches = db.iterator(), db.snapshot(), db.batches(0)
        other_iterator = snapshot.iterator()
        transaction, read_only = db.transaction(), db.transaction()
        assert transaction.get(b"k") == read_only.get(b"k") == b"v"
        transaction.put(b"t", b"1")
        calls: dict[str, Callable[[], object]] = {
            "iterator": lambda: next(iterator),
            "iterator, sought": lambda: iterator.seek(b"a"),
            "snapshot": lambda: snapshot.get(b"k"),
            "a new iterator of a snapshot": snapshot.iterator,
            "iterator of a snapshot": lambda: next(other_iterator),
            "batches": lambda: next(batches),
            "transaction": lambda: transaction.get(b"k"),
            "iterator of a transaction": lambda: list(transaction.iterator()),
            "commit": transaction.commit,
        }

        def tried() -> list[str]:
            went_on = []
            for name, call in calls.items():
                try:
                    went_on.append(f"{name}: {call()!r}")
                except lsmkv.ForkedError:
                    pass
            return went_on

        assert in_child(tried) == []
        assert next(iterator) == next(other_iterator) == (b"k", b"v")
        assert snapshot.get(b"k") == b"v"
        transaction.commit()
        read_only.rollback()
        assert db.get(b"t") == b"1"


def _write_batch(db: SharedDB) -> bool:
    with db.write_batch() as batch:
        batch.put(b"b", b"1")
    return True


USES: dict[str, Callable[[SharedDB], object]] = {
    "get": lambda db: db.get(b"k") == b"v",
    "multi_get": lambda db: db.multi_get([b"k"]) == [b"v"],
    "in": lambda db: b"k" in db,
    "iterator": lambda db: dict(db.iterator(start=b"k")) == {b"k": b"v"},
    "snapshot": lambda db: db.snapshot().get(b"k") == b"v",
    "put": lambda db: db.put(b"a", b"1") is None,
    "delete": lambda db: db.delete(b"a") is None,
    "batch": _write_batch,
    "update": lambda db: db.update(b"n", lambda old: b"%d" % (int(old or 0) + 1)) == b"1",
    "transaction": lambda db: db.transaction().get(b"k") == b"v",
    "flush": lambda db: db.flush() is None,
    "compact_range": lambda db: db.compact_range() is None,
    "sync": lambda db: db.sync() is None,
    "refresh": lambda db: db.refresh() is None,
    "batches": lambda db: next(db.batches(0)) is not None,
    "wait_for_change": lambda db: db.wait_for_change(0) > 0,
    "owner": lambda db: db.owner == os.getppid(),
    "stats": lambda db: db.stats() is not None,
    "check": lambda db: db.check() is None,
}


@pytest.mark.parametrize("use", USES)
def test_the_next_use_in_a_child_makes_its_handle_a_member(path: Path, use: str) -> None:
    with new(path) as db:
        db.put(b"k", b"v")

        def used() -> list[object]:
            return [USES[use](db), db.get(b"k") == b"v", db.role, db.owner, db.closed]

        assert in_child(used) == [True, True, "member", os.getpid(), False]
        assert db.role == "owner"


def test_a_child_that_closes_its_handle_first(path: Path) -> None:
    """It never was in the store; the parent's is open."""
    with new(path) as db:

        def closed() -> list[object]:
            db.close()
            try:
                db.get(b"k")
            except lsmkv.ClosedError:
                return [db.closed]
            return []

        assert in_child(closed) == [True]
        db.put(b"k", b"v")
        assert in_child(lambda: db.get(b"k") == b"v") is True


_OUTLIVES = """
import os, time
parent = os.getpid()
db.put(b"k", b"v")
if os.fork() == 0:
    while os.getppid() == parent:
        time.sleep(0.001)
    said = db.get(b"k"), db.role
    db.put(b"child", b"1")
    with open({new!r}, "w") as file:
        file.write(repr(said))
    os.rename({new!r}, {out!r})
    os._exit(0)
"""


def test_a_child_takes_the_place_of_its_killed_parent(
    path: Path, other: Start, tmp_path: Path
) -> None:
    out = tmp_path / "child"
    parent = other(create_if_missing=True)
    parent(_OUTLIVES.format(new=f"{out}.new", out=str(out)))
    parent.kill()
    while not out.exists():
        time.sleep(0.001)
    assert out.read_text() == "(b'v', 'owner')"
    with new(path) as db:
        assert dict(db) == {b"k": b"v", b"child": b"1"}


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

        def join(left: float) -> object:
            if not nested:
                try:
                    db.put(b"nested", b"1")
                except lsmkv.NestedCallError:
                    nested.append("refused")
            return real(left)

        entrance._join = join  # type: ignore[method-assign, assignment]
        db.put(b"k", b"v")
        assert nested == ["refused"]
        assert dict(db) == {b"k": b"v"}

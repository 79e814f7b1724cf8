"""A checker of serializability: random transactions, and cycles in the graph of dependencies.

The graph is Adya's (*Weak Consistency*, 1999).  Its nodes are the transactions that committed, in
the order of their commits, which is the order of the versions of every key; a write outside of a
transaction is one too.  Its edges say which of two must come first in a serial history:

* write-write: both wrote a key, and the first one's version is older;
* write-read: the second read what the first wrote;
* read-write: the first read a version, or the absence, of a key that the second wrote later.

A range that was iterated over reads every key in it, those that are not there included: so phantoms
are edges too.  A history is serializable if the graph has no cycle.

One thread interleaves the transactions by a seeded schedule: each seed is one history, always the
same.  Every value names the transaction that wrote it, and what is read is compared with the
versions at the transaction's beginning, so that edges rest on what was seen.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from threads import run_threads

import lsmkv
from lsmkv import DB

KEYS = [b"%c" % letter for letter in b"abcdefgh"]


Edge = tuple[int, int, str]
"""Two transactions, by their places in the history, and ``ww``, ``wr`` or ``rw``."""


class Done:
    """A transaction of a history: what it read, and what it wrote, by key."""

    def __init__(self, began: int) -> None:
        self.began = began
        """How many transactions had committed before it began."""
        self.reads: set[bytes] = set()
        """Keys of the snapshot that it has read, absent ones included."""
        self.writes: set[bytes] = set()


def edges(history: list[Done]) -> Iterator[Edge]:
    """The dependencies between the transactions, which are listed in the order of their commits."""
    for key in sorted({key for one in history for key in one.reads | one.writes}):
        writers = [at for at, one in enumerate(history) if key in one.writes]
        for first, second in pairwise(writers):
            yield first, second, "ww"
        for at, one in enumerate(history):
            if key not in one.reads:
                continue
            seen = [writer for writer in writers if writer < one.began]
            later = [writer for writer in writers if writer >= one.began and writer != at]
            if seen:
                yield seen[-1], at, "wr"
            if later:
                yield at, later[0], "rw"


def cycle_in(history: list[Done]) -> list[Edge]:
    """The edges of a cycle of the graph; [] if there is none."""
    after: dict[int, list[Edge]] = {at: [] for at in range(len(history))}
    for found in edges(history):
        if found[0] != found[1]:
            after[found[0]].append(found)
    done: set[int] = set()
    for root in range(len(history)):
        path: list[Edge] = []
        pending = [iter(after[root])]
        nodes = [root]
        while pending:
            edge = next(pending[-1], None)
            if edge is None:
                done.add(nodes.pop())
                pending.pop()
                if path:
                    path.pop()
            elif edge[1] in nodes:
                return [*path[nodes.index(edge[1]) :], edge]
            elif edge[1] not in done:
                path.append(edge)
                nodes.append(edge[1])
                pending.append(iter(after[edge[1]]))
    return []


class Client:
    """A transaction under way, its iterators, and what it has done."""

    def __init__(self, db: DB, isolation: Any, number: int, committed: list[Done]) -> None:
        self.transaction = db.transaction(isolation=isolation)
        self.done = Done(len(committed))
        self.number = number
        self.own: dict[bytes, bytes | None] = {}

    def see(self, key: bytes, value: bytes | None, snapshot: dict[bytes, bytes]) -> None:
        """Note that a key was read; the value is the right one."""
        if key in self.own:
            assert value == self.own[key]
        else:
            assert value == snapshot.get(key)
            self.done.reads.add(key)

    def write(self, key: bytes, value: bytes | None) -> None:
        if value is None:
            self.transaction.delete(key)
        else:
            self.transaction.put(key, value)
        self.own[key] = value
        self.done.writes.add(key)

    def scan(self, chance: random.Random, snapshot: dict[bytes, bytes]) -> None:
        """Iterate over some of a range, and note each key that was passed, there or not."""
        start, stop = sorted([chance.choice(KEYS), chance.choice(KEYS)])
        reverse = chance.random() < 0.5
        most = chance.randrange(1, 5)
        covered = [key for key in KEYS if start <= key < stop]
        if reverse:
            covered.reverse()
        entries = self.transaction.iterator(start=start, stop=stop, reverse=reverse)
        found: dict[bytes, bytes] = {}
        for _ in range(most):
            entry = next(entries, None)
            if entry is None:
                break
            last = entry[0]
            found[last] = entry[1]
        else:
            covered = covered[: covered.index(last) + 1]
        for key in covered:
            self.see(key, found.pop(key, None), snapshot)
        assert not found


def run(isolations: list[str], seed: int) -> tuple[list[Done], int]:
    """A history of committed transactions, and how many conflicts there were."""
    chance = random.Random(seed)
    committed: list[Done] = []
    states: list[dict[bytes, bytes]] = [{}]  # after so many transactions
    conflicts = 0
    clients: list[Client] = []
    with DB(":memory:", write_buffer_size=4096) as db:

        def commit(done: Done, own: dict[bytes, bytes | None]) -> None:
            state = dict(states[-1])
            for key, value in own.items():
                if value is None:
                    state.pop(key, None)
                else:
                    state[key] = value
            committed.append(done)
            states.append(state)
            assert dict(db) == state

        for number in range(60):
            while len(clients) < 4:
                clients.append(Client(db, chance.choice(isolations), number, committed))
            client = chance.choice(clients)
            snapshot = states[client.done.began]
            act = chance.random()
            key = chance.choice(KEYS)
            if act < 0.25:
                client.see(key, client.transaction.get(key), snapshot)
            elif act < 0.5:
                client.scan(chance, snapshot)
            elif act < 0.7:
                deletes = chance.random() < 0.4
                client.write(key, None if deletes else b"%d.%d" % (client.number, number))
            elif act < 0.9:
                clients.remove(client)
                try:
                    client.transaction.commit()
                    commit(client.done, client.own)
                except lsmkv.ConflictError:
                    conflicts += 1
            elif act < 0.94:
                done = Done(len(committed))
                done.writes.add(key)
                db.put(key, b"alone %d" % number)
                commit(done, {key: b"alone %d" % number})
            elif act < 0.98:
                db.flush()
            else:
                db.compact_range()
        for client in clients:
            client.transaction.rollback()
    return committed, conflicts


def test_serializable_histories_have_no_cycle() -> None:
    conflicts = commits = 0
    for seed in range(150):
        history, lost = run(["serializable"], seed)
        assert cycle_in(history) == [], seed
        conflicts += lost
        commits += len(history)
    assert conflicts > 100
    assert commits > 500


def test_snapshot_histories_have_write_skew_and_nothing_worse() -> None:
    """A cycle has two read-write edges at least: no update is lost, and no read is dirty."""
    cycles = 0
    for seed in range(150):
        history, _ = run(["snapshot"], seed)
        found = cycle_in(history)
        if found:
            cycles += 1
            assert [kind for _, _, kind in found].count("rw") >= 2, (seed, found)
    assert cycles > 10


def item(began: int, reads: bytes, writes: bytes) -> Done:
    done = Done(began)
    done.reads = {b"%c" % key for key in reads}
    done.writes = {b"%c" % key for key in writes}
    return done


@pytest.mark.parametrize(
    ("history", "kinds"),
    [
        ([], ""),
        ([item(0, b"a", b"a"), item(1, b"a", b"a")], ""),
        ([item(0, b"a", b"a"), item(0, b"a", b"a")], "ww rw"),  # a lost update
        ([item(0, b"ab", b"a"), item(0, b"ab", b"b")], "rw rw"),  # write skew
        ([item(0, b"a", b"a"), item(0, b"", b"b"), item(0, b"ab", b"")], ""),  # at its snapshot
        ([item(0, b"", b"a"), item(0, b"a", b"b"), item(2, b"ab", b"")], ""),
        # A read-only transaction sees the second writer, but not the first (Fekete 2004).
        ([item(0, b"ab", b"b"), item(1, b"ab", b""), item(0, b"a", b"a")], ""),
        ([item(0, b"", b"a"), item(1, b"ab", b""), item(0, b"ab", b"b")], "wr rw rw"),
    ],
)
def test_the_checker(history: list[Done], kinds: str) -> None:
    found = cycle_in(history)
    assert sorted(kind for _, _, kind in found) == sorted(kinds.split())


def test_threads_that_insert_into_a_range_up_to_a_limit() -> None:
    """The limit holds, though each inserts a key that no other touches."""
    limit = 20
    with DB(":memory:", write_buffer_size=2048, max_file_size=2048) as db:

        def insert(own: int) -> None:
            for number in range(limit):

                def work(transaction: lsmkv.Transaction, number: int = number) -> None:
                    booked = sum(1 for _ in transaction.iterator(prefix=b"booked:"))
                    time.sleep(0.0001)  # the other threads have their turn
                    if booked < limit:
                        transaction.put(b"booked:%d:%d" % (own, number), b"x" * 50)

                db.run(work)

        assert run_threads(*[partial(insert, own) for own in range(4)]) == []
        assert sum(1 for _ in db.iterator(prefix=b"booked:")) == limit


def test_write_skew(db_of_doctors: DB) -> None:
    """Each of two doctors leaves because the other one is on call."""
    db = db_of_doctors
    for isolation, left in (("serializable", 1), ("snapshot", 0)):
        first, second = (db.transaction(isolation=isolation) for _ in range(2))  # type: ignore[arg-type]
        for transaction, name in ((first, b"ann"), (second, b"bob")):
            if sum(1 for _ in transaction.iterator(prefix=b"on call:")) > 1:
                transaction.delete(b"on call:" + name)
        first.commit()
        commit: Callable[[], None] = second.commit
        if isolation == "serializable":
            with pytest.raises(lsmkv.ConflictError, match="on call:ann"):
                commit()
        else:
            commit()
        assert sum(1 for _ in db) == left
        db.put(b"on call:ann", b"")
        db.put(b"on call:bob", b"")


@pytest.fixture
def db_of_doctors() -> Iterator[DB]:
    with DB(":memory:") as db:
        db.put(b"on call:ann", b"")
        db.put(b"on call:bob", b"")
        yield db

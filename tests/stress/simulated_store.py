"""The program that simulations of the project's own tests run: every kind of call, and every check.

``program`` is for :func:`lsmkv.testing.simulate`.  In each life it opens a store with settings of
the seed, and lets threads write, read, and rearrange.  It fails if

* no order of the calls explains what they have read (``histories.py``): a Get reads the last write,
  an iterator, a snapshot or a checkpoint one moment, a batch or an ingest is whole, and a
  transaction has read what is there when it commits;
* an iterator that is held while tables come and go finds something else on its way back;
* what a crash has left is not a prefix of the acknowledged order with everything synced in it;
* a store that was closed cannot be opened at once, or has lost something;
* ``check()`` finds something, or a file is left: open, or in the directory.

Each thread of a run makes only some kinds of calls, in other runs others: so calls that go wrong
together meet more often (swarm testing, Groce et al. 2012).
"""

from __future__ import annotations

import gc
import logging
import random
import warnings
from collections.abc import Callable
from itertools import islice
from typing import Any

from histories import NEVER, Content, History
from study import finds_ranges

import lsmkv
from lsmkv import DB, TableWriter
from lsmkv.engine.env.memory import MemoryWritableFile, _MemoryHandle
from lsmkv.testing import Run

KEYS = [b"a", b"b", b"c", b"d", b"e"]
GROUP = KEYS[:3]
"""Batches write to these together."""
UNCOUNTED = ("ingest", "delete_range")
"""What takes other numbers of sequences than it has operations."""
CALLS = 6
"""How many each thread makes."""


def program(run: Run, more: str = "") -> None:
    """One life; ``more`` are further kinds of calls."""
    logging.getLogger("lsmkv").setLevel(logging.CRITICAL)
    warnings.simplefilter("ignore")
    rng = run.rng
    kept = run.kept
    kept["open before"] = _open_files()
    # The life before may have ended before it had opened the store.
    kept["power cut"] = kept.get("power cut", False) or run.crash == "power cut"
    db, start = _opened(run, rng)
    before: History | None = kept.get("history")
    if before is not None:
        before.check(start, kept["power cut"])
    history = kept["history"] = History(start)
    kept["store"] = db  # a killed process finalizes nothing
    begun = _last_sequence(db)
    kept["power cut"] = False
    closers = rng.choice((1, 1, 2)) if rng.random() < 0.25 else 0
    for number in range(rng.choice((2, 2, 3))):
        run.start(
            Caller(run, db, history, rng, number, _WRITES + more).run, name=f"writer {number}"
        )
    run.start(Caller(run, db, history, rng, 10, _READS).run, name="reader")
    for number in range(rng.choice((0, 1, 1, 1, 2))):
        run.start(
            Caller(run, db, history, rng, 20 + number, _REST + more).run, name=f"other {number}"
        )
    for number in range(closers):
        run.start(_close_and_reopen, run, db, history, closers == 1, name=f"closer {number}")
    run.join()
    if not closers:
        _look_at_all(run, db, history, begun)
    _close(run, db)
    history.check()
    del db, kept["store"]
    _nothing_is_left(run, history)


def _opened(run: Run, rng: random.Random) -> tuple[DB, Content]:
    """A store and what is in it, after another attempt if a call was made to fail."""
    options: dict[str, Any] = {
        "create_if_missing": True,
        "background": rng.choice(("thread", "thread", "inline")),
        "write_buffer_size": rng.choice((1024, 1024, 4096)),
        "max_file_size": rng.choice((1024, 1 << 20)),
        "block_size": 256,
        "lru_cache_size": rng.choice((0, 2000, 1 << 20)),
        "compression": rng.choice(("snappy", None)),
        "mapped_log": rng.random() < 0.5,
        "reuse_logs": rng.random() < 0.5,
    }
    try:
        return _opened_with(run, options)
    except lsmkv.Error:
        if not run.env.struck:
            raise
        run.env.heal()
    return _opened_with(run, options)


def _opened_with(run: Run, options: dict[str, Any]) -> tuple[DB, Content]:
    db = finds_ranges(DB("/db", env=run.env, **options))
    try:
        return db, frozenset(db)
    except lsmkv.Error:
        _close(run, db)
        raise


def _close(run: Run, db: DB) -> None:
    try:
        db.close()
    except lsmkv.Error:
        if not run.env.struck:
            raise


def _close_and_reopen(run: Run, db: DB, history: History, alone: bool) -> None:
    """Once a store is closed it can be opened, whatever threads still call it.

    Nobody has opened it meanwhile if this is ``alone``: then none of its files is written to.
    """
    _close(run, db)
    gc.collect()  # an error's frames may hold files of an attempt to open the store
    still = [
        one.path
        for one in _open_files()
        if isinstance(one, MemoryWritableFile) and one not in run.kept["open before"]
    ]
    still = [path for path in still if path.startswith("/db/")]
    assert not (alone and still), f"written after it: {still}"
    call = history.begin("closer", "the store, opened again")
    try:
        with DB("/db", env=run.env, background="inline") as again:
            call.scan = frozenset(again)
    except lsmkv.LockedError:
        history.calls.remove(call)  # by the other closer
    except lsmkv.Error:
        if not run.env.struck:
            raise
    else:
        history.end(call)


def _last_sequence(db: DB) -> int:
    with db.snapshot() as snapshot:
        return snapshot.sequence


def _look_at_all(run: Run, db: DB, history: History, begun: int) -> None:
    """At the end every way of reading finds the same, by whatever cache; and every operation has
    been given one sequence since ``begun``, unless an ingest has left some out."""
    call = history.begin("main", "the end")
    try:
        found = frozenset(db)
        db.check()
        for _ in range(3):
            gets = frozenset((key, value) for key in KEYS if (value := db.get(key)) is not None)
            assert gets == found, f"Gets find {gets}, and an iterator {found}"
        if not (run.env.struck or any(one.what in UNCOUNTED for one in history.calls)):
            made = sum(len(one.writes) for one in history.calls)
            assert _last_sequence(db) - begun == made, f"{_last_sequence(db) - begun} of {made}"
    except lsmkv.Error:
        if not run.env.struck:
            raise
    else:
        call.scan = found
        history.end(call)


def _open_files() -> list[_MemoryHandle]:
    """Those that a killed life had open, too."""
    return [one for one in gc.get_objects() if isinstance(one, _MemoryHandle) and one._open]


def _nothing_is_left(run: Run, history: History) -> None:
    """Another opening finds what was there, and nothing more."""
    gc.collect()  # an error's frames may hold tables
    still = [one for one in _open_files() if one not in run.kept["open before"]]
    assert not still, f"files are left open: {[one.path for one in still]}"
    run.env.heal()
    with DB("/db", env=run.env, background="inline") as db:
        history.check(frozenset(db))
        db.check()
        tables = sum(level.files for level in db.stats().levels)
    with run.env.open_directory("/db") as directory:
        names = [name for name in directory.names() if not name.startswith("LOG")]
    kinds = [name.rpartition(".")[2] if "." in name else name.split("-")[0] for name in names]
    if not run.env.struck:
        assert kinds.count("MANIFEST") == 1, names
        assert kinds.count("log") == 1, names
        assert kinds.count("ldb") == tables, names


class Caller:
    """One thread's calls, drawn before it begins, so that they do not depend on the schedule."""

    def __init__(
        self, run: Run, db: DB, history: History, rng: random.Random, number: int, kinds: str
    ) -> None:
        self._run = run
        self._db = db
        self._history = history
        self._number = number
        self._rng = random.Random(rng.random())
        some = self._rng.sample(kinds.split(), self._rng.randint(2, len(kinds.split())))
        self._kinds = [self._rng.choice(some) for _ in range(CALLS)]
        self._written = 0

    def run(self) -> None:
        """Make the calls.  What one raises is an answer where something was made to fail."""
        for kind in self._kinds:
            method: Callable[[], None] = getattr(self, kind)
            try:
                method()
            except lsmkv.ClosedError:
                pass
            except lsmkv.Error:
                if not self._run.env.struck:
                    raise

    def _begin(self, what: str) -> Any:
        return self._history.begin(f"thread {self._number}", what)

    def _value(self) -> bytes:
        self._written += 1
        own = b"%d.%d.%d " % (self._run.life, self._number, self._written)
        return own + b"x" * self._rng.choice((0, 100, 400))

    def _write(self, writes: dict[bytes, bytes | None], sync: bool) -> None:
        call = self._begin("write")
        call.writes = writes
        call.synced = sync
        with self._db.write_batch(sync=sync) as batch:
            for key, value in writes.items():
                if value is None:
                    batch.delete(key)
                else:
                    batch.put(key, value)
        self._history.end(call)

    def put(self) -> None:
        key = self._rng.choice(KEYS)
        call = self._begin("put")
        call.writes = {key: self._value()}
        call.synced = self._rng.random() < 0.2
        self._db.put(key, call.writes[key], sync=call.synced)
        self._history.end(call)

    def burst(self) -> None:
        """More than a memtable takes: the last write waits for a flush."""
        for _ in range(3):
            key = self._rng.choice(KEYS)
            call = self._begin("put")
            call.writes = {key: self._value() + bytes(800)}
            self._db.put(key, call.writes[key])
            self._history.end(call)

    def delete(self) -> None:
        key = self._rng.choice(KEYS)
        call = self._begin("delete")
        call.writes = {key: None}
        self._db.delete(key)
        self._history.end(call)

    def batch(self) -> None:
        value = self._value()
        self._write(dict.fromkeys(GROUP, value), self._rng.random() < 0.2)

    def mixed_batch(self) -> None:
        self._write({KEYS[0]: None, KEYS[3]: self._value(), KEYS[4]: self._value()}, False)

    def update(self) -> None:
        key = self._rng.choice(KEYS)
        new = self._value()
        call = self._begin("update")
        call.writes = {key: new}
        seen: list[bytes | None] = []

        def change(old: bytes | None) -> bytes:
            seen.append(old)
            return new

        self._db.update(key, change)
        call.reads = {key: seen[-1]}
        self._history.end(call)

    def transact(self) -> None:
        """A range is read, and a key written, in it or not."""
        first, last = sorted(self._rng.choices(range(len(KEYS)), k=2))
        span = KEYS[first : last + 1]
        bounds: Any = {"start": span[0], "stop": span[-1], "include_stop": True}
        bounds["reverse"] = self._rng.random() < 0.3
        key = self._rng.choice(self._rng.choice((span, KEYS)))
        new = self._value()
        call = self._begin("transaction")
        call.writes = {key: new}
        call.synced = self._rng.random() < 0.2
        try:
            with self._db.transaction(sync=call.synced) as transaction:
                found = dict(transaction.iterator(**bounds))
                self._rearrange()
                transaction.put(key, new)
                again = dict(transaction.iterator(**bounds))
        except lsmkv.ConflictError:
            self._history.calls.remove(call)
            return
        assert again == (found | {key: new} if key in span else found), "not its own writes alone"
        call.reads = {one: found.get(one) for one in span}
        self._history.end(call)

    def ingest(self) -> None:
        path = f"/table {self._run.life} {self._number} {self._written}"
        call = self._begin("ingest")
        value = self._value()
        call.writes = dict.fromkeys(GROUP, value)
        call.synced = True
        with TableWriter(path, env=self._run.env) as table:
            for key in GROUP:
                table.add(key, value)
        self._db.ingest([path])
        self._history.end(call)

    def checkpoint(self) -> None:
        path = f"/checkpoint {self._run.life} {self._number} {self._written}"
        self._written += 1
        call = self._begin("checkpoint")
        self._db.checkpoint(path)
        self._history.end(call)
        with DB(path, env=self._run.env, background="inline") as copy:
            found = frozenset(copy)
        call.scan = found

    def get(self) -> None:
        self._get(self._rng.choice(KEYS))

    def get_again(self) -> None:
        """From a table, from the block cache, and from the row cache."""
        key = self._rng.choice(KEYS)
        for _ in range(3):
            self._get(key)

    def _get(self, key: bytes) -> None:
        call = self._begin("get")
        found = self._db.get(key)
        call.reads = {key: found}
        self._history.end(call)

    def multi_get(self) -> None:
        call = self._begin("multi_get")
        found = self._db.multi_get(GROUP)
        call.reads = dict(zip(GROUP, found, strict=True))
        self._history.end(call)

    def scan(self) -> None:
        """An iterator is begun, and read later."""
        call = self._begin("iterator")
        with self._db.iterator(reverse=self._rng.random() < 0.5) as iterator:
            self._history.end(call)
            end, call.end = call.end, NEVER  # without an answer until it has one
            self._run.step()
            found = dict(iterator)
        call.scan = frozenset(found.items())
        call.end = end

    def held(self) -> None:
        """An iterator is read while tables come and go, and then read back."""
        call = self._begin("held iterator")
        with self._db.iterator() as iterator:
            self._history.end(call)
            end, call.end = call.end, NEVER
            found = list(islice(iterator, self._rng.randint(0, 2)))
            self._rearrange()
            found += iterator
            back = []
            for _ in found:
                back.append(iterator.prev())
        call.scan = frozenset(found)
        call.end = end
        assert back[::-1] == found, "an iterator that finds something else on its way back"

    def snapshot(self) -> None:
        call = self._begin("snapshot")
        with self._db.snapshot() as snapshot:
            self._history.end(call)
            end, call.end = call.end, NEVER
            found: Content = frozenset(snapshot)
            self._rearrange()
            again = {key: snapshot.get(key) for key in KEYS}
            last: Content = frozenset(snapshot)
        call.scan = found
        call.end = end
        assert again == {key: dict(found).get(key) for key in KEYS}, "a snapshot that changes"
        assert last == found, "a snapshot that changes"

    def _rearrange(self) -> None:
        """Something that moves what is being read, or time for others to do so."""
        chance = self._rng.random()
        if chance < 0.2:
            self._db.flush()
        elif chance < 0.35:
            self._db.compact_range()
        self._run.step()

    def flush(self) -> None:
        self._db.flush()

    def compact(self) -> None:
        self._db.compact_range()

    def sync(self) -> None:
        call = self._begin("sync")
        self._db.sync()
        call.synced = True
        self._history.end(call)

    def check(self) -> None:
        self._db.check()
        self._db.stats()

    def delete_range(self) -> None:
        """Each key goes at some moment of the call, since a range deletion is not atomic; and once
        more if a compaction makes it begin again."""
        first = self._rng.randrange(len(KEYS))
        last = min(first + self._rng.randint(1, 2), len(KEYS))
        calls = []
        for key in 2 * KEYS[first:last]:
            calls.append(self._begin("delete_range"))
            calls[-1].writes = {key: None}
        self._db.delete_range(KEYS[first], KEYS[last] if last < len(KEYS) else None)
        for call in calls:
            self._history.end(call)


def ranges(run: Run) -> None:
    """One life with many range deletions."""
    program(run, " delete_range")


_WRITES = "put put burst delete batch batch mixed_batch update transact get"
_READS = "get get_again multi_get scan held snapshot"
_REST = "flush flush compact sync check ingest checkpoint transact get"

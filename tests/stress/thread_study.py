"""Many threads and many signals on one store, and nothing is stale, torn, lost, or stuck.

Every key has one writer, who raises its number: it notes the number when it begins to write it, and
again when the write is acknowledged.  Whatever a reader gets was begun before it ended, and is at
least what was acknowledged before it began.  Batches set several keys to one number: a snapshot
sees one.  Some of these writes are ingests.  All the while the store is flushed, compacted, copied,
closed, and opened again.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from study import Outcome, Say, finds_ranges

import lsmkv
from lsmkv import DB, MemoryEnv, TableWriter
from lsmkv.engine.format.batch import decode_batch
from lsmkv.engine.format.log import LogReader

SECONDS = (2.0, 120.0)
"""At size 1 and at size 100."""
INTERRUPTS = 250
LONGEST = 120.0
"""Seconds beyond what a run takes, after which it is stuck."""
OWN_KEYS = 5
GROUP = [b"group-%d" % n for n in range(5)]


def run(size: float, seed: int, say: Say) -> Outcome:
    """Threads for a time that grows with ``size``, then a storm of signals."""
    outcome = Outcome()
    share = min(1.0, max(0.0, (size - 1) / 99))
    seconds = SECONDS[0] + share * (SECONDS[1] - SECONDS[0])
    interrupts = int(INTERRUPTS * max(1.0, size / 10))
    # If even the main thread is stuck: the others' ends are waited for below.
    faulthandler.dump_traceback_later(
        seconds + interrupts + 2 * LONGEST, exit=True, file=sys.__stderr__ or sys.stderr
    )
    try:
        with quick_switches():
            Load(seed, outcome, seconds).run()
            say("threads")
            storm(outcome, interrupts, seed)
    finally:
        faulthandler.cancel_dump_traceback_later()
    return outcome


@contextmanager
def quick_switches() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def stacks() -> str:
    """Where every thread stands."""
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file)
        file.seek(0)
        return file.read()


class Wrong(AssertionError):
    """What a reader saw and must not."""


class Load:
    """Eight threads and a store that they share."""

    def __init__(self, seed: int, outcome: Outcome, seconds: float) -> None:
        self.seed = seed
        self.outcome = outcome
        self.ends = time.monotonic() + seconds
        self.begun: dict[bytes, int] = {}
        """By key: the number that was begun last; a writer's own to change."""
        self.acknowledged: dict[bytes, int] = {}
        self.counts: dict[str, int] = {}
        self._counts_lock = threading.Lock()
        self._errors: list[str] = []
        self._path = ""
        self._lives = 0
        self.db: Any = None
        for key in [b"%d-%d" % (n, k) for n in range(3) for k in range(OWN_KEYS)]:
            self.begun[key] = self.acknowledged[key] = -1
        for key in (b"g0", b"g1"):
            self.begun[key] = self.acknowledged[key] = -1
        self._group_lock = threading.Lock()

    def run(self) -> None:
        """Until the time is over; what went wrong is in the outcome."""
        with tempfile.TemporaryDirectory() as path:
            self._path = f"{path}/db"
            self.db = self._open()
            works = [
                self.write, self.write, self.write, self.write_groups, self.write_groups,
                self.read, self.read_snapshots, self.disturb,
            ]  # fmt: skip
            threads = [
                threading.Thread(target=self._guarded, args=one, name=one[0].__name__, daemon=True)
                for one in zip(works, range(8), strict=True)
            ]
            for thread in threads:
                thread.start()
            deadline = self.ends + LONGEST
            for thread in threads:
                thread.join(max(0.1, deadline - time.monotonic()))
            stuck = [thread.name for thread in threads if thread.is_alive()]
            if stuck:
                self._errors.append(f"stuck: {stuck}: {stacks()}")
            else:
                self._judge_the_end()
        for what, number in self.counts.items():
            self.outcome.count(what, number)
        self.outcome.violations += [f"seed {self.seed}: {error}" for error in self._errors]

    def _open(self) -> DB:
        """With a mapped log and with a written one, in turns."""
        self._lives += 1
        db = DB(
            self._path, create_if_missing=True, write_buffer_size=16384, max_file_size=16384,
            lru_cache_size=20_000, max_open_files=30, background="thread",
            mapped_log=self._lives % 2 == 1,
        )  # fmt: skip
        return finds_ranges(db)

    def _judge_the_end(self) -> None:
        self.db.close()
        for _ in range(2):
            with self._open() as db:
                for key, number in self.acknowledged.items():
                    if key[:1] != b"g":
                        self._expect(db.get(key), number, self.begun[key], f"{key!r} at the end")
                db.check()
                if db.verify():
                    self._errors.append("damage at the end")

    def _guarded(self, work: Callable[[random.Random, int], str], number: int) -> None:
        rng = random.Random(f"{self.seed} {number}")
        try:
            while time.monotonic() < self.ends and not self._errors:
                db = self.db
                try:
                    what = work(rng, number)
                except lsmkv.ClosedError:
                    while self.db is db and not self._errors and time.monotonic() < self.ends + 9:
                        time.sleep(0.001)
                    what = "calls on a closed store"
                with self._counts_lock:
                    self.counts[what] = self.counts.get(what, 0) + 1
        except BaseException as error:
            self._errors.append(f"{work.__name__}: {error!r}")

    def _expect(self, value: bytes | None, low: int, high: int, what: str) -> int:
        number = -1 if value is None else int(value.split(b" ")[0])
        if not low <= number <= high:
            raise Wrong(f"{what}: {number}, which is not between {low} and {high}")
        return number

    # What the threads do, once; each returns the name of its figure

    def write(self, rng: random.Random, number: int) -> str:
        """Raise one of its own keys, and read it back."""
        key = b"%d-%d" % (number, rng.randrange(OWN_KEYS))
        value = self.begun[key] + 1
        self.begun[key] = value
        text = b"%d " % value + b"x" * rng.randrange(200)
        if rng.random() < 0.02:
            self._ingest({key: text}, number)
        else:
            self.db.put(key, text, sync=rng.random() < 0.01)
        self.acknowledged[key] = value
        self._expect(self.db.get(key), value, value, f"{key!r}, just written")
        return "puts"

    def _ingest(self, entries: dict[bytes, bytes], number: int) -> None:
        path = f"{self._path}-{number}.ldb"
        try:
            with TableWriter(path) as table:
                for key, value in sorted(entries.items()):
                    table.add(key, value)
            self.db.ingest([path])
        finally:
            os.remove(path)

    def write_groups(self, rng: random.Random, number: int) -> str:
        """Set the group's keys to one number, with one batch or one ingest."""
        own = b"g%d" % (number % 2)
        value = self.begun[own] + 1
        self.begun[own] = value
        changes = {key: b"%d %s " % (value, own) + b"y" * rng.randrange(100) for key in GROUP}
        if rng.random() < 0.02:
            self._ingest(changes, number)
        else:
            with self.db.write_batch() as batch:
                for key in rng.sample(GROUP, len(GROUP)):
                    batch.put(key, changes[key])
        self.acknowledged[own] = value
        return "batches"

    def read(self, rng: random.Random, number: int) -> str:
        """Any key, in any way."""
        keys = [key for key in self.begun if key[:1] != b"g"]
        way = rng.randrange(3)
        if way == 0:
            key = rng.choice(keys)
            low = self.acknowledged[key]
            value = self.db.get(key)
            self._expect(value, low, self.begun[key], f"{key!r}")
            return "reads"
        lows = dict(self.acknowledged)
        if way == 1:
            wanted = rng.sample(keys, 4)
            found = dict(zip(wanted, self.db.multi_get(wanted), strict=True))
        else:
            found = dict(self.db.iterator(reverse=rng.random() < 0.5, stop=b"g"))
            wanted = keys
        highs = dict(self.begun)
        for key in wanted:
            self._expect(found.get(key), lows[key], highs[key], f"{key!r} among others")
        return "reads of several keys"

    def read_snapshots(self, rng: random.Random, number: int) -> str:
        """A snapshot sees a batch whole, and goes on seeing what it saw."""
        lows = dict(self.acknowledged)
        with self.db.snapshot() as snapshot:
            highs = dict(self.begun)
            values = [snapshot.get(key) for key in GROUP]
            heads = {None if value is None else value.split(b" ")[:2][0] for value in values}
            owners = {None if value is None else value.split(b" ")[1] for value in values}
            if len(heads) > 1 or len(owners) > 1:
                raise Wrong(f"a torn batch: {values}")
            entries = dict(snapshot.iterator(reverse=rng.random() < 0.5))
            if [entries.get(key) for key in GROUP] != values:
                raise Wrong("a snapshot that changes")
            for key, low in lows.items():
                if key[:1] != b"g":
                    self._expect(entries.get(key), low, highs[key], f"{key!r} in a snapshot")
            if [snapshot.get(key) for key in GROUP] != values:
                raise Wrong("a snapshot that changes")
        return "snapshots"

    def disturb(self, rng: random.Random, number: int) -> str:
        """Everything that rearranges the store, and its end."""
        time.sleep(rng.random() * 0.03)
        chance = rng.random()
        if chance < 0.3:
            self.db.flush()
            return "flushes"
        if chance < 0.5:
            self.db.compact_range()
            return "compactions"
        if chance < 0.6:
            self.db.stats()
            self.db.check()
            return "checks"
        if chance < 0.7:
            with tempfile.TemporaryDirectory() as path:
                self.db.checkpoint(f"{path}/copy")
                with DB(f"{path}/copy", read_only=True) as copy:
                    if len({copy.get(key, b" ").split(b" ")[0] for key in GROUP}) > 1:
                        raise Wrong("a torn batch in a copy")
            return "copies"
        self.db.close()
        self.db = self._open()
        return "openings"


# Signals


class Interrupted(BaseException):
    """Raised by the signal handler, as KeyboardInterrupt is."""


class Alarm:
    """Raises :class:`Interrupted` in the main thread after short, varying times while armed; and
    again a second later, should the interpreter have swallowed the first one, as it does in a
    finalizer.  What it says of that is of no interest."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._report = sys.unraisablehook
        sys.unraisablehook = self._report_others
        self._old = signal.signal(signal.SIGALRM, self._raise)

    def arm(self) -> None:
        """From now on."""
        signal.setitimer(signal.ITIMER_REAL, self._rng.uniform(0.0001, 0.006), 1.0)

    def disarm(self) -> None:
        """No more, nor the one that comes at this moment."""
        while True:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0)
                return
            except Interrupted:
                pass

    def close(self) -> None:
        """As it was before."""
        self.disarm()
        signal.signal(signal.SIGALRM, self._old)
        sys.unraisablehook = self._report

    def _raise(self, _number: int, _frame: FrameType | None) -> None:
        raise Interrupted

    def _report_others(self, unraisable: sys.UnraisableHookArgs) -> None:
        if not isinstance(unraisable.exc_value, Interrupted):
            self._report(unraisable)


def write_until_interrupted(
    db: DB, model: dict[bytes, set[bytes]], rng: random.Random, alarm: Alarm
) -> None:
    """The model holds the values that a key may have."""
    pending: dict[bytes, bytes] = {}
    try:
        alarm.arm()
        while True:
            value = b"%d" % rng.randrange(10**9)
            pending = {b"%04d" % rng.randrange(500): value for _ in range(rng.choice((1, 1, 5)))}
            with db.write_batch() as batch:
                for key in pending:
                    batch.put(key, pending[key])
            for key in pending:
                model[key] = {value}
            pending = {}
            if rng.random() < 0.02:
                db.flush()
    except Interrupted:
        pass
    finally:
        alarm.disarm()
    for key, value in pending.items():
        model.setdefault(key, {b"none"}).add(value)  # written or not: both are right


def storm(outcome: Outcome, interrupts: int, seed: int) -> None:
    """Ctrl-C at any moment, beside a thread that writes: what was acknowledged stays."""
    env = MemoryEnv(mapped_logs=True)
    rng = random.Random(seed)
    model: dict[bytes, set[bytes]] = {}
    others: list[BaseException] = []
    # What a handler raises in a callback of the garbage collector is swallowed by the interpreter.
    callbacks = list(gc.callbacks)
    gc.callbacks.clear()
    alarm = Alarm(seed + 1)
    try:
        for life in range(5):
            with DB(
                "/db", create_if_missing=True, env=env, write_buffer_size=4096,
                background="thread", mapped_log=life % 2 == 0,
            ) as db:  # fmt: skip
                done = threading.Event()

                def write(db: DB = db, done: threading.Event = done, life: int = life) -> None:
                    number = 0
                    try:
                        while not done.is_set():
                            number += 1
                            db.put(b"other", b"%d %d" % (life, number))
                            if db.get(b"other") != b"%d %d" % (life, number):
                                raise Wrong("another thread's write is lost")
                            time.sleep(0.0005)
                    except BaseException as error:
                        others.append(error)

                other = threading.Thread(target=write, daemon=True)
                other.start()
                for _ in range(interrupts // 5):
                    write_until_interrupted(db, model, rng, alarm)
                    outcome.count("interrupts")
                    _judge_logs(env, outcome)
                done.set()
                other.join(LONGEST)
                if other.is_alive():
                    outcome.violations.append(f"seed {seed}: the other is stuck: {stacks()}")
                    return
                _judge(db, model, outcome)
                db.check()
        with DB("/db", env=env) as db:
            _judge(db, model, outcome)
    finally:
        alarm.close()
        gc.callbacks.extend(callbacks)
    outcome.violations += [f"seed {seed}: beside a storm: {error!r}" for error in others]


def _judge(db: DB, model: dict[bytes, set[bytes]], outcome: Outcome) -> None:
    wrong = [key for key in model if db.get(key, b"none") not in model[key]]
    if wrong:
        outcome.violations.append(f"lost by an interrupt: {wrong[:5]}")
    more = dict(db).keys() - model.keys() - {b"other"}
    if more:
        outcome.violations.append(f"never written: {sorted(more)[:5]}")


def _judge_logs(env: MemoryEnv, outcome: Outcome) -> None:
    """Whatever was interrupted: in a log each batch starts where the one before it ended."""
    with env.open_directory("/db") as directory:
        for name in directory.names():
            if not name.endswith(".log"):
                continue
            expected = -1
            try:
                file = directory.open(name)
            except FileNotFoundError:
                continue  # it has just been flushed
            with file:
                for record in LogReader(file):
                    sequence, operations = decode_batch(record.payload)
                    if expected not in (-1, sequence):
                        outcome.violations.append(f"{name}: write {sequence}, not {expected}")
                    expected = sequence + len(operations)

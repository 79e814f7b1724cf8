"""Lives of processes that share a store, for ``sharing_study.py``.

As a program it is the template: it reads ``NAME SEED FILE`` a line, forks a process that lives
until it is killed, and answers with its id.  What a process does, and when, it writes to its file;
the clock is one for all processes.  A line with a ``?`` says what begins.

A process has a group, which the children are in that it forks.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import traceback
import warnings

import lsmkv
from lsmkv import SharedDB

_LONGEST_CHILD = 2.0
"""Seconds for which a child does nothing before it ends, at most."""
PARTS = (b"", b"a", b"b")
"""The ends of the keys of a batch."""
_PADDING = b" " + b"x" * 200
_OPTIONS = {"create_if_missing": True, "write_buffer_size": 65536, "patience": 30.0}


def key_of(name: int) -> bytes:
    """The key to which only the process of that name writes: 1, 2, 3, ..."""
    return b"p%d" % name


def number(value: bytes | None) -> int:
    """The number in a value; 0 for none."""
    return 0 if value is None else int(value.split()[0])


class Life:
    """One process."""

    def __init__(self, path: str, name: int, names: int, seed: int, out: str) -> None:
        self._rng = random.Random(seed)
        self._name = name
        self._names = names
        self._place = out
        self._children = 0
        self._out = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._db = SharedDB(path, **_OPTIONS)  # type: ignore[arg-type]
        self._role = ""
        self._own = 0  # until the first count of this life
        self._held: tuple[lsmkv.Snapshot, dict[bytes, bytes]] | None = None
        began = time.monotonic_ns()
        self._last = number(self._db.get(key_of(name)))
        self._say("r", name, self._last, began, time.monotonic_ns())

    def live(self) -> None:
        """Until it is killed."""
        reading = (*((self._read, 35), (self._snapshot, 10), (self._scan, 6), (self._hold, 3)),)
        writing = (
            *((self._write, 35), (self._count, 4), (self._count_alone, 6), (self._sum, 2)),
            *((self._churn, 6), (self._flush, 2), (self._fork, 1)),
        )
        # One that writes notices at once that its owner has gone; one that only reads does not.
        acts = reading if self._rng.random() < 0.3 else reading + writing
        calls = [call for call, _ in acts]
        weights = [weight for _, weight in acts]
        while True:
            if self._db.role != self._role:
                self._role = self._db.role
                self._say("role", self._role)
            self._rng.choices(calls, weights)[0]()

    def _say(self, *words: object) -> None:
        os.write(self._out, (" ".join(map(str, words)) + "\n").encode())

    def _write(self) -> None:
        self._last += 1
        began = time.monotonic_ns()
        self._say("w?", self._last, began)
        with self._db.write_batch(sync=self._rng.random() < 0.05) as batch:
            for part in PARTS:
                batch.put(key_of(self._name) + part, b"%d" % self._last + _PADDING)
        self._say("w", self._last, began, time.monotonic_ns())

    def _read(self) -> None:
        name = self._rng.randrange(self._names)
        began = time.monotonic_ns()
        found = number(self._db.get(key_of(name)))
        self._say("r", name, found, began, time.monotonic_ns())

    def _snapshot(self) -> None:
        name = self._rng.randrange(self._names)
        began = time.monotonic_ns()
        with self._db.snapshot() as snapshot:
            taken = time.monotonic_ns()
            found = [number(snapshot.get(key_of(name) + part)) for part in PARTS]
        self._say("b", name, *found, began, taken)

    def _hold(self) -> None:
        """Look at a snapshot again that was taken long before, and take another one."""
        if self._held is not None:
            snapshot, before = self._held
            now = dict(snapshot.iterator())
            if now != before:
                self._say("wrong", f"a snapshot of {len(before)} keys has changed")
            snapshot.close()
        taken = self._db.snapshot()
        self._held = taken, dict(taken.iterator())

    def _scan(self) -> None:
        began = time.monotonic_ns()
        pairs = self._db.iterator(prefix=b"p")
        taken = time.monotonic_ns()
        found: dict[bytes, list[int]] = {}
        for key, value in pairs:
            found.setdefault(key.rstrip(b"ab"), []).append(number(value))
        for key, numbers in found.items():
            self._say("b", int(key[1:]), *numbers, began, taken)

    def _count(self) -> None:
        self._say("c?")
        value = self._db.update(b"counter", lambda old: b"%d" % (number(old) + 1))
        self._say("c", number(value))

    def _count_alone(self) -> None:
        """Under a key that no other process counts under: an increment is not made twice."""
        key = b"own%d" % self._name
        sync = self._rng.random() < 0.5  # which leaves time to be killed before the answer
        value = number(self._db.update(key, lambda old: b"%d" % (number(old) + 1), sync=sync))
        if 0 < self._own < value - 1:
            self._say("wrong", f"process {self._name} counted from {self._own} to {value}")
        self._own = value

    def _sum(self) -> None:
        """A transaction over a range."""
        try:
            with self._db.transaction() as transaction:
                total = sum(number(value) for _, value in transaction.iterator(prefix=b"p"))
                transaction.put(b"total", b"%d" % total)
        except lsmkv.ConflictError:
            pass

    def _churn(self) -> None:
        key = b"k%d" % self._rng.randrange(500)
        self._db.put(key, _PADDING)
        if self._rng.random() < 0.3:
            self._db.delete(key)

    def _fork(self) -> None:
        """A child that reads and counts for a while, and outlives this process if that is killed.

        It never writes what only the process of its name may.
        """
        self._children += 1
        out = f"{self._place}-{self._children}"
        seed = self._rng.randrange(1 << 30)
        if os.fork() > 0:
            self._say("child")
            return
        try:
            self._rng = random.Random(seed)
            self._held = None  # which belongs to the parent
            self._out = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            for _ in range(self._rng.choice((0, 10, 30))):
                self._rng.choice((self._read, self._snapshot, self._scan, self._count))()
            time.sleep(self._rng.random() * _LONGEST_CHILD)
        except BaseException:
            _note_error(out)
        os._exit(0)

    def _flush(self) -> None:
        if self._rng.random() < 0.3:
            self._db.compact_range()
        else:
            self._db.flush()


def _note_error(out: str) -> None:
    """Write down what has ended a process."""
    with open(f"{out}.error", "w", encoding="utf-8") as file:
        traceback.print_exc(file=file)


def main() -> None:
    """Fork a life for each line."""
    path, names = sys.argv[1], int(sys.argv[2])
    exec("".join(sys.argv[3:]), {})  # a mistake to be found
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks what became of them
    warnings.simplefilter("ignore", lsmkv.RecoveryWarning)
    for line in sys.stdin:
        name, seed, out = line.split()
        pid = os.fork()
        if pid == 0:
            os.setpgrp()
            try:
                Life(path, int(name), names, int(seed), out).live()
            except BaseException:
                _note_error(out)
            os._exit(1)
        print(pid, flush=True)


if __name__ == "__main__":
    main()

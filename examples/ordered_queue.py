"""A queue of jobs in ordered keys: leases, retries, and no job lost when a worker is killed.

    python examples/ordered_queue.py [DIRECTORY]

A waiting job stands under the time from which it may be done, so the first key is the next job.  A
claim moves it to the end of its lease, in one transaction: after a crash a job waits or is leased,
never both and never neither.  A job whose lease is over waits again, until it has failed too often.
So a job may be done twice (its worker was slow, or died just before it said that it was done), but
never not at all.

What was deleted stays in the way of a scan until a compaction drops it, and a queue deletes at the
front all the time.  So the queue remembers, in memory, where its first key can be, and each scan
begins there: a claim costs the same after a million jobs.

A store is open in one process: these workers are threads.  For workers in other processes or on
other machines, see job_queue.py.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import NamedTuple

import lsmkv

LEASE = 30  # seconds in which a worker has to be done
ATTEMPTS = 3  # after so many a job is put aside, for a person to look at


class Claim(NamedTuple):
    """A job that a worker has until its lease is over."""

    key: bytes
    name: str
    payload: str
    attempts: int


class Queue:
    """Keys are ``waiting:TIME:NAME``, ``leased:...``, ``failed:...``.  The caller has the clock."""

    def __init__(self, db: lsmkv.DB) -> None:
        self._db = db
        self._lock = threading.Lock()
        self._fronts = {state: state + b":" for state in (b"waiting", b"leased", b"failed")}
        """No key of a state is before its front."""
        self._added = 0

    def add(self, name: str, payload: str, due: int) -> None:
        """Add a job with a unique name, to be done once it is due; durable on return."""
        key = at(b"waiting", due, name)
        self._db.put(key, json.dumps([payload, 0]).encode(), sync=True)
        self._may_be_first(key)

    def claim(self, now: int) -> Claim | None:
        """The job that has been due for longest, or None.  Any number of threads may ask."""
        while True:
            found = self._first(b"waiting", now + 1)
            if found is None:
                return None
            key, value = found
            name = key.split(b":", 2)[2].decode()
            leased = at(b"leased", now + LEASE, name)
            if self._move(key, leased, value):  # else another thread was faster: look again
                return Claim(leased, name, *json.loads(value))

    def finish(self, claim: Claim) -> bool:
        """The job is done.  False if the lease was over and another worker may have it now."""
        return self._move(claim.key)

    def give_back(self, now: int) -> int:
        """Let the jobs wait again whose lease is over; how many.  To be called now and then."""
        moved = 0
        while found := self._first(b"leased", now):
            key, value = found
            payload, attempts = json.loads(value)
            state = b"waiting" if attempts + 1 < ATTEMPTS else b"failed"
            to = at(state, now, key.split(b":", 2)[2].decode())
            moved += self._move(key, to, json.dumps([payload, attempts + 1]).encode())
        return moved

    def names(self, state: bytes) -> list[str]:
        """The names of the jobs that are waiting, leased or failed, the next one first."""
        keys = self._db.iterator(prefix=state + b":", include_value=False)
        return [key.split(b":", 2)[2].decode() for key in keys]

    def _move(self, key: bytes, to: bytes = b"", value: bytes = b"") -> bool:
        """Remove a key, and write another one for it; False if another thread was faster."""
        try:
            with self._db.transaction(sync=True) as both:
                if both.get(key) is None:
                    return False
                both.delete(key)
                if to:
                    both.put(to, value)
        except lsmkv.ConflictError:
            return False
        if to:
            self._may_be_first(to)
        return True

    def _first(self, state: bytes, before: int) -> tuple[bytes, bytes] | None:
        """The first key of a state before a time, with its value.  The front moves up to it."""
        with self._lock:
            front, added = self._fronts[state], self._added
        stop = at(state, before)
        with self._db.iterator(start=front, stop=stop) as pairs:
            found = next(pairs, None)
        with self._lock:
            if added == self._added:  # else a key may have come that this iterator did not see
                self._fronts[state] = max(front, stop if found is None else found[0])
        return found

    def _may_be_first(self, key: bytes) -> None:
        """A key was written, perhaps before the front of its state."""
        state = key.partition(b":")[0]
        with self._lock:
            self._fronts[state] = min(self._fronts[state], key)
            self._added += 1


def at(state: bytes, time: int, name: str = "") -> bytes:
    """Seconds have twelve digits, so that keys sort as times do."""
    return b"%b:%012d:%b" % (state, time, name.encode())


def claim_and_die(path: Path, now: int) -> None:
    """A process that ends with a job in its hands, as if it was killed."""
    db = lsmkv.DB(path)
    Queue(db).claim(now)
    os._exit(1)


def main(path: Path) -> None:
    with lsmkv.DB(path, create_if_missing=True) as db:
        queue = Queue(db)
        for number, name in enumerate(("resize photo", "send mail", "index page")):
            queue.add(name, f"payload {number}", due=100 + number)
    process = multiprocessing.get_context("spawn").Process(target=claim_and_die, args=(path, 200))
    process.start()
    process.join()
    with lsmkv.DB(path) as db:
        queue = Queue(db)
        print("after the crash:", queue.names(b"waiting"), "and leased", queue.names(b"leased"))
        print("given back at 210:", queue.give_back(210), "- at 231:", queue.give_back(231))
        now = 231
        while claim := queue.claim(now):
            if claim.name == "send mail":
                print(f"at {now}: {claim.name}: no answer, attempt {claim.attempts + 1}")
                now += LEASE + 1  # the worker hangs, and its lease ends
                queue.give_back(now)
                print(f"at {now}: it says that it is done, too late:", queue.finish(claim))
            else:
                print(f"at {now}: {claim.name}: done:", queue.finish(claim))
        print("waiting:", queue.names(b"waiting"), "- failed:", queue.names(b"failed"))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as directory:
            main(Path(directory, "queue"))

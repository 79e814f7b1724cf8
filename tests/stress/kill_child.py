"""The process that ``kill_study.py`` kills: it writes to a store until then, and says what it did.

Started once, it forks for every order that it reads (a line of JSON): importing takes longer than
most of these lives.  A life's lines on standard output, each one write, so that none is torn:
``LIFE born PID``, ``LIFE open``, ``LIFE busy`` (a flush or a compaction begins), ``LIFE workers``
(there are worker processes), ``LIFE ack WRITER NUMBER``, ``LIFE failed WHY``; and from the process
that forked it ``LIFE dead STATUS``.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
from typing import Any

import lsmkv

_KEYS = 16
_LARGE = 70_000
"""Bytes of a value that takes several blocks of the log."""
_LONGEST = 20.0  # seconds: a life that nobody ends


def operations(seed: int, writer: int, number: int) -> dict[bytes, bytes | None]:
    """What one writer's batch of this number does; None deletes."""
    rng = random.Random(f"{seed} {writer} {number}")
    changes: dict[bytes, bytes | None] = {}
    for _ in range(rng.randrange(1, 5)):
        key = b"%d key %02d" % (writer, rng.randrange(_KEYS))
        changes[key] = (
            None
            if rng.random() < 0.3
            else rng.randbytes(rng.randrange(_LARGE if rng.random() < 0.01 else 200))
        )
    changes[b"%d n" % writer] = b"%d" % number
    return changes


def apply(batch: Any, changes: dict[bytes, bytes | None]) -> None:
    """Put it into a batch, of lsmkv or of plyvel."""
    for key, value in changes.items():
        if value is None:
            batch.delete(key)
        else:
            batch.put(key, value)


class Life:
    """One life, from birth to its sudden end."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._order = order
        self._rng = random.Random(f"{order['seed']} {order['life']}")
        self._end = time.monotonic() + _LONGEST

    def say(self, text: str) -> None:
        """One line, in one piece."""
        os.write(1, f"{self._order['life']} {text}\n".encode())

    def run(self) -> None:
        """Open, and write until the end."""
        self.say(f"born {os.getpid()}")
        db = lsmkv.DB(self._order["path"], create_if_missing=True, **self._order["options"])
        self.say("open")
        numbers = self._order["numbers"]
        if not self._order["writes"]:
            time.sleep(_LONGEST)
        elif len(numbers) == 1:
            self._alternate(db, numbers[0])
        else:
            for writer, number in enumerate(numbers):
                threading.Thread(
                    target=self._guarded, args=(db, writer, number), daemon=True
                ).start()
            self._disturb(db)

    def _guarded(self, db: lsmkv.DB, writer: int, number: int) -> None:
        try:
            while time.monotonic() < self._end:
                number = self._write(db, writer, number)
        except BaseException as error:
            self.say(f"failed {error!r}")

    def _write(self, db: lsmkv.DB, writer: int, number: int) -> int:
        batch = lsmkv.WriteBatch()
        apply(batch, operations(self._order["seed"], writer, number + 1))
        db.write(batch, sync=self._rng.random() < 0.02)
        self.say(f"ack {writer} {number + 1}")
        return number + 1

    def _alternate(self, db: lsmkv.DB, number: int) -> None:
        """One writer, which does everything else between its writes, and reopens the store."""
        while time.monotonic() < self._end:
            for _ in range(self._rng.randrange(40)):
                number = self._write(db, 0, number)
            self._look_for_workers(db)
            what = self._rng.randrange(4)
            if what == 0:
                db.close()
                db = lsmkv.DB(self._order["path"], **self._order["options"])
            else:
                self._work(db, what)

    def _disturb(self, db: lsmkv.DB) -> None:
        """What goes on beside the writers."""
        while time.monotonic() < self._end:
            time.sleep(self._rng.random() * 0.01)
            self._look_for_workers(db)
            self._work(db, self._rng.randrange(4))

    def _work(self, db: lsmkv.DB, what: int) -> None:
        if what == 1:
            self.say("busy")
            db.flush()
        elif what == 2:
            self.say("busy")
            db.compact_range()
        elif what == 3:
            with db.snapshot() as snapshot:
                sum(1 for _ in snapshot)

    def _look_for_workers(self, db: lsmkv.DB) -> None:
        background = db._background
        if background is not None:
            pool = background.workers
            if pool._flush_worker.is_running or pool._compaction_worker.is_running:
                self.say("workers")


def main() -> None:
    """Give life to whatever is asked for."""
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            life = Life(order)
            try:
                life.run()
            except BaseException as error:
                life.say(f"failed {error!r}")
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        os.write(1, f"{order['life']} dead {os.waitstatus_to_exitcode(status)}\n".encode())


if __name__ == "__main__":
    main()

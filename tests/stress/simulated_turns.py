"""A program in which simulated processes take turns in ``run`` and ``update`` on the same keys.

It is for :func:`lsmkv.testing.simulate`.  In some lives processes are killed at a switch point that
was drawn before, the owner of the store among them, or soon after their turn has come; in some a
process is stopped for longer than a turn.

The program fails if

* a function is called more often than is promised: n + 5 times with n threads, and n + 1 times more
  for each owner that has gone, unless a process was stopped;
* somebody waits for the turn of a dead process, since turns last for ever unless one is stopped;
* an increment is lost, or there twice.
"""

from __future__ import annotations

import logging
import random
from typing import Any

from lsmkv import DB, SharedDB, Transaction
from lsmkv.engine.db.handles import transaction_turns
from lsmkv.engine.db.handles.transaction_turns import FREE_ATTEMPTS
from lsmkv.testing import Run
from lsmkv.testing.processes import Process

_PATH = "/db"
_SPANS = (200, 800, 3000)
"""Switch points, within which a process is killed or stopped."""
_FOR_EVER = 1e6
_TURN = 3.0
"""Simulated seconds."""


def program(run: Run) -> None:
    """One life."""
    logging.getLogger("lsmkv").setLevel(logging.CRITICAL)
    rng = run.rng
    ends = rng.choice(("all live", "kills", "kills in turns", "a stop"))
    stops = ends == "a stop"
    transaction_turns.LONGEST_TURN = _TURN if stops else _FOR_EVER  # type: ignore[misc]
    some = [_Life(run, rng, number) for number in range(rng.choice((2, 2, 3)))]
    run.kept["lives"] = some  # a killed process finalizes nothing
    if ends == "kills":
        for one in rng.sample(some, rng.choice((1, 1, len(some) - 1))):
            one.process.kill_after(rng.randint(1, rng.choice(_SPANS)))
    elif ends == "kills in turns":
        rng.choice(some).dies_in_turn_after = rng.randint(1, 60)
    for one in some:
        one.process.start(one.live, some)
    while stops and not all(one.opened for one in some):
        run.sleep(0.001)
    if stops:
        rng.choice(some).process.stop_after(rng.randint(1, rng.choice(_SPANS)))
    while stops and not all(one.closed for one in some):
        run.sleep(2 * _TURN)
        for one in some:
            one.process.go_on()
    run.join()

    killed = sum(one.process.killed for one in some)
    threads = sum(one.threads for one in some)
    if not stops:
        most = threads + FREE_ATTEMPTS + killed * (threads + 1)
        worst = max(one.worst for one in some)
        assert worst <= most, f"{worst} calls by one of {threads} threads, {killed} killed"
    with DB(_PATH, env=run.env, create_if_missing=True, background="inline") as db:
        done = int(db.get(b"n", b"0"))
    least, begun = sum(one.done for one in some), sum(one.begun for one in some)
    assert least <= done <= begun, f"{done} increments of {least} to {begun}"


class _Life:
    """One process, whose threads increment a number."""

    def __init__(self, run: Run, rng: random.Random, number: int) -> None:
        self.process: Process = run.process(f"process {number}")
        self.threads = rng.choice((1, 1, 2))
        self.left = self.threads
        """Threads that have not ended."""
        self.opened: SharedDB | None = None
        self.closed = False
        self.dies_in_turn_after = 0
        """Switch points; 0 if it does not."""
        self.worst = self.done = self.begun = 0
        self._run = run
        self._lasts = rng.random() < 0.6
        self._times = rng.randint(1, 3) if self._lasts else rng.randint(1, 12)
        self._seconds = rng.choice((0.01, 0.03)) if self._lasts else rng.choice((0, 0.001, 0.003))

    def live(self, some: list[_Life]) -> None:
        """Open the store, and close it when the others have ended: they keep their owner."""
        with SharedDB(_PATH, env=self.process.env, create_if_missing=True) as db:
            self.opened = db
            for _ in range(self.threads):
                self.process.start(self._count, db)
            while any(one.left > 0 and not one.process.killed for one in some):
                self._run.sleep(0.01)
        self.closed = True

    def _count(self, db: SharedDB) -> None:
        for number in range(self._times):
            self.begun += 1
            calls = 0

            def more(old: bytes | None) -> bytes:
                nonlocal calls
                calls += 1
                if calls == FREE_ATTEMPTS + 1 and self.dies_in_turn_after > 0:
                    self.process.kill_after(self.dies_in_turn_after)
                self._run.sleep(self._seconds)
                return b"%d" % (int(old or 0) + 1)

            def more_within(transaction: Transaction) -> Any:
                transaction.put(b"n", more(transaction.get(b"n")))

            if number % 2:
                db.update(b"n", more)
            else:
                db.run(more_within)
            self.worst = max(self.worst, calls)
            self.done += 1
        self.left -= 1

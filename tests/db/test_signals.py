"""Ctrl-C at any moment: what was acknowledged stays, and the store goes on."""

from __future__ import annotations

import random
import signal
from types import FrameType

import pytest

from lsmkv import DB
from lsmkv.env.memory import MemoryEnv

INTERRUPTS = 250


class Interrupted(BaseException):
    """Raised by the signal handler, as KeyboardInterrupt is."""


class Alarm:
    """Raises :class:`Interrupted` in the main thread after short, varying times while armed; and
    again a second later, should the interpreter have swallowed the first one."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._old = signal.signal(signal.SIGALRM, self._raise)

    def arm(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, self._rng.uniform(0.0001, 0.006), 1.0)

    def disarm(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)

    def close(self) -> None:
        self.disarm()
        signal.signal(signal.SIGALRM, self._old)

    def _raise(self, _number: int, _frame: FrameType | None) -> None:
        raise Interrupted


def writes(db: DB, model: dict[bytes, set[bytes]], rng: random.Random, alarm: Alarm) -> None:
    """Write until interrupted; the model holds the values that a key may have."""
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


@pytest.mark.usefixtures("signals_are_heard")
def test_nothing_acknowledged_is_lost() -> None:
    env = MemoryEnv()
    rng = random.Random(7)
    alarm = Alarm(8)
    model: dict[bytes, set[bytes]] = {}
    try:
        for _ in range(5):
            with DB("/db", create_if_missing=True, env=env, write_buffer_size=4096) as db:
                for _ in range(INTERRUPTS // 5):
                    writes(db, model, rng, alarm)
                assert all(db.get(key, b"none") in model[key] for key in model)
                assert dict(db).keys() <= model.keys()
                db.check()
    finally:
        alarm.close()
    with DB("/db", env=env) as db:
        assert all(db.get(key, b"none") in model[key] for key in model)

"""Workloads of numbered writes, which say afterwards whether a store lost or tore any of them.

Write number n leaves its number under the key ``n``, so that what a store holds names the state
that it must be in: no batch torn, none missing before one that is there, none missing that was
promised to stay, and nothing deleted come back.
"""

from __future__ import annotations

import logging
import random
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import lsmkv
from lsmkv import DB, RecoveryWarning, TableWriter, WriteBatch
from lsmkv.engine.env.base import Env

PATH = "/db"
TINY: dict[str, Any] = {"write_buffer_size": 1024, "max_file_size": 1024, "block_size": 256}
State = dict[bytes, bytes]
Operations = list[tuple[bytes, bytes | None]]
Step = tuple[str, Operations]

PLAIN = {"write": 16, "write sync": 6, "sync": 1, "flush": 1, "compact": 1}
"""Kinds of steps, and how often each comes.  There are ``reopen``, ``ingest``, ``checkpoint``,
too."""


class Workload:
    """Steps, and the states that a store goes through by them."""

    def __init__(
        self,
        steps: int,
        seed: int,
        size: int = 60,
        *,
        kinds: dict[str, int] | None = None,
        before: Workload | None = None,
    ) -> None:
        """Values of up to ``size`` bytes.  It goes on where ``before`` ends, whose states it has
        too."""
        rng = random.Random(seed)
        weights = PLAIN if kinds is None else kinds
        self.steps: list[Step] = []
        self.states: list[State] = [{}] if before is None else list(before.states)
        """After so many writes; the state's own number is in it, under ``n``."""
        for at in range(steps):
            kind = "write" if at == 0 else rng.choices(list(weights), list(weights.values()))[0]
            operations: Operations = []
            if kind in ("write", "write sync", "ingest"):
                for _ in range(rng.randrange(1, 4)):
                    key = b"key%02d" % rng.randrange(12)
                    deleted = kind != "ingest" and rng.random() < 0.3
                    value = None if deleted else rng.randbytes(rng.randrange(size))
                    operations.append((key, value))
                operations.append((b"n", b"%d" % len(self.states)))
                self.states.append(changed(self.states[-1], operations))
            self.steps.append((kind, operations))


def changed(state: State, operations: Iterable[tuple[bytes, bytes | None]]) -> State:
    """The state after some more operations."""
    after = dict(state)
    for key, value in operations:
        if value is None:
            after.pop(key, None)
        else:
            after[key] = value
    return after


class Progress:
    """How far a run came, in writes."""

    def __init__(self, begun: int = 0, synced: int | None = None) -> None:
        self.begun = begun
        self.acknowledged = begun
        self.synced = begun if synced is None else synced
        self.checkpoints: tuple[int, ...] = ()
        """The state that each one has: the n-th is at ``/copyN``."""

    def changed(self) -> None:
        """Called after every step: for those who want to know when it was."""


def batch_of(operations: Operations) -> WriteBatch:
    """One batch."""
    batch = WriteBatch()
    put_all(batch, operations)
    return batch


def put_all(batch: Any, operations: Iterable[tuple[bytes, bytes | None]]) -> None:
    """Put operations into a batch, of lsmkv or of plyvel; None deletes."""
    for key, value in operations:
        if value is None:
            batch.delete(key)
        else:
            batch.put(key, value)


def take(db: DB, env: Env | None, step: Step, progress: Progress) -> None:
    """One step, but for ``reopen``."""
    kind, operations = step
    if kind == "sync":
        db.sync()
    elif kind == "flush":
        db.flush()
    elif kind == "compact":
        db.compact_range()
    elif kind == "checkpoint":
        db.checkpoint(f"/copy{len(progress.checkpoints)}")
    elif kind == "ingest":
        path = f"/{dict(operations)[b'n'].decode()}.ldb"
        with TableWriter(path, env=env) as table:
            for key, value in sorted(dict(operations).items()):
                assert value is not None
                table.add(key, value)
        db.ingest([path])
    else:
        db.write(batch_of(operations), sync=kind == "write sync")


def run(env: Env, workload: Workload, progress: Progress, **options: Any) -> None:
    """The whole workload on a store that is opened first and closed at the end.

    The first error ends it, and is raised once the store is closed.
    """
    settings: dict[str, Any] = {**TINY, **options}
    db = DB(PATH, create_if_missing=True, env=env, **settings)
    try:
        for step in workload.steps:
            kind, operations = step
            if operations:
                progress.begun += 1
                progress.changed()
            if kind == "reopen":
                db.close()
                db = DB(PATH, env=env, **settings)
            else:
                take(db, env, step, progress)
            progress.acknowledged = progress.begun
            if kind == "checkpoint":
                progress.checkpoints += (progress.begun,)
            elif kind != "write":
                progress.synced = progress.begun
            progress.changed()
    except BaseException:
        try:
            db.close()
        except lsmkv.Error:
            pass
        raise
    db.close()
    progress.synced = progress.begun
    progress.changed()


def judge(
    env: Env, workload: Workload, least: int, most: int, *, go_on: bool = False, **options: Any
) -> int:
    """Open what is there, twice: both times the same state, between the two.  Which one it is.

    ``go_on``: something is written in between.  ``AssertionError`` says what is wrong.
    """
    settings: dict[str, Any] = {**TINY, **options}
    found: list[State] = []
    for _ in range(2):
        try:
            db = DB(PATH, env=env, **settings)
        except lsmkv.NotFoundError:
            assert least == 0, f"there is no store; write {least} was promised to stay"
            return 0
        with db:
            found.append({key: value for key, value in db if key != b"more"})
            db.check()
            if go_on:
                db.put(b"more", b"1", sync=len(found) > 1)
                assert db.get(b"more") == b"1"
    number = int(found[0].get(b"n", b"0"))
    assert least <= number <= most, f"write {number} is the last; {least} to {most} are allowed"
    expected = workload.states[number]
    assert found[0] == expected, f"state {number} is torn: {differences(expected, found[0])}"
    assert found[1] == found[0], f"opened again: {differences(found[0], found[1])}"
    return number


def differences(expected: State, found: State) -> str:
    """The keys that differ, in words."""
    wrong = [
        key for key in sorted(expected.keys() | found.keys()) if expected.get(key) != found.get(key)
    ]
    return ", ".join(
        f"{key!r} is {'missing' if key not in found else 'back' if key not in expected else 'old'}"
        for key in wrong
    )


class History:
    """What was asked of a store and what came of it, when any write may have failed."""

    def __init__(self) -> None:
        self.writes: list[tuple[dict[bytes, bytes | None], bool]] = []
        """Each with whether it was acknowledged."""
        self.synced = 0
        """How many of them, from the first, were said to be durable if acknowledged."""
        self.kept: list[lsmkv.Error] = []
        """Failures of background work: later writes raise them, and the logger warns of them."""

    def judge(self, found: State, *, after_power_cut: bool = False) -> None:
        """Each key has its last acknowledged value, or that of a failed write after it.

        After a power cut those count that were said to be durable.
        """
        allowed: dict[bytes, set[bytes | None]] = {}
        for at, (changes, acknowledged) in enumerate(self.writes):
            for key, value in changes.items():
                if acknowledged and (at < self.synced or not after_power_cut):
                    allowed[key] = {value}
                else:
                    allowed.setdefault(key, {None}).add(value)
        assert found.keys() <= allowed.keys(), "a key that nobody wrote"
        for key, values in allowed.items():
            assert found.get(key) in values, f"{key!r} is not what was acknowledged"
        # Batches are whole: what the number says is there is there, unless written over.
        number = found.get(b"n")
        if number is not None:
            at = next(i for i, (c, _) in enumerate(self.writes) if c.get(b"n") == number)
            later = {key for changes, _ in self.writes[at + 1 :] for key in changes}
            for key, value in self.writes[at][0].items():
                assert key in later or found.get(key) == value, f"write {number!r} is torn"


def run_on(
    env: Env | None, workload: Workload, history: History, path: str = PATH, **options: Any
) -> list[lsmkv.Error]:
    """The workload with no regard to errors; all that were raised."""
    settings: dict[str, Any] = {**TINY, **options}
    errors: list[lsmkv.Error] = []
    progress = Progress()

    def attempt(call: Any) -> bool:
        try:
            call()
        except lsmkv.IOError as error:
            errors.append(error)
            return False
        return True

    db: DB | None = None

    def opened() -> None:
        nonlocal db
        db = DB(path, create_if_missing=True, env=env, **settings)

    def closed() -> None:
        assert db is not None
        background = db._background
        try:
            db.close()
        finally:
            assert db.closed
            if background is not None:
                kept = (background.error, background.no_room)
                history.kept += [error for error in kept if isinstance(error, lsmkv.Error)]

    if not attempt(opened):
        return errors
    for step in workload.steps:
        kind, operations = step
        assert db is not None
        if kind == "reopen":
            if attempt(closed):
                history.synced = len(history.writes)
            if not attempt(opened) and not attempt(opened):
                return errors
            continue
        done = attempt(lambda: take(db, env, step, progress))  # noqa: B023
        if done and kind == "checkpoint":
            progress.checkpoints += (0,)
        if operations:
            history.writes.append((dict(operations), done))
        if done and kind not in ("write", "checkpoint"):
            history.synced = len(history.writes)
    assert db is not None
    attempt(lambda: history.judge(dict(db)))
    for key in [b"key%02d" % n for n in range(12)]:
        attempt(lambda: db.get(key))  # noqa: B023
    if attempt(closed):
        history.synced = len(history.writes)
    return errors


@contextmanager
def quiet() -> Iterator[None]:
    """Thousands of warnings that a log is torn or damaged are no help to anybody."""
    logger = logging.getLogger("lsmkv")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecoveryWarning)
        yield
    logger.setLevel(before)

"""Crashes at every moment of recorded runs: power cuts by three models, and kills.

Half of the runs have mapped logs, whose pages reach the disk in any order.

Every state must open, hold a prefix of the write order that covers each write that was promised to
stay, batches whole, and be the same when it is opened again; so must a state that a second crash
leaves of the recovery.
"""

from __future__ import annotations

import random
import tempfile
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from numbered import PLAIN, TINY, Progress, Workload, differences, judge, quiet
from numbered import run as run_workload
from study import Outcome, Say

import lsmkv
from lsmkv import DB
from lsmkv.testing import CrashState, RecordingEnv, explore

_POINTS = 36
"""Of each workload, at size 1."""
_SECOND_CRASHES = 8
"""One in so many states has its recovery crash as well."""
_SAVED = 3
"""Of so many violations the state is written down."""


@dataclass
class Plan:
    """A kind of workload; a run has some 900 points."""

    name: str
    steps: int
    kinds: dict[str, int]
    size: int = 60
    options: dict[str, Any] = field(default_factory=dict)


PLANS = [
    Plan("syncs", 160, PLAIN),
    Plan(
        "lives",
        135,
        {"write": 16, "write sync": 2, "compact": 2, "reopen": 2, "flush": 1},
        options={"block_restart_interval": 2, "max_open_files": 12},
    ),
    Plan(
        "reused logs",
        190,
        {"write": 40, "write sync": 1, "sync": 1, "reopen": 2},
        options={"reuse_logs": True, "compression": None, "write_buffer_size": 8192},
    ),
    Plan(
        "ingest",
        70,
        {"write": 8, "write sync": 2, "ingest": 3, "checkpoint": 1, "reopen": 1, "flush": 1},
        options={"reuse_logs": True, "background": "thread", "filter_layout": "both"},
    ),
    Plan(
        "blocks",
        250,
        {"write": 12, "write sync": 2, "sync": 1, "reopen": 1},
        size=20_000,
        options={"write_buffer_size": 1 << 18, "max_file_size": 1 << 18, "block_size": 4096},
    ),
]


class Promised(NamedTuple):
    """A note of the recording."""

    begun: int
    acknowledged: int
    synced: int
    checkpoints: tuple[int, ...]


class _NotedProgress(Progress):
    def __init__(self, env: RecordingEnv) -> None:
        super().__init__()
        self._env = env

    def changed(self) -> None:
        self._env.note(Promised(self.begun, self.acknowledged, self.synced, self.checkpoints))


def promised(state: CrashState) -> Promised:
    """What had been promised by then."""
    if not state.notes:
        return Promised(0, 0, 0, ())
    note = state.notes[-1]
    assert isinstance(note, Promised)
    return note


class _Judge:
    def __init__(
        self, plan: Plan, workload: Workload, outcome: Outcome, rng: random.Random
    ) -> None:
        self._plan = plan
        self._workload = workload
        self._outcome = outcome
        self._rng = rng

    def __call__(self, state: CrashState) -> None:
        promise = promised(state)
        killed = state.names is None
        least = promise.acknowledged if killed else promise.synced
        twice = self._rng.randrange(_SECOND_CRASHES) == 0
        if twice:
            self._sync(state)
        # A write after the recovery is left out where the recovery is to crash as well.
        self._judge(state, least, promise, go_on=not twice and self._rng.random() < 0.3)
        if twice:
            for second in state.env.crash_states(points=2, seed=self._rng.randrange(1 << 30)):
                self._outcome.count("crashes of a recovery")
                # What a killed process wrote may be lost yet, but not once it was synced.
                kept = promise.synced if second.names is not None else least
                synced = [note for note in second.notes if isinstance(note, int)]
                try:
                    self._judge(second, max(kept, *synced, 0), promise, go_on=False)
                except (AssertionError, lsmkv.Error) as error:
                    error.add_note(f"after a second crash, {second.label} ({second.moment})")
                    raise

    def _sync(self, state: CrashState) -> None:
        """Open what is left, and have all of it made durable."""
        try:
            with DB("/db", env=state.env, **{**TINY, **self._plan.options}) as db:
                number = int(db.get(b"n", b"0"))
                db.sync()
                state.env.note(number)
        except lsmkv.NotFoundError:
            pass

    def _judge(self, state: CrashState, least: int, promise: Promised, go_on: bool) -> None:
        options = self._plan.options
        judge(state.env, self._workload, least, promise.begun, go_on=go_on, **options)
        for at, number in enumerate(promise.checkpoints):
            with DB(f"/copy{at}", env=state.env, **options) as copy:
                found, expected = dict(copy), self._workload.states[number]
                assert found == expected, f"checkpoint {at}: {differences(expected, found)}"


def run_plan(plan: Plan, mapped_logs: bool, points: int, seed: int, outcome: Outcome) -> int:
    """Record one run, and try so many of its points.  How many there were."""
    workload = Workload(plan.steps, seed, plan.size, kinds=plan.kinds)
    judging = _Judge(plan, workload, outcome, random.Random(seed))
    report = explore(
        lambda env: run_workload(env, workload, _NotedProgress(env), **plan.options),
        judging,
        mapped_logs=mapped_logs,
        points=points,
        seed=seed,
    )
    outcome.count(f"states of {plan.name!r}", report.states)
    if mapped_logs:
        outcome.count("states with mapped logs", report.states)
    for violation in report.violations:
        notes = "; ".join(getattr(violation.error, "__notes__", []))
        log = "mapped" if mapped_logs else "written"
        text = f"{plan.name!r} with seed {seed}, logs {log}: {violation} {notes}".rstrip()
        if len(outcome.violations) < _SAVED:  # another run's threads may go another way
            place = tempfile.mkdtemp(prefix="lsmkv-crash-")
            report.recording.state(violation.label).write_to(f"{place}/disk")
            text += f" (the state is in {place})"
        outcome.violations.append(text)
    return report.states // 4


def run(size: float, seed: int, say: Say) -> Outcome:
    """See ``study.py``."""
    outcome = Outcome()
    with quiet():
        for number, plan in enumerate(PLANS):
            for mapped_logs in (True, False):
                left = max(1, round(_POINTS / 2 * size))
                while left > 0:
                    own = seed * len(PLANS) + number + left
                    left -= run_plan(plan, mapped_logs, left, own, outcome)
                    say(f"{plan.name}: {left} points to go, {len(outcome.violations)} violations")
    return outcome

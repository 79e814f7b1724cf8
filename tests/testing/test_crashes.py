"""lsmkv.testing: the whole run of a program, and every crash of it."""

from __future__ import annotations

import pytest

import lsmkv
from lsmkv import DB
from lsmkv.testing import CrashState, NameModel, RecordingEnv, explore

VALUES = {b"%d" % n: b"v" * n for n in range(12)}


def careful(env: RecordingEnv) -> None:
    with DB("/db", create_if_missing=True, env=env, write_buffer_size=1024) as db:
        for key, value in VALUES.items():
            db.put(key, value, sync=True)
            env.note(key)
        db.compact_range()


def careless(env: RecordingEnv) -> None:
    with DB("/db", create_if_missing=True, env=env, write_buffer_size=1024) as db:
        for key, value in VALUES.items():
            db.put(key, value)
            env.note(key)


def nothing_is_lost(state: CrashState) -> None:
    try:
        db = DB("/db", env=state.env)
    except lsmkv.NotFoundError:
        assert not state.notes
        return
    with db:
        for key in state.notes:
            assert isinstance(key, bytes)
            found = db.get(key)
            assert found == VALUES[key], key


def test_synced_writes_survive() -> None:
    report = explore(careful, nothing_is_lost)
    assert report.violations == []
    assert report.states > 200
    assert report.recording.changes > 40


def test_others_survive_a_kill_alone() -> None:
    report = explore(careless, nothing_is_lost)
    assert report.violations
    for violation in report.violations:
        state = report.recording.state(violation.label)
        assert state.names is not None, "lost by a kill"
        assert isinstance(violation.error, AssertionError)
        assert violation.moment == state.moment
        with pytest.raises(AssertionError):
            nothing_is_lost(state)
    assert explore(careless, nothing_is_lost, models=[]).violations == []


def test_the_models_to_try_can_be_chosen() -> None:
    seen: list[CrashState] = []
    report = explore(
        careful, seen.append, points=7, models=[NameModel.ORDERED], kills=False, seed=9
    )
    assert report.states == len(seen) == 7
    assert {state.names for state in seen} == {NameModel.ORDERED}
    assert all(state.label.endswith("seed 9") for state in seen)


def test_a_run_that_begins_with_something() -> None:
    base = RecordingEnv()
    careful(base)

    def check(state: CrashState) -> None:
        with DB("/db", env=state.env) as db:
            assert VALUES.items() <= dict(db).items()

    def workload(env: RecordingEnv) -> None:
        with DB("/db", env=env) as db:
            db.put(b"more", b"1")
            db.flush()

    report = explore(workload, check, start=base)
    assert report.violations == []
    assert report.states > 50


def test_an_error_of_the_workload_is_raised() -> None:
    with pytest.raises(lsmkv.NotFoundError):
        explore(lambda env: DB("/db", env=env), lambda state: None)


def test_an_interrupt_is_no_violation() -> None:
    def interrupted(state: CrashState) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        explore(lambda env: None, interrupted)


def test_the_report_prints_a_line_for_each_violation() -> None:
    def refuse(state: CrashState) -> None:
        raise lsmkv.CorruptionError("bad", "/db/CURRENT", 3)

    text = str(explore(lambda env: None, refuse, models=[]))
    assert text.splitlines()[0] == "1 states, 1 violations"
    assert text.splitlines()[1].startswith("0, killed: at the end: CorruptionError: /db/CURRENT")

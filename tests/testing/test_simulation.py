"""lsmkv.testing.simulate: one seed is one run, and what fails is found, reduced and reported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
import simulated_store

from lsmkv.testing import Run, SimulatedFailure, SimulationReport, simulate
from lsmkv.testing.interpreted import ChildFailedError
from lsmkv.testing.scheduler import Switch

COUNTING = """
from lsmkv import DB

def count(db):
    for _ in range(2):
        old = int(db.get(b"n", b"0"))
        db.put(b"n", b"%d" % (old + 1))

def program(run):
    with DB("/db", create_if_missing=True, env=run.env) as db:
        run.start(count, db, name="one")
        run.start(count, db, name="two")
        run.join()
        assert db.get(b"n") == b"4", "an increment is lost"
"""


def test_a_lost_increment_is_found_and_reduced_to_one_switch() -> None:
    report = simulate(COUNTING, seed=0, runs=20)
    failure = report.failure
    assert failure is not None
    assert failure.kind == "error"
    assert "AssertionError: an increment is lost" in failure.text
    assert len(failure.schedule) == 1 < failure.found
    forced = [switch for switch in failure.switches if switch.forced]
    assert len(forced) == 1
    assert {forced[0].thread, forced[0].to} == {"one", "two"}
    table = str(report).splitlines()
    assert table[0].endswith("1 failures")
    assert f"seed {failure.seed}: error" in table[1]
    assert sum(line.startswith("* ") for line in table) == 1


@pytest.mark.parametrize("strategy", ["random", "pct"])
def test_a_seed_is_one_run(strategy: Literal["random", "pct"]) -> None:
    first, again = (
        simulate(COUNTING, seed=5, runs=20, strategy=strategy, faults=True, crashes=1, reduce=0)
        for _ in range(2)
    )
    assert first.failure is not None
    assert first == again


def test_a_schedule_is_run_again_exactly() -> None:
    failure = simulate(COUNTING, seed=0, runs=20).failure
    assert failure is not None
    again = simulate(COUNTING, seed=failure.seed, schedule=failure.schedule).failure
    assert again is not None
    assert again.text == failure.text
    assert again.switches == failure.switches
    assert simulate(COUNTING, seed=failure.seed, schedule=[]).failure is None


def test_a_schedule_of_any_length_is_printed_on_one_screen() -> None:
    place = "lsmkv/engine/db/compact/background_jobs.py:428"
    forced = Switch("writer", place, "x" * 90, "waits", "a", True)
    others = [forced._replace(forced=False, thread=f"t{at}") for at in range(100)]
    failure = SimulatedFailure(1, "error", "e" * 200, (), ((1, 2, 3),), 9, (forced, *others))
    table = failure.schedule_table()
    assert len(table) <= 40
    assert table[0] == "65 other switches are left out"
    assert table[2].startswith("*  writer"), "a forced one that is far back is shown"
    assert "…act/background_jobs.py:428  xxx" in table[2]
    assert table[-1].split()[0] == "t99"
    assert max(map(len, str(failure).splitlines())) <= 100


def both(first: str, second: str, more: str = "") -> str:
    return f"""
def one(run, a, b):
{first}

def two(run, a, b):
{second}

def program(run):
    a, b = run.lock(), run.lock()
    {more}
    run.start(one, run, a, b, name="one")
    run.start(two, run, a, b, name="two")
    run.join()
"""


def test_a_deadlock_is_found() -> None:
    report = simulate(
        both("    with a, b: pass", "    with b, a: pass"), seed=0, runs=50, strategy="pct", depth=2
    )
    assert report.failure is not None
    assert report.failure.kind == "deadlock"
    assert "which two holds" in report.failure.text
    assert "which one holds" in report.failure.text
    assert "program.py:" in report.failure.text


def test_a_lost_wake_up_is_found() -> None:
    report = simulate(
        both("    a.acquire()", "    if a.locked(): b.acquire()", "a.acquire()"), seed=0
    )
    assert report.failure is not None
    assert report.failure.kind == "lost wake-up"


def test_a_pause_ends_when_nobody_else_can_run() -> None:
    waits = both("    run.sleep(3600)\n    a.release()", "    a.acquire()", "a.acquire()")
    assert simulate(waits, seed=0, runs=5).failure is None


def test_a_thread_that_does_not_end_is_found() -> None:
    report = simulate(
        both("    while a.locked(): run.step()", "    pass", "a.acquire()"), seed=0, most_steps=500
    )
    assert report.failure is not None
    assert report.failure.kind == "endless"
    assert "500 switch points" in report.failure.text


def test_a_loop_without_calls_is_found_by_its_lines() -> None:
    report = simulate(
        both("    while a.locked(): pass", "    pass", "a.acquire()"),
        seed=0,
        most_steps=500,
        lines=["program"],
    )
    assert report.failure is not None
    assert report.failure.kind == "endless"


BETWEEN_LINES = """
class Count:
    n = 0

def add(count):
    old = count.n
    count.n = old + 1

def program(run):
    count = Count()
    for name in ("one", "two"):
        run.start(add, count, name=name)
    run.join()
    assert count.n == 2
"""


def test_lines_are_switch_points_where_they_are_asked_for() -> None:
    assert simulate(BETWEEN_LINES, seed=0, runs=100).failure is None
    failure = simulate(BETWEEN_LINES, seed=0, runs=100, lines=["program"]).failure
    assert failure is not None
    assert "count.n = old + 1" in [one.source for one in failure.switches if one.forced]


CRASHING = """
from lsmkv import DB, Error

def program(run):
    with DB("/db", create_if_missing=True, env=run.env) as db:
        for n in run.env.notes:
            assert db.get(b"%d" % n), f"{n} is lost by a {run.crash}"
        assert run.life == 0 or run.crash in ("killed", "power cut")
        for n in range(5):
            number = run.life * 10 + n
            db.put(b"%d" % number, b"v", sync=SYNC)
            run.env.note(number)
"""


def test_a_life_finds_what_the_crash_before_it_has_left() -> None:
    assert simulate(CRASHING.replace("SYNC", "True"), seed=0, runs=40, crashes=2).failure is None
    failure = simulate(CRASHING.replace("SYNC", "False"), seed=0, runs=40, crashes=2).failure
    assert failure is not None
    assert "is lost by a power cut" in failure.text
    assert any("a power cut" in event for event in failure.events)


def test_a_call_that_fails_is_part_of_the_seed() -> None:
    program = CRASHING.replace("SYNC", "True")
    failure = simulate(program, seed=0, runs=40, faults=True).failure
    assert failure is not None  # the program lets the error through
    assert any("file system call" in event for event in failure.events)
    again = simulate(program, seed=failure.seed, faults=True).failure
    assert again == failure


def in_this_file(run: Run) -> None:
    assert __name__ != "tests.testing.test_simulation", "the file is imported by another name"
    raise KeyError(run.seed)


def test_a_program_is_named_by_its_function_module_file_or_text() -> None:
    for program in (
        in_this_file,
        f"{__file__}:in_this_file",
        "def program(run):\n    raise KeyError(run.seed)",
    ):
        report = simulate(program, seed=3)
        assert report.failure is not None, program
        assert "KeyError: 3" in report.failure.text
    assert simulate("simulated_store:program", seed=0).runs == 1


@pytest.mark.parametrize(
    ("error", "arguments"),
    [
        (ValueError, {"program": "nothing", "seed": 0}),
        (ValueError, {"program": "m:f", "seed": 0, "runs": 0}),
        (ValueError, {"program": "m:f", "seed": 0, "depth": 0}),
        (ValueError, {"program": "m:f", "seed": 0, "crashes": -1}),
        (ValueError, {"program": "m:f", "seed": 0, "strategy": "luck"}),
        (ValueError, {"program": "m:f", "seed": 0, "runs": 2, "schedule": []}),
        (TypeError, {"program": lambda run: None, "seed": 0}),
        (ChildFailedError, {"program": "no.such.module:f", "seed": 0}),
    ],
)
def test_what_makes_no_sense_is_refused(error: type[Exception], arguments: dict[str, Any]) -> None:
    simulated: Callable[..., SimulationReport] = simulate
    with pytest.raises(error):
        simulated(**arguments)


# lsmkv itself

STORE = f"{Path(simulated_store.__file__)}:program"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"crashes": 2},
        {"crashes": 1, "faults": True},
        {"program": f"{STORE[:-7]}ranges", "crashes": 1},
        {"strategy": "pct", "depth": 4, "crashes": 1, "mapped_logs": True},
    ],
    ids=str,
)
def test_no_schedule_breaks_a_store(options: dict[str, Any]) -> None:
    report = simulate(**({"program": STORE, "seed": 1, "runs": 6} | options))
    assert report.failure is None, str(report)


def test_no_schedule_of_lines_breaks_a_store() -> None:
    report = simulate(STORE, seed=2, runs=1, lines=["lsmkv.engine.db.write"], most_steps=1_000_000)
    assert report.failure is None, str(report)


def test_work_without_threads_is_done_by_the_calls_that_wait_for_it() -> None:
    program = """
from lsmkv import DB

def program(run):
    options = {"background": "inline", "write_buffer_size": 1024}
    with DB("/db", create_if_missing=True, env=run.env, **options) as db:
        for number in range(20):
            db.put(b"%d" % number, bytes(200))
        assert len(list(db)) == 20
"""
    assert simulate(program, seed=0).failure is None

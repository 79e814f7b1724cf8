"""Simulated processes: groups of threads that share stores, and are killed."""

from __future__ import annotations

from pathlib import Path

import pytest
from sharing_mistakes import (
    MISTAKES,
    PAGE,
    SECONDS,
    Mistake,
    look_for,
    page,
    read_outcomes,
    source_of,
)

from lsmkv.testing import SimulationReport, simulate
from lsmkv.testing.simulation import SimulatedFailure

STORES = """
import os
from lsmkv import DB, SharedDB

def opened(process, **options):
    return SharedDB("/db", env=process.env, create_if_missing=True, **options)

"""


def passes(program: str, runs: int = 10) -> SimulationReport:
    report = simulate(STORES + program, seed=0, runs=runs)
    assert report.failure is None, str(report)
    return report


def fails(program: str) -> SimulatedFailure:
    failure = simulate(STORES + program, seed=0, runs=10).failure
    assert failure is not None
    return failure


def test_processes_write_to_one_store() -> None:
    passes("""
def write(process, db):
    db.put(process.name.encode(), b"%d" % os.getpid())

def live(process):
    with opened(process) as db:
        process.start(write, process, db)
        db.update(b"count", lambda old: b"%d" % (int(old or 0) + 1))
        while db.get(process.name.encode()) is None:
            db.wait_for_change(db.sequence, 0.1)

def program(run):
    some = [run.process(name) for name in ("one", "two", "three")]
    for one in some:
        one.start(live, one)
    run.join()
    with DB("/db", env=run.env) as db:
        assert db.get(b"count") == b"3"
        for one in some:
            assert db.get(one.name.encode()) == b"%d" % one.pid
""")


def test_what_members_count_is_never_lost_while_their_owner_lives() -> None:
    """One member is killed at any of its points: no total falls, and the other one's are exact."""
    passes(
        """
def own(process, kept):
    with opened(process, publish_stats=True) as db:
        kept["owns"] = True
        rows = db._part.publishing.counts.rows
        before = [0] * len(rows()[0][2])
        while not kept.get("ended"):
            db.wait_for_change(db.sequence, 0.05)
            now = [sum(words) for words in zip(*(words for _, _, words in rows()))]
            assert all(later >= earlier for earlier, later in zip(before, now))
            before = now
        kept["gets"] = before[0]

def use(process, kept):
    for _ in range(3):
        with opened(process, may_own=False) as db:
            for number in range(3):
                db.put(b"k", b"%d" % number)
                db.get(b"k")
            list(db)
        if process.name == "two":
            kept["finished"] = kept.get("finished", 0) + 3

def program(run):
    owner, one, two = (run.process(name) for name in ("owner", "one", "two"))
    owner.start(own, owner, run.kept)
    while not run.kept.get("owns"):
        run.sleep(0.01)
    one.kill_after(run.seed * 37 % 700)
    one.start(use, one, run.kept)
    two.start(use, two, run.kept)
    while run.kept.get("finished", 0) < 9:
        run.sleep(0.1)
    run.kept["ended"] = True
    run.join()
    assert run.kept["gets"] >= run.kept["finished"]
""",
        20,
    )


def test_what_was_killed_does_nothing_more_and_its_place_is_taken() -> None:
    passes(
        """
def write(process, kept):
    with opened(process) as db:
        for number in range(1, 30):
            db.put(b"k", b"%d" % number)
            kept["written"] = number

def take_over(process, victim, kept):
    victim.kill()
    assert victim.killed
    kept["taken over"] = True
    with opened(process) as db:
        assert db.role == "owner"
        kept["found"] = int(db.get(b"k", b"0"))
        run_step()
        assert kept["found"] == int(db.get(b"k", b"0"))

def program(run):
    global run_step
    run_step = run.step
    one, two = run.process("one"), run.process("two")
    one.start(write, one, run.kept)
    two.start(take_over, two, one, run.kept)
    run.join()
    assert run.kept["found"] - run.kept.get("written", 0) in (0, 1)
    one.start(write, one, run.kept)  # nothing
    run.join()
""",
        40,
    )


def test_a_process_is_killed_at_each_of_its_points() -> None:
    passes(
        """
def live(process, kept):
    with opened(process) as db:
        for number in range(1, 4):
            db.put(b"k", b"%d" % number)
            kept["written"] = number
    kept["points"] = process.points

def program(run):
    whole = run.process()
    whole.start(live, whole, run.kept)
    run.join()
    assert run.kept["points"] > 100
    for point in range(1 + run.seed % 23, run.kept["points"], 23):
        run.kept["written"] = 0
        one = run.process()
        one.kill_after(point)
        one.start(live, one, run.kept)
        run.join()
        assert one.killed and one.points == point
        with DB("/db", env=run.env, create_if_missing=True) as db:
            found = int(db.get(b"k", b"0"))
        assert found in (run.kept["written"], run.kept["written"] + 1) or point < 100
""",
        5,
    )


def test_what_is_of_one_process_is_refused_to_another() -> None:
    failure = fails("""
def program(run):
    opened(run.process("one"))
""")
    assert "this belongs to one: use it in a thread of that process" in failure.text


def test_a_wait_for_a_killed_process_ends() -> None:
    passes("""
def own(process, run):
    db = opened(process)
    run.kept["open"] = True
    run.sleep(1e6)

def ask(process, run):
    while "open" not in run.kept:
        run.sleep(0.1)
    with opened(process) as db:
        assert db.role == "member"
        db.wait_for_change(db.sequence, 1000.0)

def program(run):
    one, two = run.process("one"), run.process("two")
    one.start(own, one, run)
    two.start(ask, two, run)
    run.sleep(10.0)
    one.kill()
    run.join()
""")


def test_others_wait_for_a_stopped_process_and_give_up_in_time() -> None:
    passes(
        """
import errno
from lsmkv import IOError

def own(process, kept):
    kept["owner"] = opened(process)

def ask(process, kept, run, patience):
    db = opened(process, patience=patience)
    kept["joined"] = kept.get("joined", 0) + 1
    while not kept["one"].stopped:
        run.sleep(0.01)
    assert db.get(b"k") == b"v"
    try:
        db.put(process.name.encode(), b"w")
    except IOError as error:
        assert patience and error.errno == errno.ETIMEDOUT and kept["one"].stopped
        kept["gave up"] = True
    else:
        assert not patience and not kept["one"].stopped
    db.close()

def program(run):
    kept = run.kept
    one, two, three = (run.process(name) for name in ("one", "two", "three"))
    kept["one"] = one
    one.start(own, one, kept)
    run.join()
    one.start(lambda: kept["owner"].put(b"k", b"v"))
    run.join()
    two.start(ask, two, kept, run, 0.5)
    three.start(ask, three, kept, run, None)
    while kept.get("joined") != 2:
        run.sleep(0.01)
    one.stop()
    run.sleep(10.0)
    assert kept["gave up"]
    one.go_on()
    run.join()
    one.start(lambda: kept["owner"].close())
    run.join()
    with DB("/db", env=run.env) as db:
        assert db.get(b"three") == b"w"
"""
    )


def test_a_process_is_stopped_at_each_of_its_points() -> None:
    passes(
        """
def live(process, kept):
    with opened(process) as db:
        for number in range(1, 4):
            db.put(process.name.encode(), b"%d" % number)
    kept[process.name] = process.points

def program(run):
    whole = run.process("whole")
    whole.start(live, whole, run.kept)
    run.join()
    for point in range(1 + run.seed % 23, run.kept["whole"], 23):
        one, two = run.process("one"), run.process("two")
        one.stop_after(point)
        one.start(live, one, run.kept)
        two.start(live, two, run.kept)
        run.sleep(0.1)
        assert one.stopped and one.points >= point
        one.go_on()
        run.join()
        with DB("/db", env=run.env) as db:
            assert db.get(b"one") == db.get(b"two") == b"3"
""",
        5,
    )


def test_nobody_lets_a_stopped_process_continue() -> None:
    failure = fails(
        """
def program(run):
    one = run.process("one")
    one.start(run.step)
    one.stop()
    run.join()
"""
    )
    assert failure.kind == "lost wake-up"
    assert "its process is stopped" in failure.text


STRESS = Path(__file__).parents[1] / "stress"
QUICK = ("a write is answered before it is made", "a member reads before it has caught up")


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_each_planted_mistake_of_sharing_applies(mistake: Mistake) -> None:
    assert source_of(mistake).count(mistake.right) == 1


@pytest.mark.parametrize("name", QUICK)
def test_a_planted_mistake_of_sharing_is_found(name: str) -> None:
    (mistake,) = (one for one in MISTAKES if one.name == name)
    kind, *_ = look_for(mistake, 60.0)
    assert kind == "error"


def test_planted_mistakes_of_sharing_were_found() -> None:
    outcomes = read_outcomes()
    assert set(outcomes) <= {mistake.name for mistake in MISTAKES}
    assert "a transaction is not registered" in outcomes
    assert "a forked child keeps the sockets of its parent" in outcomes
    for outcome in outcomes.values():
        assert outcome.kind in ("error", "violation", "deadlock", "lost wake-up", "endless")
        assert outcome.seconds <= SECONDS


def test_the_page_lists_the_mistakes_of_sharing() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text, "say python tests/stress/sharing_mistakes.py --page"


PROGRAMS = (
    *("program", "each_step", "power_fails", "taking_over", "stopped", "come_and_go"),
    *("transactions", "synced", "versions", "ranges", "unanswered", "joining_late"),
    "simulated_turns.py",
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_processes_that_share_a_store_are_right(program: str) -> None:
    """A few runs of what ``tests/stress/sharing_simulation_study.py`` runs by the hundred."""
    place = f"{STRESS / 'simulated_processes.py'}:{program}"
    if program == "simulated_turns.py":
        place = f"{STRESS / program}:program"
    report = simulate(place, seed=11, runs=4, most_steps=1_000_000)
    assert report.failure is None, str(report)


def test_a_write_that_was_given_up_happens_only_if_its_outcome_is_unknown() -> None:
    """The owner is stopped at one of its points; it goes on while the member gives up, or later."""
    report = passes(
        """
from lsmkv import IOError, OutcomeUnknownError

def own(process, kept):
    kept["owner"] = opened(process)

def tick(kept):
    kept["owner"].put(b"own", b"1")

def join(process, kept):
    kept["member"] = opened(process, patience=0.5, may_own=False)
    kept["member"].put(b"first", b"v")

def ask(kept):
    for number in range(2):
        key = b"%d" % number
        try:
            kept["member"].put(key, b"v")
            kept[key] = (b"v",)
        except OutcomeUnknownError:
            kept[key] = (b"v", None)
        except IOError as error:
            kept[key] = (None,)
    kept["member"].close()

def program(run):
    kept = run.kept
    one, two = run.process("one"), run.process("two")
    one.start(own, one, kept)
    run.join()
    two.start(join, two, kept)
    run.join()
    one.stop_after(1 + run.seed % 60)
    one.start(tick, kept)
    two.start(ask, kept)
    run.sleep(0.4999 + 0.0001 * (run.seed % 7) if run.seed % 2 else 20.0)
    one.stop_after(1 << 40)
    one.go_on()
    run.join()
    one.start(lambda: kept["owner"].close())
    run.join()
    with DB("/db", env=run.env) as db:
        for number in range(2):
            key = b"%d" % number
            assert db.get(key) in kept[key], (key, db.get(key), kept[key])
""",
        150,
    )
    assert report.runs == 150

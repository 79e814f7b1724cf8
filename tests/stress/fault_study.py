"""Failing calls: each call of a run in turn, by every error, once or from then on; and full disks.

A failure is reported (but for those of ``LOG``, and of removing a file that nobody needs); nothing
acknowledged is lost, then or after a power cut; nothing hangs; and once the calls work again, the
store opens and works.  Half-done reads and writes are carried on, and nobody notices.
"""

from __future__ import annotations

import errno
import faulthandler
import itertools
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from faulty_system import faulty_system
from numbered import PLAIN, TINY, History, Progress, Workload, judge, quiet, run_on
from numbered import run as run_workload
from study import Outcome, Say

import lsmkv
from lsmkv import DB
from lsmkv.testing import FaultyEnv, NameModel, Tails

LOGS = {True: "mapped", False: "written"}
_LONGEST_CASE = 60.0
"""Seconds, after which a case is said to hang."""


class Mode(NamedTuple):
    """A way to fail."""

    code: int
    sticky: bool
    short: bool = False
    """Half of a write is done before it fails."""

    def __str__(self) -> str:
        text = errno.errorcode[self.code] + (" from then on" if self.sticky else " once")
        return text + (", half done" if self.short else "")


MODES = [
    Mode(errno.EIO, False),
    Mode(errno.EIO, True),
    Mode(errno.ENOSPC, False, True),
    Mode(errno.ENOSPC, True, True),
    Mode(errno.EMFILE, False),
    Mode(errno.EMFILE, True),
    Mode(errno.EINTR, False),
    Mode(errno.EINTR, True, True),
]


@dataclass
class Plan:
    """A kind of workload, and in how many ways each of its calls fails at size 1."""

    name: str
    steps: int
    share: float
    kinds: dict[str, int]
    options: dict[str, Any] = field(default_factory=dict)


PLANS = [
    Plan("plain", 40, 0.7, PLAIN),
    Plan(
        "lives",
        40,
        0.2,
        {"write": 16, "write sync": 3, "compact": 2, "reopen": 3},
        {"compression": None, "max_open_files": 12},
    ),
    Plan("reused logs", 40, 0.2, {"write": 16, "sync": 2, "reopen": 4}, {"reuse_logs": True}),
    Plan(
        "ingest",
        24,
        0.2,
        {"write": 6, "write sync": 2, "ingest": 3, "checkpoint": 1, "flush": 1},
        {"background": "thread", "filter_layout": "both"},
    ),
]
_LOCAL = Plan("local", 24, 0.2, {"write": 16, "write sync": 2, "compact": 1, "reopen": 2})
_HALVES = 0.4
"""Share of the local file system's reads and writes that do half of their work, at size 1."""


def ways(share: float, size: float, rng: random.Random) -> list[Mode]:
    """How a call is to fail: on average ``share * size`` of them, all different while they last."""
    number = share * size
    count = int(number) + (rng.random() < number % 1)
    whole, rest = divmod(count, len(MODES))
    return MODES * whole + rng.sample(MODES, rest)


def may_pass_unnoticed(call: str, path: str, mode: Mode) -> bool:
    """What the store does not need: its diary, that old files go now rather than later, and that
    the disk begins early; that zeros are cut off a log.  And a log or table that was made at the
    next attempt; or a log whose room was reserved then, or is not reserved.  (A log that recovery
    could not open and passed over would be noticed by what the store holds.)"""
    is_log = path.endswith(".log")
    return (
        os.path.basename(path) in ("LOG", "LOG.old")
        or call in ("remove", "unlink", "begin_sync")
        or (call in ("create", "open", "posix_fallocate", "preadv") and is_log and not mode.sticky)
        or (call == "ftruncate" and is_log)
        or (mode.code == errno.ENOSPC and not mode.sticky and is_of_a_table(call, path))
    )


def is_of_a_table(call: str, path: str) -> bool:
    """Whether the call is about a table, or about the directory that has its name: what finds no
    room once is made again.  As long as there is none, the store reports it."""
    name = os.path.basename(path)
    is_directory = "." not in name and "MANIFEST" not in name
    of_directory = call in ("dir_sync", "fsync", "names", "listdir")
    return path.endswith(".ldb") or (of_directory and is_directory)


# On a file system in memory


def fail_in_memory(plan: Plan, mapped_logs: bool, seed: int, n: int, mode: Mode) -> bool:
    """The n-th call fails.  Whether the run had so many.  ``AssertionError`` says what is wrong."""
    workload = Workload(plan.steps, seed, kinds=plan.kinds)
    error = OSError(mode.code, os.strerror(mode.code))
    env = FaultyEnv(mapped_logs=mapped_logs)
    env.fail_at(n, error, sticky=mode.sticky, short=mode.short)
    history = History()
    errors = run_on(env, workload, history, **plan.options)
    if not env.failures:
        assert errors == [], f"errors out of nowhere: {errors}"
        return False
    again = env.history[n - 1 : n] == env.history[n : n + 1]  # nobody comes in between
    check_report(errors + history.kept, env.struck, mode, again)
    rng = random.Random(n)
    cut = env.power_cut(rng.choice(list(NameModel)), rng, tails=rng.choice(list(Tails)))
    env.heal()
    look_again(env.kill() if n % 2 else env, "/db", history, plan.options)
    settings: dict[str, Any] = {**TINY, **plan.options}
    with DB("/db", create_if_missing=True, env=cut, **settings) as db:
        history.judge(dict(db), after_power_cut=True)
    if "checkpoint" not in plan.kinds:  # else the name of a half-made copy may be taken
        stop_and_cut(plan, mapped_logs, workload, n, mode)
    return True


def stop_and_cut(plan: Plan, mapped_logs: bool, workload: Workload, n: int, mode: Mode) -> None:
    """The first error ends the run, and then the power fails."""
    env = FaultyEnv(mapped_logs=mapped_logs)
    error = OSError(mode.code, os.strerror(mode.code))
    env.fail_at(n, error, sticky=mode.sticky, short=mode.short)
    progress = Progress()
    try:
        run_workload(env, workload, progress, **plan.options)
    except lsmkv.IOError:
        pass
    rng = random.Random(n)
    for names in NameModel:
        cut = env.power_cut(names, rng, tails=rng.choice(list(Tails)))
        judge(cut, workload, progress.synced, progress.begun, **plan.options)


def check_report(
    errors: list[lsmkv.Error], struck: list[tuple[str, str]], mode: Mode, again: bool
) -> None:
    """The fault was reported, with its cause.

    ``again``: the call was made again at once, and one lack of a descriptor is overcome by that.
    """
    if not errors and again and mode.code == errno.EMFILE and not mode.sticky:
        return
    if not errors and all(may_pass_unnoticed(call, path, mode) for call, path in struck):
        return
    assert errors, f"{struck[0]} was not reported"
    first = errors[0]
    assert isinstance(first, lsmkv.IOError)
    assert first.errno == mode.code, f"{first!r} is reported of {struck[0]}"


def look_again(env: FaultyEnv | None, path: str, history: History, options: dict[str, Any]) -> None:
    """The calls work again: so does the store, and it holds what was acknowledged."""
    settings: dict[str, Any] = {**TINY, **options}
    with DB(path, create_if_missing=True, env=env, **settings) as db:
        history.judge(dict(db))
        db.check()
        db.put(b"again", b"1", sync=True)
        db.compact_range()
    with DB(path, env=env, **settings) as db:
        history.judge({key: value for key, value in db if key != b"again"})
        assert db.get(b"again") == b"1"
        assert db.verify() == []


# On the local file system


def fail_locally(
    path: str, mapped_log: bool, seed: int, n: int, mode: Mode | None, sticky: bool
) -> bool:
    """The n-th system call fails; or without a mode, the n-th read or write does half of it."""
    workload = Workload(_LOCAL.steps, seed, kinds=_LOCAL.kinds)
    history = History()
    with faulty_system() as system:
        if mode is None:
            system.fail_at(n, None, sticky)
        else:
            system.fail_at(n, mode.code, mode.sticky)
        options = {**_LOCAL.options, "mapped_log": mapped_log}
        errors = run_on(None, workload, history, path, **options)
        if not system.struck:
            assert errors == [], f"errors out of nowhere: {errors}"
            return False
        if mode is None:
            assert errors == [], f"{system.struck[0]} did half of its work: {errors}"
        else:
            check_report(errors + history.kept, system.struck, mode, system.has_room)
            system.heal()
        look_again(None, path, history, options)
    return True


def system_calls(path: str, mapped_log: bool, seed: int, halves: bool) -> int:
    """How many there are in a run."""
    workload = Workload(_LOCAL.steps, seed, kinds=_LOCAL.kinds)
    with faulty_system() as system:
        if halves:
            system.fail_at(1 << 60, None, False)
        run_on(None, workload, History(), path, mapped_log=mapped_log, **_LOCAL.options)
        return system.calls


# All of it


Case = tuple[str, str, Callable[[], bool]]
"""A figure's name, how to see it again, and the case itself."""


def cases_in_memory(size: float, seed: int) -> Iterator[Case]:
    """Every plan's every call, in either mode of the log in half of the ways."""
    rng = random.Random(seed)
    for plan, mapped_logs in itertools.product(PLANS, (True, False)):
        env = FaultyEnv(mapped_logs=mapped_logs)
        run_on(env, Workload(plan.steps, seed, kinds=plan.kinds), History(), **plan.options)
        log = LOGS[mapped_logs]
        for n in range(1, env.calls + 1):
            for at, mode in enumerate(ways(plan.share / 2, size, rng)):
                other = seed + at // len(MODES)
                case = partial(fail_in_memory, plan, mapped_logs, other, n, mode)
                text = f"{plan.name!r}, {log} log, seed {other}, call {n}: {mode}"
                yield f"failed calls, {log} log", text, case


def cases_of_the_system(place: str, size: float, seed: int) -> Iterator[Case]:
    """Every system call of one plan, in either mode of the log in half of the ways."""
    rng = random.Random(seed)
    number = 0

    def new_place() -> str:
        nonlocal number
        number += 1
        return f"{place}/{number}"

    for mapped in (True, False):
        log = LOGS[mapped]
        for n in range(1, system_calls(new_place(), mapped, seed, False) + 1):
            for mode in ways(_LOCAL.share / 2, size, rng):
                case = partial(fail_locally, new_place(), mapped, seed, n, mode, mode.sticky)
                text = f"system call {n}, {log} log, seed {seed}: {mode}"
                yield f"failed system calls, {log} log", text, case
        for n in range(1, system_calls(new_place(), mapped, seed, True) + 1):
            if rng.random() < _HALVES / 2 * size:
                sticky = rng.random() < 0.2
                case = partial(fail_locally, new_place(), mapped, seed, n, None, sticky)
                text = f"read or write {n}, {log} log, seed {seed}: half done"
                yield "half-done system calls", text + ", and all after it" * sticky, case


class _Runner(threading.Thread):
    """Runs cases one after the other, while someone else watches that they go on."""

    def __init__(self, cases: Iterator[Case], outcome: Outcome) -> None:
        super().__init__(daemon=True)
        self._cases = cases
        self._outcome = outcome
        self.current = ""
        self.done = 0

    def run(self) -> None:
        """All of them."""
        for figure, text, case in self._cases:
            self.current = text
            try:
                if case():
                    self._outcome.count(figure)
            except Exception as error:
                self._outcome.violations.append(f"{self.current}: {error!r}")
            self.done += 1


def watched(cases: Iterator[Case], outcome: Outcome, say: Say) -> None:
    """Run the cases; one that hangs is reported, with what every thread is about."""
    runner = _Runner(cases, outcome)
    runner.start()
    while runner.is_alive():
        before = runner.done
        runner.join(_LONGEST_CASE)
        say(f"{runner.done} failing runs, {len(outcome.violations)} violations")
        if runner.is_alive() and runner.done == before:
            with tempfile.TemporaryFile("w+") as file:
                faulthandler.dump_traceback(file)
                file.seek(0)
                outcome.violations.append(f"{runner.current}: hangs\n{file.read()}")
            return


def fill_disks(place: str, outcome: Outcome, say: Say) -> None:
    """Disks that are really full: see ``tests/engine/env/full_disk_child.py``."""
    script = str(Path(__file__).parents[1] / "engine" / "env" / "full_disk_child.py")
    own = ["unshare", "-rm", "sh", "-ec"]
    for case in ("log", "written log", "tables", "killed", "limit"):
        target = f"{place}/{case}"
        os.mkdir(target)
        mounting = f'mount -t tmpfs -o size=3m tmpfs "{target}"'
        if (
            shutil.which("unshare") is None
            or subprocess.run([*own, mounting], check=False, capture_output=True).returncode
        ):
            say("no small file system can be mounted here")
            return
        command = [*own, f'{mounting}; exec "$@"', "sh", sys.executable, "-P", script, case, target]
        try:
            child = subprocess.run(
                [*command, "-"], check=False, capture_output=True, text=True, timeout=_LONGEST_CASE
            )
        except subprocess.TimeoutExpired as error:
            outcome.violations.append(f"full disk, {case}: hangs, having said {error.stdout!r}")
            continue
        if child.returncode:
            ended = f"ended with {child.returncode}: {child.stderr}"
            outcome.violations.append(f"full disk, {case}: {ended}")
        outcome.count("full disks")


def run(size: float, seed: int, say: Say) -> Outcome:
    """See ``study.py``."""
    outcome = Outcome()
    memory = "/dev/shm"  # where there is one, a sync costs nothing
    home = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="lsmkv-fault-", dir=home) as place, quiet():
        watched(cases_in_memory(size, seed), outcome, say)
        watched(cases_of_the_system(place, size, seed), outcome, say)
        fill_disks(place, outcome, say)
    return outcome

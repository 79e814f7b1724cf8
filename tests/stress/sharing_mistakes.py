"""Which planted mistakes of sharing are found: ``sharing_mistakes.py [--page] [NAME...]``.

Each is planted alone, in the source of one function as it is imported.  The modes of
``sharing_simulation_study.py`` run until a run fails, those first that are made for what is wrong.
Simulated processes do not fork; so for forks it is ``sharing_study.py`` that runs, with real ones.

The outcomes are written to ``sharing_mistakes.txt`` as they come, and to the table of
``docs/reference/simulations.md``.  ``--page`` only writes the table.
"""

from __future__ import annotations

import ast
import os
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import sharing_study
from result_rows import SIMULATIONS, quoted, read_rows, write_rows
from sharing_simulation_study import MODES
from simulation_study import try_mode

import lsmkv

SECONDS = 600.0
"""Of one core: how long a mistake is looked for."""
REAL = "kills of real processes"
"""The mode of those for which real processes fork, and are killed."""
_KILLS = 0.2
"""The size of each attempt with them."""
RESULTS = Path(__file__).with_name("sharing_mistakes.txt")
PAGE = SIMULATIONS
_HEAD = """\
# What finds the mistakes of sharing_mistakes.py, which writes this: the kind of failure, the mode,
# the seed, the runs until then and the seconds of a core until then.
"""


class Mistake(NamedTuple):
    """One wrong text in one function."""

    name: str
    module: str
    function: str
    right: str
    """What the source says; it occurs once in the function."""
    wrong: str
    modes: tuple[str, ...] = ()
    """Those that come first."""


class Outcome(NamedTuple):
    """What is known of a mistake."""

    kind: str
    """What kind of failure was found, or ``not found``."""
    mode: str
    seed: int
    runs: int
    """How many there were until it was found, this one included; of real processes: kills."""
    seconds: int
    """Seconds of a core until then."""


_SYNCED = ("reads while the owner syncs",)
_TABLES = ("reads while tables come and go",)
_LASTING = ("transactions that last",)
_HEIRS = ("new owners killed at each step", "processes killed at each step")
_UNANSWERED = ("owners killed before they answer",)
_GUESTS = ("late leases of processes that come and go",)

# One is left out, since nothing comes of it: _PageBound.lease takes a lease and does not look again
# whether its version is still the newest.  _PageBound.confirm looks once more, before it is shown.
MISTAKES = (
    Mistake(
        "a write is answered before it is made",
        "lsmkv.shared.group_commit",
        "GroupCommit.write",
        "self._publishing.expect(operations, encoded, slots, happened)\n",
        "self._publishing.expect(operations, encoded, slots, happened)\n"
        "        self._acknowledge(group, 0)\n",
    ),
    Mistake(
        "a member reads before it has caught up",
        "lsmkv.shared.following",
        "SharedReader.get",
        "happened != self.store.versions.last_sequence",
        "happened == SUPERSEDED",
    ),
    Mistake(
        "a member reads beyond what the page says",
        "lsmkv.shared.following",
        "_PageBound.last",
        "return sequence",
        "return sequence + 100",
        _SYNCED,
    ),
    Mistake(
        "a request is sent again without a look at its slot",
        "lsmkv.shared.handle",
        "SharedHandle._resolve",
        "if fate is Fate.NOT_WRITTEN:",
        "if fate is not Fate.UNKNOWN:",
    ),
    Mistake(
        "a request that its slot names counts as written",
        "lsmkv.shared.handle",
        "SharedHandle._recovered_after",
        "return self._entrance.recovered_after(joined.epoch, part)",
        "return 1 << 60",
        _HEIRS,
    ),
    Mistake(
        "a request is not noted in its slot",
        "lsmkv.shared.publishing",
        "Publishing.begin",
        "self.page.note(slot, request, first, count)",
        "pass",
        _UNANSWERED,
    ),
    Mistake(
        "a table is removed under a lease",
        "lsmkv.shared.publishing",
        "Publishing.is_leased",
        "if self.file.is_leased(self._born.get(number, 0), last):",
        "if False:",
        _TABLES,
    ),
    Mistake(
        "a version is shown that is not the leased one",
        "lsmkv.shared.following",
        "_PageBound.confirm",
        "if last > self.last() or words[VERSIONS] != self._leased:",
        "if last > self.last():",
        _TABLES,
    ),
    Mistake(
        "a transaction is not registered",
        "lsmkv.shared.transactions",
        "OwnerTransactions.begin",
        "self._begun[number] = member, self._store.read_view()\n",
        "self._begun[number] = member, self._store.read_view()\n"
        "            self._begun[number][1].release()\n",
        _LASTING,
    ),
    Mistake(
        "a write that depends on a key asks no table, and does not say so",
        "lsmkv.engine.db.write.unchanged",
        "UnchangedKeys.require",
        "if sequence < store.installed_at:",
        "if False:",
        _LASTING,
    ),
    Mistake(
        "the last owner's page stays valid",
        "lsmkv.shared.joining",
        "Entrance._begin_epoch",
        "before.page.supersede()",
        "pass",
        _UNANSWERED,
    ),
    Mistake(
        "an owner that closes the store leaves its page valid",
        "lsmkv.shared.publishing",
        "Publishing.close",
        "self.page.end()\n",
        "pass\n",
        _GUESTS,
    ),
    Mistake(
        "an owner is ready before it has recovered",
        "lsmkv.shared.joining",
        "Entrance._begin_epoch",
        "return begin_publishing(self._system, directory, file)",
        "made = begin_publishing(self._system, directory, file)\n"
        "            file.announce(made.head, 0)\n"
        "            return made",
        _UNANSWERED,
    ),
    Mistake(
        "a forked child keeps the sockets of its parent",
        "lsmkv.shared.system.sockets",
        "Socket.close_in_child",
        "if fd >= 0:",
        "if False:",
        (REAL,),
    ),
)

_PLANT = """
import inspect
import textwrap
from importlib import import_module

MODULE, FUNCTION, RIGHT, WRONG = {arguments!r}

def plant():
    module = import_module(MODULE)
    owner, _, name = FUNCTION.rpartition(".")
    holder = getattr(module, owner)
    text = textwrap.dedent(inspect.getsource(getattr(holder, name)))
    right = textwrap.dedent(RIGHT)
    assert right in text
    text = text.replace(right, WRONG)
    text = "def planted(__class__):\\n" + textwrap.indent(text, "    ") + "\\n    return " + name
    exec(text, module.__dict__)
    setattr(holder, name, module.planted(holder))

plant()
"""
_PROGRAM = """
import simulated_processes

def program(run):
    simulated_processes.{program}(run)
"""


def source_of(mistake: Mistake) -> str:
    """The source of its function, also where what is installed is compiled."""
    place = Path(lsmkv.__file__).parent.joinpath(*mistake.module.split(".")[1:])
    text = place.with_suffix(".py").read_text(encoding="utf-8")
    owner, _, name = mistake.function.rpartition(".")
    (found,) = (
        function
        for holder in ast.parse(text).body
        if isinstance(holder, ast.ClassDef) and holder.name == owner
        for function in holder.body
        if isinstance(function, ast.FunctionDef) and function.name == name
    )
    return "".join(text.splitlines(keepends=True)[found.lineno - 1 : found.end_lineno])


def planting(mistake: Mistake) -> str:
    """The text of a program that plants it."""
    wrong = mistake.wrong.replace("\n        ", "\n    ")  # as in a function outside its class
    return _PLANT.format(arguments=(mistake.module, mistake.function, mistake.right, wrong))


def look_for(mistake: Mistake, seconds: float) -> Outcome:
    """How it is found, in which mode, and after how much."""
    if REAL in mistake.modes:
        return _look_among_real_ones(mistake, seconds)
    modes = [mode for mode in MODES if "lines" not in mode[2]]
    modes.sort(key=lambda mode: mode[0] not in mistake.modes)
    began = _spent()
    runs = 0
    size = 0.25
    for turn in range(1, 1000):
        for name, share, options in modes:
            more = 4 if name in mistake.modes else 1
            first, left = turn * 1_000_000, max(1, int(share * size * more))
            given = options | {"program": _program(mistake, options)}
            while left > 0:
                if _spent() - began > seconds:
                    return Outcome("not found", "-", 0, runs, round(seconds))
                report = try_mode(0, min(left, _RUNS), given, reduce=0, first=first)
                left -= _RUNS
                first += _RUNS
                runs += report.runs
                if report.failure is not None:
                    failure = report.failure
                    took = round(_spent() - began)
                    _refuse_failure_of_the_source(options, failure.seed)
                    return Outcome(failure.kind, name, failure.seed, runs, took)
        size *= 1.5
    raise AssertionError


_RUNS = 40
"""How many one process runs."""


def _program(mistake: Mistake, options: dict[str, Any]) -> str:
    """The program of a mode, with the mistake."""
    place: str = options["program"]
    return planting(mistake) + _PROGRAM.format(program=place.rpartition(":")[2])


def _refuse_failure_of_the_source(options: dict[str, Any], seed: int) -> None:
    """End the program if a run fails without any mistake, too."""
    report = try_mode(0, 1, options, reduce=0, first=seed)
    if report.failure is not None:
        raise SystemExit(f"a run of the source as it is fails: {report.failure}")


def _look_among_real_ones(mistake: Mistake, seconds: float) -> Outcome:
    """The seconds are those of the clock: nobody counts those of killed processes."""
    began = time.monotonic()
    kills = 0
    seed = 0
    while time.monotonic() - began < seconds:
        seed += 1
        outcome = sharing_study.run(_KILLS, seed, lambda line: None, planting(mistake))
        kills += outcome.figures.get("kills", 0)
        if outcome.violations:
            return Outcome("violation", REAL, seed, kills, round(time.monotonic() - began))
    return Outcome("not found", "-", 0, kills, round(seconds))


def _spent() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def read_outcomes(path: Path = RESULTS) -> dict[str, Outcome]:
    """By the names of the mistakes, as far as they are known."""
    return {
        name: Outcome(kind, mode, *map(int, numbers))
        for name, kind, mode, *numbers in read_rows(path)
    }


def write_outcomes(outcomes: dict[str, Outcome], path: Path = RESULTS) -> None:
    """In the order of the list; others are left out."""
    known = (one.name for one in MISTAKES if one.name in outcomes)
    write_rows(path, _HEAD, ((name, *outcomes[name]) for name in known))


def table(outcomes: dict[str, Outcome]) -> str:
    """What ``docs/reference/simulations.md`` shows of them."""
    lines = [
        "| planted mistake | found as | mode | seed | runs | seconds |",
        "|---|---|---|---:|---:|---:|",
    ]
    lines += [
        f"| {' | '.join(map(str, (one.name, *outcomes[one.name])))} |"
        for one in MISTAKES
        if one.name in outcomes
    ]
    found = [one.name for one in MISTAKES if one.name in outcomes]
    left = [one.name for one in MISTAKES if one.name not in outcomes]
    lines += ["", f"{len(found)} of {len(MISTAKES)} were found on this code."]
    lines += [f"Not found, or not looked for again: {'; '.join(left)}."] if left else []
    return "".join(f"{line}\n" for line in lines)


def page(text: str) -> str:
    """The text of ``docs/reference/simulations.md`` with what is known now."""
    return quoted(text, "sharing mistakes", table(read_outcomes()))


def main() -> int:
    """Look for those that are named, or for all; 1 if one is not found."""
    sys.path.append(str(Path(__file__).parent))
    wanted = sys.argv[1:]
    missed = 0
    for mistake in MISTAKES if wanted != ["--page"] else ():
        if wanted and mistake.name not in wanted:
            continue
        found = look_for(mistake, SECONDS)
        missed += found.kind == "not found"
        print(f"{mistake.name}: {' | '.join(map(str, found))}", flush=True)
        if found.kind != "not found":
            write_outcomes(read_outcomes() | {mistake.name: found})
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

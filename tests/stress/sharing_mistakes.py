"""Which planted mistakes of sharing simulated processes find: ``sharing_mistakes.py [NAME...]``.

Each is planted alone, in the source of one function as the simulation imports it, and the modes of
``sharing_simulation_study.py`` run until a run fails.  What is printed is the table of
``docs/reliability.md``.
"""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

from sharing_simulation_study import MODES
from simulation_study import try_mode

import lsmkv

SECONDS = 600.0
"""Of one core: how long a mistake is looked for."""


class Mistake(NamedTuple):
    """One wrong text in one function."""

    name: str
    module: str
    function: str
    right: str
    """What the source says; it occurs once in the function."""
    wrong: str


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
    ),
    Mistake(
        "a request is sent again without a look at its slot",
        "lsmkv.shared.handle",
        "SharedHandle._resolve",
        "if request != gone.request:",
        "if True:",
    ),
    Mistake(
        "a request that its slot names counts as written",
        "lsmkv.shared.handle",
        "SharedHandle._resolve",
        "if recovered < last:",
        "if False:",
    ),
    Mistake(
        "a request is not noted in its slot",
        "lsmkv.shared.publishing",
        "Publishing.begin",
        "self.page.note(slot, request, first, count)",
        "pass",
    ),
    Mistake(
        "a table is removed under a lease",
        "lsmkv.shared.publishing",
        "Publishing.is_leased",
        "if self.file.is_leased(self._born.get(number, 0), last):",
        "if False:",
    ),
    Mistake(
        "a version is leased without a second look",
        "lsmkv.shared.following",
        "_PageBound.lease",
        "if words[VERSIONS] == version:",
        "if True:",
    ),
    Mistake(
        "a transaction is not registered",
        "lsmkv.shared.listener",
        "Listener._begin",
        "self._transactions[number] = member, self._store.read_view()\n",
        "self._transactions[number] = member, self._store.read_view()\n"
        "            self._transactions[number][1].release()\n",
    ),
    Mistake(
        "the last owner's page stays valid",
        "lsmkv.shared.joining",
        "Entrance._begin_epoch",
        "before.page.supersede()",
        "pass",
    ),
    Mistake(
        "an owner that closes the store leaves its page valid",
        "lsmkv.shared.publishing",
        "Publishing.close",
        "self.page.end()\n",
        "pass\n",
    ),
    Mistake(
        "an owner is ready before it has recovered",
        "lsmkv.shared.joining",
        "Entrance._begin_epoch",
        "return Publishing(self._system, directory, file, file.begin_epoch())",
        "made = Publishing(self._system, directory, file, file.begin_epoch())\n"
        "            file.announce(made.head, 0)\n"
        "            return made",
    ),
)

_PROGRAM = """
import inspect
import textwrap
from importlib import import_module

import simulated_processes

MODULE, FUNCTION, RIGHT, WRONG, PROGRAM = {arguments!r}

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

def program(run):
    getattr(simulated_processes, PROGRAM)(run)
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


def with_mistake(mistake: Mistake, program: str) -> str:
    """The text of a program of ``simulated_processes.py`` in which it is planted."""
    wrong = mistake.wrong.replace("\n        ", "\n    ")  # as in a function outside its class
    arguments = (mistake.module, mistake.function, mistake.right, wrong, program)
    return _PROGRAM.format(arguments=arguments)


def look_for(mistake: Mistake, seconds: float) -> tuple[str, str, int, int]:
    """How it is found, in which mode, after how many runs and seconds of a core."""
    began = _spent()
    runs = 0
    size = 0.25
    for turn in range(1, 1000):
        for name, share, options in MODES:
            if _spent() - began > seconds:
                return "not found", "-", runs, round(seconds)
            if "lines" in options:
                continue
            place: str = options["program"]
            given: dict[str, Any] = options | {
                "program": with_mistake(mistake, place.rpartition(":")[2])
            }
            first, number = turn * 1_000_000, max(1, int(share * size))
            report = try_mode(0, number, given, reduce=0, first=first)
            runs += report.runs
            if report.failure is not None:
                return report.failure.kind, name, runs, round(_spent() - began)
        size *= 1.5
    raise AssertionError


def _spent() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def main() -> int:
    """Look for those that are named, or for all; 1 if one is not found."""
    sys.path.append(str(Path(__file__).parent))
    wanted = sys.argv[1:]
    missed = 0
    print("| planted mistake | found as | mode | runs | seconds |\n|---|---|---|---:|---:|")
    for mistake in MISTAKES:
        if wanted and mistake.name not in wanted:
            continue
        found = look_for(mistake, SECONDS)
        missed += found[0] == "not found"
        print(f"| {' | '.join(map(str, (mistake.name, *found)))} |", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

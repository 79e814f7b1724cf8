"""``lsmkv course grade``: a table of a class, for people and for spreadsheets."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Annotated

import typer

from lsmkv.course.command import AsJson, Memory, Seconds
from lsmkv.course.grading import MISSING, Grader, LabGrade, Submission, owns_of
from lsmkv.course.lab import Lab
from lsmkv.course.labs.registry import LABS, find
from lsmkv.course.owned import FAULT_POINTS
from lsmkv.course.predict.registry import task_of
from lsmkv.course.running import MEMORY_MIB, SECONDS, STOPPED, Limits
from lsmkv.course.submissions import loose_files, students
from lsmkv.tools.console import guarded, say, write_line
from lsmkv.tools.drawing import progress
from lsmkv.tools.text import printable


@guarded
def grade(
    directory: Annotated[
        str,
        typer.Argument(metavar="DIR", help=("A folder that contains a folder for each student.")),
    ],
    labs: Annotated[
        str | None,
        typer.Option("--lab", metavar="LAB,...", help="Only these labs, such as 1,2 or bloom."),
    ] = None,
    as_points: Annotated[
        bool,
        typer.Option("--points", help="Print points: 1 for a check, 2 for the last one of a lab."),
    ] = False,
    weight: Annotated[
        list[str] | None,
        typer.Option("--weight", metavar="LAB=N", help="With --points: a lab's points times N."),
    ] = None,
    due: Annotated[
        datetime | None,
        typer.Option(
            "--due",
            metavar="TIME",
            formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"],
            help="Note files that were changed after this local time, such as 2026-03-02T12:00.",
        ),
    ] = None,
    seconds: Seconds = SECONDS,
    memory: Memory = MEMORY_MIB,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print a table for a spreadsheet, with the maxima.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Grade a class: all checks of all labs for each student's folder below DIR.

    Each lab runs in its own processes with a time and a memory limit, without a network if the
    system supports that, as many at once as there are processors. This is not a sandbox: the code
    can read and write what you can. Grade untrusted code in a virtual machine or a container.

    A lab's file may be in a folder below the student's, or be called 'name (1).py'. "Look at" says
    so; it also names what a file imports from lsmkv beyond its starter, and files that are alike
    beyond their starter after names are folded. These are reasons to look, not verdicts.

    If folders have data of their students ('course new --student'), there are two more columns:
    right predictions, and faults found. In points, a prediction counts 1, and a fault 2. "Look at"
    then also names data that are another's, or were changed, and wrong predictions that are those
    of a student with other data.

    JSON: "limits", and "submissions": "name", "student", "look_at" and "labs", for each "lab",
    "title", "file", "passed", "points", "maximum", "checks", with "check", "outcome" and "message"
    as 'check' has them, where the outcome may also be "missing" (no file), and "own": "asked",
    "predictions" and "finding", or null.
    """
    if as_csv and as_json:
        raise ValueError("--csv and --json cannot be combined")
    if weight and not as_points:
        raise ValueError("--weight needs --points")
    chosen = LABS if labs is None else tuple(find(name.strip()) for name in labs.split(","))
    weights = {lab.number: 1.0 for lab in chosen} | dict(map(_weight, weight or ()))
    limits = Limits(seconds, memory)
    names = students(directory)
    for name in loose_files(directory):
        say(f"{name} is in no student's folder, and is not graded")
    with (
        progress("grading", "lab", len(names) * len(chosen)) as shown,
        Grader(limits, shown.advance, chosen, None if due is None else due.astimezone()) as grader,
    ):
        graded = grader.grade(directory, names)
        if as_json:
            answer = [asdict(submission) for submission in graded]
            write_line(json.dumps({"limits": asdict(limits), "submissions": answer}))
            return
        scale = weights if as_points else None
        has_own = bool(owns_of(directory, names)[0])
        if as_csv:
            _print_csv(chosen, graded, scale, has_own)
        else:
            _print_table(chosen, graded, names, scale, has_own)


def _weight(text: str) -> tuple[int, float]:
    """The lab's number and the factor of ``LAB=N``."""
    name, _, factor = text.partition("=")
    try:
        return find(name).number, float(factor)
    except ValueError as error:
        raise ValueError(f"--weight {text}: it must be LAB=N, such as 4=1.5 ({error})") from None


def _maxima(labs: Sequence[Lab], weights: Mapping[int, float] | None) -> list[float]:
    """The most that can be reached in each lab: checks, or points."""
    if weights is None:
        return [len(lab.checks) for lab in labs]
    return [(len(lab.checks) + 1) * weights[lab.number] for lab in labs]


def _reached(one: Submission, weights: Mapping[int, float] | None) -> list[float | None]:
    """Return a student's result in each lab; None where there is no file."""
    return [
        None
        if lab.checks[0].outcome == MISSING
        else lab.passed
        if weights is None
        else lab.points * weights[lab.lab]
        for lab in one.labs
    ]


def _own_maxima(labs: Sequence[Lab], weights: Mapping[int, float] | None) -> list[float]:
    """The most that can be reached with predictions, and with faults."""
    asked = [len(task_of(lab, 0).questions) for lab in labs]
    if weights is None:
        return [sum(asked), len(labs)]
    factors = [weights[lab.number] for lab in labs]
    predicted = sum(number * factor for number, factor in zip(asked, factors, strict=True))
    return [predicted, FAULT_POINTS * sum(factors)]


def _own_reached(one: Submission, weights: Mapping[int, float] | None) -> list[float]:
    """Return a student's results with predictions, and with faults."""
    done = [(lab.own, 1.0 if weights is None else weights[lab.lab]) for lab in one.labs if lab.own]
    each = 1 if weights is None else FAULT_POINTS
    return [
        sum(own.right * factor for own, factor in done),
        sum(own.is_found * each * factor for own, factor in done),
    ]


def _print_csv(
    labs: Sequence[Lab],
    graded: Iterable[Submission],
    weights: Mapping[int, float] | None,
    has_own: bool,
) -> None:
    table = csv.writer(sys.stdout, lineterminator="\n")
    maxima = _maxima(labs, weights)
    unit = "checks" if weights is None else "points"
    named = ["predictions", "faults"] if has_own else []
    own_maxima = _own_maxima(labs, weights) if has_own else []
    most = sum(maxima) + (0 if weights is None else sum(own_maxima))
    table.writerow(["student", *(f"lab {lab.number}" for lab in labs), *named, unit, "look at"])
    table.writerow(["maximum", *map(_figure, [*maxima, *own_maxima, most]), ""])
    for one in graded:
        reached = _reached(one, weights)
        own = _own_reached(one, weights) if has_own else []
        total = sum(points or 0 for points in reached) + (0 if weights is None else sum(own))
        cells = ("" if points is None else _figure(points) for points in [*reached, *own])
        table.writerow([one.name, *cells, _figure(total), "; ".join(_look_at(one))])
        sys.stdout.flush()


def _print_table(
    labs: Sequence[Lab],
    graded: Iterable[Submission],
    names: Sequence[str],
    weights: Mapping[int, float] | None,
    has_own: bool,
) -> None:
    wide = max([len(printable(name)) for name in names] + [7])
    unit = "checks" if weights is None else "points"
    looks: list[str] = []
    heads = [f"{lab.number:>5}" for lab in labs]
    maxima = [f"{_figure(n):>5}" for n in _maxima(labs, weights)]
    if has_own:
        heads += [f"{name:>13}" for name in ("predictions", "faults")]
        maxima += [f"{_figure(n):>13}" for n in _own_maxima(labs, weights)]
    write_line(f"{'lab':<{wide}}" + "".join(heads))
    write_line(f"{unit:<{wide}}" + "".join(maxima))
    for one in graded:
        cells = zip(one.labs, _reached(one, weights), strict=True)
        own = _own_reached(one, weights) if has_own else []
        write_line(
            f"{printable(one.name):<{wide}}"
            + "".join(_cell(lab, reached) for lab, reached in cells)
            + "".join(f"{_figure(points):>13}" for points in own)
        )
        looks += [f"{one.name}: {words}" for words in _look_at(one)]
        sys.stdout.flush()
    numbers = "passed checks" if weights is None else "points"
    write_line(f"The numbers are {numbers}. -: no file; !: a check was stopped.")
    if looks:
        write_line("Look at:")
        for words in looks:
            write_line(f"  {printable(words)}")


def _look_at(one: Submission) -> list[str]:
    """Return remarks for the teacher, with the checks that were stopped."""
    stopped = [
        f"lab {lab.lab} {result.message.splitlines()[0].removeprefix('it ')}"
        for lab in one.labs
        for result in lab.checks
        if result.outcome == STOPPED
    ]
    return [*one.look_at, *dict.fromkeys(stopped)]


def _figure(number: float) -> str:
    return f"{number:g}"


def _cell(lab: LabGrade, reached: float | None) -> str:
    if reached is None:
        return f"{'-':>5}"
    mark = "!" if any(check.outcome == STOPPED for check in lab.checks) else ""
    return f"{f'{_figure(reached)}{mark}':>5}"

"""``lsmkv course``: make a folder, read a lab, check what was written, grade a class."""

from __future__ import annotations

import csv
import errno
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.markdown import Markdown

from lsmkv.course.failure import place_of
from lsmkv.course.grading import MISSING, Grader, LabGrade, Submission
from lsmkv.course.lab import Check, Lab
from lsmkv.course.labs.registry import LABS, find
from lsmkv.course.predict.command import write_beside
from lsmkv.course.predict.keeping import require_predicted, run_beside
from lsmkv.course.predict.registry import write_for
from lsmkv.course.running import (
    MEMORY_MIB,
    NOT_WRITTEN,
    PASSED,
    SECONDS,
    STOPPED,
    Limits,
    Result,
    run_checks,
)
from lsmkv.course.steps import current_lab, has_begun, lab_file, next_step
from lsmkv.course.submissions import labs_beside, loose_files, students
from lsmkv.tools.console import MISS, guarded, say, stdout_is_terminal, write_line
from lsmkv.tools.drawing import progress, stdout_console
from lsmkv.tools.text import count, printable, wrap

_INTERVAL = 0.3
"""Seconds between checks of a watched file."""

_PICTURE = re.compile(r"!\[([^]]*)\]\([^)]*\)")
"""A picture; a terminal shows its alternative text."""

_COMMENT = re.compile(r"<!--.*?-->\n?")
"""For programs only."""

_INDENT = " " * 15
"""The indentation below the name of a check."""

LabName = Annotated[
    str, typer.Argument(metavar="LAB", help="The lab's number or short name: 4 or bloom.")
]
MaybeLabName = Annotated[
    str | None,
    typer.Argument(
        metavar="[LAB]",
        help="The lab's number or short name; by default the one whose file was saved last.",
    ),
]
FileName = Annotated[
    str | None,
    typer.Argument(
        metavar="[FILE]", help=("The file; by default the lab's own name, in this folder.")
    ),
]
Seconds = Annotated[
    int,
    typer.Option(
        "--seconds", min=1, metavar="N", help="Stop a check when its code took so many seconds."
    ),
]
Memory = Annotated[
    int, typer.Option("--memory", min=128, metavar="MIB", help="Memory for the code, in MiB.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


@guarded
def new(
    directory: Annotated[
        str, typer.Argument(metavar="DIR", help="The folder; it is made if it does not exist.")
    ],
    student: Annotated[
        str | None,
        typer.Option(
            "--student", metavar="ID", help="Whose folder it is: the data of all labs follow."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a student's folder, with a starter file for each lab. An existing file is an error.

    With --student, each lab has data of its own below 'data': keys, sizes, snapshots, a damaged
    log. They follow from the name, and no other name has the same.

    JSON: "path" and "files", the names of the files written.
    """
    os.makedirs(directory, exist_ok=True)
    files = {os.path.join(directory, lab.file_name): lab for lab in LABS}
    for path in files:
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, "it already exists, and was not changed", path)
    for path, lab in files.items():
        with open(path, "x", encoding="utf-8") as file:
            file.write(lab.starter())
    if student is not None:
        write_for(directory, student)
    if as_json:
        names = [lab.file_name for lab in LABS]
        write_line(json.dumps({"path": directory, "files": names}))
        return
    for path, lab in files.items():
        write_line(f"{path}  lab {lab.number}: {lab.title}")
    first = LABS[0].number
    there = "" if os.path.samefile(directory, ".") else f", after 'cd {printable(directory)}'"
    write_line(f"Read a lab with 'lsmkv course show {first}'.")
    write_line(f"Check what you wrote with 'lsmkv course check {first}'{there}.")


@guarded
def show(
    lab_name: LabName,
    hint: Annotated[
        int | None,
        typer.Option(
            "--hint", metavar="N", min=1, help=("Only the Nth hint; hint 1 reveals the least.")
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the text of a lab, without its hints, or one hint.

    On a terminal the Markdown is formatted.

    JSON: "lab", "title", "text" in Markdown, and "hints", their number.
    """
    lab = find(lab_name)
    hints = lab.hints()
    if hint is not None and hint > len(hints):
        raise ValueError(f"lab {lab.number} has {count(len(hints), 'hint')}")
    text = lab.text_without_hints() if hint is None else hints[hint - 1]
    if as_json:
        answer = {"lab": lab.number, "title": lab.title, "text": text, "hints": len(hints)}
        write_line(json.dumps(answer))
    elif stdout_is_terminal():
        shown = _COMMENT.sub("", _PICTURE.sub(r"*Picture: \1*", text))
        stdout_console().print(Markdown(shown, hyperlinks=False))
    else:
        write_line(_COMMENT.sub("", text).rstrip())


@guarded
def check(
    lab_name: MaybeLabName = None,
    file: FileName = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Check again whenever the file is saved, until Ctrl-C.")
    ] = False,
    seconds: Seconds = SECONDS,
    memory: Memory = MEMORY_MIB,
    as_json: AsJson = False,
) -> None:
    """Check a lab: exact bytes, properties, and the student's part in the real engine.

    The exit status is 1 unless all checks pass. The file is run in a process of its own, with the
    limits of 'course grade', and may import the other labs' files in its folder. What it prints is
    shown. At the end one next step is named.

    A folder of 'course new --student' answers the questions of 'course predict' first. They are
    shown beside what the code finds.

    JSON: "lab", "file", "next", "checks": "check", "outcome" (passed, failed, not written, error,
    stopped) and "message" of each, and "predictions": "question", "predicted", "answer" and
    "reason" of each. What the student's code prints goes to stderr then.
    """
    lab = current_lab(".") if lab_name is None else find(lab_name)
    path = os.path.abspath(lab_file(lab, ".") if file is None else file)
    require_predicted(lab, path)
    limits = Limits(seconds, memory)
    if watch and as_json:
        raise ValueError("--watch and --json cannot be combined")
    if as_json:
        results = list(run_checks(lab, path, limits, output=_descriptor(sys.stderr)))
        answer = [asdict(result) for result in results]
        step = next_step(lab, results, os.path.basename(path))
        beside = [asdict(one) for one, _ in run_beside(lab, path, limits, results)]
        found = {"lab": lab.number, "file": path, "checks": answer, "next": step}
        found |= {"predictions": beside} if beside else {}
        write_line(json.dumps(found))
    else:
        results = run_and_print(lab, path, limits)
    while watch:
        seen = _stamps(path)
        write_line(f"Waiting for {os.path.basename(path)} to be saved; Ctrl-C ends.")
        _flush()
        while _stamps(path) == seen or not os.path.exists(path):
            time.sleep(_INTERVAL)
        write_line("")
        run_and_print(lab, path, limits)
    if any(result.outcome != PASSED for result in results):
        raise typer.Exit(MISS)


def _flush() -> None:
    stdout_console().file.flush()


def _descriptor(stream: Any) -> int | None:
    """The file descriptor of a stream, if it has one."""
    try:
        number: int = stream.fileno()
    except (OSError, ValueError, AttributeError):
        return None
    return number


def _stamps(path: str) -> dict[str, tuple[int, int]]:
    """Changes when a file, or another lab beside it, is saved; an editor may have moved it away."""
    stamps: dict[str, tuple[int, int]] = {}
    for one in (path, *labs_beside(path).values()):
        try:
            status = os.stat(one)
        except FileNotFoundError:
            continue
        stamps[one] = status.st_mtime_ns, status.st_ino
    return stamps


def run_and_print(lab: Lab, path: str, limits: Limits) -> list[Result]:
    """Run a lab's checks, and print a line for each when it ends.  Then print how many passed, and
    the next step.

    After Ctrl-C the interrupted line of the student's code is printed last.
    """
    name = os.path.basename(path)
    write_line(f"Lab {lab.number}: {lab.title} ({printable(name)})")
    _flush()
    results: list[Result] = []
    try:
        for result in run_checks(lab, path, limits, output=_descriptor(sys.stdout)):
            _print_result(result, results[-1].message if results else "")
            results.append(result)
            _flush()
    except KeyboardInterrupt as error:
        ended = lab.checks[len(results)].name
        _print_result(Result(ended, "interrupted", place_of(error).strip()), "")
        raise
    passed = sum(result.outcome == PASSED for result in results)
    write_line(f"{passed} of {count(len(results), 'check')} passed.")
    write_beside(lab, path, limits, results)
    _write_wrapped(printable(next_step(lab, results, name)))
    return results


def _print_result(result: Result, before: str) -> None:
    """Print the line of a check, and its message unless it equals the one before."""
    answer = f"  {result.outcome:<11}  {result.check}"
    if result.outcome in (PASSED, NOT_WRITTEN):
        _write_wrapped(f"{answer}: {printable(result.message)}")
        return
    if result.message == before:
        write_line(f"{answer}: the same")
        return
    write_line(answer)
    for line in result.message.split("\n"):
        _write_wrapped(_INDENT + printable(line), is_aligned=line.startswith("  "))


def _write_wrapped(line: str, is_aligned: bool = False) -> None:
    """Write a line, wrapped to the width of the terminal unless its columns must stay."""
    if is_aligned or not stdout_is_terminal():
        write_line(line)
        return
    columns = shutil.get_terminal_size().columns
    for one in wrap(line, max(40, columns), len(_INDENT)):
        write_line(one)


@guarded
def status(
    directory: Annotated[
        str, typer.Argument(metavar="[DIR]", help="The folder; by default this one.")
    ] = ".",
    seconds: Seconds = SECONDS,
    memory: Memory = MEMORY_MIB,
    as_json: AsJson = False,
) -> None:
    """Say how far each lab of a folder is, and what to do next.

    The checks of each lab that is begun are run.

    JSON: "path", "next", and "labs": "lab", "title", "file", "state" (missing, not begun, begun,
    done), "passed" and "checks", their number.
    """
    limits = Limits(seconds, memory)
    now = current_lab(directory)
    answer: list[dict[str, Any]] = []
    step = ""
    with progress("checking", "lab", len(LABS)) as shown:
        for lab in LABS:
            path = os.path.abspath(os.path.join(directory, lab.file_name))
            results: list[Result] = []
            state = "not begun" if os.path.exists(path) else "missing"
            if has_begun(lab, path):
                results = list(run_checks(lab, path, limits))
                state = "begun"
            passed = sum(result.outcome == PASSED for result in results)
            if passed == len(lab.checks):
                state = "done"
            if lab is now:
                step = next_step(lab, results, lab.file_name) if results else _begin(lab)
            answer.append(
                {
                    **{"lab": lab.number, "title": lab.title, "file": lab.file_name},
                    **{"state": state, "passed": passed, "checks": len(lab.checks)},
                }
            )
            shown.advance(1)
    if as_json:
        write_line(json.dumps({"path": directory, "labs": answer, "next": step}))
        return
    for one in answer:
        words = one["state"]
        if words in ("begun", "done"):
            words = f"{one['passed']} of {count(one['checks'], 'check')}"
        write_line(f"{one['lab']:>2}  {one['file']:<20}  {words}")
    _write_wrapped(step)


def _begin(lab: Lab) -> str:
    return f"Next: lab {lab.number}, {lab.title}: 'lsmkv course show {lab.number}'."


@guarded
def plot(
    lab_name: LabName,
    file: FileName = None,
    output: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.svg",
            help=("The picture, replaced if it exists; by default the lab's own name."),
        ),
    ] = None,
    seconds: Seconds = SECONDS,
    memory: Memory = MEMORY_MIB,
    as_json: AsJson = False,
) -> None:
    """Draw what your code measures next to the engine's own figures, as SVG: labs 4 and 8.

    Lab 4: the false-positive rate against bits a key. Lab 8: data blocks read per Get under several
    filters. The exit status is 1 if the code fails. It is run as by 'course check'; a part with
    right answers but other bytes than LevelDB's is drawn, too. The picture needs the extra 'plot'.

    JSON: "lab", "file", "output", and "measured", the figures by their names in the picture.
    """
    try:
        from lsmkv.course.plots import PLOTS, Plot  # noqa: PLC0415 - matplotlib is an extra
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise ValueError(
            "course plot needs matplotlib: pip install '.[plot]' in lsmkv's checkout"
        ) from None
    lab = find(lab_name)
    if lab.slug not in PLOTS:
        others = " and ".join(str(find(slug).number) for slug in PLOTS)
        raise ValueError(
            f"there is no picture of the results of lab {lab.number}; labs {others} have one"
        )
    picture = f"{os.path.splitext(lab.file_name)[0]}.svg" if output is None else output
    if not picture.endswith(".svg"):
        raise ValueError(f"{picture}: the picture is SVG, so its name must end in .svg")
    path = os.path.abspath(lab_file(lab, ".") if file is None else file)
    drawn: list[Plot] = []

    def draw(code: Any) -> str:
        drawn.append(PLOTS[lab.slug](code))
        return drawn[0].what

    checks = [Check("the picture", draw)]
    printed = _descriptor(sys.stderr if as_json else sys.stdout)
    (result,) = run_checks(lab, path, Limits(seconds, memory), checks=checks, output=printed)
    if not drawn:
        _print_result(result, "")
        raise typer.Exit(MISS)
    with open(picture, "wb") as out:
        out.write(drawn[0].svg)
    if as_json:
        answer = {"lab": lab.number, "file": path, "output": picture, "measured": drawn[0].measured}
        write_line(json.dumps(answer))
    else:
        write_line(f"{printable(picture)}  lab {lab.number}: {result.message}")


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

    JSON: "limits", and "submissions": "name", "look_at" and "labs", for each "lab", "title",
    "file", "passed", "points", "maximum" and "checks", with "check", "outcome" and "message" as
    'check' has them, where the outcome may also be "missing" (no file).
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
        if as_csv:
            _print_csv(chosen, graded, scale)
        else:
            _print_table(chosen, graded, names, scale)


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
    """What a student has reached in each lab; None where there is no file."""
    return [
        None
        if lab.checks[0].outcome == MISSING
        else lab.passed
        if weights is None
        else lab.points * weights[lab.lab]
        for lab in one.labs
    ]


def _print_csv(
    labs: Sequence[Lab], graded: Iterable[Submission], weights: Mapping[int, float] | None
) -> None:
    table = csv.writer(sys.stdout, lineterminator="\n")
    maxima = _maxima(labs, weights)
    unit = "checks" if weights is None else "points"
    table.writerow(["student", *(f"lab {lab.number}" for lab in labs), unit, "look at"])
    table.writerow(["maximum", *map(_figure, maxima), _figure(sum(maxima)), ""])
    for one in graded:
        reached = _reached(one, weights)
        total = sum(points or 0 for points in reached)
        cells = ("" if points is None else _figure(points) for points in reached)
        table.writerow([one.name, *cells, _figure(total), "; ".join(_look_at(one))])
        _flush()


def _print_table(
    labs: Sequence[Lab],
    graded: Iterable[Submission],
    names: Sequence[str],
    weights: Mapping[int, float] | None,
) -> None:
    wide = max([len(printable(name)) for name in names] + [7])
    unit = "checks" if weights is None else "points"
    looks: list[str] = []
    write_line(f"{'lab':<{wide}}" + "".join(f"{lab.number:>5}" for lab in labs))
    write_line(f"{unit:<{wide}}" + "".join(f"{_figure(n):>5}" for n in _maxima(labs, weights)))
    for one in graded:
        cells = zip(one.labs, _reached(one, weights), strict=True)
        write_line(
            f"{printable(one.name):<{wide}}"
            + "".join(_cell(lab, reached) for lab, reached in cells)
        )
        looks += [f"{one.name}: {words}" for words in _look_at(one)]
        _flush()
    numbers = "passed checks" if weights is None else "points"
    write_line(f"The numbers are {numbers}. -: no file; !: a check was stopped.")
    if looks:
        write_line("Look at:")
        for words in looks:
            _write_wrapped(f"  {printable(words)}")


def _look_at(one: Submission) -> list[str]:
    """What a teacher should look at, with the checks that were stopped."""
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

"""``lsmkv course``: make a folder, read a lab, check what was written, grade a class."""

from __future__ import annotations

import contextlib
import csv
import errno
import json
import os
import re
import shutil
import sys
import time
from dataclasses import asdict
from types import ModuleType
from typing import Annotated

import typer
from rich.markdown import Markdown

from lsmkv.course.grading import MISSING, Grader, LabGrade, Limits, students
from lsmkv.course.lab import Check, Lab
from lsmkv.course.labs.registry import LABS, find
from lsmkv.course.running import NOT_WRITTEN, PASSED, STOPPED, Result, place, run_one
from lsmkv.tools.console import MISS, guarded, stdout_is_terminal, write_line
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
FileName = Annotated[
    str | None,
    typer.Argument(
        metavar="[FILE]", help=("The file; by default the lab's own name, in this folder.")
    ),
]
Seconds = Annotated[
    int,
    typer.Option("--seconds", min=1, metavar="N", help=("Stop a check after this many seconds.")),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


@guarded
def new(
    directory: Annotated[
        str, typer.Argument(metavar="DIR", help="The folder; it is made if it does not exist.")
    ],
    as_json: AsJson = False,
) -> None:
    """Make a student's folder, with a starter file for each lab. An existing file is an error.

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
    lab_name: LabName,
    file: FileName = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Check again whenever the file is saved, until Ctrl-C.")
    ] = False,
    seconds: Seconds = 60,
    as_json: AsJson = False,
) -> None:
    """Check a lab: exact bytes, properties, and the student's part in the real engine.

    The exit status is 1 unless all checks pass. The file is run in this process, as 'python FILE'
    would run it. A check that takes too long is stopped, except on Windows.

    JSON: "lab", "file", and "checks": "check", "outcome" (passed, failed, not written, error,
    stopped) and "message" of each. What the student's code prints goes to stderr then.
    """
    lab = find(lab_name)
    path = os.path.abspath(lab.file_name if file is None else file)
    if watch and as_json:
        raise ValueError("--watch and --json cannot be combined")
    if as_json:
        with contextlib.redirect_stdout(sys.stderr):
            results = [run_one(lab, path, check, seconds) for check in lab.checks]
        answer = [asdict(result) for result in results]
        write_line(json.dumps({"lab": lab.number, "file": path, "checks": answer}))
    else:
        results = run_and_print(lab, path, seconds)
    while watch:
        seen = _stamp(path)
        write_line(f"Waiting for {os.path.basename(path)} to be saved; Ctrl-C ends.")
        _flush()
        while _stamp(path) in (seen, None):
            time.sleep(_INTERVAL)
        write_line("")
        run_and_print(lab, path, seconds)
    if any(result.outcome != PASSED for result in results):
        raise typer.Exit(MISS)


def _flush() -> None:
    stdout_console().file.flush()


def _stamp(path: str) -> tuple[int, int] | None:
    """Changes when a file is saved; None while an editor has moved it away."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_ino


def run_and_print(lab: Lab, path: str, seconds: int) -> list[Result]:
    """Run a lab's checks, and print a line for each when it ends.  Then print how many passed, and
    the next step.

    After Ctrl-C the interrupted line of the student's code is printed last.
    """
    write_line(f"Lab {lab.number}: {lab.title}")
    results: list[Result] = []
    for check in lab.checks:
        try:
            result = run_one(lab, path, check, seconds)
        except KeyboardInterrupt as error:
            _print_result(Result(check.name, "interrupted", place(error, path).strip()), "")
            raise
        _print_result(result, results[-1].message if results else "")
        results.append(result)
        _flush()
    passed = sum(result.outcome == PASSED for result in results)
    write_line(f"{passed} of {count(len(results), 'check')} passed.")
    if passed < len(results):
        write_line(f"Hints: 'lsmkv course show {lab.number} --hint 1', and so on.")
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
    seconds: Seconds = 60,
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
    path = os.path.abspath(lab.file_name if file is None else file)
    drawn: list[Plot] = []

    def draw(code: ModuleType) -> str:
        drawn.append(PLOTS[lab.slug](code))
        return drawn[0].what

    with contextlib.redirect_stdout(sys.stderr if as_json else sys.stdout):
        result = run_one(lab, path, Check("the picture", draw), seconds)
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
    seconds: Seconds = 20,
    memory: Annotated[
        int, typer.Option("--memory", min=128, metavar="MIB", help="Memory for each check, in MiB.")
    ] = 1024,
    as_csv: Annotated[
        bool,
        typer.Option("--csv", help=("Print how many checks passed, as a table for a spreadsheet.")),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Grade a class: all checks of all labs for each student's folder below DIR.

    Each lab runs in its own processes with a time and a memory limit, without a network if the
    system supports that, as many at once as there are processors. This is not a sandbox: the code
    can read and write what you can. Grade untrusted code in a virtual machine or a container.

    JSON: "limits", and "submissions": "name" and "labs", for each "lab", "title", "file", "passed"
    and "checks", with "check", "outcome" and "message" as 'check' has them, where the outcome may
    also be "missing" (no file).
    """
    if as_csv and as_json:
        raise ValueError("--csv and --json cannot be combined")
    limits = Limits(seconds, memory)
    names = students(directory)
    with (
        progress("grading", "lab", len(names) * len(LABS)) as shown,
        Grader(limits, shown.advance) as grader,
    ):
        graded = grader.grade(directory, names)
        if as_json:
            answer = [asdict(submission) for submission in graded]
            write_line(json.dumps({"limits": asdict(limits), "submissions": answer}))
            return
        if as_csv:
            table = csv.writer(sys.stdout, lineterminator="\n")
            table.writerow(["student", *(f"lab {lab.number}" for lab in LABS)])
            for one in graded:
                table.writerow([one.name, *(_passed_of(lab) for lab in one.labs)])
                _flush()
            return
        wide = max([len(printable(name)) for name in names] + [7])
        write_line(f"{'lab':<{wide}}" + "".join(f"{lab.number:>5}" for lab in LABS))
        write_line(f"{'checks':<{wide}}" + "".join(f"{len(lab.checks):>5}" for lab in LABS))
        for one in graded:
            write_line(f"{printable(one.name):<{wide}}" + "".join(map(_cell, one.labs)))
            _flush()
    write_line("The numbers are passed checks. -: no file; !: a check was stopped.")


def _passed_of(lab: LabGrade) -> str:
    return "" if lab.checks[0].outcome == MISSING else str(lab.passed)


def _cell(lab: LabGrade) -> str:
    if lab.checks[0].outcome == MISSING:
        return f"{'-':>5}"
    mark = "!" if any(check.outcome == STOPPED for check in lab.checks) else ""
    return f"{f'{lab.passed}{mark}':>5}"

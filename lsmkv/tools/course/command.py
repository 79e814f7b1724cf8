"""``lsmkv course``: lay out a folder, read a lab, check what was written, grade a class."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import textwrap
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer
from rich.markdown import Markdown

from lsmkv.tools.console import MISS, guarded, stdout_console, stdout_is_terminal, write_line
from lsmkv.tools.course.grading import Limits, Submission, grade_directory
from lsmkv.tools.course.lab import Lab
from lsmkv.tools.course.labs.registry import LABS, find
from lsmkv.tools.course.running import NOT_WRITTEN, PASSED, Result, run, run_all
from lsmkv.tools.text import count, printable

_INTERVAL = 0.3
"""Seconds between looks at a file that is watched."""

_PICTURE = re.compile(r"!\[([^]]*)\]\([^)]*\)")
"""A picture, in place of which a terminal shows what it says."""

_INDENT = " " * 15
"""What stands below the name of a check."""

LabName = Annotated[
    str, typer.Argument(metavar="LAB", help="The lab's number, or its short name: 4 or bloom.")
]
FileName = Annotated[
    str | None,
    typer.Argument(metavar="[FILE]", help="The file; the lab's own name, in this folder."),
]
AsJson = Annotated[bool, typer.Option("--json", help="The result as JSON.")]


@guarded
def new(
    directory: Annotated[
        str, typer.Argument(metavar="DIR", help="The folder, which is made if it is not there.")
    ],
    as_json: AsJson = False,
) -> None:
    """Lay out a student's folder: a starter file for each lab. A file that is there is an error.

    JSON: "path" and "files", the names of the files written.
    """
    os.makedirs(directory, exist_ok=True)
    files = {os.path.join(directory, lab.file_name): lab for lab in LABS}
    for path in files:
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, "it exists already, and is left as it is", path)
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
    write_line(f"Read a lab with 'lsmkv course show {first}', and in that folder")
    write_line(f"check what you wrote with 'lsmkv course check {first}'.")


@guarded
def show(
    lab_name: LabName,
    hint: Annotated[
        int | None,
        typer.Option("--hint", metavar="N", min=1, help="Only the Nth hint: 1 says the least."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the text of a lab, without its hints, or one hint.

    On a terminal the Markdown is laid out.

    JSON: "lab", "title", "text" in Markdown, and "hints", their number.
    """
    lab = find(lab_name)
    hints = lab.hints()
    if hint is not None and hint > len(hints):
        raise ValueError(f"lab {lab.number} has {count(len(hints), 'hint')}")
    text = lab.text_without_hints() if hint is None else hints[hint - 1]
    if as_json:
        told = {"lab": lab.number, "title": lab.title, "text": text, "hints": len(hints)}
        write_line(json.dumps(told))
    elif stdout_is_terminal():
        stdout_console().print(Markdown(_PICTURE.sub(r"*Picture: \1*", text), hyperlinks=False))
    else:
        write_line(text.rstrip())


@guarded
def check(
    lab_name: LabName,
    file: FileName = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Check again whenever the file is saved, until Ctrl-C.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check a lab: exact bytes, properties, and the student's part in the real engine.

    The exit status is 1 if a check does not pass. The file is run in this process, as 'python FILE'
    would run it.

    JSON: "lab", "file", and "checks": "check", "outcome" (passed, failed, not written, error) and
    "message" of each.
    """
    lab = find(lab_name)
    path = os.path.abspath(lab.file_name if file is None else file)
    if watch and as_json:
        raise ValueError("give --watch or --json, not both")
    results = run_all(lab, path)
    if as_json:
        told = [asdict(result) for result in results]
        write_line(json.dumps({"lab": lab.number, "file": path, "checks": told}))
    else:
        print_results(lab, results)
    while watch:
        seen = _stamp(path)
        write_line(f"Waiting for {os.path.basename(path)} to be saved; Ctrl-C ends.")
        _flush()
        while _stamp(path) in (seen, None):
            time.sleep(_INTERVAL)
        print_results(lab, run_all(lab, path))
    if any(result.outcome != PASSED for result in results):
        raise typer.Exit(MISS)


def _flush() -> None:
    stdout_console().file.flush()


def _stamp(path: str) -> tuple[int, int] | None:
    """What changes when a file is saved; None while an editor has moved it away."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_ino


def print_results(lab: Lab, results: Sequence[Result]) -> None:
    """A line for each check, with its message; then how many passed, and what comes next."""
    write_line(f"Lab {lab.number}: {lab.title}")
    for result in results:
        told = f"  {result.outcome:<11}  {result.check}"
        if result.outcome in (PASSED, NOT_WRITTEN):
            _write_wrapped(f"{told}: {printable(result.message)}")
            continue
        write_line(told)
        for line in result.message.split("\n"):
            _write_wrapped(_INDENT + printable(line), is_aligned=line.startswith("  "))
    passed = sum(result.outcome == PASSED for result in results)
    write_line(f"{passed} of {count(len(results), 'check')} passed.")
    if passed < len(results):
        write_line(f"Hints: 'lsmkv course show {lab.number} --hint 1', and so on.")


def _write_wrapped(line: str, is_aligned: bool = False) -> None:
    """Write a line, on a terminal broken to its width, unless its columns have to stay."""
    if is_aligned or not stdout_is_terminal():
        write_line(line)
        return
    columns = shutil.get_terminal_size().columns
    for one in textwrap.wrap(line, max(40, columns), subsequent_indent=_INDENT):
        write_line(one)


@guarded
def plot(
    lab_name: LabName,
    file: FileName = None,
    output: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.svg", help="The picture, replaced if it is there; the lab's own name."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Draw what your code measures beside the engine's own figures, as SVG: labs 4 and 8.

    Lab 4: the false-positive rate against bits a key. Lab 8: data blocks read per Get under several
    filters. The exit status is 1 if the code fails. It is run as by 'course check'; a part that is
    right in its answers but not LevelDB's byte for byte is drawn, too. The picture needs the extra
    'plot'.

    JSON: "lab", "file", "output", and "measured", the figures by their names in the picture.
    """
    try:
        from lsmkv.tools.course.plots import PLOTS, Plot  # noqa: PLC0415 - matplotlib is an extra
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise ValueError(
            "course plot needs matplotlib: pip install '.[plot]' in lsmkv's checkout"
        ) from None
    lab = find(lab_name)
    if lab.slug not in PLOTS:
        drawn = " and ".join(str(find(slug).number) for slug in PLOTS)
        raise ValueError(f"lab {lab.number} has no picture of its results: labs {drawn} have")
    picture = f"{os.path.splitext(lab.file_name)[0]}.svg" if output is None else output
    if not picture.endswith(".svg"):
        raise ValueError(f"{picture}: the picture is SVG, so name it .svg")
    path = os.path.abspath(lab.file_name if file is None else file)
    result = run(lab, path, "the picture", PLOTS[lab.slug])
    if not isinstance(result, Plot):
        print_results(lab, [result])
        raise typer.Exit(MISS)
    with open(picture, "wb") as out:
        out.write(result.svg)
    if as_json:
        told = {"lab": lab.number, "file": path, "output": picture, "measured": result.measured}
        write_line(json.dumps(told))
    else:
        write_line(f"{printable(picture)}  lab {lab.number}: {result.what}")


@guarded
def grade(
    directory: Annotated[
        str, typer.Argument(metavar="DIR", help="A folder with a folder for each student.")
    ],
    seconds: Annotated[
        int, typer.Option("--seconds", min=1, metavar="N", help="Time for each check.")
    ] = 20,
    memory: Annotated[
        int, typer.Option("--memory", min=128, metavar="MIB", help="Memory for each check, in MiB.")
    ] = 1024,
    as_json: AsJson = False,
) -> None:
    """Grade a class: all checks of all labs for each student's folder below DIR.

    Each check runs in processes of its own with a time and a memory limit, without a network where
    the system allows that. This is no sandbox: the code can read and write what you can. Grade
    strangers' code in a virtual machine or a container.

    JSON: "limits", and "submissions": "name" and "labs", for each "lab", "title", "file", "passed"
    and "checks", with "check", "outcome" and "message" as 'check' has them, where the outcome may
    also be "stopped" (a limit) or "missing" (no file).
    """
    limits = Limits(seconds, memory)
    submissions = grade_directory(directory, limits)
    if as_json:
        told = [asdict(submission) for submission in submissions]
        write_line(json.dumps({"limits": asdict(limits), "submissions": told}))
        return
    print_grades(submissions)


def print_grades(submissions: Sequence[Submission]) -> None:
    """A line for each student, a column for each lab."""
    wide = max([len(submission.name) for submission in submissions] + [7])
    heads = [f"lab {lab.number}" for lab in LABS]
    write_line(f"{'student':<{wide}}  " + "  ".join(f"{head:>8}" for head in heads))
    for submission in submissions:
        cells = [f"{lab.passed} of {len(lab.checks)}" for lab in submission.labs]
        name = printable(submission.name)
        write_line(f"{name:<{wide}}  " + "  ".join(f"{cell:>8}" for cell in cells))

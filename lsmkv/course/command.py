"""``lsmkv course``: make a folder, read a lab, check what was written."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import sys
import time
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.markdown import Markdown

from lsmkv.course.failure import place_of
from lsmkv.course.lab import Check, Lab
from lsmkv.course.labs.registry import CAPSTONE, CAPSTONE_NAMES, LABS, find
from lsmkv.course.predict.command import write_beside
from lsmkv.course.predict.keeping import require_predicted, run_beside
from lsmkv.course.predict.registry import write_for
from lsmkv.course.running import (
    MEMORY_MIB,
    NOT_WRITTEN,
    PASSED,
    SECONDS,
    Limits,
    Result,
    run_checks,
)
from lsmkv.course.sample import NAME as SAMPLE
from lsmkv.course.sample import make_sample
from lsmkv.course.steps import current_lab, has_begun, lab_file, next_step
from lsmkv.course.submissions import labs_beside
from lsmkv.tools.console import MISS, guarded, stdout_is_terminal, write_line
from lsmkv.tools.drawing import progress, stdout_console
from lsmkv.tools.text import count, printable, wrap

_INTERVAL = 0.3
"""Seconds between checks of a watched file."""

_PICTURE = re.compile(r"!\[([^][]*)\]\([^()]*\)")
"""A picture; a terminal shows its alternative text."""

_COMMENT = re.compile(r"<!--[^<>]*-->\n?")
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
        "--seconds", min=1, metavar="N", help="Stop a check after this many seconds of its code."
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
            "--student", metavar="ID", help="The owner of the folder: the data of all labs follow."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a student's folder, with a starter file for each lab, and a store to try filters on. An
    existing file is an error.

    With --student, each lab has its own data below 'data': keys, sizes, snapshots, a damaged
    log. They follow from the name, and no other name has the same.

    JSON: "path" and "files", the names of the files written.
    """
    os.makedirs(directory, exist_ok=True)
    files = {os.path.join(directory, lab.file_name): lab for lab in LABS}
    for path in (*files, os.path.join(directory, SAMPLE)):
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, "it already exists, and was not changed", path)
    for path, lab in files.items():
        with open(path, "x", encoding="utf-8") as file:
            file.write(lab.starter())
    make_sample(directory)
    if student is not None:
        write_for(directory, student)
    if as_json:
        names = [lab.file_name for lab in LABS]
        write_line(json.dumps({"path": directory, "files": names}))
        return
    for path, lab in files.items():
        write_line(f"{path}  lab {lab.number}: {lab.title}")
    write_line(f"{os.path.join(directory, SAMPLE)}  a store of names, for 'lsmkv filter-lab'")
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
    lab = CAPSTONE if lab_name in CAPSTONE_NAMES else find(lab_name)
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

    The exit status is 1 unless all checks pass. The file is run in a separate process, with the
    limits of 'course grade', and may import the other labs' files in its folder. What it prints is
    shown. At the end one next step is named.

    A folder of 'course new --student' answers the questions of 'course predict' first. They are
    shown next to what the code finds.

    JSON: "lab", "file", "next", "checks": "check", "outcome" (passed, failed, not written, error,
    stopped) and "message" of each, and "predictions": "question", "predicted", "answer" and
    "reason" of each. With --json, the output of the student's code goes to stderr.
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
    """Stamps that change when a file or another lab in its folder is saved; an editor may have
    moved it."""
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
    """Print the progress of each lab of a folder, and what to do next.

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
    right answers but other bytes than LevelDB's is also drawn. The picture needs the extra 'plot'.

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

"""``lsmkv course report``: the grades of one folder, for Gradescope and for GitHub Classroom."""

from __future__ import annotations

import json
import os
from typing import Annotated

import typer

from lsmkv.course.command import Memory, Seconds
from lsmkv.course.grading import Grader, Submission
from lsmkv.course.labs.registry import LABS, find
from lsmkv.course.running import MEMORY_MIB, SECONDS, Limits
from lsmkv.course.teaching.formats import gradescope, junit
from lsmkv.tools.console import guarded, write_line

FORMATS = ("gradescope", "junit")


@guarded
def report(
    directory: Annotated[
        str, typer.Argument(metavar="[DIR]", help="A student's folder; by default this one.")
    ] = ".",
    as_format: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="gradescope (JSON) or junit (XML).")
    ] = "gradescope",
    output: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write it there, and replace an existing file."),
    ] = None,
    labs: Annotated[
        str | None,
        typer.Option("--lab", metavar="LAB,...", help="Only these labs, such as 1,2 or bloom."),
    ] = None,
    seconds: Seconds = SECONDS,
    memory: Memory = MEMORY_MIB,
    as_json: Annotated[
        bool, typer.Option("--json", help="With --output: print the points as JSON.")
    ] = False,
) -> None:
    """Grade one student's folder, for another program.

    The points are those of 'course grade --points'. With --output, the points are printed.

    JSON: "path", "score" and "max_score".
    """
    if as_format not in FORMATS:
        raise ValueError(f"--format {as_format}: it must be {' or '.join(FORMATS)}")
    chosen = LABS if labs is None else tuple(find(name.strip()) for name in labs.split(","))
    with Grader(Limits(seconds, memory), labs=chosen) as grader:
        one = grade_folder(grader, directory)
    content = json.dumps(gradescope(one), indent=1) if as_format == "gradescope" else junit(one)
    if output is None:
        write_line(content.rstrip("\n"))
        return
    with open(output, "w", encoding="utf-8") as file:
        file.write(content)
    reached = gradescope(one)
    most = sum(test["max_score"] for test in reached["tests"])
    if as_json:
        write_line(json.dumps({"path": output, "score": reached["score"], "max_score": most}))
    else:
        write_line(f"{reached['score']} of {most} points")


def grade_folder(grader: Grader, directory: str) -> Submission:
    """The grades of one folder, under its own name.  Raises ``OSError`` if there is none."""
    path = os.path.abspath(directory)
    os.listdir(path)
    parent, name = os.path.split(path)
    (one,) = grader.grade(parent, [name])
    return one

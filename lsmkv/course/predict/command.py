"""``lsmkv course predict`` and ``lsmkv course exam``: questions about a student's own data."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from lsmkv.course.lab import Lab
from lsmkv.course.labs.registry import LABS, find
from lsmkv.course.predict.keeping import keep, owner_of, run_beside
from lsmkv.course.predict.registry import DIRECTORY, task_of
from lsmkv.course.running import PASSED, Limits, Result
from lsmkv.course.seeds import seed_of
from lsmkv.tools.console import guarded, stdout_is_terminal, write_line
from lsmkv.tools.text import printable

_WIDTH = 96


@guarded
def predict(
    lab_name: Annotated[
        str, typer.Argument(metavar="LAB", help="The lab's number or short name: 4 or bloom.")
    ],
    answers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ANSWER]...",
            help="An answer to each question; several numbers of one answer in quotes: '14 24'.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Print what a lab asks before its first check, about your own data, or keep your answers.

    The data are below 'data' in a folder that 'course new --student' has made. Answers are kept
    once, and do not change. 'course check' shows them next to what your code finds.

    JSON: "lab", "data", the name of the file, "questions", and "predictions", those kept.
    """
    lab = find(lab_name)
    if answers:
        keep(".", lab, answers)
    owner = owner_of(".")
    task = task_of(lab, seed_of(owner.student))
    kept = owner.predictions.get(str(lab.number), [])
    data = os.path.join(DIRECTORY, f"lab{lab.number}.txt")
    if as_json:
        asked = [question.text for question in task.questions]
        found = {"lab": lab.number, "data": data, "questions": asked, "predictions": kept}
        write_line(json.dumps(found))
        return
    write_line(f"Lab {lab.number}: {lab.title}, with the data in {data}")
    for name in task.files:
        write_line(f"The same as bytes: {os.path.join(DIRECTORY, name)}")
    for number, question in enumerate(task.questions, 1):
        _write(f"{number}. ", question.text)
        if kept:
            _write("   You predict: ", printable(kept[number - 1]))
    if not kept:
        words = " ".join(f"'ANSWER {number}'" for number in range(1, len(task.questions) + 1))
        write_line(f"Answer with: lsmkv course predict {lab.number} {words}")


def write_beside(lab: Lab, path: str, limits: Limits, results: Sequence[Result]) -> None:
    """Print the predictions for a file next to what its code finds.

    If all checks have passed, name the remaining task: the fault.
    """
    found = run_beside(lab, path, limits, results)
    for number, (one, answer) in enumerate(found, 1):
        head = f"Prediction {number}: {printable(one.predicted)}. "
        if not answer:
            write_line(f"{head}Your code cannot say yet.")
        elif one.is_right:
            write_line(f"{head}So says your code.")
        else:
            _write(f"{head}Your code says: {answer}. ", one.reason)
    if found and all(result.outcome == PASSED for result in results):
        write_line(f"Then find the fault: 'lsmkv course fault {lab.number}'.")


def _write(head: str, text: str) -> None:
    if not stdout_is_terminal():
        write_line(head + text)
        return
    for line in textwrap.wrap(head + text, _WIDTH, subsequent_indent="   "):
        write_line(line)


@guarded
def exam(
    seed: Annotated[
        str,
        typer.Option(
            "--seed", metavar="TEXT", help="Any text; each has its own data. Keep it to yourself."
        ),
    ],
    labs: Annotated[
        str | None,
        typer.Option("--lab", metavar="LAB,...", help="Only these labs, such as 1,2 or bloom."),
    ] = None,
    with_key: Annotated[
        bool, typer.Option("--key", help="Also print the answers, with explanations.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Print exam questions, whose data follow from a seed: bytes to read, trees to compact, cuts
    to recover from. They can be answered on paper, with a calculator.

    JSON: a list of "lab", "title", "data" and "questions", each with "question" and, with --key,
    "answer" and "why".
    """
    chosen = LABS if labs is None else tuple(find(name.strip()) for name in labs.split(","))
    found = [_asked(lab, seed, with_key) for lab in chosen]
    if as_json:
        write_line(json.dumps(found))
        return
    for number, one in enumerate(found):
        write_line(("\n" if number else "") + f"Lab {one['lab']}: {one['title']}\n")
        for line in one["data"].splitlines():
            write_line(f"    {line}")
        for at, asked in enumerate(one["questions"], 1):
            write_line("")
            _write(f"{one['lab']}.{at} ", asked["question"])
            if with_key:
                _write("    Answer: ", f"{asked['answer']}. {asked['why']}")


def _asked(lab: Lab, seed: str, with_key: bool) -> dict[str, Any]:
    task = task_of(lab, seed_of(seed), "exam")
    questions: list[dict[str, str]] = []
    for one in task.questions:
        key = {"answer": one.answer, "why": one.why} if with_key else {}
        questions.append({"question": one.text, **key})
    return {
        **{"lab": lab.number, "title": lab.title},
        **{"data": task.text(), "questions": questions},
    }

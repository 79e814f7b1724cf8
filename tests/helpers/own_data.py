"""A student's own data, as a test reads them: from the files in their folder and nothing else."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from lsmkv.course.faults.registry import fault_of
from lsmkv.course.labs.registry import find
from lsmkv.course.predict.registry import task_of, write_for
from lsmkv.course.seeds import mark_of, seed_of

STUDENTS = ("ann", "bob", "Zoë Ng", "x")


def data_of(folder: Path, lab: str, student: str) -> dict[str, Any]:
    """The names and values in the text of a lab's data."""
    write_for(str(folder), student)
    text = (folder / "data" / f"lab{find(lab).number}.txt").read_text(encoding="utf-8")
    found: dict[str, Any] = {}
    for line in ast.parse(text).body:
        assert isinstance(line, ast.Assign)
        (target,) = line.targets
        assert isinstance(target, ast.Name)
        found[target.id] = ast.literal_eval(line.value)
    return found


def answers_of(lab: str, student: str) -> list[str]:
    """The answers that the course expects."""
    return [one.answer for one in task_of(find(lab), seed_of(student)).questions]


def spelled(*numbers: object) -> str:
    """Numbers as an answer."""
    return " ".join(map(str, numbers))


def call_that_shows(lab: str, student: str) -> str:
    """A call that shows a student's fault."""
    seed = seed_of(student)
    fault = fault_of(find(lab), seed)
    arguments = fault.shows(mark_of(seed).encode())
    return f"{fault.function}({', '.join(map(repr, arguments))})"

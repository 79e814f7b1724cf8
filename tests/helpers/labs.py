"""What the tests of the course's labs share: mistakes are planted in a reference solution."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from lsmkv.course.lab import Lab
from lsmkv.course.running import (
    FAILED,
    NOT_WRITTEN,
    PASSED,
    Limits,
    Result,
    judge,
    run_checks,
)

COURSE = Path(__file__).parents[1] / "course"
STARTERS = Path(__file__).parents[2] / "lsmkv" / "course" / "starters"


class Mistake(NamedTuple):
    """A function that does it wrong, and words of the message that names the mistake."""

    name: str
    function: str
    wrong: Callable[..., Any]
    check: str
    words: str


Planted = dict[tuple[str, str], list[tuple[str, Callable[..., Any], str]]]
"""By function and check: the name of each mistake, a function that does it wrong, and words."""


def mistakes(planted: Planted) -> list[Mistake]:
    return [
        Mistake(name, function, wrong, check, words)
        for (function, check), rows in planted.items()
        for name, wrong, words in rows
    ]


def reference(lab: Lab) -> str:
    """The path of a lab's reference solution."""
    return str(COURSE / "references" / lab.file_name)


def load(path: str) -> ModuleType:
    """A file as a module of this process, whose functions see what is planted in it."""
    module = ModuleType("student")
    sys.modules["student"] = module  # dataclasses look it up there
    exec(compile(Path(path).read_bytes(), path, "exec"), module.__dict__)
    return module


@functools.cache
def solution(lab: Lab) -> ModuleType:
    """A lab's reference solution."""
    return load(reference(lab))


def run_all(lab: Lab, path: str) -> list[Result]:
    """All checks of a lab on a file, which runs in a process of its own."""
    return list(run_checks(lab, path, Limits(60)))


def assert_caught(lab: Lab, mistake: Mistake) -> None:
    """The check that is for it fails, and its message names the mistake."""
    check = next(check for check in lab.checks if check.name == mistake.check)
    module = load(reference(lab))
    assert judge(lab, module, check).outcome == PASSED
    setattr(module, mistake.function, mistake.wrong)
    result = judge(lab, module, check)
    assert result.outcome == FAILED, result
    assert mistake.words in result.message.replace("\n", " ")


def assert_passed_by_its_reference_alone(lab: Lab) -> None:
    """The reference passes all checks, and the starter none."""
    outcomes = {result.check: result.outcome for result in run_all(lab, reference(lab))}
    assert outcomes == {check.name: PASSED for check in lab.checks}
    starter = run_all(lab, str(STARTERS / lab.file_name))
    assert {result.outcome for result in starter} == {NOT_WRITTEN}
    assert all(result.message.endswith(" is not written yet") for result in starter)


STUDENTS = COURSE / "students"
"""Solutions as students write them: Ann's and Dan's."""


def renamed(source: str) -> str:
    """Ann's solution of lab 4, as somebody hands it in who has renamed its variables."""
    names = {"h": "value", "word": "w", "array": "table", "delta": "step", "positions": "spots"}
    names |= {"size": "length", "bit": "n", "whole": "end", "rest": "tail", "k": "number"}
    for old, new in (names | {"place": "at", "at": "begin", "MASK": "ALL", "FACTOR": "M"}).items():
        source = re.sub(rf"\b{old}\b", new, source)
    return source.replace('"""Lab 4, as a student writes it."""', '"""My own."""')

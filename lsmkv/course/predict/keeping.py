"""A student's predictions: they are kept before the first check, and shown next to the results."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lsmkv.course.failure import CheckFailure
from lsmkv.course.lab import Check, Lab
from lsmkv.course.predict.registry import task_of
from lsmkv.course.predict.task import Question, answer_in
from lsmkv.course.running import PASSED, Limits, Result, run_checks
from lsmkv.course.seeds import Owner, read_owner, seed_of, write_owner
from lsmkv.tools.text import count


@dataclass(frozen=True)
class Prediction:
    """A prediction with the answer."""

    question: str
    predicted: str
    answer: str
    reason: str
    """The reason for a difference; empty if there is none."""

    @property
    def is_right(self) -> bool:
        """True if the prediction is the answer."""
        return self.predicted == self.answer


def questions_of(lab: Lab, owner: Owner) -> tuple[Question, ...]:
    """The questions of a lab to a student."""
    return task_of(lab, seed_of(owner.student)).questions


def keep(folder: str, lab: Lab, predicted: Sequence[str]) -> None:
    """Keep a student's predictions of a lab.

    ``ValueError`` if there are some already, or not one for each question.
    """
    owner = owner_of(folder)
    questions = questions_of(lab, owner)
    if str(lab.number) in owner.predictions:
        raise ValueError(f"your predictions for lab {lab.number} are kept, and do not change")
    if len(predicted) != len(questions):
        raise ValueError(
            f"lab {lab.number} asks {count(len(questions), 'question')}, and there must be an"
            " answer to each: several numbers of one answer belong in quotes, such as '14 24'"
        )
    kept = {str(lab.number): [answer_in(one) for one in predicted]}
    write_owner(folder, replace(owner, predictions=owner.predictions | kept))


def owner_of(folder: str) -> Owner:
    """Return the owner of a folder; ``ValueError`` if it has none."""
    owner = read_owner(folder)
    if owner is None:
        raise ValueError(
            "there is no student.json in this folder: 'lsmkv course new DIR --student NAME' makes"
            " one with your own data"
        )
    return owner


def require_predicted(lab: Lab, path: str) -> None:
    """``ValueError`` if a student has questions to answer before the first check of a file."""
    owner = read_owner(os.path.dirname(path))
    if owner is not None and str(lab.number) not in owner.predictions:
        asked = count(len(questions_of(lab, owner)), "question")
        raise ValueError(
            f"lab {lab.number} asks {asked} before its first check: see 'lsmkv course predict"
            f" {lab.number}'"
        )


def judged(lab: Lab, owner: Owner) -> list[Prediction]:
    """A student's predictions of a lab with the engine's answers; empty if there are none."""
    predicted = owner.predictions.get(str(lab.number), [])
    return [
        Prediction(
            question.text,
            one,
            question.answer,
            "" if one == question.answer else question.reason(one),
        )
        for question, one in zip(questions_of(lab, owner), predicted, strict=False)
    ]


def run_beside(
    lab: Lab, path: str, limits: Limits, checked: Sequence[Result]
) -> list[tuple[Prediction, str]]:
    """The predictions for a file that was checked, each with what its code finds.

    That is empty, and so is the answer, if the code does not find it yet.
    """
    owner = read_owner(os.path.dirname(path))
    if owner is None or all(result.outcome != PASSED for result in checked):
        return []
    predictions = judged(lab, owner)
    checks = [Check(one.text, _runs(one)) for one in questions_of(lab, owner)[: len(predictions)]]
    results = run_checks(lab, path, limits, checks=checks)
    return [
        (one, one.answer) if result.outcome == PASSED else (replace(one, answer="", reason=""), "")
        for one, result in zip(predictions, results, strict=True)
    ]


def _runs(question: Question) -> Callable[[Any], str]:
    def run(code: Any) -> str:
        found = question.run(code)
        if found != question.answer:
            raise CheckFailure(f"your code says {found}")
        return found

    return run


def shared_with(owners: Mapping[str, Owner], labs: Sequence[Lab]) -> dict[str, list[str]]:
    """Compare folders that have different seeds: find wrong predictions that are another student's
    prediction or answer, and equal data."""
    said: dict[str, list[str]] = {name: [] for name in owners}
    for lab in labs:
        answers = {name: [one.answer for one in questions_of(lab, o)] for name, o in owners.items()}
        for name, owner in owners.items():
            wrong = [
                (at, one.predicted)
                for at, one in enumerate(judged(lab, owner))
                if not one.is_right and len(one.predicted) >= _TELLING
            ]
            for other, theirs in owners.items():
                if theirs.student == owner.student:
                    continue
                predicted = theirs.predictions.get(str(lab.number), [])
                if any(
                    one in ((*answers[other][at : at + 1], *predicted[at : at + 1]))
                    for at, one in wrong
                ):
                    said[name].append(
                        f"lab {lab.number} has the same wrong predictions as {other}, whose data"
                        " are others"
                    )
    return said


_TELLING = 4
"""Digits of two equal wrong answers that are unlikely by chance."""

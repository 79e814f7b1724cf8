"""A task: a student's own data, and two or three questions about them."""

from __future__ import annotations

import pprint
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Answer = str
"""Numbers, separated by single spaces."""


def answer_of(numbers: Iterable[object]) -> Answer:
    """Numbers as an answer.

    >>> answer_of([14, 24]), answer_of([])
    ('14 24', 'none')
    """
    return " ".join(map(str, numbers)) or "none"


def answer_in(text: str) -> Answer:
    """Normalize a written answer: commas, brackets and quotes do not matter.

    >>> answer_in("[14, 24]"), answer_in("0014"), answer_in("b'ant'")
    ('14 24', '14', 'ant')
    """
    words = re.split(r"[\s,;()\[\]{}'\"]+", re.sub(r"\bb(?=['\"])", "", text.strip()))
    return answer_of(_plain(word) for word in words if word)


def _plain(word: str) -> str:
    if re.fullmatch(r"\d{1,1000}", word):
        return str(int(word))
    if re.fullmatch(r"\d*\.\d+", word):
        return f"{float(word):.9f}"
    return word.lower() if re.fullmatch(r"(?i)none", word) else word


@dataclass(frozen=True)
class Question:
    """A question whose answer follows from the data alone."""

    text: str
    answer: Answer
    """The engine's answer."""
    run: Callable[[Any], Answer]
    """The answer of a student's functions."""
    why: str
    """An explanation of the answer."""
    slips: Mapping[Answer, str] = field(default_factory=dict)
    """Wrong answers to which a known mistake leads, and the mistake."""

    def reason(self, predicted: Answer) -> str:
        """Explain why a prediction differs from the answer."""
        slip = self.slips.get(predicted)
        return self.why if slip is None else f"{slip} {self.why}"


@dataclass(frozen=True)
class Task:
    """The data of one lab, and the questions about them."""

    data: dict[str, Any]
    questions: tuple[Question, ...]
    files: dict[str, bytes] = field(default_factory=dict)
    """Files that hold the same as bytes, by name."""

    def text(self) -> str:
        """The data, as lines of Python."""
        return "".join(f"{name} = {_shown(value)}\n" for name, value in self.data.items())


def _shown(value: object) -> str:
    """A value over as many lines as it needs."""
    return pprint.pformat(value, width=96, compact=True, sort_dicts=False)

"""What somebody writes as an answer."""

from __future__ import annotations

import ast

import pytest

from lsmkv.course.predict.task import Question, Task, answer_in, answer_of


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        ("14 24", "14 24"),
        ("[14, 24]", "14 24"),
        ("(0014;24)", "14 24"),
        ("b'ant'", "ant"),
        ('"ant" b', "ant b"),
        ("0.5", "0.500000000"),
        (".25", "0.250000000"),
        ("NONE", "none"),
        ("", "none"),
        ("0b e1", "0b e1"),
    ],
)
def test_punctuation_does_not_matter(written: str, answer: str) -> None:
    assert answer_in(written) == answer


def test_an_answer_is_what_somebody_may_write() -> None:
    assert answer_in(answer_of([14, "ant", "0.500000000"])) == answer_of([14, "ant", "0.500000000"])


def test_a_known_mistake_is_named() -> None:
    question = Question("How many?", "7", lambda code: "7", "Seven.", {"8": "One too many."})
    assert question.reason("8") == "One too many. Seven."
    assert question.reason("9") == "Seven."


def test_the_text_of_data_is_python() -> None:
    task = Task({"a": list(range(60)), "b": "x"}, ())
    lines = ast.parse(task.text()).body
    assert len(lines) == 2
    assert max(map(len, task.text().splitlines())) <= 100

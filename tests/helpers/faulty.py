"""What the tests of all faults share: each is shown by its smallest input, and by what it left."""

from __future__ import annotations

import random

import pytest

from lsmkv.course.faults.fault import Fault, Subject, answer_of, call_in

MARK = b"kelumo41"
WRONG_SHAPE = ("TypeError", "NameError", "AttributeError", "KeyError", "IndexError")


def each(*subjects: Subject) -> pytest.MarkDecorator:
    """A test runs with each fault of some labs."""
    cases = [
        pytest.param(subject, fault, id=fault.what)
        for subject in subjects
        for fault in subject.faults
    ]
    return pytest.mark.parametrize(("subject", "fault"), cases)


def assert_can_be_found(subject: Subject, fault: Fault) -> None:
    """The calls that a student sees have a wrong answer, and the smallest input shows the fault,
    also as text; without the mark, nothing is wrong."""
    right, broken = subject.right[fault.function], subject.variant(fault, MARK)[fault.function]
    arguments = fault.shows(MARK)
    assert answer_of(right, arguments) not in WRONG_SHAPE
    assert answer_of(broken, arguments) not in (*WRONG_SHAPE, answer_of(right, arguments))
    shown = ", ".join(map(repr, arguments))
    assert call_in(f"{fault.function}({shown})") == (fault.function, arguments)
    scene = subject.scene(MARK, random.Random(1))
    assert any(
        answer_of(subject.right[name], given)
        != answer_of(subject.variant(fault, MARK)[name], given)
        for name, given in scene
    )
    elsewhere = subject.variant(fault, b"another mark")[fault.function]
    assert answer_of(elsewhere, arguments) == answer_of(right, arguments)


def assert_right(subject: Subject) -> None:
    """The right functions take what a student sees, and there are at least eight faults."""
    for name, arguments in subject.scene(MARK, random.Random(2)):
        assert answer_of(subject.right[name], arguments) not in WRONG_SHAPE
    assert set(subject.right) == set(subject.calls)
    assert len(subject.faults) >= 8
    assert len({fault.what for fault in subject.faults}) == len(subject.faults)
    assert {fault.function for fault in subject.faults} <= set(subject.right)

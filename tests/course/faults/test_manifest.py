"""Faults of lab 9: each can be found."""

from __future__ import annotations

from faulty import assert_can_be_found, assert_right, each

from lsmkv.course.faults.fault import Fault, Subject
from lsmkv.course.faults.manifest import MANIFEST


@each(MANIFEST)
def test_each_can_be_found(subject: Subject, fault: Fault) -> None:
    assert_can_be_found(subject, fault)


def test_the_right_functions_take_what_is_seen() -> None:
    for subject in (MANIFEST,):
        assert_right(subject)

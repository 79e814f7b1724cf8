"""Which fault is whose."""

from __future__ import annotations

import pytest

from lsmkv.course.faults.fault import answer_of
from lsmkv.course.faults.registry import SUBJECTS, fault_of, traces_of
from lsmkv.course.lab import Lab
from lsmkv.course.labs.registry import LABS
from lsmkv.course.seeds import mark_of, seed_of

every_lab = pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.slug)


def test_each_lab_has_faults() -> None:
    assert list(SUBJECTS) == [lab.slug for lab in LABS]
    assert sum(len(subject.faults) for subject in SUBJECTS.values()) >= 12 * 8


@every_lab
def test_all_faults_are_given_out(lab: Lab) -> None:
    given = {fault_of(lab, seed_of(f"student {n}")).what for n in range(200)}
    assert given == {fault.what for fault in SUBJECTS[lab.slug].faults}


@every_lab
def test_the_input_of_one_student_shows_nothing_of_anothers(lab: Lab) -> None:
    subject = SUBJECTS[lab.slug]
    seeds = [seed_of(f"student {n}") for n in range(12)]
    for one in seeds:
        fault, mark = fault_of(lab, one), mark_of(one).encode()
        arguments = fault.shows(mark)
        for other in seeds:
            theirs = fault_of(lab, other)
            broken = subject.variant(theirs, mark_of(other).encode())[fault.function]
            right = answer_of(subject.right[fault.function], arguments)
            assert (answer_of(broken, arguments) != right) == (one == other)


@every_lab
def test_what_is_left_does_not_say_what_is_wrong(lab: Lab) -> None:
    for student in ("ann", "bob", "cem"):
        seed = seed_of(student)
        traces = traces_of(lab, seed)
        calls = traces[f"fault{lab.number}.calls.txt"].decode()
        assert fault_of(lab, seed).what not in calls
        assert mark_of(seed) in calls

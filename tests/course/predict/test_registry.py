"""Each lab has a task for each seed, whose answers no other seed has."""

from __future__ import annotations

from pathlib import Path

import pytest
from labs import solution

from lsmkv.course.lab import Lab
from lsmkv.course.labs.registry import LABS
from lsmkv.course.predict.registry import TASKS, changed, files_of, task_of, write_for
from lsmkv.course.seeds import read_owner, seed_of

every_lab = pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.slug)
SEEDS = 120


@every_lab
def test_each_lab_asks_two_or_three_questions(lab: Lab) -> None:
    assert len(task_of(lab, 1).questions) in (2, 3)
    assert all(question.why for question in task_of(lab, 1).questions)
    assert list(TASKS) == [one.slug for one in LABS]


@every_lab
def test_the_code_of_a_good_student_finds_the_answers(lab: Lab) -> None:
    for student in ("ann", "bob", "cem", "dan", "eve"):
        for question in task_of(lab, seed_of(student)).questions:
            assert question.run(solution(lab)) == question.answer


@every_lab
def test_two_seeds_never_share_an_answer(lab: Lab) -> None:
    tasks = [task_of(lab, seed_of(f"student {n}")) for n in range(SEEDS)]
    for asked in zip(*(task.questions for task in tasks), strict=True):
        assert len({question.answer for question in asked}) == SEEDS


@every_lab
def test_no_answer_is_in_what_all_students_have(lab: Lab) -> None:
    common = lab.starter() + lab.text()
    for student in ("ann", "bob"):
        for question in task_of(lab, seed_of(student)).questions:
            assert question.answer not in common


@every_lab
def test_an_exam_has_other_data_than_the_lab(lab: Lab) -> None:
    seed = seed_of("ann")
    assert task_of(lab, seed, "exam").text() != task_of(lab, seed).text()
    assert files_of(lab, seed) == files_of(lab, seed)


def test_files_are_laid_out_and_changes_are_seen(tmp_path: Path) -> None:
    paths = write_for(str(tmp_path), "  Ann   Lee ")
    owner = read_owner(str(tmp_path))
    assert owner is not None
    assert (owner.student, owner.seed, owner.is_intact) == ("Ann Lee", seed_of("Ann Lee"), True)
    assert len(paths) == 12 + 5
    assert changed(str(tmp_path), owner.seed) == []
    (tmp_path / "data" / "lab4.txt").write_text("hash = 1\n")
    (tmp_path / "data" / "lab5.txt").unlink()
    assert changed(str(tmp_path), owner.seed) == ["lab4.txt"]
    write_for(str(tmp_path), "Ann Lee")
    assert changed(str(tmp_path), owner.seed) == []
    with pytest.raises(ValueError, match="is empty"):
        write_for(str(tmp_path), "  ")

"""``lsmkv course predict`` and ``exam`` as a student and a teacher start them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from commands import lsm
from labs import reference

from lsmkv.course.labs.registry import find
from lsmkv.course.predict.registry import task_of
from lsmkv.course.seeds import seed_of

BLOOM = find("bloom")
ANSWERS = [one.answer for one in task_of(BLOOM, seed_of("ann")).questions]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    done = lsm("course", "new", tmp_path / "ann", "--student", "ann")
    assert (done.status, done.err) == (0, "")
    monkeypatch.chdir(tmp_path / "ann")
    return tmp_path / "ann"


def test_a_student_predicts_then_runs(folder: Path) -> None:
    shutil.copy(reference(BLOOM), folder)
    done = lsm("course", "check", "4")
    assert (done.status, done.err) == (
        2,
        "lsmkv: lab 4 asks 2 questions before its first check: see 'lsmkv course predict 4'\n",
    )
    out = lsm("course", "predict", "4").out
    assert "1. The key has this hash. Which bits does it set" in out
    assert out.endswith("Answer with: lsmkv course predict 4 'ANSWER 1' 'ANSWER 2'\n")
    out = lsm("course", "predict", "4", ANSWERS[0], "1").out
    assert f"   You predict: {ANSWERS[0]}\n" in out
    assert "are kept, and do not change" in lsm("course", "predict", "4", "1", "2").err
    out = lsm("course", "check", "4").out
    assert f"Prediction 1: {ANSWERS[0]}. So says your code.\n" in out
    assert f"Prediction 2: 1. Your code says: {ANSWERS[1]}. Its bits are rounded up" in out
    assert "\nThen find the fault: 'lsmkv course fault 4'.\nNext: lab 5" in out
    answer = json.loads(lsm("course", "check", "4", "--json").out)
    assert [one["predicted"] for one in answer["predictions"]] == [ANSWERS[0], "1"]
    (folder / BLOOM.file_name).write_text(BLOOM.starter())
    assert "Prediction" not in lsm("course", "check", "4").out


@pytest.mark.usefixtures("folder")
def test_the_questions_as_json() -> None:
    lsm("course", "predict", "4", "1", "2")
    answer = json.loads(lsm("course", "predict", "4", "--json").out)
    assert (answer["lab"], answer["predictions"]) == (4, ["1", "2"])
    assert len(answer["questions"]) == 2
    assert Path(answer["data"]).is_file()


def test_an_exam_and_its_key() -> None:
    plain = lsm("course", "exam", "--seed", "may", "--lab", "1,10")
    assert (plain.status, plain.err) == (0, "")
    assert "\n10.2 A log holds these batches" in plain.out
    assert "Answer" not in plain.out
    with_key = lsm("course", "exam", "--seed", "may", "--lab", "1,10", "--key").out
    lines = with_key.splitlines()
    assert [line for line in lines if not line.startswith("    Answer")] == plain.out.splitlines()
    labs = json.loads(lsm("course", "exam", "--seed", "may", "--key", "--json").out)
    assert [lab["lab"] for lab in labs] == list(range(1, 13))
    for lab, task in zip(
        labs, (task_of(find(str(n)), seed_of("may"), "exam") for n in range(1, 13)), strict=True
    ):
        assert [one["answer"] for one in lab["questions"]] == [q.answer for q in task.questions]
    other = json.loads(lsm("course", "exam", "--seed", "june", "--json").out)
    assert all("answer" not in one for lab in other for one in lab["questions"])
    assert all(a["data"] != b["data"] for a, b in zip(labs, other, strict=True))

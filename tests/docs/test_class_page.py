"""docs/course/class.md and the plans of teaching.md: what they show is what comes out."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from commands import lsm
from documents import section, table_rows
from labs import STUDENTS
from own_data import answers_of

from lsmkv.course.faults.registry import SUBJECTS
from lsmkv.course.labs.registry import LABS
from lsmkv.course.predict.registry import task_of

DOCS = Path(__file__).parents[2] / "docs" / "course"
PAGE = (DOCS / "class.md").read_text(encoding="utf-8")
TEACHING = (DOCS / "teaching.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ann's folder."""
    path: Path = tmp_path_factory.mktemp("class") / "ann"
    assert lsm("course", "new", path, "--student", "ann").status == 0
    shutil.copy(STUDENTS / "ann_lab4_bloom.py", path / "lab4_bloom.py")
    return path


def shown(name: str) -> tuple[str, str]:
    """The command and the output between two comments of the page."""
    text = PAGE.partition(f"<!-- {name} -->\n")[2].partition(f"<!-- end {name} -->")[0]
    body = text.partition("\n")[2].rpartition("```")[0]
    command, _, output = body.partition("\n") if body.startswith("$") else ("", "", body)
    return command.removeprefix("$ lsmkv "), output


def test_what_ann_sees(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    command, output = shown("predict")
    assert lsm(*command.split()).out == output
    first, size = answers_of("bloom", "ann")
    assert lsm("course", "predict", "4", first, str(int(size) - 1)).status == 0
    assert shown("beside")[1] in lsm("course", "check", "4").out
    command, output = shown("fault")
    assert lsm(*command.split()).out == output
    call, sentence = PAGE.partition("sentence for the teacher:\n\n```text\n")[2].splitlines()[:2]
    (folder / "fault4.txt").write_text(f"{call}\n{sentence}\n")
    command, output = shown("found")
    assert lsm(*command.split()).out == output


def test_the_question_in_person(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    command, output = shown("oral")
    assert lsm(*command.split()).out == output


def test_the_numbers_of_questions_and_faults() -> None:
    asked = sum(len(task_of(lab, 1).questions) for lab in LABS)
    assert f"{asked} numbers in twelve labs" in PAGE
    faults = [len(subject.faults) for subject in SUBJECTS.values()]
    assert f"{sum(faults)} variants, {min(faults)} to {max(faults)}\nfor each lab" in PAGE


def minutes(text: str) -> int:
    """The minutes of a time such as ``2 h 20 min``."""
    hours, rest = re.fullmatch(r"(?:(\d+) h)? ?(?:(\d+) min)?", text).groups()  # type: ignore[union-attr]
    return 60 * int(hours or 0) + int(rest or 0)


OWN = 45
"""Minutes of predictions and the fault of a lab."""
PLANS = table_rows(section(TEACHING, "Plans"))
TIMES = [sum(map(int, row[2].split("+"))) + OWN for row in PLANS]
"""The minutes of each lab: text, code, and the graded class."""


@pytest.mark.parametrize(("column", "parts", "unit"), [(0, 6, "a week in"), (1, 10, "a day in")])
def test_the_hours_of_a_plan_add_up(column: int, parts: int, unit: str) -> None:
    spans = [int(row[1].split("/")[column]) for row in PLANS]
    assert spans == sorted(spans)
    assert {*spans} == {*range(1, parts + 1)}
    hours = [
        sum(time for time, at in zip(TIMES, spans, strict=True) if at == part) for part in {*spans}
    ]
    words = " ".join(TEACHING.split())
    most = re.search(rf"at most (\d+ h \d+ min) {unit}", words)
    total = re.search(r"Together that is (\d+ h \d+ min):", words)
    assert most is not None
    assert total is not None
    assert minutes(most[1]) == max(hours)
    assert minutes(total[1]) == sum(TIMES)


def test_the_minutes_of_own_data_are_those_of_the_plans() -> None:
    assert f"take another {OWN} minutes a lab" in " ".join(TEACHING.split())
    assert [row[0].split()[0] for row in PLANS] == [str(lab.number) for lab in LABS]


def test_times_are_stated_once_as_estimates() -> None:
    """No other page of the course has hours of its own."""
    assert "are estimates" in TEACHING
    for page in DOCS.glob("*.md"):
        if page.name != "teaching.md":
            found = re.findall(r"\bhours?\b", page.read_text(encoding="utf-8"))
            assert not found, page.name


def test_each_lab_has_a_difficulty() -> None:
    assert {row[4] for row in PLANS} == {"easy", "medium", "hard"}

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
TIMES = {
    int(row[0]): minutes(row[1]) + minutes(row[2]) + OWN
    for row in table_rows(section(TEACHING, "How long each lab takes"))
}


@pytest.mark.parametrize(
    ("title", "rows"), [("Two weeks", 10), ("Six weeks", 6), ("Twelve weeks", 12)]
)
def test_the_hours_of_a_plan_add_up(title: str, rows: int) -> None:
    table = table_rows(section(TEACHING, title))
    assert len(table) == rows
    done: list[int] = []
    for row in table:
        labs = [int(number) for number in re.findall(r"^\d+|(?<= and )\d+", row[1])]
        assert minutes(row[-1]) == sum(TIMES[lab] for lab in labs)
        done += labs
    assert done == list(range(1, 13))
    total = re.search(r"The time of each plan is ([^:]+):", TEACHING)
    assert total is not None
    assert sum(minutes(row[-1]) for row in table) == minutes(total[1]) == sum(TIMES.values())


def test_each_lab_has_a_difficulty() -> None:
    rows = table_rows(section(TEACHING, "How long each lab takes"))
    assert {row[-1] for row in rows} == {"easy", "medium", "hard"}

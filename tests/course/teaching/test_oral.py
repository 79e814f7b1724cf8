"""Questions about a student's own lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import lsm
from labs import STUDENTS

from lsmkv.course.labs.registry import find
from lsmkv.course.running import PASSED, Limits, run_checks
from lsmkv.course.teaching.oral import changes_of, questions_about

BLOOM = find("bloom")
ANN = STUDENTS / "ann_lab4_bloom.py"


def test_one_thing_in_one_line_is_changed() -> None:
    source = 'def f(a):\n    """1 < 2"""\n    if a < 2:\n        return "é", a[1] + 3\n'
    assert [(one.line, one.changed) for one in changes_of(source)] == [
        (3, "if (a <= 2):"),
        (3, "if a < 3:"),
        (4, 'return "é", (a[1] - 3)'),
        (4, 'return "é", a[1] + 4'),
        (4, 'return "é", a[2] + 3'),
    ]
    assert changes_of("x = 1\n") == []


def test_the_checks_that_fail_are_the_answer() -> None:
    found = questions_about(BLOOM, str(ANN), 2, "may", Limits(5))
    assert len({one.line for one in found}) == 2
    lines = ANN.read_text().splitlines()
    for one in found:
        assert lines[one.line - 1].strip() == one.text != one.changed
        assert one.fails
        assert set(one.fails) <= {check.name for check in BLOOM.checks}


def test_a_change_that_is_made_fails_as_the_answer_says(tmp_path: Path) -> None:
    (one,) = questions_about(BLOOM, str(ANN), 1, "june", Limits(5))
    lines = ANN.read_text().splitlines()
    space = lines[one.line - 1][: -len(lines[one.line - 1].lstrip())]
    lines[one.line - 1] = space + one.changed
    path = tmp_path / BLOOM.file_name
    path.write_text("\n".join(lines))
    results = run_checks(BLOOM, str(path), Limits(5))
    assert [result.check for result in results if result.outcome != PASSED] == one.fails


def test_the_key_is_for_the_teacher(tmp_path: Path) -> None:
    out = lsm("course", "oral", "4", ANN, "--questions", "1").out
    assert out.startswith("1. Line ")
    assert "Answer" not in out
    rows = json.loads(lsm("course", "oral", "4", ANN, "--questions", "1", "--json", "--key").out)
    assert set(rows[0]) == {"line", "text", "changed", "fails", "message"}
    path = tmp_path / "lab.py"
    for source, words in (("def f(:", "is no Python"), (BLOOM.starter(), "passes no check")):
        path.write_text(source)
        with pytest.raises(ValueError, match=words):
            questions_about(BLOOM, str(path), 1, "1", Limits(5))

"""Where a student is, and the one next step."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from commands import lsm
from labs import STUDENTS

from lsmkv.course.labs.registry import LABS, find
from lsmkv.course.running import Result
from lsmkv.course.steps import current_lab, next_step

BLOOM, KEYS = find("bloom"), find("keys")
GOOD = Result("the hash of a key", "passed", "73 keys")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "storage"
    lsm("course", "new", path)
    monkeypatch.chdir(path)
    return path


@pytest.mark.parametrize(
    ("results", "words"),
    [
        (
            [GOOD, Result("b", "not written", "probes is not written yet")],
            "write probes in mine.py.",
        ),
        ([GOOD, Result("b", "not written", "it is not written yet")], "the check 'b'. A hint: "),
        ([Result("a", "failed", "x"), Result("b", "error", "y")], "the check 'a'. A hint: "),
        ([Result("a", "error", "x"), Result("b", "error", "x")], "make mine.py run."),
        ([GOOD, GOOD], "lab 5, The filter block: 'lsmkv course show 5'."),
    ],
)
def test_one_next_step(results: list[Result], words: str) -> None:
    assert next_step(BLOOM, results, "mine.py").startswith(f"Next: {words}")


def test_the_last_lab_has_no_next_one() -> None:
    assert next_step(LABS[-1], [GOOD], "x.py") == "Next: nothing. That was the last lab."


def test_the_current_lab_is_the_one_that_was_saved_last(folder: Path) -> None:
    assert current_lab(str(folder)) is KEYS
    for number, lab in enumerate((BLOOM, KEYS, find("log"))):
        path = folder / lab.file_name
        if number < 2:
            path.write_text(lab.starter() + "# begun\n")
        os.utime(path, (1000 - number, 1000 - number))
    assert current_lab(str(folder)) is BLOOM


def test_check_alone_checks_that_lab_and_names_its_file(folder: Path) -> None:
    (folder / BLOOM.file_name).write_text((STUDENTS / "ann_lab4_bloom.py").read_text())
    done = lsm("course", "check")
    assert done.status == 0
    assert done.out.startswith("Lab 4: The Bloom filter (lab4_bloom.py)\n")
    assert done.out.endswith(
        "8 of 8 checks passed.\nNext: lab 5, The filter block: 'lsmkv course show 5'.\n"
    )


def test_check_elsewhere_says_where_to_go(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments in (["check"], ["check", "1"], ["status"]):
        done = lsm("course", *arguments)
        assert (done.status, done.out) == (2, "")
        assert "lab1_keys.py: it is not in this folder: 'cd storage' first" in done.err
    (folder / "deeper").mkdir()
    monkeypatch.chdir(folder / "deeper")
    assert "'cd ..' first" in lsm("course", "check").err
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert "make it with 'lsmkv course new DIR'" in lsm("course", "check", "4").err


def test_status_says_how_far_each_lab_is(folder: Path) -> None:
    assert "Next: lab 1, Varints and internal keys" in lsm("course", "status").out
    (folder / BLOOM.file_name).write_text((STUDENTS / "ann_lab4_bloom.py").read_text())
    (folder / KEYS.file_name).write_text("def (")
    (folder / find("log").file_name).unlink()
    os.utime(folder / BLOOM.file_name, (1000, 1000))
    lines = lsm("course", "status").out.splitlines()
    assert lines[:4] == [
        " 1  lab1_keys.py          0 of 7 checks",
        " 2  lab2_log.py           missing",
        " 3  lab3_block.py         not begun",
        " 4  lab4_bloom.py         8 of 8 checks",
    ]
    assert lines[-1] == "Next: make lab1_keys.py run."
    answer = json.loads(lsm("course", "status", folder, "--json").out)
    assert [one["state"] for one in answer["labs"][:4]] == ["begun", "missing", "not begun", "done"]
    assert (answer["labs"][3]["passed"], answer["next"]) == (8, "Next: make lab1_keys.py run.")

"""A folder of submissions is graded, and what does not end is stopped."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from labs import STARTERS, reference

from lsmkv.tools.course.grading import Limits, grade_directory, run_limited, without_network
from lsmkv.tools.course.labs.registry import LABS, find

BLOOM = find("bloom")
LIMITS = Limits(seconds=20, memory_mib=1024)


def first_check(tmp_path: Path, body: str, limits: Limits = LIMITS) -> tuple[str, str]:
    """What becomes of the first check of lab 4 with this in place of the hash."""
    path = tmp_path / BLOOM.file_name
    path.write_text(BLOOM.starter().replace("raise NotImplementedError", body, 1))
    result = run_limited(BLOOM, str(path), BLOOM.checks[0], limits)
    assert result.check == BLOOM.checks[0].name
    return result.outcome, result.message


def test_three_submissions(tmp_path: Path) -> None:
    for name in ("ann", "bob", "cem"):
        (tmp_path / name).mkdir()
    shutil.copy(reference(BLOOM), tmp_path / "ann")
    shutil.copy(STARTERS / BLOOM.file_name, tmp_path / "bob")
    (tmp_path / "notes.txt").touch()
    graded = {submission.name: submission for submission in grade_directory(str(tmp_path), LIMITS)}
    assert list(graded) == ["ann", "bob", "cem"]
    assert all(len(submission.labs) == len(LABS) for submission in graded.values())
    found = {
        name: next(lab for lab in submission.labs if lab.lab == BLOOM.number)
        for name, submission in graded.items()
    }
    assert found["ann"].passed == len(BLOOM.checks)
    assert {result.outcome for result in found["bob"].checks} == {"not written"}
    assert {result.outcome for result in found["cem"].checks} == {"missing"}
    assert found["cem"].checks[0].message == f"there is no file {BLOOM.file_name}"


def test_a_folder_without_students_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no folders of students"):
        grade_directory(str(tmp_path), LIMITS)


@pytest.mark.parametrize(
    "body",
    [
        "while True: pass",
        "import os, time; os.fork(); time.sleep(1000)",
        "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
    ],
    ids=["busy", "asleep", "crashed"],
)
def test_what_does_not_end_is_stopped(tmp_path: Path, body: str) -> None:
    outcome, message = first_check(tmp_path, body, Limits(1, 1024))
    assert outcome == "stopped"
    assert "more than 1 s or 1024 MiB, or crashed" in message


def test_memory_is_limited(tmp_path: Path) -> None:
    outcome, message = first_check(tmp_path, "return len(bytes(2 << 30))")
    assert (outcome, "MemoryError" in message) == ("error", True)


def test_what_is_printed_is_no_result(tmp_path: Path) -> None:
    forged = 'print(\'{"check": "x", "outcome": "passed", "message": ""}\', flush=True); return 1'
    assert first_check(tmp_path, forged)[0] == "failed"


def test_there_is_no_network_where_that_is_allowed(tmp_path: Path) -> None:
    if not without_network():
        pytest.skip("unshare is not allowed here")
    body = "import socket; return socket.create_connection(('127.0.0.1', 9)).fileno()"
    outcome, message = first_check(tmp_path, body)
    assert outcome == "error"
    assert "Network is unreachable" in message or "Cannot assign requested address" in message


def test_files_are_written_where_they_go_away(tmp_path: Path) -> None:
    outcome, _ = first_check(tmp_path, "open('left behind', 'w').close(); return 1")
    assert outcome == "failed"
    assert [path.name for path in tmp_path.iterdir()] == [BLOOM.file_name]

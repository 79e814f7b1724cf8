"""A folder of submissions is graded, and what does not end is stopped."""

from __future__ import annotations

import shutil
import signal
import threading
import time
from pathlib import Path

import pytest
from labs import STARTERS, reference

from lsmkv.course.grading import (
    Grader,
    LabGrade,
    Limits,
    Submission,
    students,
    without_network,
)
from lsmkv.course.labs.registry import LABS, find

BLOOM = find("bloom")
LIMITS = Limits(seconds=20, memory_mib=1024)


def grade_lab(folder: Path, limits: Limits = LIMITS) -> LabGrade:
    with Grader(limits) as grader:
        return grader.grade_lab(BLOOM, str(folder))


def grade_directory(directory: Path) -> list[Submission]:
    with Grader(LIMITS) as grader:
        return list(grader.grade(str(directory), students(str(directory))))


def first_check(tmp_path: Path, body: str, limits: Limits = LIMITS) -> tuple[str, str]:
    """What becomes of the first check of lab 4 with this in place of the hash."""
    path = tmp_path / BLOOM.file_name
    path.write_text(BLOOM.starter().replace("raise NotImplementedError", body, 1))
    results = grade_lab(tmp_path, limits).checks
    assert [result.check for result in results] == [check.name for check in BLOOM.checks]
    result = results[0]
    return result.outcome, result.message


def test_three_submissions(tmp_path: Path) -> None:
    for name in ("ann", "bob", "cem"):
        (tmp_path / name).mkdir()
    shutil.copy(reference(BLOOM), tmp_path / "ann")
    shutil.copy(STARTERS / BLOOM.file_name, tmp_path / "bob")
    (tmp_path / "notes.txt").touch()
    (tmp_path / "__MACOSX").mkdir()
    (tmp_path / ".git").mkdir()
    graded = {submission.name: submission for submission in grade_directory(tmp_path)}
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
        students(str(tmp_path))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("while True: pass", "after 1 s\n  line 13: while True: pass"),
        ("import os, time; os.fork(); time.sleep(1000)", "after 1 s\n  line 13: import os"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "its process crashed: SIGSEGV"),
        ("import os; os._exit(3)", "its process ended with status 3"),
        (
            "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})\n"
            "    while True: pass",
            "after 1 s",
        ),
    ],
    ids=["busy", "asleep", "crashed", "ended", "deaf"],
)
def test_what_does_not_end_is_stopped(tmp_path: Path, body: str, words: str) -> None:
    outcome, message = first_check(tmp_path, body, Limits(1, 1024))
    assert outcome == "stopped"
    assert message.startswith("it was stopped ")
    assert words in message


def test_the_checks_after_a_crash_are_run(tmp_path: Path) -> None:
    shutil.copy(reference(BLOOM), tmp_path)
    path = tmp_path / BLOOM.file_name
    end = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    path.write_text(f"{path.read_text()}\n\ndef probes(bits):\n    {end}\n")
    outcomes = [result.outcome for result in grade_lab(tmp_path).checks]
    assert outcomes[:3] == ["passed", "stopped", "passed"]


@pytest.mark.usefixtures("signals_are_heard")
def test_what_is_left_ends_with_the_grading(tmp_path: Path) -> None:
    (tmp_path / "ann").mkdir()
    starter = BLOOM.starter().replace("raise NotImplementedError", "while True: pass")
    (tmp_path / "ann" / BLOOM.file_name).write_text(starter)
    before = time.monotonic()
    main = threading.main_thread().ident
    with Grader(Limits(1000, 1024)) as grader:
        graded = grader.grade(str(tmp_path), ["ann"])
        threading.Timer(1, signal.pthread_kill, [main, signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt):
            next(graded)
    assert time.monotonic() - before < 900  # far less than the check may take


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

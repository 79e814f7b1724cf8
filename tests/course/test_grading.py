"""A folder of submissions is graded, and what a student's code does changes their result alone."""

from __future__ import annotations

import csv
import io
import os
import shutil
import signal
import sys
import threading
import time
from datetime import datetime
from pathlib import Path

import pytest
from commands import lsm
from labs import STARTERS, STUDENTS, reference, renamed
from own_data import call_that_shows

from lsmkv.course.grading import Grader, LabGrade, points_of
from lsmkv.course.labs.registry import LABS, find
from lsmkv.course.predict.registry import task_of, write_for
from lsmkv.course.running import Limits, Result
from lsmkv.course.seeds import Owner, seed_of, write_owner

BLOOM = find("bloom")
LIMITS = Limits()
ANN = (STUDENTS / "ann_lab4_bloom.py").read_text()


def grade_lab(folder: Path, limits: Limits = LIMITS) -> LabGrade:
    with Grader(limits) as grader:
        return grader.grade_lab(BLOOM, {BLOOM.file_name: str(folder / BLOOM.file_name)})


def test_three_submissions(tmp_path: Path) -> None:
    for name in ("ann", "bob", "cem"):
        (tmp_path / name).mkdir()
    shutil.copy(reference(BLOOM), tmp_path / "ann")
    shutil.copy(STARTERS / BLOOM.file_name, tmp_path / "bob")
    (tmp_path / "notes.txt").touch()
    with Grader(Limits()) as grader:
        graded = {one.name: one for one in grader.grade(str(tmp_path), ["ann", "bob", "cem"])}
    assert all(len(submission.labs) == len(LABS) for submission in graded.values())
    found = {
        name: next(lab for lab in submission.labs if lab.lab == BLOOM.number)
        for name, submission in graded.items()
    }
    assert (found["ann"].passed, found["ann"].points, found["ann"].maximum) == (8, 9, 9)
    assert {result.outcome for result in found["bob"].checks} == {"not written"}
    assert {result.outcome for result in found["cem"].checks} == {"missing"}
    assert found["cem"].checks[0].message == f"there is no file {BLOOM.file_name}"


def test_the_last_check_counts_double() -> None:
    good, bad = Result("a", "passed", ""), Result("b", "failed", "")
    assert [points_of(some) for some in ([good, good], [good, bad], [bad, good], [])] == [
        3,
        1,
        2,
        0,
    ]


CLASS = {
    "ann, honest": ANN,
    "bob, who renames": renamed(ANN),
    "cem, who imports": Path(reference(BLOOM)).read_text(),
    "dan, who forges": BLOOM.starter()
    + "\nimport lsmkv.course.labs.bloom as b, lsmkv.course.running as r, os\n"
    "for check in b.LAB.checks: object.__setattr__(check, 'run', lambda code: 'good')\n"
    "object.__setattr__(b.LAB, 'checks', ())\nr.judge = r.run_checks = lambda *a: os._exit(0)\n",
    "eve, who loops": BLOOM.starter() + "\nwhile True: pass\n",
    "fay, who crashes": ANN + "\n\ndef probes(bits_per_key):\n    import os, signal\n"
    "    os.kill(os.getppid(), signal.SIGKILL)\n    os.kill(os.getpid(), signal.SIGSEGV)\n",
}
"""The files of lab 4 of a class of eight; two more are laid out otherwise."""


def give_own_data(directory: Path) -> None:
    """Ann predicts one of two numbers, and finds her fault.  Bob has predicted Ann's numbers, cem
    has changed his data, and dan has handed in Ann's."""
    folders = {path.name.partition(",")[0]: path for path in directory.iterdir()}
    answers = [one.answer for one in task_of(BLOOM, seed_of("ann")).questions]
    for name in ("ann", "bob", "cem"):
        write_for(str(folders[name]), name)
    for name in ("ann", "bob"):
        kept = Owner(name, seed_of(name), {"4": ["999 1000", answers[1]]})
        write_owner(str(folders[name]), kept)
    call = call_that_shows("bloom", "ann")
    (folders["ann"] / "fault4.txt").write_text(f"{call}\n# It is wrong.\n")
    right = [one.answer for one in task_of(BLOOM, seed_of("cem")).questions]
    write_owner(str(folders["cem"]), Owner("cem", 7, {"4": right}))
    (folders["cem"] / "data" / "lab4.txt").write_text("hash = 1\n")
    shutil.copytree(folders["ann"] / "data", folders["dan"] / "data")
    for name in ("student.json", "fault4.txt"):
        shutil.copy(folders["ann"] / name, folders["dan"])


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_a_class_of_eight(tmp_path: Path) -> None:
    for name, source in CLASS.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / BLOOM.file_name).write_text(source)
    (tmp_path / "gil, who is late").mkdir()
    late = tmp_path / "gil, who is late" / BLOOM.file_name
    shutil.copy(STUDENTS / "dan_lab4_bloom.py", late)
    below = tmp_path / "hal, with folders" / "storage"
    below.mkdir(parents=True)
    (below / "lab4_bloom (1).py").write_text(BLOOM.starter())
    give_own_data(tmp_path)
    noon = datetime(2026, 3, 2, 12).astimezone()
    for path in tmp_path.rglob("*.py"):
        os.utime(path, (noon.timestamp(), noon.timestamp()))
    os.utime(late, (noon.timestamp() + 7260, noon.timestamp() + 7260))
    options = ("--lab", "4", "--seconds", "5", "--due", "2026-03-02T12:00", "--csv")
    done = lsm("course", "grade", tmp_path, *options)
    assert (done.status, done.err) == (0, "")
    head, most, *rows = csv.reader(io.StringIO(done.out))
    assert head == ["student", "lab 4", "predictions", "faults", "checks", "look at"]
    assert most == ["maximum", "8", "2", "1", "8", ""]
    found = {row[0].partition(",")[0]: (row[1], row[5].split("; ")) for row in rows}
    own = {row[0].partition(",")[0]: (row[2], row[3]) for row in rows}
    assert own == {
        **dict.fromkeys(("eve", "fay", "gil", "hal"), ("0", "0")),
        **{"ann": ("1", "1"), "bob": ("0", "0"), "cem": ("2", "0"), "dan": ("1", "1")},
    }
    assert found["ann"] == (
        "8",
        [
            "the data are also those of dan, who forges",
            "lab 4 has the same wrong predictions as bob, who renames, whose data are others",
            "lab 4 is like bob, who renames's (100%), fay, who crashes's (100%)",
        ],
    )
    assert found["bob"] == (
        "8",
        [
            "lab 4 has the same wrong predictions as ann, honest, whose data are others",
            "lab 4 has the same wrong predictions as dan, who forges, whose data are others",
            "lab 4 is like ann, honest's (100%), fay, who crashes's (100%)",
        ],
    )
    passed, looks = found["cem"]
    assert passed == "8"
    assert looks[:3] == [
        "the seed in student.json was changed",
        "data/lab4.txt was changed",
        "lab 4 imports lsmkv.engine.filter.bloom.BloomFilterPolicy",
    ]
    assert found["dan"] == (
        "0",
        [
            "the data are those of 'ann'",
            "the data are also those of ann, honest",
            "lab 4 has the same wrong predictions as bob, who renames, whose data are others",
            "lab 4 imports lsmkv.course.labs.bloom",
            "lab 4 imports lsmkv.course.running",
        ],
    )
    assert found["eve"] == ("0", ["lab 4 was stopped after 5 s"])
    passed, looks = found["fay"]
    assert passed == "1"
    assert looks[-1] == "lab 4 was stopped since the process that judges it was ended"
    assert found["gil"] == ("8", ["lab 4 is late (2026-03-02 14:01)"])
    assert found["hal"] == ("0", ["lab 4 was found as storage/lab4_bloom (1).py"])


def test_a_judge_that_was_killed_ends_the_lab_alone(tmp_path: Path) -> None:
    path = tmp_path / BLOOM.file_name
    kill = "import os, signal; os.kill(os.getppid(), signal.SIGKILL)"
    path.write_text(f"{ANN}\n\ndef probes(bits):\n    {kill}\n")
    results = grade_lab(tmp_path).checks
    assert [one.outcome for one in results] == ["passed"] + ["stopped"] * 7
    assert results[1].message == "it was stopped since the process that judges it was ended"


def test_the_checks_after_a_crash_are_run(tmp_path: Path) -> None:
    path = tmp_path / BLOOM.file_name
    end = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    path.write_text(f"{ANN}\n\ndef probes(bits):\n    {end}\n")
    outcomes = [result.outcome for result in grade_lab(tmp_path).checks]
    assert outcomes[:2] == ["passed", "stopped"]
    assert outcomes[5] == "passed"


@pytest.mark.usefixtures("signals_are_heard")
def test_what_is_left_ends_with_the_grading(tmp_path: Path) -> None:
    (tmp_path / "ann").mkdir()
    starter = BLOOM.starter().replace("raise NotImplementedError", "while True: pass")
    (tmp_path / "ann" / BLOOM.file_name).write_text(starter)
    before = time.monotonic()
    main = threading.main_thread().ident
    with Grader(Limits(1000)) as grader:
        graded = grader.grade(str(tmp_path), ["ann"])
        threading.Timer(1, signal.pthread_kill, [main, signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt):
            next(graded)
    assert time.monotonic() - before < 900  # far less than the check may take


def test_files_are_written_where_they_go_away(tmp_path: Path) -> None:
    path = tmp_path / BLOOM.file_name
    path.write_text(ANN + "\n\nopen('left behind', 'w').close()\n")
    assert grade_lab(tmp_path).passed == 8
    assert [path.name for path in tmp_path.iterdir()] == [BLOOM.file_name]

"""``lsmkv course`` as a student and a teacher start it."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from commands import lsm, on_terminal
from labs import STUDENTS, reference
from processes import ENVIRON

from lsmkv.course.labs.registry import LABS, find

BLOOM = find("bloom")


def test_new_lays_out_a_folder_and_replaces_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "student"
    done = lsm("course", "new", folder)
    assert (done.status, done.err) == (0, "")
    names = [lab.file_name for lab in LABS]
    assert sorted(os.listdir(folder)) == sorted([*names, "sample"])
    assert (folder / BLOOM.file_name).read_text() == BLOOM.starter()
    for name in names:
        (folder / name).unlink()
    shutil.rmtree(folder / "sample")
    (folder / names[-1]).write_text("my work")
    done = lsm("course", "new", folder)
    assert done.status == 2
    assert "it already exists, and was not changed" in done.err
    assert os.listdir(folder) == [names[-1]]
    assert (folder / names[-1]).read_text() == "my work"


def test_new_prints_json(tmp_path: Path) -> None:
    answer = json.loads(lsm("course", "new", tmp_path, "--json").out)
    assert answer == {"path": str(tmp_path), "files": [lab.file_name for lab in LABS]}


def test_show_prints_the_text_and_a_hint() -> None:
    text = re.sub(r"<!--.*?-->\n", "", BLOOM.text_without_hints())
    assert lsm("course", "show", "4").out == text
    assert lsm("course", "show", "bloom", "--hint", "2").out == BLOOM.hints()[1] + "\n"
    answer = json.loads(lsm("course", "show", "4", "--json").out)
    assert answer["hints"] == len(BLOOM.hints())
    assert answer["text"] == BLOOM.text_without_hints()
    done = lsm("course", "show", "4", "--hint", "99")
    assert (done.status, done.err) == (2, f"lsmkv: lab 4 has {len(BLOOM.hints())} hints\n")
    assert "there is no lab 99" in lsm("course", "show", "99").err


def test_check_of_a_good_file_and_of_a_starter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = lsm("course", "check", "4", reference(BLOOM))
    assert done.status == 0
    assert "8 of 8 checks passed.\n" in done.out
    assert done.out.endswith("Next: lab 5, The filter block: 'lsmkv course show 5'.\n")
    monkeypatch.chdir(tmp_path)
    lsm("course", "new", ".")
    done = lsm("course", "check", "4")
    assert done.status == 1
    assert "0 of 8 checks passed.\nNext: write bloom_hash in lab4_bloom.py. " in done.out
    answer = json.loads(lsm("course", "check", "4", "--json").out)
    assert (answer["lab"], answer["file"]) == (4, str(tmp_path / BLOOM.file_name))
    assert [one["check"] for one in answer["checks"]] == [check.name for check in BLOOM.checks]
    assert {one["outcome"] for one in answer["checks"]} == {"not written"}


def test_check_says_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(BLOOM.starter().replace("raise NotImplementedError", "return 0", 1))
    out = lsm("course", "check", "4", path).out
    assert "  failed       the hash of a key\n               bloom_hash(b'') must be 0x" in out
    done = lsm("course", "check", "4", tmp_path / "none.py")
    assert (done.status, done.err) == (2, f"lsmkv: {tmp_path}/none.py: No such file or directory\n")
    assert "cannot be combined" in lsm("course", "check", "4", path, "--watch", "--json").err


@pytest.fixture
def watching(tmp_path: Path) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    path = tmp_path / "mine.py"
    path.write_text(BLOOM.starter())
    command = [sys.executable, "-m", "lsmkv", "course", "check", "4", str(path), "--watch"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRON
    ) as process:
        try:
            yield path, process
        finally:
            process.kill()


def read_until(stream: IO[str], words: str) -> str:
    lines: list[str] = []
    for line in stream:
        lines.append(line)
        if words in line:
            return "".join(lines)
    raise AssertionError(f"{words} does not come: {lines}")


def test_watch_checks_again_after_a_save_and_ends_on_ctrl_c(
    watching: tuple[Path, subprocess.Popen[str]],
) -> None:
    path, process = watching
    assert process.stdout is not None
    assert "0 of 8 checks" in read_until(process.stdout, "Waiting for mine.py")
    new = path.with_suffix(".new")  # as editors save
    shutil.copy(reference(BLOOM), new)
    new.replace(path)
    assert "8 of 8 checks" in read_until(process.stdout, "Waiting for mine.py")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert (process.returncode, err) == (130, "lsmkv: interrupted\n")


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A check in a function that does not end."""
    path = tmp_path / "mine.py"
    loop = "def probes(bits):\n    print('begun')\n    while True: pass\n"
    path.write_text(f"{BLOOM.starter()}\n\n{loop}")
    # As a terminal starts it, even if the suite runs under nohup or in the background of a shell.
    heard = (
        "import signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
        "from lsmkv.tools.cli import main\n"
        "sys.exit(main())\n"
    )
    command = [sys.executable, "-u", "-c", heard, "course", "check", "4", str(path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRON
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_check_that_does_not_end(
    endless: subprocess.Popen[str], number: signal.Signals
) -> None:
    assert endless.stdout is not None
    assert "the hash of a key: bloom_hash is not written" in read_until(endless.stdout, "begun")
    endless.send_signal(number)
    out, err = endless.communicate()
    assert endless.returncode == 128 + number
    if number is signal.SIGINT:
        assert "interrupted  the number of probes" in out
        assert "\n               line 3" in out
        assert err == "lsmkv: interrupted\n"


def test_what_a_student_prints_is_not_in_the_json(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(BLOOM.starter() + "\nprint('to see')\n")
    command = [sys.executable, "-m", "lsmkv", "course", "check", "4", str(path), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRON, check=False)
    assert json.loads(done.stdout)["lab"] == 4
    assert done.stderr == "to see\n"


def test_an_error_of_the_file_is_reported_once(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("def (")
    out = lsm("course", "check", "4", path).out
    assert out.count("the file cannot be run: SyntaxError") == 1
    assert out.count(": the same\n") == 7


def test_a_missing_function_fails_what_needs_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(Path(reference(BLOOM)).read_text() + "\n\ndel predicted_rate\n")
    out = lsm("course", "check", "4", path).out
    assert "7 of 8 checks passed." in out
    assert "the file has no function predicted_rate" in out


def test_grade_prints_a_table_and_json(tmp_path: Path) -> None:
    for name, solved in (("ann", True), ("bob", False)):
        (tmp_path / name).mkdir()
        if solved:
            shutil.copy(STUDENTS / "ann_lab4_bloom.py", tmp_path / name / BLOOM.file_name)
    done = lsm("course", "grade", tmp_path)
    head, checks, ann, bob, legend = done.out.splitlines()
    assert (done.status, head.split()[:3]) == (0, ["lab", "1", "2"])
    at = head.split().index("4")
    assert (checks.split()[at], ann.split()[at]) == ("8", "8")
    assert set(bob.split()) == {"bob", "-"}
    assert "-: no file" in legend
    assert len(head) <= 70
    rows = list(csv.DictReader(io.StringIO(lsm("course", "grade", tmp_path, "--csv").out)))
    assert [row["student"] for row in rows] == ["maximum", "ann", "bob"]
    assert [row["lab 4"] for row in rows] == ["8", "8", ""]
    assert "cannot be combined" in lsm("course", "grade", tmp_path, "--csv", "--json").err
    shutil.rmtree(tmp_path / "ann")
    answer = json.loads(lsm("course", "grade", tmp_path, "--json", "--seconds", "9").out)
    assert answer["limits"] == {"seconds": 9, "memory_mib": 1024}
    assert answer["submissions"][0]["look_at"] == []
    assert all(
        check["outcome"] == "missing"
        for submission in answer["submissions"]
        for lab in submission["labs"]
        for check in lab["checks"]
    )


def test_grade_prints_points_of_some_labs_with_weights(tmp_path: Path) -> None:
    (tmp_path / "ann" / "below").mkdir(parents=True)
    copy = tmp_path / "ann" / "below" / "lab4_bloom (1).py"
    copy.write_text(
        (STUDENTS / "ann_lab4_bloom.py").read_text()
        + "\n\nfrom lsmkv.engine.filter.bloom import predicted_rate\n"
        + "\n\ndef probes(bits):\n    import os\n    os._exit(0)\n"
    )
    (tmp_path / "lab1_keys.py").touch()
    options = ("--lab", "1,bloom", "--points", "--weight", "4=1.5")
    done = lsm("course", "grade", tmp_path, *options, "--csv")
    assert done.err == "lsmkv: lab1_keys.py is in no student's folder, and is not graded\n"
    head, most, ann = csv.reader(io.StringIO(done.out))
    assert head == ["student", "lab 1", "lab 4", "points", "look at"]
    assert most == ["maximum", "8", "13.5", "21.5", ""]
    assert ann[:4] == ["ann", "", "3", "3"]
    assert ann[4].split("; ") == [
        "lab 4 was found as below/lab4_bloom (1).py",
        "lab 4 imports lsmkv.engine.filter.bloom.predicted_rate",
        "lab 4 was stopped since its process ended with status 0",
    ]
    out = lsm("course", "grade", tmp_path, *options).out
    assert "points     8 13.5\nann        -   3!\n" in out
    assert "Look at:\n  ann: lab 4 was found as below/lab4_bloom (1).py\n" in out
    assert "--weight needs --points" in lsm("course", "grade", tmp_path, "--weight", "4=2").err
    wrong = lsm("course", "grade", tmp_path, "--points", "--weight", "4").err
    assert "--weight 4: it must be LAB=N" in wrong


def test_a_file_that_ends_the_process_does_not_make_check_succeed(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("import os\nos._exit(0)\n")
    done = lsm("course", "check", "4", path)
    assert done.status == 1
    assert (
        "the hash of a key\n               it was stopped since its process ended with" in done.out
    )
    assert "0 of 8 checks passed." in done.out


@pytest.mark.parametrize("columns", [80, 120])
def test_show_fits_the_terminal(columns: int) -> None:
    status, shown = on_terminal("course", "show", "4", columns=columns)
    lines = re.sub(r"\x1b\[[\d;]*m", "", shown).splitlines()
    assert (status, len(lines) > 100) == (0, True)
    assert max(map(len, lines)) <= columns


def test_check_fits_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        Path(reference(BLOOM)).read_text() + "\n_right = create_filter\n\n\n"
        "def create_filter(keys, bits):\n    return bytes(9) + _right(keys, bits)[9:]\n"
    )
    status, shown = on_terminal("course", "check", "4", path, columns=80)
    lines = shown.splitlines()
    assert (status, max(map(len, lines)) <= 80) == (1, True)
    at = next(number for number, line in enumerate(lines) if line.strip() == "^^")
    column = lines[at].index("^^")
    assert lines[at - 1][column : column + 2] == "00"

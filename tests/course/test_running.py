"""A check ends in an outcome, whatever the student's file does."""

from __future__ import annotations

import logging
import signal
import sys
from pathlib import Path
from types import ModuleType

import pytest
from labs import run_all

import lsmkv
from lsmkv.course.failure import CheckFailure
from lsmkv.course.lab import Check, Lab
from lsmkv.course.running import LoadError, load, run_one
from lsmkv.tools.signals import Terminated


def call(code: ModuleType) -> str:
    return f"it returned {code.part()}"


CHECK = Check("a call", call)
LAB = Lab(99, "made_up", "A lab", ("part",), (CHECK,), str)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "student.py"


@pytest.mark.parametrize(
    ("source", "outcome", "message"),
    [
        ("def part(): return 3", "passed", "it returned 3"),
        ("def part():\n    raise NotImplementedError", "not written", "part is not written yet"),
        ("def part():\n    return 1 / 0", "error", "ZeroDivisionError: division by zero\n  line 2"),
        ("def part():\n    exit(1)", "error", "SystemExit: 1"),
        ("def other(): pass", "error", "the file has no function part"),
        ("part = 3", "error", "the file has no function part"),
        ("def part(:", "error", "the file cannot be run: SyntaxError"),
        ("import no_such_module", "error", "the file cannot be run: ModuleNotFoundError"),
        ("exit()", "error", "the file cannot be run: SystemExit"),
        (
            "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int\n"
            "def part(): return A(1).x",
            "passed",
            "it returned 1",
        ),
    ],
)
def test_outcomes(file: Path, source: str, outcome: str, message: str) -> None:
    file.write_text(source)
    result = run_one(LAB, str(file), CHECK, 60)
    assert result.outcome == outcome
    assert message in result.message


def test_what_was_saved_last_is_run(file: Path) -> None:
    for number in range(5):
        file.write_text(f"def part(): return {number}")
        assert run_all(LAB, str(file))[0].message == f"it returned {number}"


def test_a_file_that_is_not_there_is_an_error_of_the_command(file: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run_one(LAB, str(file), CHECK, 60)
    file.write_text("(")
    with pytest.raises(LoadError):
        load(str(file))


@pytest.mark.parametrize("source", ["raise Terminated(143)", "def part(): raise Terminated(143)"])
def test_a_signal_ends_more_than_the_check(file: Path, source: str) -> None:
    file.write_text(f"from lsmkv.tools.signals import Terminated\n{source}")
    with pytest.raises(Terminated):
        run_one(LAB, str(file), CHECK, 60)


@pytest.mark.skipif(sys.platform == "win32", reason="no check is stopped there")
@pytest.mark.parametrize(
    ("source", "where"),
    [
        ("def part():\n    while True: pass", "line 2: while True: pass"),
        ("while True:\n    try: x = 1\n    except Exception: pass", "line "),
        ("import time\ndef part():\n    time.sleep(1000)", "line 3: time.sleep(1000)"),
    ],
    ids=["a function", "the file", "asleep"],
)
def test_a_check_is_stopped_in_time(file: Path, source: str, where: str) -> None:
    file.write_text(source)
    before = signal.getsignal(signal.SIGALRM)
    result = run_one(LAB, str(file), CHECK, 0.1)
    assert result.outcome == "stopped"
    assert f"it was stopped after 0.1 s\n  {where}" in result.message
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_what_the_engine_wraps_is_reported_as_it_was_raised(file: Path) -> None:
    def wrapped(code: ModuleType) -> str:
        logging.getLogger("lsmkv").warning("not to be seen")
        try:
            code.part()
        except Exception as error:
            raise lsmkv.Error("background work failed") from error
        return ""

    file.write_text("def part(): raise KeyError('k')")
    assert "KeyError: 'k'" in run_one(LAB, str(file), Check("wrapped", wrapped), 60).message

    def failed(code: ModuleType) -> str:
        raise lsmkv.Error("background work failed") from CheckFailure("the filter is text")

    result = run_one(LAB, str(file), Check("failed", failed), 60)
    assert (result.outcome, result.message) == ("failed", "the filter is text")
    assert not logging.getLogger("lsmkv").disabled

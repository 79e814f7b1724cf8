"""The process that runs a student's files: its limits, and how labs import each other."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from lsmkv.course.lab import Check, Lab
from lsmkv.course.running import Limits, Result, run_checks
from lsmkv.course.student import Labs


def call(code: Any) -> str:
    return f"it returned {code.part()}"


LAB = Lab(99, "made_up", "A lab", ("part",), (Check("a call", call),), str)
posix = pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "student.py"


def run(file: Path, limits: Limits = Limits(60), **settings: Any) -> Result:  # noqa: B008
    (result,) = run_checks(LAB, str(file), limits, **settings)
    return result


@posix
def test_memory_is_limited(file: Path) -> None:
    file.write_text("def part(): return len(bytes(2 << 30))")
    assert "MemoryError" in run(file, Limits(60, 512)).message


def test_labs_import_each_other(file: Path) -> None:
    (file.parent / "lab1_keys.py").write_text("def encode_varint(n):\n    return n / 0\n")
    file.write_text("from lab1_keys import encode_varint\ndef part(): return encode_varint(3)")
    message = run(file).message
    assert "ZeroDivisionError: division by zero\n  lab1_keys.py, line 2: return n / 0" in message
    assert not (file.parent / "__pycache__").exists()


def test_a_lab_is_found_under_another_name(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "below" / "lab1_keys (1).py"
    other.parent.mkdir()
    other.write_text("def encode_varint(n): return n + 1\n")
    file.write_text("import lab1_keys\ndef part(): return lab1_keys.encode_varint(3)")
    result = run(file, files={"lab1_keys": str(other)})
    assert (result.outcome, result.message) == ("passed", "it returned 4")


@posix
def test_a_large_file_cannot_be_written(file: Path, tmp_path: Path) -> None:
    path = tmp_path / "large"
    file.write_text(
        "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"def part():\n    with open({str(path)!r}, 'wb') as out: out.write(bytes(65 << 20))\n"
    )
    assert "OSError: [Errno 27] File too large" in run(file).message


def test_only_labs_are_found_by_their_names(tmp_path: Path) -> None:
    path = tmp_path / "lab1_keys (1).py"
    path.touch()
    labs = Labs({"lab1_keys": str(path)})
    spec = labs.find_spec("lab1_keys")
    assert spec is not None
    assert spec.origin == str(path)
    assert labs.find_spec("lab2_log") is None

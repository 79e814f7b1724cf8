from __future__ import annotations

import os
from pathlib import Path

import pytest

from lsmkv.course.traces import places_in


def frame(path: Path, line: str = "2", function: str = "probe") -> str:
    return f'  File "{path}", line {line} in {function}\n'


def test_lines_of_the_folders_are_found(tmp_path: Path) -> None:
    file = tmp_path / "lab1_keys.py"
    file.write_text("def probe():\n    while True: pass\n", encoding="utf-8")
    report = "Current thread 0x1:\n" + frame(tmp_path / "other" / "x.py") + frame(file)
    (place,) = places_in(report.encode(), {str(tmp_path)})
    assert (place.file, place.line, place.text) == (str(file), 2, "while True: pass")
    assert (place.function, place.other) == ("probe", "lab1_keys.py")


def test_what_no_report_says_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "lab1_keys.py"
    file.write_text("x\n", encoding="utf-8")
    lines = [frame(file, "9" * 5000), frame(file, "\u0663"), frame(tmp_path / "gone.py"), "\xff\0"]
    assert list(places_in("".join(lines).encode("latin-1", "replace"), {str(tmp_path)})) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lab1_keys.py")
    report = frame(tmp_path / "lab1_keys.py")
    assert list(places_in(report.encode(), {str(tmp_path)})) == []

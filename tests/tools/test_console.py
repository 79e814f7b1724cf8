"""Progress bars, and lines that are folded to a terminal."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr
from pathlib import Path

import pytest

import lsmkv
from lsmkv.tools.console import amount, progress
from lsmkv.tools.text import fold

HOME = str(Path(lsmkv.__file__).parents[1])


class Stream(io.StringIO):
    """A stream that is a terminal, or is not."""

    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


def test_progress_by_steps_adds_up() -> None:
    with redirect_stderr(Stream(True)) as stream, progress("Loading", "record") as bar:
        bar.advance(1000)
        bar.advance(234)
    assert "Loading" in stream.getvalue()
    assert "1,234 records" in stream.getvalue()


def test_progress_by_reports_shows_the_phase_and_the_total() -> None:
    with redirect_stderr(Stream(True)) as stream, progress("Compacting", "byte") as bar:
        bar.report(1 << 20, 3 << 20, "level [1]")
    assert "Compacting, level [1]" in stream.getvalue()
    assert "1.0 MiB of 3.0 MiB" in stream.getvalue()


def test_progress_is_not_drawn_where_stderr_is_no_terminal() -> None:
    with redirect_stderr(Stream(False)) as stream, progress("Loading", "record") as bar:
        bar.advance(1)
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    ("done", "total", "unit", "text"),
    [
        (0, None, "record", "0 records"),
        (241_643, None, "key", "241,643 keys"),
        (1, 1, "table", "1 of 1 table"),
        (500, 2048, "byte", "500 B of 2.0 KiB"),
        (500, None, "byte", "500 B"),
        (1, 4, "", "25%"),
        (0, 0, "", ""),
    ],
)
def test_amounts_for_people(done: int, total: int | None, unit: str, text: str) -> None:
    assert amount(done, total, unit) == text


LINE = "000005.ldb  ok       level 2, 1,020 of 1,024 blocks, 241,643 entries, 123.4 MiB"


@pytest.mark.parametrize("width", [40, 60, 79, 80, 120])
def test_a_folded_line_keeps_figures_with_their_units(width: int) -> None:
    lines = fold(LINE, width, 21).split("\n")
    assert " ".join(line.strip() for line in lines) == LINE
    assert max(map(len, lines)) <= max(width, 46)
    assert all(line.startswith(" " * 21) for line in lines[1:])
    assert not any(line.strip().startswith(("blocks", "entries", "MiB")) for line in lines)
    assert (len(lines) == 1) == (width >= len(LINE))


def test_verify_folds_its_lines_on_a_terminal_alone(tmp_path: Path) -> None:
    with lsmkv.DB(tmp_path / "db", create_if_missing=True) as db:
        db.put(b"k", b"v")
        db.flush()
    command = [sys.executable, "-m", "lsmkv", "verify", str(tmp_path / "db")]
    environment = os.environ | {"PYTHONPATH": HOME, "COLUMNS": "50"}
    piped = subprocess.run(command, capture_output=True, env=environment, check=True).stdout
    master, end = os.openpty()
    with subprocess.Popen(command, stdout=end, env=environment) as verify:
        pass
    os.close(end)
    shown = os.read(master, 10_000).replace(b"\r\n", b"\n")
    os.close(master)
    assert verify.returncode == 0
    assert max(map(len, piped.splitlines())) > 50
    assert max(map(len, shown.splitlines())) <= 50
    assert b" ".join(shown.split()) == b" ".join(piped.split())

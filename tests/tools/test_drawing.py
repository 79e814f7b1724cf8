"""Progress bars, and reports that fit the console."""

from __future__ import annotations

import io
from contextlib import redirect_stderr
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

import lsmkv
from lsmkv.tools.drawing import Sheet, amount, progress

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


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_sheet_is_as_wide_as_the_console_or_as_it_says(encoding: str) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    sheet = Sheet(Console(file=out, width=100), 80)
    assert (sheet.width, sheet.fine) == (79, encoding == "utf-8")
    assert Sheet(Console(file=out, width=40), 80).width == 39
    sheet.line("long " * 30, "bold")
    sheet.line()
    sheet.line(Text("[red]plain"))
    out.seek(0)
    assert out.read() == f"{'long ' * 30}\n\n[red]plain\n"

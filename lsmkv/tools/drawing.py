"""Drawing with rich: tables and colors on stdout, progress bars on stderr."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

import rich.progress
from rich.console import Console
from rich.text import Text

from lsmkv.tools.bars import can_encode
from lsmkv.tools.text import count, size


def stdout_console() -> Console:
    """Stdout, to draw on with rich; characters that its encoding lacks are replaced."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    return Console(highlight=False)


class Sheet:
    """A report that is printed line by line, fitted to the console's width."""

    def __init__(self, console: Console, widest: int) -> None:
        """``widest`` is the most columns of the report, the last of which stays empty."""
        self.console = console
        self.width = min(console.width, widest) - 1
        self.fine = can_encode(console.encoding)
        """True if bars have a resolution of an eighth of a column."""

    def line(self, text: str | Text = "", style: str = "") -> None:
        """One line, which the console does not break."""
        self.console.print(text if isinstance(text, Text) else Text(text, style), soft_wrap=True)


class Progress:
    """A progress bar on stderr, drawn only if stderr is a terminal; see :func:`progress`."""

    def __init__(self, description: str, unit: str, total: int | None) -> None:
        console = Console(stderr=True)
        self._description = description
        self._unit = unit
        self._done = 0
        self._total = total
        self.bar = rich.progress.Progress(
            rich.progress.TextColumn("{task.description}", markup=False),
            rich.progress.BarColumn(bar_width=20),
            rich.progress.TextColumn("{task.fields[figures]}", markup=False),
            rich.progress.TimeElapsedColumn(),
            console=console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            disable=not console.is_terminal,
        )
        self._task = self.bar.add_task(description, total=total, figures="")

    def advance(self, done: int) -> None:
        """Report additional progress."""
        self._show(self._done + done, self._total, self._description)

    def report(self, done: int, total: int, phase: str) -> None:
        """Report the total progress and the phase: the engine's callback."""
        self._show(done, total, f"{self._description}, {phase}")

    def report_phase(self, phase: str, unit: str, done: int, total: int | None) -> None:
        """:meth:`report` where each phase counts other things, or does not know how many."""
        self._unit = unit
        self._show(done, total, f"{self._description}, {phase}")

    def _show(self, done: int, total: int | None, description: str) -> None:
        self._done = done
        self.bar.update(
            self._task,
            completed=done,
            total=total,
            description=description,
            figures=amount(done, total, self._unit),
        )


@contextlib.contextmanager
def progress(description: str, unit: str, total: int | None = None) -> Iterator[Progress]:
    """Show a progress bar while the block runs.

    ``unit`` is the noun for what is counted, in the singular; ``"byte"`` is shown in KiB and MiB.
    If it is empty, what is counted differs from phase to phase, and only the share is shown.
    ``total`` is None while it is not known.
    """
    shown = Progress(description, unit, total)
    with shown.bar:
        yield shown


def amount(done: int, total: int | None, unit: str) -> str:
    """Format progress as text for the terminal.

    >>> amount(2 << 20, 3 << 30, "byte"), amount(1, 1200, "table"), amount(1, None, "record")
    ('2.0 MiB of 3.0 GiB', '1 of 1,200 tables', '1 record')
    >>> amount(1, 3, "")
    '33%'
    """
    if not unit:
        return f"{done / total:.0%}" if total else ""
    if unit == "byte":
        return size(done) if total is None else f"{size(done)} of {size(total)}"
    return count(done, unit) if total is None else f"{done:,} of {count(total, unit)}"

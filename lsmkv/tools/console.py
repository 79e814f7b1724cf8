"""The two streams, progress bars, and how a command ends: data on stdout, messages on stderr."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import ParamSpec

import rich.progress
import typer
from rich.console import Console

from lsmkv.db.opening.directory import NO_DATABASE
from lsmkv.errors import Error, NotFoundError, RecoveryWarning
from lsmkv.tools.text import count, fold, printable, size

MISS = 1
ERROR = 2
INTERRUPTED = 128 + 2
BROKEN_PIPE = 128 + 13
"""Exit statuses; the last two are what a shell reports for SIGINT and SIGPIPE."""

EXTRAS = ("distributed", "fsspec", "obstore", "pyarrow")
"""Packages that a command may miss, which its error says."""

P = ParamSpec("P")


def say(message: str) -> None:
    """Print one line for people, on stderr."""
    print(f"lsmkv: {printable(message)}", file=sys.stderr)


def write(data: bytes) -> None:
    """Write data to stdout, byte for byte."""
    sys.stdout.buffer.write(data)


def write_line(text: str) -> None:
    """Write a line of data to stdout, in UTF-8 whatever the locale."""
    sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape") + b"\n")


def write_folded(text: str, indent: int) -> None:
    """Write a line of text; on a terminal too narrow for it, fold it between its parts."""
    if stdout_is_terminal():
        text = fold(text, shutil.get_terminal_size().columns, indent)
    write_line(text)


def stdout_console() -> Console:
    """Stdout, to draw on with rich; characters that its encoding lacks are replaced."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    return Console(highlight=False)


def stdout_is_terminal() -> bool:
    """Whether stdout is a terminal, where a person reads it."""
    return sys.stdout.isatty()


def stdin_is_terminal() -> bool:
    """Whether stdin is a terminal, where a person types."""
    return sys.stdin.isatty()


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
        """So much more is done."""
        self._show(self._done + done, self._total, self._description)

    def report(self, done: int, total: int, phase: str) -> None:
        """So much is done in all, of so much, and this is the phase: the engine's callback."""
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
    """How much is done, as text for the terminal.

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


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """A command whose failures end in one line on stderr and an exit status, not in a traceback."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        held = _HeldWarnings()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RecoveryWarning)  # the held warnings say the same
                command(*args, **kwargs)
            sys.stdout.flush()
        except BrokenPipeError:
            _close_stdout()
            raise typer.Exit(BROKEN_PIPE) from None
        except KeyboardInterrupt:
            held.tell("")
            say("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except SystemExit:  # a signal; after SIGHUP, stdout may be a terminal that is gone
            _close_stdout()
            raise
        except (Error, OSError, ValueError, ImportError) as error:
            if isinstance(error, ImportError) and error.name not in EXTRAS:
                raise
            held.tell(str(error))
            say(_in_words(error, hint=kwargs.get("create") is False))
            _close_stdout()
            raise typer.Exit(ERROR) from None
        finally:
            held.tell("")

    return run


class _HeldWarnings(logging.Handler):
    """The engine's warnings, held back until it is known whether the error repeats them."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._messages: list[str] = []
        self._logger = logging.getLogger("lsmkv")
        self._logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self._messages.append(record.getMessage())

    def tell(self, error: str) -> None:
        """Print the warnings that do not contain ``error``, and stop listening."""
        self._logger.removeHandler(self)
        for message in self._messages:
            if not error or error not in message:
                say(message)
        self._messages = []


def _in_words(error: Exception, hint: bool) -> str:
    """An error as one line; ``hint`` adds how a store that does not exist can be created."""
    if isinstance(error, OSError) and error.strerror:
        reason = error.strerror
        if isinstance(error, NotFoundError) and reason.startswith(NO_DATABASE):
            reason = f"{NO_DATABASE} (--create makes one)" if hint else NO_DATABASE
        where = "" if error.filename is None else f"{os.fsdecode(error.filename) or repr('')}: "
        return f"{where}{reason}"
    return str(error)


def _close_stdout() -> None:
    """Drop what is still buffered for stdout, which Python would try to write once more."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)

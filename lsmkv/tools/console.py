"""The two streams: data on stdout, messages on stderr, and how a command ends."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import sys
from collections.abc import Callable, Iterator
from typing import ParamSpec

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)

from lsmkv.db.opening.directory import NO_DATABASE
from lsmkv.errors import Error, NotFoundError
from lsmkv.tools.text import printable

MISS = 1
ERROR = 2
INTERRUPTED = 128 + 2
BROKEN_PIPE = 128 + 13
"""Exit statuses; the last two are what a shell reports for SIGINT and SIGPIPE."""

P = ParamSpec("P")


def say(message: str) -> None:
    """One line for people, on stderr."""
    print(f"lsmkv: {printable(message)}", file=sys.stderr)


def write(data: bytes) -> None:
    """Data, on stdout as it is."""
    sys.stdout.buffer.write(data)


def write_line(text: str) -> None:
    """A line of data, on stdout, in UTF-8 whatever the locale."""
    sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape") + b"\n")


def stdout_is_terminal() -> bool:
    """Whether a person reads what is printed."""
    return sys.stdout.isatty()


@contextlib.contextmanager
def task(description: str, total: int | None, unit: str) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr, gone when the block ends; what it gives is told of each advance.

    Nothing is drawn where stderr is not a terminal.  ``total`` is None where it is not known.
    """
    with _bar(total is not None, unit) as progress:
        number = progress.add_task(description, total=total)

        def advance(done: int) -> None:
            progress.advance(number, done)

        yield advance


@contextlib.contextmanager
def steps(description: str, unit: str) -> Iterator[Callable[[int, int, str], None]]:
    """As :func:`task`, for work that tells what is done, how much there is, and the phase."""
    with _bar(True, unit) as progress:
        number = progress.add_task(description, total=None)

        def report(done: int, total: int, phase: str) -> None:
            progress.update(
                number, completed=done, total=total, description=f"{description}, {phase}"
            )

        yield report


def _bar(total_known: bool, unit: str) -> Progress:
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn() if total_known else TextColumn("{task.completed:,.0f}"),
        TextColumn(unit),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
        disable=not console.is_terminal,
    )


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """A command whose failures end in one line on stderr and an exit status, not in a traceback."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        held = _HeldWarnings()
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except BrokenPipeError:
            _close_stdout()
            raise typer.Exit(BROKEN_PIPE) from None
        except KeyboardInterrupt:
            held.tell("")
            say("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except (Error, OSError, ValueError) as error:
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
        """Print what the text of ``error`` does not tell anyway, and stop listening."""
        self._logger.removeHandler(self)
        for message in self._messages:
            if not error or error not in message:
                say(message)
        self._messages = []


def _in_words(error: Exception, hint: bool) -> str:
    """One line; with a ``hint``, too, at what would make the store that is not there."""
    if isinstance(error, OSError) and error.strerror:
        reason = error.strerror
        if isinstance(error, NotFoundError) and reason.startswith(NO_DATABASE):
            reason = f"{NO_DATABASE} (--create makes one)" if hint else NO_DATABASE
        where = "" if error.filename is None else f"{os.fsdecode(error.filename) or repr('')}: "
        return f"{where}{reason}"
    return str(error)


def _close_stdout() -> None:
    """Drop what is still buffered for stdout: Python would try it once more, and complain."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)

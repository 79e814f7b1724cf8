"""The two streams, and how a command ends: data on stdout, messages on stderr.

Needs neither typer nor rich: ``lsmkv doctor`` works without them.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import ParamSpec

from lsmkv.engine.db.opening.directory import NO_DATABASE
from lsmkv.engine.errors import Error, NotFoundError, RecoveryWarning
from lsmkv.tools.next_step import next_step
from lsmkv.tools.text import fold, printable

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


def write_json(data: object, indent: int | None = None) -> None:
    """Write data to stdout as JSON: on one line, or indented."""
    write_line(json.dumps(data, indent=indent))


def write_folded(text: str, indent: int) -> None:
    """Write a line of text; on a terminal too narrow for it, fold it between its parts."""
    if stdout_is_terminal():
        text = fold(text, shutil.get_terminal_size().columns, indent)
    write_line(text)


def stdout_is_terminal() -> bool:
    """True if stdout is a terminal, where a person reads it."""
    return sys.stdout.isatty()


def stdin_is_terminal() -> bool:
    """True if stdin is a terminal, where a person types."""
    return sys.stdin.isatty()


def confirmed(question: str, what: str) -> bool:
    """Ask on stderr whether to continue; ``ValueError`` without a terminal: ``what`` needs
    --yes."""
    if not sys.stdin.isatty():
        raise ValueError(f"{what}: give --yes")
    print(f"{printable(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """A command whose failures end in one line on stderr and an exit status, not in a traceback.

    If a store is damaged, the line ends in the command that gets it back.
    """

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
            raise SystemExit(BROKEN_PIPE) from None
        except KeyboardInterrupt:
            held.tell("")
            say("interrupted")
            raise SystemExit(INTERRUPTED) from None
        except SystemExit:  # a signal; after SIGHUP, stdout may be a terminal that is gone
            _close_stdout()
            raise
        except (Error, OSError, ValueError, ImportError) as error:
            if isinstance(error, ImportError) and error.name not in EXTRAS:
                raise
            held.tell(str(error))
            where = kwargs.get("directory")
            step = next_step(error, where if isinstance(where, str) else None, command.__name__)
            say(in_words(error, hint=kwargs.get("create") is False) + step)
            _close_stdout()
            raise SystemExit(ERROR) from None
        finally:
            held.tell("")

    return run


@contextlib.contextmanager
def needing(what: str, *packages: str, extra: str = "") -> Iterator[None]:
    """Imports of packages that may be missing: ``ValueError`` says that ``what`` needs them.

    They are those of one of lsmkv's extras, or else others.
    """
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in packages:
            raise
        named = f"'.[{extra}]' in lsmkv's checkout" if extra else " ".join(packages)
        needed = " and ".join(packages)
        raise ValueError(f"{what} needs {needed}: pip install {named}") from None


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


def in_words(error: Exception, hint: bool = False) -> str:
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

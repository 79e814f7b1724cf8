"""What tests of commands share: a command run in this process, and what it printed."""

from __future__ import annotations

import builtins
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Generic, NamedTuple, TypeVar

import pytest
from processes import ENVIRON
from typer.testing import CliRunner

from lsmkv.tools.app import app

Out = TypeVar("Out", str, bytes)


class Done(NamedTuple, Generic[Out]):
    status: int
    out: Out
    err: str


def lsm_bytes(*arguments: str | Path, stdin: bytes = b"") -> Done[bytes]:
    """Run a command in this process, since starting Python takes most of a second."""
    done = CliRunner().invoke(app, [*map(str, arguments)], input=stdin)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Done(done.exit_code, done.stdout_bytes, done.stderr)


def lsm(*arguments: str | Path) -> Done[str]:
    done = lsm_bytes(*arguments)
    return Done(done.status, done.out.decode(), done.err)


NOT_TERMINALS = ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")


class Terminal:
    """A command in a process of its own, whose stdout is a terminal."""

    def __init__(
        self, *arguments: str | Path, columns: int, environment: Mapping[str, str] | None = None
    ) -> None:
        plain = {name: value for name, value in ENVIRON.items() if name not in NOT_TERMINALS}
        plain |= {"COLUMNS": str(columns), "LINES": "50", "TERM": "xterm"} | dict(environment or {})
        self._terminal, end = os.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "lsmkv", *map(str, arguments)],
            stdout=end,
            stderr=subprocess.PIPE,
            env=plain,
        )
        os.close(end)

    def read_until(self, words: str) -> str:
        """What is shown up to these words, or to the end if they do not come."""
        shown = b""
        with contextlib.suppress(OSError):  # EIO: the process has ended
            while words.encode() not in shown and (more := os.read(self._terminal, 1 << 16)):
                shown += more
        # A read may end, or begin, within a character.
        return shown.decode("utf-8", "replace").replace("\r\n", "\n")

    def end(self) -> tuple[int, str]:
        """The exit status, and what is on stderr."""
        os.close(self._terminal)
        with self.process:
            _, err = self.process.communicate()
        return self.process.returncode, err.decode()


def on_terminal(
    *arguments: str | Path, columns: int, environment: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Run a command whose stdout is a terminal: the exit status, and what it shows."""
    terminal = Terminal(*arguments, columns=columns, environment=environment)
    shown = terminal.read_until("\0")
    status, err = terminal.end()
    assert err == ""
    return status, shown


@contextlib.contextmanager
def ctrl_c_at_progress(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> Iterator[None]:
    """Ctrl-C when a command of this module, run in this process, reports its progress."""

    @contextlib.contextmanager
    def interrupting(description: str, unit: str) -> Iterator[Any]:
        yield SimpleNamespace(
            report=lambda *_: signal.raise_signal(signal.SIGINT), advance=lambda _: None
        )

    monkeypatch.setattr(module, "progress", interrupting)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def without(monkeypatch: pytest.MonkeyPatch, module: str, package: str) -> None:
    """An import of this module fails, since a package is missing."""
    original = builtins.__import__

    def imported(name: str, *arguments: Any, **keywords: Any) -> Any:
        if name == module:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)
        return original(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", imported)


def fails(done: Done[Any], *words: str) -> None:
    """Check for an error: status 2, an empty stdout, one line on stderr with these words."""
    assert done.status == 2
    assert not done.out
    assert done.err.startswith("lsmkv: ")
    assert done.err.count("\n") == 1
    for word in words:
        assert word in done.err

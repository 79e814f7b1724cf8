"""What tests of commands share: a command run in this process, and what it printed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from typer.testing import CliRunner

from lsmkv.tools.app import app

Out = TypeVar("Out", str, bytes)


@dataclass(frozen=True)
class Done(Generic[Out]):
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


def fails(done: Done[Any], *words: str) -> None:
    """Check for an error: status 2, an empty stdout, one line on stderr with these words."""
    assert done.status == 2
    assert not done.out
    assert done.err.startswith("lsmkv: ")
    assert done.err.count("\n") == 1
    for word in words:
        assert word in done.err

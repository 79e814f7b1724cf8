"""What tests of commands share: a command run in this process, and what it printed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from lsmkv.tools.app import app


@dataclass(frozen=True)
class Done:
    status: int
    out: str
    err: str


def lsm(*arguments: str | Path) -> Done:
    done = CliRunner().invoke(app, [*map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Done(done.exit_code, done.stdout, done.stderr)


def fails(done: Done, *words: str) -> None:
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("lsmkv: ")
    assert done.err.count("\n") == 1
    for word in words:
        assert word in done.err

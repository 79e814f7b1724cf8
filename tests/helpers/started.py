"""The ``lsmkv`` command in a process of its own, and what it leaves in a store."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import lsmkv
from lsmkv.tools.app import GROUPS

HOME = str(Path(lsmkv.__file__).parents[1])
ENVIRONMENT = os.environ | {"PYTHONPATH": HOME, "COLUMNS": "80"}
COMMAND = [sys.executable, "-W", "error", "-m", "lsmkv"]
NAMES = [name for members in GROUPS.values() for name in members]
"""All commands."""


def start(*arguments: str | Path, **streams: Any) -> subprocess.Popen[bytes]:
    """Run a command in a process of its own."""
    return subprocess.Popen([*COMMAND, *map(str, arguments)], env=ENVIRONMENT, **streams)


class Shown(NamedTuple):
    """How a process ended, what it wrote, and what a terminal shows."""

    status: int
    out: bytes
    err: bytes
    terminal: bytes = b""


def on_a_terminal(stream: str, *arguments: str | Path, stdin: bytes | None = None) -> Shown:
    """Run a command, one of whose streams is a terminal; ``stdin`` is also typed there."""
    terminal, end = os.openpty()
    if stream == "stdin" and stdin is not None:
        os.write(terminal, stdin)
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE) | {stream: end}
    with start(*arguments, **streams) as done:
        out, err = done.communicate(None if stream == "stdin" else stdin)
    os.close(end)
    os.set_blocking(terminal, False)
    try:
        shown = os.read(terminal, 100_000)
    except OSError:  # nothing
        shown = b""
    os.close(terminal)
    return Shown(done.returncode, out or b"", err or b"", shown)


def into(place: str, *arguments: str | Path) -> tuple[int, bytes]:
    """Run a command whose stdout is a device: the status, and what is on stderr."""
    with (
        open(place, "wb") as device,
        start(*arguments, stdout=device, stderr=subprocess.PIPE) as done,
    ):
        _, err = done.communicate()
    return done.returncode, err


def into_a_closed_pipe(*arguments: str | Path) -> tuple[int, bytes]:
    """Run a command of whose output a line is read: the status, and that line.

    Nothing may be on stderr.
    """
    with start(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as done:
        assert done.stdout is not None
        assert done.stderr is not None
        line = done.stdout.readline()
        done.stdout.close()
        assert done.stderr.read() == b""
    return done.returncode, line


def ended_by(
    numbers: list[signal.Signals],
    patch: str,
    *arguments: str | Path,
    ignored: signal.Signals | None = None,
    ready: Callable[[], object] = lambda: None,
    environment: dict[str, str] | None = None,
) -> Shown:
    """Run a command that prints "ready" and then waits, and send it signals.

    ``patch`` are statements that make it do so.  What is done by each signal is as a terminal
    starts a process, even if the suite runs under nohup; ``ready`` is called before they are sent.
    """
    program = f"import signal, sys\nfrom lsmkv.tools import cli\n{patch}"
    for number in numbers:
        how = "SIG_IGN" if number == ignored else "SIG_DFL"
        program += f"signal.signal({int(number)}, signal.{how})\n"
    with subprocess.Popen(
        [sys.executable, "-c", f"{program}sys.exit(cli.main())", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT | (environment or {}),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        ready()
        for number in numbers:
            process.send_signal(number)
        out, err = process.communicate()
    return Shown(process.returncode, out, err)


def records(path: Path) -> list[tuple[bytes, bytes]]:
    with lsmkv.DB(path) as db:
        return list(db)

"""Web servers in processes of their own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from processes import ENVIRON


@contextlib.contextmanager
def running(directory: Path, *command: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A server in a process of its own, and the file with its log.

    The command is a program's path and arguments, or those of ``python -m``.
    """
    log = directory / "log"
    before = () if os.path.isabs(command[0]) else (sys.executable, "-m")
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [*before, *command],
            cwd=directory,
            env=ENVIRON,
            stdout=output,
            stderr=output,
        ) as server,
    ):
        try:
            yield server, log
        finally:
            server.terminate()
            try:
                server.wait(timeout=60)
            finally:
                server.kill()


def ask(port: int, path: str = "/") -> str:
    """The server's answer, once it has started."""
    end = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as reply:
                return str(reply.read().decode())
        except (urllib.error.URLError, ConnectionError):
            assert time.monotonic() < end, "it does not answer"
            time.sleep(0.05)

"""Servers in processes of their own, which end when this one does, however it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

from processes import WITH_HELPERS

# The child's standard input is a pipe from here: it ends when the last writer has.
_TETHER = """
import os, sys, threading
def wait():
    os.read(0, 1)
    os._exit(0)
threading.Thread(target=wait, daemon=True).start()
"""


class Tethered:
    """A child that runs a script of Python; what it complains of goes to ``log``."""

    def __init__(self, script: str, *arguments: str, log: Path, is_asked: bool = False) -> None:
        """``is_asked`` is for a script that reads its input, and ends when that ends."""
        script = script if is_asked else _TETHER + script
        command = [sys.executable, "-P", "-c", script, *arguments]
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=WITH_HELPERS,
            )
        self._log = log

    def read_line(self) -> str:
        """The next line that it prints; ``RuntimeError`` with its log if it ends instead."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the child ended early: {self._log.read_text()}")
        return line.decode().rstrip("\n")

    def write_line(self, line: str) -> None:
        """Send a line to a script that is asked."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def wait(self) -> int:
        """Its exit status, once it has ended by itself."""
        status = self._process.wait()
        self._close_pipes()
        return status

    def kill(self) -> bool:
        """End it by SIGKILL; whether that is what it died of."""
        self._process.kill()
        return self.wait() == -signal.SIGKILL

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _close_pipes(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

"""Python programs in processes of their own, with the package that is tested."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import lsmkv
import lsmkv.engine.env.lock

# A child imports the package that is tested, not one that lies in the working directory.
RULES = Path(__file__).parent / "macos"
"""On the path of a process, and of those that it starts, if they are as on macOS."""
IS_DARWIN = lsmkv.engine.env.lock.OFD_SETLK == 90
_PATH = [str(Path(lsmkv.__file__).parent.parent), *([str(RULES)] if IS_DARWIN else [])]
ENVIRON = {**os.environ, "PYTHONPATH": os.pathsep.join(_PATH)}

WITH_HELPERS = ENVIRON | {"PYTHONPATH": os.pathsep.join([*_PATH, str(Path(__file__).parent)])}
"""For scripts that import the modules beside this one."""


def run_python(
    *arguments: str | Path, check: bool = False, **settings: Any
) -> subprocess.CompletedProcess[Any]:
    """Run Python with these arguments to its end; settings are those of ``subprocess.run``."""
    command = [sys.executable, *map(str, arguments)]
    settings = {"capture_output": True, "text": True, "env": ENVIRON} | settings
    return subprocess.run(command, check=check, **settings)


def python(script: str, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a script to its end, with nothing to read."""
    return run_python("-P", "-c", script, *arguments, input="", check=check)


def python_without_warnings(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run an indented script to its end, where a warning is an error."""
    return run_python("-W", "error", "-c", textwrap.dedent(script), *arguments, timeout=120)


def start(script: str, *arguments: str, before: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
    """Start a script that talks through its pipes, by the command ``before``."""
    command = [*before, sys.executable, "-P", "-c", script, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRON)


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])

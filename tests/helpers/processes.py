"""Python programs in processes of their own, with the package that is tested."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import lsmkv

# A child imports the package that is tested, not one that lies in the working directory.
ENVIRON = {**os.environ, "PYTHONPATH": str(Path(lsmkv.__file__).parent.parent)}


def python(script: str, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a script to its end, with nothing to read."""
    return subprocess.run(
        [sys.executable, "-P", "-c", script, *arguments],
        input="",
        capture_output=True,
        text=True,
        check=check,
        env=ENVIRON,
    )


def start(script: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a script that talks through its pipes."""
    command = [sys.executable, "-P", "-c", script, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRON)

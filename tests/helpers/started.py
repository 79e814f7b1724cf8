"""The ``lsmkv`` command in a process of its own, and what it leaves in a store."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

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


def records(path: Path) -> list[tuple[bytes, bytes]]:
    with lsmkv.DB(path) as db:
        return list(db)

"""Modules as trees, each of them parsed once for all tests of a process that read the source."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def parsed(path: Path) -> ast.Module:
    """The tree of a file of Python, which nobody changes."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def is_hook(path: Path) -> bool:
    """Whether PyInstaller runs it, and no program imports it: ``tests/packaging`` does that."""
    return path.parent.name == "rthooks" or path.name.startswith("hook-")

"""Modules as trees, each of them parsed once for all tests of a process that read the source."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def parsed(path: Path) -> ast.Module:
    """The tree of a file of Python, which nobody changes."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def docstring_of(module: str) -> str:
    """What a module says of itself; compiled, it has no docstring at run time."""
    root = Path(__file__).parents[2]
    return ast.get_docstring(parsed(root / f"{module.replace('.', '/')}.py")) or ""


def is_hook(path: Path) -> bool:
    """Whether PyInstaller runs it, and no program imports it: ``tests/packaging`` does that."""
    return path.parent.name == "rthooks" or path.name.startswith("hook-")

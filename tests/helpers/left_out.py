"""Which lines of ``tests/long.txt`` and ``tests/weekly.txt`` a run of a part leaves out."""

from __future__ import annotations

from collections.abc import Iterable


def left_out_of(names: Iterable[str], arguments: Iterable[str]) -> list[str]:
    """Those of the names that lie within pytest's arguments, or around them."""
    asked = [argument.partition("[")[0].rstrip("/") for argument in arguments]
    return [name for name in names if any(inside(name, one) or inside(one, name) for one in asked)]


def inside(name: str, other: str) -> bool:
    """Whether a folder, file or function lies within another one, or is that one."""
    return name == other or name.startswith((f"{other}/", f"{other}::"))

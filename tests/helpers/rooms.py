"""The rooms of ``lsmkv/`` and the arrows between them, as ``tests/rooms.txt`` states them.

A *place* is a folder; its *rooms* are the folders and modules in it, and an *arrow* leads from a
room to another one of the same place that it imports from.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

LISTED = Path(__file__).parents[1] / "rooms.txt"
LARGE = 2000
"""Lines of code of a folder whose arrows are listed."""


class Place(NamedTuple):
    """A folder as it is listed."""

    ceiling: int
    """The most lines of code that it may have."""
    arrows: dict[str, set[str]]
    """What each of its rooms may import, of the others."""


def read_listed(text: str) -> dict[str, Place]:
    """The places of the list, by their names."""
    places: dict[str, Place] = {}
    for line in text.splitlines():
        if line.startswith("lsmkv"):
            name, ceiling = line.split()
            place = places[name] = Place(int(ceiling.replace(",", "")), {})
        elif line and not line.startswith("#"):
            room, _, below = line.partition(":")
            place.arrows[room.strip()] = set(below.split())
    return places


def room_in(place: str, module: str) -> str | None:
    """The room of a place that a module is in; None if it is in none of them."""
    if not module.startswith(f"{place}."):
        return "__init__" if module == place else None
    return module[len(place) + 1 :].partition(".")[0]


def arrows_in(place: str, imported: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The arrows of a place, out of what each module imports."""
    found: dict[str, set[str]] = {}
    for module, names in imported.items():
        above = room_in(place, module)
        if above is not None:
            below = {room_in(place, name) for name in names} - {None, above}
            found.setdefault(above, set()).update(name for name in below if name)
    return found


def circle_of(arrows: Mapping[str, set[str]]) -> list[str]:
    """Rooms that import each other, directly or by others; [] if there are none."""
    rooms = set(arrows)
    while rooms:
        ground = {room for room in rooms if not arrows[room] & rooms}
        if not ground:
            return sorted(rooms)
        rooms -= ground
    return []


def differences(place: str, listed: Place, found: Mapping[str, set[str]]) -> list[str]:
    """What the list of a place lacks, and what it has that is not there, with advice."""
    advice = []
    for room in sorted({*listed.arrows, *found}):
        here, there = found.get(room), listed.arrows.get(room)
        if here is None or there is None:
            what = "is not there any more" if here is None else "is a new room: add its line"
            advice.append(f"{place}: {room} {what}")
            continue
        for below in sorted(here - there):
            advice.append(
                f"{place}: {room} -> {below} is new: add it in tests/rooms.txt, and say why"
                " in the commit"
            )
        for below in sorted(there - here):
            advice.append(f"{place}: {room} -> {below} is not there any more: remove it")
    return advice


def code_lines(source: str, tree: ast.Module) -> int:
    """Lines that are not blank, and no comment or docstring."""
    texts: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            texts.update(range(node.lineno, (node.end_lineno or 0) + 1))
    return sum(
        1
        for number, line in enumerate(source.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#") and number not in texts
    )

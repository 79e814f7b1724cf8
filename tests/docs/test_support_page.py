"""docs/support.md names every part of the package, and what its rows say of dependencies is so."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "support.md").read_text(encoding="utf-8")


def test_every_required_package_is_named() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = {re.split(r"[>=; ]", one)[0] for one in project["dependencies"]}
    rows = re.findall(r"(?m)^\| ([\w, .-]+?) \|", PAGE.split("## What lsmkv depends on")[1])
    named = {name for row in rows for name in row.split(", ")}
    assert required <= named
    assert {"mypyc"} <= named


def test_every_room_that_users_import_has_a_row() -> None:
    parts = PAGE.split("## Part by part")[1].split("## How long")[0]
    public = {"aio", "plyvel", "shards", "files", "testing", "repair", "bulk"}
    rooms = {path.name for path in (ROOT / "lsmkv").iterdir()}
    for name in public:
        assert name in rooms or f"{name}.py" in rooms
        assert f"`{name}`" in parts

"""SECURITY.md names the tests that hold its promises."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_test_that_it_names_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "SECURITY.md").read_text()))
    assert len(named) > 20
    written: set[str] = set()
    for file in (ROOT / "tests").rglob("test_*.py"):
        written.update(re.findall(r"def (test_\w+)\(", file.read_text()))
    assert named - written == set()

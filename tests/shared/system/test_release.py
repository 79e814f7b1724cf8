"""The release that processes of a shared store compare."""

from __future__ import annotations

import tomllib
from pathlib import Path

from lsmkv.shared.system.release import RELEASE


def test_it_is_that_of_the_distribution() -> None:
    content = (Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8")
    assert tomllib.loads(content)["project"]["version"] == RELEASE

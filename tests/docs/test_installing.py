"""Nothing tells people to install lsmkv from a package index: it is on none."""

from __future__ import annotations

import re
from pathlib import Path

import lsmkv

ROOT = Path(__file__).parents[2]
PACKAGE = Path(lsmkv.__file__).parent
FROM_AN_INDEX = re.compile(r"pip3? install (?:-[\w-]+ )*['\"]?lsmkv\b")


def test_no_text_and_no_message_installs_from_an_index() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*")]
    sources = list(PACKAGE.glob("**/*.py"))
    assert len(pages) > 50
    assert len(sources) > 200
    found = [
        f"{path.name}: {match[0]}"
        for path in pages + sources
        if path.is_file()
        for match in FROM_AN_INDEX.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == []

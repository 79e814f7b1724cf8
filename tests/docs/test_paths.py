"""What a user looks for is at most two clicks away from README.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^)\s#:]+\.md)(?:#[\w-]+)?\)")


def linked(page: Path) -> set[Path]:
    """The pages that a page links to."""
    text = page.read_text(encoding="utf-8")
    return {(page.parent / path).resolve() for path in LINK.findall(text)}


FIRST = linked(ROOT / "README.md")
SECOND = {page for one in FIRST if one.exists() for page in linked(one)}


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("guides/caching.md", "cache"),
        ("guides/workers.md", "gunicorn"),
        ("reliability.md", "kill"),
        ("repair.md", "lsmkv rescue"),
        ("filters.md", "bits"),
        ("plyvel.md", "lsmkv.plyvel"),
        ("guides/backups.md", "checkpoint"),
        ("monitoring.md", "Prometheus"),
        ("guides/tuning.md", "rewrite_tables"),
        ("guides/backups.md", "export"),
    ],
    ids=[
        *("cache", "share", "kills", "repair", "filter", "plyvel", "back up", "monitor"),
        *("shrink", "leave"),
    ],
)
def test_a_task_is_two_clicks_away(page: str, words: str) -> None:
    path = (ROOT / "docs" / page).resolve()
    assert path in FIRST | SECOND
    assert words in path.read_text(encoding="utf-8")


def test_no_link_of_readme_leads_nowhere() -> None:
    assert [path for path in FIRST if not path.exists()] == []

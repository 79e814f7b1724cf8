"""The examples in README.md and docs/*.md are run, and must print what they say they do."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted(page for page in [ROOT / "README.md", *ROOT.glob("docs/*.md")] if page.is_file())


class MarkdownParser(doctest.DocTestParser):
    """Knows that a code fence ends the output that an example expects."""

    def parse(
        self, string: str, name: str = "<string>"
    ) -> list[str | doctest.Example]:  # same lines, so that a failure names the right one
        return super().parse(re.sub(r"(?m)^[ \t]*```.*$", "", string), name)


def run(page: Path) -> doctest.TestResults:
    return doctest.testfile(
        str(page),
        module_relative=False,
        optionflags=doctest.ELLIPSIS,
        parser=MarkdownParser(),
        encoding="utf-8",
    )


def test_there_are_pages() -> None:
    assert ROOT / "docs" / "filters.md" in PAGES
    assert any(">>> " in page.read_text(encoding="utf-8") for page in PAGES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_examples(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # examples may leave files behind
    result = run(page)
    assert result.failed == 0
    if re.search(r"(?m)^\s*>>> ", page.read_text(encoding="utf-8")):
        assert result.attempted > 0


def test_a_wrong_example_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "wrong.md"
    page.write_text("```python\n>>> 1 + 1\n2\n```\n\n```\n>>> 1 + 1\n3\n```\n", encoding="utf-8")
    assert run(page) == (1, 2)

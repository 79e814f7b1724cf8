"""docs/site/docstrings.py turns what docstrings use of reStructuredText into Markdown."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from documents import load_script

SITE = Path(__file__).parents[2] / "docs" / "site"


@pytest.fixture(scope="module")
def docstrings() -> ModuleType:
    return load_script(SITE / "docstrings.py")


def nowhere(target: str) -> None:
    """The reference shows nothing."""


@pytest.mark.parametrize(
    ("role", "made"),
    [
        (":class:`ClosedError`", "[`ClosedError`](ClosedError)"),
        (":class:`~lsmkv.DB`", "[`DB`](lsmkv.DB)"),
        (":meth:`DB.get`", "[`DB.get`](DB.get)"),
        (":class:`its error <ClosedError>`", "[`its error`](ClosedError)"),
    ],
)
def test_a_role_is_a_link(docstrings: ModuleType, role: str, made: str) -> None:
    assert docstrings.to_markdown(f"Raises {role}.", lambda target: target) == f"Raises {made}."


def test_what_is_unknown_is_code(docstrings: ModuleType) -> None:
    made = docstrings.to_markdown("A :class:`Nothing` of ``a < b``, x < y, 2**63.", nowhere)
    assert made == "A `Nothing` of `a < b`, x &lt; y, 2\\*\\*63."
    assert docstrings.to_markdown("``a\nb`c``", nowhere) == "``a b`c``"


def test_a_page_is_a_link(docstrings: ModuleType) -> None:
    made = docstrings.to_markdown("See ``docs/filters.md`` and ``docs/how/read.md``.", nowhere)
    assert made == "See [docs/filters.md](../filters.md) and [docs/how/read.md](../how/read.md)."
    assert docstrings.to_markdown("Its ``docs/gone.md``.", nowhere) == "Its `docs/gone.md`."


def test_a_doctest_and_a_literal_block_are_code(docstrings: ModuleType) -> None:
    text = "Bytes::\n\n    a := b*\n\nSo:\n\n>>> f(1)  # doctest: +ELLIPSIS\n``2``\n\nEnd."
    made = docstrings.to_markdown(text, nowhere)
    assert "Bytes:\n\n```text\na := b*\n```\n" in made
    assert "\n```pycon\n>>> f(1)\n``2``\n```\n" in made
    assert made.endswith("\nEnd.")


def test_a_simple_table_is_a_table(docstrings: ModuleType) -> None:
    text = (
        "=====  =====\nflag   opens\n=====  =====\n``r``  to\n       read\nw      all\n=====  ====="
    )
    made = docstrings.to_markdown(text, nowhere).split("\n")
    assert made == [
        "| flag | opens |",
        "|---|---|",
        "| `r` | to read |",
        "| w | all |",
    ]

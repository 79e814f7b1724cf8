"""docs/site/docstrings.py turns what docstrings use of reStructuredText into Markdown."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from documents import load_script

pytest.importorskip("griffe")

SITE = Path(__file__).parents[2] / "docs" / "site"


@pytest.fixture(scope="module")
def docstrings() -> ModuleType:
    """The extension, imported as griffe does: by its path."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(SITE))
        return load_script(SITE / "docstrings.py")


@pytest.fixture(scope="module")
def symbols(docstrings: ModuleType) -> object:
    found = docstrings.Symbols()
    found.read(SITE.parents[1], "lsmkv")
    return found


@pytest.mark.parametrize(
    ("role", "path"),
    [
        (":class:`ClosedError`", "lsmkv.engine.errors.ClosedError"),
        (":class:`~lsmkv.errors.ConflictError`", "lsmkv.engine.errors.ConflictError"),
        (":class:`~lsmkv.DB`", "lsmkv.engine.db.db.DB"),
        (":meth:`DB.get`", "lsmkv.engine.db.db.DB.get"),
        (":meth:`put`", "lsmkv.engine.db.db.DB.put"),
        (":func:`look_up`", "lsmkv.engine.db.read.reader.look_up"),
        (":mod:`lsmkv.engine.util.coding`", "lsmkv.engine.util.coding"),
        (":class:`its error <ClosedError>`", "lsmkv.engine.errors.ClosedError"),
    ],
)
def test_a_role_is_a_link(docstrings: ModuleType, symbols: object, role: str, path: str) -> None:
    made = docstrings.to_markdown(f"Raises {role}.", "lsmkv.engine.db.db.DB", symbols)
    assert f'<autoref identifier="{path}" optional>' in made
    assert "`" not in made


def test_of_two_symbols_the_nearer_one_is_meant(docstrings: ModuleType, symbols: object) -> None:
    for near in ("lsmkv.aio.db", "lsmkv.plyvel"):
        made = docstrings.to_markdown(":class:`DB`", near, symbols)
        assert f'identifier="{near}.DB"' in made
    assert 'identifier="lsmkv.engine.db.db.DB"' in docstrings.to_markdown(
        ":class:`DB`", "", symbols
    )


def test_what_is_unknown_is_code(docstrings: ModuleType, symbols: object) -> None:
    made = docstrings.to_markdown("A :class:`Nothing` of ``a < b``, x < y.", "", symbols)
    assert made == "A <code>Nothing</code> of <code>a &lt; b</code>, x &lt; y."


def test_a_page_is_a_link(docstrings: ModuleType, symbols: object) -> None:
    made = docstrings.to_markdown("See ``docs/reference/api.md``.", "", symbols)
    assert made == 'See <a href="../reference/api.html"><code>docs/reference/api.md</code></a>.'
    elsewhere = docstrings.to_markdown("Chromium's ``docs/gone.md``.", "", symbols)
    assert elsewhere == "Chromium's <code>docs/gone.md</code>."


def test_a_doctest_and_a_literal_block_are_code(docstrings: ModuleType, symbols: object) -> None:
    text = "Bytes::\n\n    a := b*\n\nSo:\n\n>>> f(1)  # doctest: +ELLIPSIS\n``2``\n\nEnd."
    made = docstrings.to_markdown(text, "", symbols)
    assert "Bytes:\n\n```text\na := b*\n```\n" in made
    assert "\n```pycon\n>>> f(1)\n``2``\n```\n" in made
    assert made.endswith("\nEnd.")


def test_a_simple_table_is_a_table(docstrings: ModuleType, symbols: object) -> None:
    text = (
        "=====  =====\nflag   opens\n=====  =====\n``r``  to\n       read\nw      all\n=====  ====="
    )
    made = docstrings.to_markdown(text, "", symbols).split("\n")
    assert made[1:-1] == [
        "| flag | opens |",
        "|---|---|",
        "| <code>r</code> | to read |",
        "| w | all |",
    ]

"""The pages of docs/reference are those that ``make reference`` writes, and leave nothing out."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from documents import ROOT, generated_pages

import lsmkv

REFERENCE = ROOT / "docs" / "reference"
ANCHOR = re.compile(r'<a id="([^"]+)"></a>')
CLASSES = [
    f"{module}.{name}"
    for module in (
        *("lsmkv", "lsmkv.plyvel", "lsmkv.aio", "lsmkv.bulk", "lsmkv.shards", "lsmkv.testing"),
        *("lsmkv.files", "lsmkv.indexeddb", "lsmkv.mapping", "lsmkv.server", "lsmkv.filter_lab"),
        *("lsmkv.owner", "lsmkv.repair", "lsmkv.cache.recipes", "lsmkv.cache.codecs"),
    )
    for name in importlib.import_module(module).__all__
    if inspect.isclass(getattr(importlib.import_module(module), name))
]


@pytest.fixture(scope="module")
def reference() -> Any:
    """The pages as the docstrings have them now."""
    pytest.importorskip("griffe", reason="griffe, which reads the docstrings, is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "docs" / "site"))
        return importlib.import_module("reference").Reference()


def stored() -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in generated_pages()}


def out_of_date(reference: Any, pages: dict[str, str]) -> list[str]:
    return [name for name, text in reference.pages() if pages.get(name) != text]


def test_the_pages_are_up_to_date(reference: Any) -> None:
    assert out_of_date(reference, stored()) == [], "make reference writes them"


def test_a_page_that_is_out_of_date_is_noticed(reference: Any) -> None:
    pages = stored()
    pages["db.md"] = pages["db.md"].replace("The value of `key`", "The content of `key`", 1)
    del pages["aio.md"]
    assert out_of_date(reference, pages) == ["aio.md", "db.md"]


def test_each_generated_page_has_a_template() -> None:
    generated = {
        path.name
        for path in REFERENCE.glob("*.md")
        if "<!-- Written by `make reference`" in path.read_text(encoding="utf-8")
    }
    assert generated == {path.name for path in generated_pages()}
    assert len(generated) > 20


def test_the_page_of_db_lists_every_member_once() -> None:
    template = (REFERENCE / "templates" / "db.md").read_text(encoding="utf-8")
    listed = re.findall(r"(?m)^ +- (\w+)$", template)
    named = [name for name in listed if not name.startswith("_")]
    with lsmkv.DB(":memory:") as db:
        assert sorted(named) == [name for name in dir(db) if not name.startswith("_")]
    assert listed[0] == "get"


@pytest.mark.parametrize("path", CLASSES)
def test_the_members_of_a_class_are_there(path: str) -> None:
    """A member has a heading, or a link to one; a field may be in the signature of its class."""
    module, _, name = path.rpartition(".")
    cls = getattr(importlib.import_module(module), name)
    texts = stored().values()
    anchors = {anchor for text in texts for anchor in ANCHOR.findall(text)}
    signatures = "".join(
        re.findall(rf'(?s)<a id="{re.escape(path)}"></a>.*?(?=\n```\n)', "".join(texts))
    )
    missing = [
        member
        for member in members(cls)
        if f"{path}.{member}" not in anchors
        and not re.search(rf"(?m)^    {member}\b|[( ]{member}:", signatures)
    ]
    assert path in anchors
    if cls.__name__ == name:  # and not another name of a class
        assert missing == []


def members(cls: type) -> Iterator[str]:
    """The public names that lsmkv defines for a class."""
    for name in dir(cls):
        owner = next((base for base in cls.__mro__ if name in vars(base)), None)
        if owner is not None and owner.__module__.startswith("lsmkv") and not name.startswith("_"):
            yield name


@pytest.mark.parametrize("page", generated_pages(), ids=lambda page: str(page.name))
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    pages = stored()
    text = pages[page.name]
    anchors = ANCHOR.findall(text)
    assert len(anchors) == len({*anchors}) > 0
    prose = re.sub(r"(?s)```.*?```", "", text)
    for target, anchor in re.findall(r"\]\(([\w./-]*)(?:#([\w.-]+))?\)", prose):
        if target and target not in pages:
            assert (REFERENCE / target).is_file(), target
        elif anchor:
            assert anchor in ANCHOR.findall(pages[target or page.name]), f"{target}#{anchor}"


@pytest.mark.parametrize(
    ("target", "near", "page", "address"),
    [
        ("ClosedError", "lsmkv.engine.db.db", "db.md", "errors.md#lsmkv.ClosedError"),
        ("~lsmkv.DB", "lsmkv.engine.db.db.DB", "db.md", "#lsmkv.DB"),
        ("DB.get", "lsmkv.engine.db.db.DB", "views.md", "db.md#lsmkv.DB.get"),
        ("put", "lsmkv.engine.db.db.DB", "db.md", "#lsmkv.DB.put"),
        ("DB", "lsmkv.aio.db.DB", "aio.md", "#lsmkv.aio.DB"),
        ("DB", "lsmkv.plyvel", "plyvel.md", "#lsmkv.plyvel.DB"),
        ("Iterator.seek", "lsmkv.aio.db.DB", "aio.md", "#lsmkv.aio.Iterator.seek"),
        ("look_up", "lsmkv.engine.db.db.DB", "db.md", None),
    ],
)
def test_a_symbol_is_found(
    reference: Any, target: str, near: str, page: str, address: str | None
) -> None:
    here = next(one for one in reference.things[page])
    assert reference.address(target.lstrip("~"), near, here) == address


def test_a_signature_has_types_defaults_and_keywords() -> None:
    db = stored()["db.md"]
    assert "put(key: BytesLike, value: BytesLike, *, sync: bool = False) -> None\n" in db
    assert "    include_stop: bool = ...,\n" in db
    assert "property closed: bool\n" in db
    assert "class DB(path: str | os.PathLike[str], **options: Unpack[OptionArguments])\n" in db
    options = stored()["options.md"]
    assert "block_size: int | None = 4 * KIB\n" in options
    assert "background: BackgroundWork = 'auto'\n" in options
    assert not [name for name, text in stored().items() if "Annotated[" in text]


def test_no_markup_of_docstrings_is_left() -> None:
    for name, text in stored().items():
        prose = re.sub(r"(?s)```.*?```", "", text)
        assert not re.search(r":(?:class|meth|func|data|attr|mod|exc):`|``|^:::", prose), name

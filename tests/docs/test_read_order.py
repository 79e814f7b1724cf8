"""The texts and the picture of a Get in a table have the order of ``Table.get``."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from lsmkv.course import texts
from lsmkv.engine.table import reader

DOCS = Path(__file__).parents[2] / "docs"
COURSE = Path(texts.__path__[0])
ORDER = ["index", "filter"]


def order(text: str) -> list[str]:
    """Index and filter, each where a text first comes to it."""
    return list(dict.fromkeys(re.findall("index|filter", text.lower())))


def between(path: Path, start: str, stop: str) -> str:
    text = path.read_text(encoding="utf-8")
    assert start in text
    return start + text.partition(start)[2].partition(stop)[0]


@pytest.mark.parametrize(
    ("path", "start", "stop"),
    [
        (DOCS / "how" / "read.md", "\n3. ", "One kind is"),
        (DOCS / "tour.md", "in the index, and **asks", "**get**"),
        (DOCS / "tour.md", "Its steps are", ";"),
        (COURSE / "08-reading.md", "2. **The index**", "The engine's"),
        (COURSE / "08-reading.md", "The engine's `Table.get`", "It asks one kind"),
    ],
    ids=["how/read", "tour, get", "tour, room 5", "lab 8, the idea", "lab 8, the engine"],
)
def test_a_text_has_the_order_of_a_get(path: Path, start: str, stop: str) -> None:
    assert order(between(path, start, stop)) == ORDER


def test_the_picture_has_the_order_of_a_get() -> None:
    svg = ElementTree.parse(DOCS / "pictures" / "how" / "read.svg")
    texts = [
        (float(node.attrib["y"]), node.text or "")
        for node in svg.iter("{http://www.w3.org/2000/svg}text")
        if float(node.attrib["x"]) > 250
    ]
    assert order(" ".join(text for _, text in sorted(texts))) == ORDER


def test_the_code_and_its_docstring_have_this_order() -> None:
    source = Path(reader.__file__).with_name("reader.py")
    # Read from the source: a compiled module has no docstring.
    docstring = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    assert order(docstring.partition("four steps: ")[2]) == ORDER
    get = between(source, "    def get(", "    def may_contain(")
    calls = (
        "filters.may_match(0,",
        "index.block_for(",
        "filters.may_match(number,",
        "self.load_block(",
    )
    places = [get.index(call) for call in calls]
    assert places == sorted(places)

"""The playground in Firefox: what runs in Chromium runs there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import plyvel
import pytest

from lsmkv.course.labs.registry import LABS

firefox = pytest.importorskip("firefox", reason="needs the package websockets")

PAGES = {
    "": "document.querySelector('#lookups .sentence strong')",
    "bloom.html": "document.querySelectorAll('.rate-curve circle').length > 11",
    "folder.html": "document.querySelector('#zone button')",
    "console.html": "document.querySelector('.examples .card')",
    "course.html": "document.documentElement.dataset.lab",
}
"""The pages, and when each is whole."""
REFERENCES = Path(__file__).parents[1] / "course" / "references"
READY = "document.documentElement.dataset.engine === 'ready'"
FITS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def page(playground_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    program = firefox.firefox()
    if program is None:
        pytest.skip("no firefox-esr, and no firefox")
    profile = tmp_path_factory.mktemp("firefox") / "profile"
    with firefox.Firefox(program, profile, playground_url) as page:
        yield page


@pytest.mark.parametrize("path", PAGES)
def test_every_page_runs_without_a_complaint(page: Any, playground_url: str, path: str) -> None:
    page.open(playground_url + path)
    page.wait(READY)
    page.wait(PAGES[path])
    for size in ((390, 844), (1280, 860)):
        page.resize(*size)
        assert page.value(FITS)
    assert page.complaints == []


CLICK = """(() => {
    const named = [...document.querySelectorAll("button, nav a")].find(
        (one) => one.textContent === %s);
    named.click();
    return true;
})()"""


def click(page: Any, name: str) -> None:
    page.value(CLICK % json.dumps(name))


def text(selector: str, words: str) -> str:
    """The condition that an element has these words."""
    place = f"document.querySelector({json.dumps(selector)})"
    return f"{place}?.textContent.includes({json.dumps(words)})"


def put(page: Any, playground_url: str, number: int, source: str) -> None:
    """Open a lab, in whose file this was written before."""
    name = json.dumps(f"lsmkv-course {LABS[number - 1].file_name}")
    page.value(f"(localStorage.setItem({name}, {json.dumps(source)}), true)")
    page.open("about:blank")
    page.open(f"{playground_url}course.html#lab={number}")
    page.wait(f"document.documentElement.dataset.lab === '{number}'")


@pytest.mark.parametrize("number", [1, 4])
def test_a_lab_is_solved(page: Any, playground_url: str, number: int) -> None:
    lab = LABS[number - 1]
    page.open(f"{playground_url}course.html#lab={number}")
    put(page, playground_url, number, (REFERENCES / lab.file_name).read_text(encoding="utf-8"))
    click(page, "Run the checks")
    page.wait(text(".results .total", f"{len(lab.checks)} of {len(lab.checks)} checks passed"))
    assert page.complaints == []


def test_an_endless_loop_is_ended(page: Any, playground_url: str) -> None:
    source = (REFERENCES / "lab1_keys.py").read_text(encoding="utf-8")
    endless = "\n\ndef encode_varint(value):\n    while True:\n        pass\n"
    page.open(f"{playground_url}course.html#lab=1")
    put(page, playground_url, 1, source + endless)
    click(page, "Run the checks")
    page.wait("document.documentElement.dataset.checks === 'running'")
    click(page, "End")
    page.wait(text(".results", "Ended."))
    assert page.complaints == []


def test_a_folder_of_leveldb_is_read_and_checked(
    page: Any, playground_url: str, tmp_path: Path
) -> None:
    place = tmp_path / "leveldb"
    db = plyvel.DB(str(place), create_if_missing=True, bloom_filter_bits=10)
    for number in range(2000):
        db.put(b"key %04d" % number, b"value %d " % number * 9)
    db.compact_range()
    db.put(b"log", b"still in the log")
    db.close()
    page.open("about:blank")
    page.open(f"{playground_url}folder.html")
    page.wait(READY)
    page.choose("#files", sorted(place.iterdir()))
    page.wait("document.documentElement.dataset.folder === 'open'")
    page.wait(text(".figures", "1 entry"))
    click(page, "Check every file")
    page.wait(text(".sound", "all is sound"))
    click(page, "Entries")
    page.wait("document.querySelectorAll('.entries tbody tr').length > 150")
    assert page.complaints == []

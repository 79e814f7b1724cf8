"""A visitor's folder in Chromium: LevelDB's own files are read where they are, by the tab."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import plyvel
import pytest
from driven import PHONE, WIDE, fits, open_page, quiet_on, serious_faults

from lsmkv.files.exchange import read_json_lines

CONTENT = {b"key %04d" % number: b"value %d " % number * 9 for number in range(2000)}
LOGGED = {b"log %d" % number: b"still in the log" for number in range(20)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of LevelDB's, with tables and a log."""
    place = tmp_path_factory.mktemp("folder") / "leveldb"
    db = plyvel.DB(str(place), create_if_missing=True, bloom_filter_bits=10)
    for key, value in CONTENT.items():
        db.put(key, value)
    db.compact_range()
    for key, value in LOGGED.items():
        db.put(key, value)
    db.close()
    return place


@pytest.fixture(scope="module")
def page(shared: Any, playground_url: str) -> Iterator[Any]:
    with quiet_on(shared, playground_url) as page:
        open_page(page, f"{playground_url}folder.html")
        yield page


def choose(page: Any, playground_url: str, files: Any, field: str = "#folder") -> None:
    """Choose a folder, or files, on a page that is loaded again unless it has none yet."""
    if page.locator("#zone").count() == 0:
        page.goto("about:blank")
        open_page(page, f"{playground_url}folder.html")
    page.set_input_files(field, files)
    page.wait_for_selector("html[data-folder=open]", state="attached", timeout=60_000)


def visit(page: Any, view: str) -> None:
    page.locator("nav a", has_text=view).click()


def figure(page: Any, name: str) -> str:
    text: str = page.locator(".figure", has_text=name).first.locator("dd").text_content()
    return text


def test_a_folder_of_leveldb_is_read_whole(page: Any, playground_url: str, folder: Path) -> None:
    choose(page, playground_url, str(folder))
    page.locator(".figure", has_text="memtable").wait_for()
    assert figure(page, "memtable").endswith(" 20 entries")
    assert figure(page, "tables") == str(len(list(folder.glob("*.ldb"))))
    assert "Nothing leaves this tab" in page.locator(".folder-note").text_content()
    visit(page, "Entries")
    page.locator(".entries tbody tr").nth(150).wait_for()
    with page.expect_download() as started:
        page.get_by_role("button", name="Save as JSON lines").click()
    lines = Path(started.value.path()).read_bytes().splitlines()
    assert dict(read_json_lines(lines)) == CONTENT | LOGGED


def test_every_view_of_a_folder_fits_and_has_no_serious_fault(page: Any) -> None:
    for view in ("Levels", "Get", "Filters", "Life", "Write", "Entries"):
        visit(page, view)
        page.locator(f".view.{view.lower()}").wait_for()
        for viewport in (PHONE, WIDE):
            page.set_viewport_size(viewport)
            assert fits(page), view
        assert serious_faults(page) == [], view


def test_entries_are_searched(page: Any) -> None:
    visit(page, "Entries")
    page.get_by_label("Keys or values that contain").fill("STILL")
    page.keyboard.press("Enter")
    page.locator("p[role=status]", has_text="20 entries of 2,020 that were read").wait_for()
    page.get_by_label("Keys that begin with").fill("key 01")
    page.get_by_label("Keys or values that contain").fill("")
    page.keyboard.press("Enter")
    page.locator("p[role=status]", has_text="100 entries of").wait_for()
    assert page.locator(".entries tbody tr").count() == 100


def test_a_get_is_followed(page: Any) -> None:
    visit(page, "Get")
    page.locator(".view.get input[name=key]").fill("key 0100")
    page.keyboard.press("Enter")
    page.locator(".verdict", has_text="key 0100").wait_for()
    assert page.locator(".steps li").count() >= 3


def test_every_file_is_verified(page: Any) -> None:
    visit(page, "Levels")
    page.get_by_role("button", name="Check every file").click()
    page.locator(".sound", has_text="all is sound").wait_for(timeout=60_000)


def test_a_check_is_ended_while_another_view_is_answered(page: Any) -> None:
    page.get_by_role("button", name="Check every file").click()  # in a worker that has to load
    page.locator("progress[aria-label='Files read']").wait_for()
    visit(page, "Get")
    page.locator(".view.get input[name=key]").fill("key 0200")
    page.keyboard.press("Enter")
    page.locator(".verdict", has_text="key 0200").wait_for()
    visit(page, "Levels")
    page.get_by_role("button", name="Check every file").click()
    page.get_by_role("button", name="End the check").click()
    page.locator("text=The files were not checked: the check was ended").wait_for()
    assert not page.get_by_role("button", name="End the check").is_visible()


def test_a_damaged_folder_shows_what_it_can(
    page: Any, playground_url: str, folder: Path, tmp_path: Path
) -> None:
    place = tmp_path / "damaged"
    shutil.copytree(folder, place)
    (place / "CURRENT").unlink()
    table = max(place.glob("*.ldb"), key=lambda one: one.stat().st_size)
    content = bytearray(table.read_bytes())
    content[1000] ^= 0xFF
    table.write_bytes(content)
    choose(page, playground_url, str(place))
    page.locator("text=The store cannot be opened").wait_for()
    page.locator(".damaged li", has_text=f"{table.name}: block checksum").wait_for(timeout=60_000)
    visit(page, "Entries")
    page.locator(".entries tbody tr.damaged", has_text="damage at").first.wait_for()
    page.get_by_label("Keys that begin with").fill("log 1")
    page.keyboard.press("Enter")
    page.locator(".entries tbody tr", has_text="still in the log").nth(10).wait_for()


@pytest.mark.parametrize(
    ("pattern", "words"),
    [("*.ldb", "footer"), ("*.log", "still in the log"), ("MANIFEST-*", "edit")],
)
def test_one_file_is_enough(
    page: Any, playground_url: str, folder: Path, pattern: str, words: str
) -> None:
    choose(page, playground_url, str(next(folder.glob(pattern))), "#files")
    page.locator("main", has_text=words).wait_for()


def test_other_files_are_refused_in_words(page: Any, playground_url: str, tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_bytes(b"")
    page.goto("about:blank")
    page.goto(f"{playground_url}folder.html", timeout=120_000)
    page.set_input_files("#files", str(tmp_path / "photo.jpg"))
    page.locator(".trouble", has_text="has the name of a store").wait_for()


def test_of_several_stores_one_is_chosen(
    page: Any, playground_url: str, folder: Path, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        shutil.copytree(folder, tmp_path / "many" / name)
    page.set_input_files("#folder", str(tmp_path / "many"))
    page.get_by_role("button", name="many/two").click()
    page.locator(".folder-note", has_text="many/two").wait_for()


def test_a_folder_of_local_storage_is_decoded(
    page: Any, playground_url: str, tmp_path: Path
) -> None:
    place = tmp_path / "Local Storage"
    db = plyvel.DB(str(place), create_if_missing=True)
    db.put(b"VERSION", b"1")
    db.put(b"META:https://example.org", b"")
    db.put(b"_https://example.org\x00\x01<img src=x onerror=alert(1)>", b"\x00g\x00r\x00")
    db.close()
    choose(page, playground_url, str(place))
    visit(page, "Entries")
    page.locator("text=This is Chromium's Local Storage.").wait_for()
    row = page.locator(".entries tbody tr").last
    assert "https://example.org: <img src=x" in row.text_content()
    assert row.locator("td").last.text_content() == "gr"
    assert page.locator("main img").count() == 0
    twin = json.loads(page.evaluate(TWIN))
    assert twin["format"]["name"] == "Chromium's Local Storage"


TWIN = """async () => {
    // The page's policy lets nothing be fetched from a blob: it is taken where it is made.
    const { twin } = await import("/inspect/data.js");
    const create = URL.createObjectURL;
    let made;
    URL.createObjectURL = (blob) => create.call(URL, made = blob);
    twin("entries", {});
    URL.createObjectURL = create;
    return made.text();
}"""


def test_the_example_is_a_store(page: Any, playground_url: str) -> None:
    page.goto("about:blank")
    page.goto(f"{playground_url}folder.html", timeout=120_000)
    page.get_by_role("button", name="Show an example").click()
    page.locator(".figure", has_text="memtable").wait_for(timeout=120_000)
    assert figure(page, "memtable").endswith(" 100 entries")

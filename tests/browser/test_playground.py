"""The playground in Chromium: the engine runs in the page, and the page needs no network twice.

It is built for these tests, for which npm is needed.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from driven import PHONE, WIDE, fits, launched, quiet_page, running, serious_faults
from make_playground import transferred

from lsmkv import BloomFilterPolicy
from lsmkv.tools.playground.server import application

MOST = 9_000_000
"""Bytes that a visitor downloads at most, if the server compresses."""
MOST_OF_ALL = 15_000_000
EXTRA = ("editor", "inspect/vendor", "pictures/")
"""What neither the story nor the filter's page loads."""
PAGES = ("", "bloom.html", "folder.html", "console.html", "course.html")


@pytest.fixture(scope="module")
def directory(playground: Path) -> Path:
    return playground


@pytest.fixture(scope="module")
def url(directory: Path) -> Iterator[str]:
    with running(application(str(directory))) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as started:
        yield started


def open_page(page: Any, url: str) -> None:
    """Go to a page, and wait for the engine."""
    page.goto(url, timeout=120_000)
    page.wait_for_selector("html[data-engine=ready]", state="attached", timeout=120_000)


def test_it_is_small(directory: Path) -> None:
    sizes = transferred(directory)
    assert sum(sizes.values()) <= MOST_OF_ALL
    assert sum(size for path, size in sizes.items() if not path.startswith(EXTRA)) <= MOST


LOADED = {"console.html": ".examples .card", "course.html": "html[data-lab]"}
"""What shows that a page is whole, where that is not the engine alone."""


@pytest.mark.parametrize("path", PAGES)
def test_every_page_runs_without_a_complaint(browser: Any, url: str, path: str) -> None:
    with quiet_page(browser, url) as page:
        open_page(page, url + path)
        assert "The engine is loaded" in page.locator("#engine").text_content()
        page.wait_for_selector("#view:not(:has(.pending))", timeout=120_000)
        page.wait_for_selector(LOADED.get(path, "#view"), state="attached", timeout=120_000)
        for viewport in (WIDE, PHONE):
            page.set_viewport_size(viewport)
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                assert fits(page)
                assert serious_faults(page) == []


WITHOUT_SERVICE_WORKERS = (
    "Object.defineProperty(Navigator.prototype, 'serviceWorker', { value: undefined })"
)
"""As in a page from another machine without HTTPS."""


def test_the_first_view_needs_no_engine(browser: Any, url: str) -> None:
    with quiet_page(browser, url) as page:
        page.add_init_script(WITHOUT_SERVICE_WORKERS)
        page.route("**/*.wasm", lambda route: None)  # it never arrives
        page.goto(url, timeout=120_000)
        assert page.locator("h1").is_visible()
        assert page.locator("#engine progress").is_visible()
        assert not page.locator(".unserved").is_visible()


def test_it_works_without_a_service_worker(browser: Any, url: str) -> None:
    with quiet_page(browser, url) as page:
        page.add_init_script(WITHOUT_SERVICE_WORKERS)
        open_page(page, url)
        assert page.locator("html[data-offline]").count() == 0


def test_the_second_visit_needs_no_network(browser: Any, directory: Path) -> None:
    context = browser.new_context()
    with running(application(str(directory))) as url:
        page = context.new_page()
        asked: list[str] = []
        context.on("request", lambda request: asked.append(request.url))
        open_page(page, url)
        page.wait_for_selector("html[data-offline=ready]", state="attached", timeout=120_000)
        page.close()
        assert all(one.startswith(url) for one in asked)
    page = context.new_page()  # the server has ended
    for path in PAGES:
        open_page(page, url + path)
        assert "The engine is loaded" in page.locator("#engine").text_content()
    context.close()


# The Bloom filter


@pytest.fixture(scope="module")
def shared(browser: Any) -> Iterator[Any]:
    """A context whose service worker keeps the files, so that pages open fast."""
    context = browser.new_context(viewport=WIDE)
    yield context
    context.close()


@pytest.fixture
def bloom_page(shared: Any, url: str) -> Iterator[Any]:
    page = shared.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    open_page(page, f"{url}bloom.html")
    settled(page)
    yield page
    assert complaints == []
    page.close()


def settled(page: Any) -> None:
    page.wait_for_selector("#view:not(:has(.pending))", timeout=60_000)


def go(page: Any, **query: str | int | list[str]) -> None:
    """Change the state in the URL, as a link does."""
    pairs = [
        (name, one)
        for name, value in query.items()
        for one in (value if isinstance(value, list) else [value])
    ]
    page.evaluate("hash => { location.hash = hash; }", urlencode(pairs))
    settled(page)


def ones(page: Any, name: str = "lab-set") -> set[int]:
    cells = page.locator(f".bloom .lab-bits rect.{name}")
    return set(cells.evaluate_all("cells => cells.map(cell => Number(cell.dataset.bit))"))


def test_the_bits_are_those_of_the_policy(bloom_page: Any) -> None:
    """200 random keys, all in one filter, and then each of them asked for."""
    rng = random.Random(5)
    keys = [f"{rng.randrange(10**9)} é☃" for _ in range(200)]
    policy = BloomFilterPolicy(10)
    data = policy.create_filter([key.encode() for key in keys])
    go(bloom_page, n=200, bits=10, key=keys)
    assert ones(bloom_page) == {at for at in range(2000) if data[at >> 3] >> (at & 7) & 1}
    for asked in [*keys[:3], *(f"other {number}" for number in range(10))]:
        go(bloom_page, n=200, bits=10, key=keys, ask=asked)
        hashed = policy.key_hash(asked.encode())
        probed = policy.probed_positions(hashed, data)
        assert ones(bloom_page, "lab-probed") == set(probed)
        words = bloom_page.locator(".bloom .now").text_content()
        assert words.startswith("Maybe" if policy.hash_may_match(hashed, data) else "No.")


def test_steps_go_forward_and_back(bloom_page: Any) -> None:
    go(bloom_page, n=32, bits=10, ask="swan", step=1)
    now = bloom_page.locator(".bloom .now")
    hashed = BloomFilterPolicy().key_hash(b"swan")
    assert f"0x{hashed:08x}" in now.text_content()
    assert ones(bloom_page, "lab-probed") == set()
    bloom_page.locator("h1").click()
    bloom_page.keyboard.press("ArrowRight")
    assert "Probe 1" in now.text_content()
    assert f"{hashed:,} mod 320 = {hashed % 320}" in now.text_content()
    assert ones(bloom_page, "lab-probed") == {hashed % 320}
    assert "step=2" in bloom_page.url
    bloom_page.keyboard.press("ArrowLeft")
    assert ones(bloom_page, "lab-probed") == set()
    bloom_page.keyboard.press("End")
    assert now.text_content().startswith("No.")
    again = bloom_page.url
    bloom_page.reload()
    open_page(bloom_page, again)
    settled(bloom_page)
    assert now.text_content().startswith("No.")


def test_a_key_that_is_added_sets_its_bits_one_by_one(bloom_page: Any) -> None:
    go(bloom_page, n=32, bits=10, keys="none")
    assert ones(bloom_page) == set()
    bloom_page.get_by_label("Add a key").fill("zebra")
    bloom_page.keyboard.press("Enter")
    settled(bloom_page)
    assert ones(bloom_page) == set()
    bloom_page.get_by_label("Last step").click()
    assert len(ones(bloom_page)) == 6
    assert bloom_page.locator(".bloom .lab-keys").text_content() == "zebra"
    bit = min(ones(bloom_page))
    bloom_page.locator(f".bloom [data-bit='{bit}']").click()
    assert f"Bit {bit}, in byte {bit // 8}, is 1, set by “zebra”." in bloom_page.content()


def test_a_false_positive_names_who_set_its_bits(bloom_page: Any) -> None:
    go(bloom_page, n=32, bits=6)
    bloom_page.get_by_role("button", name="Find a false positive").click()
    bloom_page.locator(".culprits li").first.wait_for()
    assert "never added: a false positive" in bloom_page.locator(".bloom .now").text_content()
    assert bloom_page.locator(".culprits li").count() == 4
    assert bloom_page.locator(".probe-marks text").count() == 4


def test_rates_are_measured_beside_the_expected_ones(bloom_page: Any) -> None:
    go(bloom_page, n=32, bits=10, ask="swan")
    circles = bloom_page.locator(".rate-curve circle")
    circles.nth(11).wait_for(timeout=60_000)
    assert circles.count() <= 13
    assert "of 10,000 random absent keys pass this filter" in bloom_page.content()
    fuse = bloom_page.get_by_role("region", name="A fuse filter")
    assert "968 made-up keys" in fuse.text_content()
    assert fuse.locator(".lab-probed.lab-set").count() == 4


def test_hostile_keys_are_text(bloom_page: Any) -> None:
    go(bloom_page, n=32, bits=10, key=["<img src=x onerror=alert(1)>", "\u202e"], ask="<b>\u0007")
    assert bloom_page.locator("#view img, #view .lab-keys b").count() == 0
    assert "\\u202e" in bloom_page.locator(".bloom .lab-keys").text_content()


def test_a_key_that_is_too_long_is_refused_in_words(bloom_page: Any) -> None:
    go(bloom_page, n=32, bits=10)
    bloom_page.get_by_label("Ask for a key").fill("x" * 2000)
    bloom_page.keyboard.press("Enter")
    bloom_page.locator(".bloom .now .trouble").wait_for()
    assert "more than 1,024 bytes" in bloom_page.locator(".bloom .now").text_content()


# The story


@pytest.fixture(scope="module")
def story(shared: Any, url: str) -> Iterator[Any]:
    """The story's page, its store made, its motion reduced: a Get is shown whole at once."""
    page = shared.new_page()
    page.emulate_media(reduced_motion="reduce")
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    open_page(page, url)
    page.wait_for_selector("#lookups .sentence strong", timeout=120_000)
    settled(page)
    yield page
    assert complaints == []
    page.close()


def marked(page: Any, *tones: str) -> int:
    count: int = page.locator(", ".join(f"#lookup .tree-cells i.{tone}" for tone in tones)).count()
    return count


def blocks(page: Any, title: str) -> str:
    text: str = page.locator(f"#lookup section[aria-label^='{title}'] .big").text_content()
    return text


def test_a_store_is_made_from_names(story: Any) -> None:
    assert "14,500 of 14,500 names" in story.locator("#making").text_content()
    assert story.locator("#making .tree-level .tree-table").count() >= 5
    assert "flushed 13 times" in story.locator("#making").text_content()
    assert re.search(
        r"Level-\d table #\d+: \d+ bytes flushed", story.locator(".events").inner_text()
    )


def test_a_get_marks_the_blocks_that_it_reads(story: Any) -> None:
    story.locator("#lookup .hint-key").first.click()
    story.get_by_label("off", exact=True).check()
    count = marked(story, "read", "wasted")
    assert count >= 4
    assert blocks(story, "Without") == f"{count} blocks"
    story.get_by_label("on", exact=True).check()
    assert marked(story, "read", "wasted") == 0
    assert marked(story, "saved") == count
    assert blocks(story, "With filters") == "0 blocks"
    assert "Not there: 0 blocks read" in story.locator("#lookup .now").text_content()


def test_steps_of_a_get_go_back_by_keyboard(story: Any) -> None:
    story.get_by_label("on", exact=True).check()
    story.get_by_label("Step back").focus()
    for _ in range(20):
        story.keyboard.press("ArrowLeft")
    assert marked(story, "saved", "read", "wasted") == 0
    story.keyboard.press("End")
    assert marked(story, "saved", "read", "wasted") >= 4


def test_a_key_of_the_visitor_is_asked_for(story: Any) -> None:
    key = "<img src=x onerror=alert(1)>"
    story.get_by_label("A key of your own").fill(key)
    story.keyboard.press("Enter")
    story.wait_for_url("**/*key=*")
    assert story.locator("#view img").count() == 0
    story.get_by_label("A key of your own").fill("x" * 2000)
    story.keyboard.press("Enter")
    story.locator("#lookup .now .trouble").wait_for()
    story.get_by_label("A key of your own").fill("LATIN SMALL LETTER A")
    story.keyboard.press("Enter")
    story.locator("#lookup .now:has-text('read, ')").wait_for()


def test_lookups_are_counted(story: Any) -> None:
    def sentence(bits: int) -> list[int]:
        slider = story.locator("#lookup-bits")
        slider.fill(str(bits))
        settled(story)
        words = story.locator(".sentence").text_content().replace(",", "")
        found = re.search(r"Your 200 lookups read (\d+) blocks? instead of (\d+)", words)
        assert found, words
        return [int(one) for one in found.groups()]

    none, few, many = sentence(0), sentence(3), sentence(14)
    assert none[0] == none[1] == few[1] == many[1] > 600
    assert many[0] < few[0] < none[0]
    assert "bits=14" in story.url
    story.get_by_label("all present").check()
    settled(story)
    assert sentence(14)[0] >= 150


def test_names_and_sequential_keys_are_asked_for(story: Any) -> None:
    story.get_by_role("button", name="Ask 1,000 absent keys of each").click()
    story.locator("#hashes p strong").wait_for()
    figures = story.locator("#hashes figcaption").all_text_contents()
    passed = [int(re.search(r"(\d+) of 1,000", one)[1]) for one in figures]
    assert passed[1] > 50 > max(passed[0], passed[2])
    assert serious_faults(story) == []

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
from driven import (
    PHONE,
    WIDE,
    fits,
    open_page,
    quiet_on,
    quiet_page,
    running,
    serious_faults,
)
from make_playground import transferred

from lsmkv import BloomFilterPolicy
from lsmkv.engine.filter.rates import expected_rate
from lsmkv.tools.playground.server import application

MOST = 9_000_000
"""Bytes that a visitor downloads at most, if the server compresses."""
MOST_OF_ALL = 15_000_000
EXTRA = ("course", "editor", "inspect/vendor", "pictures/")
"""What neither the story nor the filter's page loads."""
PAGES = ("", "bloom.html", "folder.html", "console.html", "course.html")


def test_it_is_small(playground: Path) -> None:
    sizes = transferred(playground)
    assert sum(sizes.values()) <= MOST_OF_ALL
    assert sum(size for path, size in sizes.items() if not path.startswith(EXTRA)) <= MOST


LOADED = {"console.html": ".examples .card", "course.html": "html[data-lab]"}
"""What shows that a page is whole, where that is not the engine alone."""


@pytest.mark.parametrize("path", PAGES)
def test_every_page_runs_without_a_complaint(shared: Any, playground_url: str, path: str) -> None:
    with quiet_on(shared, playground_url) as page:
        open_page(page, playground_url + path)
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


def test_the_first_view_needs_no_engine(browser: Any, playground_url: str) -> None:
    with quiet_page(browser, playground_url) as page:
        page.add_init_script(WITHOUT_SERVICE_WORKERS)
        page.route("**/*.wasm", lambda route: None)  # it never arrives
        page.goto(playground_url, timeout=120_000)
        assert page.locator("h1").is_visible()
        assert page.locator("#engine progress").is_visible()
        assert not page.locator(".unserved").is_visible()


SAID = {
    "": ["How filters cut disk reads", "1. A store is made", "4. Keys that a hash does not tell"],
    "bloom.html": ["A Bloom filter, step by step", "Add keys, ask for keys, and follow each probe"],
    "folder.html": ["Look into a LevelDB folder", "Where such folders are", "Bitcoin Core"],
    "console.html": ["Python with lsmkv imported, in this tab"],
    "course.html": ["Build your own store", "1 Varints and internal keys", "12 Measuring"],
}
"""What a page's HTML says by itself."""


@pytest.mark.parametrize("path", PAGES)
def test_the_text_needs_no_script(browser: Any, playground_url: str, path: str) -> None:
    with quiet_page(browser, playground_url, java_script_enabled=False) as page:
        page.goto(playground_url + path)
        words = page.locator("main").inner_text()
        for said in SAID[path]:
            assert said in words
        assert fits(page)


WRITTEN = {
    "": "#lookups .quiet",
    "bloom.html": ".formulas p >> nth=2",
    "folder.html": ".zone-words",
    "console.html": ".examples .card >> nth=5",
    "course.html": ".lab-text h3 >> nth=0",
}
"""What the scripts of a page write before the engine is there."""


def start(page: Any, path: str) -> tuple[str, str]:
    """Use a control of the page; where its answer will be, and a part of it."""
    if path == "bloom.html":
        page.get_by_label("Ask for a key").fill("swan")
        page.keyboard.press("Enter")
        return ".bloom .now", "LevelDB\u2019s hash of swan"
    if path == "folder.html":
        page.get_by_role("button", name="Show an example").click()
        return ".folder-note", "example: "
    if path == "console.html":
        page.get_by_label("Python", exact=True).fill("print(6 * 7)")
        page.keyboard.press("Enter")
        return ".transcript .output", "42"
    if path == "course.html":
        page.get_by_role("button", name="Run the checks").click()
        return ".results .total", "checks passed"
    assert page.get_by_role("button", name="Ask 1,000 absent keys of each").is_disabled()
    assert page.get_by_role("button", name="Make it again").is_disabled()
    return "#lookups .sentence", "Your 200 lookups read"


@pytest.mark.parametrize("path", PAGES)
def test_the_text_is_there_before_python(browser: Any, playground_url: str, path: str) -> None:
    """And what a visitor does is done when Python has come."""
    with quiet_page(browser, playground_url) as page:
        page.add_init_script(WITHOUT_SERVICE_WORKERS)
        held: list[Any] | None = []
        page.route(
            "**/pyodide/*",
            lambda route: route.continue_() if held is None else held.append(route),
        )
        page.goto(playground_url + path, timeout=120_000)
        page.locator(WRITTEN[path]).wait_for()
        page.locator("#engine progress").wait_for()
        for said in SAID[path][:2]:
            assert said in page.locator("main").inner_text()
        place, answer = start(page, path)
        page.wait_for_timeout(200)
        assert page.locator("html[data-engine=ready]").count() == 0
        assert page.locator(place).filter(has_text=answer).count() == 0
        waiting, held = held, None
        for route in waiting or ():
            route.continue_()
        page.locator(place).filter(has_text=answer).wait_for(timeout=120_000)


def test_it_works_without_a_service_worker(browser: Any, playground_url: str) -> None:
    with quiet_page(browser, playground_url) as page:
        page.add_init_script(WITHOUT_SERVICE_WORKERS)
        open_page(page, playground_url)
        assert page.locator("html[data-offline]").count() == 0


def test_the_second_visit_needs_no_network(browser: Any, playground: Path) -> None:
    context = browser.new_context()
    with running(application(str(playground))) as url:
        page = context.new_page()
        asked: list[str] = []
        context.on("request", lambda request: asked.append(request.url))
        open_page(page, url)
        page.wait_for_selector("html[data-offline=ready]", state="attached", timeout=120_000)
        page.close()
        assert all(one.startswith(url) for one in asked)
    page = context.new_page()  # the server has ended
    failed: list[str] = []
    page.on("requestfailed", lambda request: failed.append(f"{request.failure} {request.url}"))
    page.on("pageerror", lambda error: failed.append(str(error)))
    for path in PAGES:
        page.goto(url + path)
        page.wait_for_selector("html[data-scripts=run]", state="attached")
    # The engine's loading ends where another page is opened.
    assert [one for one in failed if not one.startswith("net::ERR_ABORTED ")] == []
    open_page(page, url)
    assert "The engine is loaded" in page.locator("#engine").text_content()
    context.close()


# The Bloom filter


@pytest.fixture(scope="module")
def bloom_page(shared: Any, playground_url: str) -> Iterator[Any]:
    """One page for all tests; each begins with a state of its own."""
    with quiet_on(shared, playground_url) as page:
        open_page(page, f"{playground_url}bloom.html")
        settled(page)
        yield page


def settled(page: Any) -> None:
    page.wait_for_selector("#view:not(:has(.pending))", timeout=60_000)


def go(page: Any, **query: str | int | list[str]) -> None:
    """Change the state in the URL, as a link does."""
    pairs = [
        (name, one)
        for name, value in query.items()
        for one in (value if isinstance(value, list) else [value])
    ]
    page.evaluate(GO, urlencode(pairs))
    settled(page)


GO = """hash => new Promise(resolve => {
    const before = location.href;
    addEventListener("hashchange", resolve, { once: true }); // after the page's own listener
    location.hash = hash;
    if (location.href === before) resolve();
})"""


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
    bloom_page.reload()
    bloom_page.locator(".bloom .now p").first.wait_for(timeout=120_000)
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
    assert bloom_page.locator(".bloom .lab-controls .lab-keys").text_content() == "zebra"
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
    lines = bloom_page.evaluate(LINES)
    keys = bloom_page.locator(".setters button").all_text_contents()
    found = bloom_page.locator(".culprits li").all_text_contents()
    named = [set(re.findall("“(.+?)”", one)) for one in found]
    assert len(lines) == sum(map(len, named)) >= 4
    assert {key for _, key in lines} == set(keys) == set().union(*named)
    for bit in {bit for bit, _ in lines}:
        (words,) = (one for one in found if f"bit {bit}," in one)
        assert {key for at, key in lines if at == bit} == set(re.findall("“(.+?)”", words))
    bloom_page.get_by_label("First step").click()
    assert bloom_page.evaluate(LINES) == []


LINES = """() => {
    document.querySelector(".linked").scrollIntoView({ block: "center" });
    const { left, top } = document.querySelector(".linked").getBoundingClientRect();
    const at = (x, y, mark) => document.elementsFromPoint(x + left, y + top).find(
        one => one.matches(mark));
    return [...document.querySelectorAll(".lines path")].map(path => {
        const [x, y, , , , , toX, toY] = path.getAttribute("d").match(/-?[\\d.]+/g).map(Number);
        const bit = at(x, y, "rect.lab-set.lab-probed");
        return [Number(bit.dataset.bit), at(toX, toY + 3, ".setters button").textContent];
    });
}"""
"""For each line, the black bit where it begins and the key where it ends."""


def test_rates_are_measured_beside_the_expected_ones(bloom_page: Any) -> None:
    go(bloom_page, n=32, bits=10, ask="swan")
    circles = bloom_page.locator(".rate-curve circle")
    circles.nth(11).wait_for(timeout=60_000)
    assert circles.count() <= 13
    words = bloom_page.locator(".rates p").text_content()
    found = re.fullmatch(
        r"(\d+) of 10,000 random absent keys pass this filter: (.+?)%\. Its very bits predict "
        r"(.+?)%\. Other filters of this size, with other 32 keys, are better or worse: (.+?)% "
        r"pass on average\. .*",
        words,
    )
    assert found, words
    passed, measured, predicted, average = map(float, found.groups())
    assert measured == pytest.approx(passed / 100, rel=0.05)
    assert predicted == pytest.approx(measured, rel=0.3)
    assert average == pytest.approx(100 * expected_rate(32, 320, 6), rel=0.05)
    assert predicted > 1.2 * average  # of the keys that the page begins with
    own = bloom_page.get_by_role("region", name="LevelDB\u2019s Bloom filter")
    assert f"measured, predicted by its bits{measured:g}%, {predicted:g}%" in own.text_content()
    fuse = bloom_page.get_by_role("region", name="A fuse filter")
    assert "968 made-up keys" in fuse.text_content()
    assert fuse.locator(".lab-probed.lab-set").count() == 4


def test_hostile_keys_are_text(bloom_page: Any) -> None:
    go(bloom_page, n=32, bits=10, key=["<img src=x onerror=alert(1)>", "\u202e"], ask="<b>\u0007")
    assert bloom_page.locator("#view img, #view .lab-keys b").count() == 0
    assert "\\u202e" in bloom_page.locator(".bloom .lab-controls .lab-keys").text_content()


def test_a_key_that_is_too_long_is_refused_in_words(bloom_page: Any) -> None:
    go(bloom_page, n=32, bits=10)
    bloom_page.get_by_label("Ask for a key").fill("x" * 2000)
    bloom_page.keyboard.press("Enter")
    bloom_page.locator(".bloom .now .trouble").wait_for()
    assert "more than 1,024 bytes" in bloom_page.locator(".bloom .now").text_content()


# The story


@pytest.fixture(scope="module")
def story(shared: Any, playground_url: str) -> Iterator[Any]:
    """The story's page, its store made, its motion reduced: a Get is shown whole at once."""
    with quiet_on(shared, playground_url) as page:
        page.emulate_media(reduced_motion="reduce")
        open_page(page, playground_url)
        page.wait_for_selector("#lookups .sentence strong", timeout=120_000)
        settled(page)
        yield page


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


@pytest.mark.parametrize("label", ["off", "on", "Suspense"])
def test_controls_wait_for_the_first_get(shared: Any, playground_url: str, label: str) -> None:
    """They are used while the engine has not answered it."""
    with quiet_on(shared, playground_url) as page:
        page.add_init_script(HELD_GETS)
        open_page(page, f"{playground_url}#filters={'on' if label == 'off' else 'off'}")
        page.locator("#lookup .hint-key").first.wait_for(timeout=120_000)
        page.get_by_label(label, exact=label != "Suspense").check()
        page.keyboard.press("ArrowRight")
        for name in ("Step forward", "Play", "Reveal the next step", "Begin again"):
            for one in page.get_by_role("button", name=name).all():
                if one.is_visible() and one.is_enabled():
                    one.click()
        page.evaluate("letGetsGo()")
        page.locator(
            "#lookup .now:has-text('A Get of'), #lookup .now:has-text('read, ')"
        ).wait_for()


HELD_GETS = """
let waits = [];
const post = Worker.prototype.postMessage;
Worker.prototype.postMessage = function (message, ...more) {
  if (waits && message.view === "story/get") waits.push(() => post.call(this, message, ...more));
  else post.call(this, message, ...more);
};
globalThis.letGetsGo = () => {
  for (const go of waits) go();
  waits = null;
};
"""


def test_steps_of_a_get_go_back_by_keyboard(story: Any) -> None:
    story.get_by_label("on", exact=True).check()
    story.get_by_label("Step back").focus()
    for _ in range(20):
        story.keyboard.press("ArrowLeft")
    assert marked(story, "saved", "read", "wasted") == 0
    story.keyboard.press("End")
    story.locator("#lookup .tree-cells i:is(.saved, .read, .wasted)").nth(3).wait_for()


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


def test_a_filter_of_a_step_is_opened(story: Any) -> None:
    wrong = story.locator("#lookup .suggestions p", has_text="a filter errs").locator("button")
    story.get_by_label("on", exact=True).check()
    wrong.click()
    steps = story.locator("#lookup .get-steps li")
    steps.filter(has_text="a false positive").get_by_role("button").click()
    zoom = story.locator("#lookup .zoom")
    zoom.get_by_text("Maybe, and wrong.").wait_for()
    assert zoom.locator(".probe-marks text").all_text_contents() == list("123456")
    assert zoom.locator("rect.lab-probed.lab-set").count() == 6
    assert zoom.locator(".lines path").count() >= 6
    zoom.locator("rect.lab-probed").first.click()
    assert re.search("probe [1-6]: 1, set by “", zoom.locator(".lab-note").text_content())
    assert serious_faults(story) == []
    steps.filter(has_text="its filter says no").first.get_by_role("button").click()
    zoom.get_by_text("No.").wait_for()
    assert zoom.locator("rect.lab-probed.lab-clear").count() == 1
    numbers = zoom.locator(".probe-marks text").count()
    assert 1 <= numbers <= 6
    zoom.get_by_role("button", name="Close").click()
    assert not zoom.is_visible()


def test_suspense_tells_nothing_before_it_is_revealed(story: Any) -> None:
    story.get_by_label("on", exact=True).check()
    story.get_by_label("Suspense").check()
    assert "suspense=on" in story.url
    assert "absent" not in story.locator("#lookup .suggestions").text_content()
    story.locator("#lookup .hint-key").first.click()
    now, steps = story.locator("#lookup .now"), story.locator("#lookup .get-steps li")
    now.get_by_text("A Get of").wait_for()
    totals = story.locator("#lookup .side .big")
    seen = 0
    while story.locator("#lookup .get-steps li.quiet").count():
        assert totals.all_text_contents() == ["?", "?"]
        assert marked(story, "saved", "read", "wasted") == story.locator(".filter-step").count()
        assert steps.last.text_content().endswith(": ?")
        assert steps.count() == seen + 1
        if seen % 2:
            story.get_by_role("button", name="Reveal the next step").click()
        else:
            story.keyboard.press("ArrowRight")
        seen += 1
    assert seen >= 3
    assert re.search("(Found|Not there): ", now.text_content())
    assert re.fullmatch(r"\d+ blocks?", totals.nth(1).text_content())
    assert totals.nth(0).text_content() == "?"
    story.keyboard.press("ArrowLeft")
    assert totals.all_text_contents() == ["?", "?"]
    assert serious_faults(story) == []
    story.get_by_label("Suspense").uncheck()
    assert story.get_by_label("Step back").is_visible()


def sentence(story: Any, bits: int) -> list[int]:
    """The blocks that are read with so many bits per key, and without filters."""
    story.locator("#lookup-bits").fill(str(bits))
    settled(story)
    words = story.locator(".sentence").text_content().replace(",", "")
    found = re.search(r"Your 200 lookups read (\d+) blocks? instead of (\d+)", words)
    assert found, words
    return [int(one) for one in found.groups()]


def test_lookups_are_counted(story: Any) -> None:
    none, few, many = (sentence(story, bits) for bits in (0, 3, 14))
    assert none[0] == none[1] == few[1] == many[1] > 600
    assert many[0] < few[0] < none[0]
    assert "bits=14" in story.url
    story.get_by_label("all present").check()
    settled(story)
    assert sentence(story, 14)[0] >= 150


def test_the_figures_are_those_of_the_demo(story: Any, shared: Any, playground_url: str) -> None:
    """``lsmkv demo`` counts Gets of the same keys in the same store, both made in a tab."""
    story.get_by_label("all absent").check()
    settled(story)
    with quiet_on(shared, playground_url) as page:
        open_page(page, f"{playground_url}console.html")
        page.get_by_label("Python", exact=True).fill(DEMO)
        page.keyboard.press("Control+Enter")
        page.locator(".transcript .output:has-text('blocks')").wait_for(timeout=120_000)
        printed = page.locator(".transcript .output").text_content()
    with_filters, without = sentence(story, 10)
    assert f"blocks {with_filters} {without}\n" in printed  # after a warning: the log is left out


DEMO = """
import os
from lsmkv.tools.demo.measure import measure
from lsmkv.tools.playground.story import NAMES, PATH, Story
env = lsmkv.MemoryEnv()
story = Story(env)
while story.load({"keys": 2000})["put"] < NAMES:
    pass
found = []
directory = env.open_directory(PATH)
for layout in ("block", "off"):
    os.mkdir(layout)
    for name in directory.names():
        if name != "LOCK" and not name.endswith(".log"):
            with directory.open(name) as source, open(f"{layout}/{name}", "wb") as copy:
                _ = copy.write(source.read(0, source.size))
    counted = measure(layout, layout, [], story.looked_up(0), lambda _: None, compacted=False)
    found.append(counted.absent.blocks_read)
print("blocks", *found)
"""


def test_names_and_sequential_keys_are_asked_for(story: Any) -> None:
    story.get_by_role("button", name="Ask 1,000 absent keys of each").click()
    story.locator("#hashes p strong").wait_for()
    figures = story.locator("#hashes figcaption").all_text_contents()
    assert all("sequential keys with gaps" in one for one in figures[1:])
    passed = [int(re.search(r"(\d+) of 1,000", one)[1]) for one in figures]
    assert passed[1] > 50 > max(passed[0], passed[2])
    rows = story.locator("#hashes tbody tr")
    assert rows.count() == 3
    between = rows.nth(0).locator("td").all_text_contents()
    assert f"{passed[1] / 10:g}%" in between
    story.set_viewport_size(PHONE)
    table = story.locator("#hashes .scroll")
    assert table.evaluate("one => one.scrollWidth <= one.clientWidth")
    assert fits(story)
    story.set_viewport_size(WIDE)
    assert serious_faults(story) == []

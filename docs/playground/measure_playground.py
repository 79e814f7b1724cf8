"""Measures build/playground in Chromium: the figures of docs/playground.md.

python docs/playground/measure_playground.py [FOLDER]

It needs the extra ``browser``, ``plyvel``, and Debian's ``chromium``, or the one that
LSMKV_CHROMIUM names; ``make playground`` builds the pages.  FOLDER is a store to look into; without
it, LevelDB writes one of 130 MB.  Each visit but the last ones begins with an empty cache.
"""

from __future__ import annotations

import functools
import http.server
import os
import random
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import plyvel
from playwright.sync_api import Browser, Page, sync_playwright

PAGES = Path(__file__).resolve().parents[2] / "build" / "playground"
ROUNDS = 3
PATIENCE = 600_000  # milliseconds
ENTRIES = 1_000_000
READY = "html[data-engine=ready]"

PAINTED = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
STEPS = """async () => {
    const forward = document.querySelector("#lookup [aria-label='Step forward']");
    const back = document.querySelector("#lookup [aria-label='First step']");
    back.click();
    const found = [];
    while (!forward.disabled) {
        await new Promise(requestAnimationFrame);
        const begun = performance.now();
        forward.click();
        await new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve)));
        found.push(performance.now() - begun);
    }
    return found;
}"""
"""Milliseconds of each step of a Get, until the frame that shows it is drawn."""
GETS = """async () => {
    const found = [];
    const shown = document.querySelector("#lookup .now");
    for (const key of document.querySelectorAll("#lookup .suggestions button")) {
        const drawn = new Promise(resolve => {
            const watching = new MutationObserver(() => {
                watching.disconnect();
                requestAnimationFrame(() => setTimeout(resolve));
            });
            watching.observe(shown, { childList: true });
        });
        const begun = performance.now();
        key.click();
        await drawn;
        found.push(performance.now() - begun);
    }
    return found;
}"""
"""Milliseconds of each Get that is suggested, until the frame that shows it is drawn."""
NAMES = """
import time
from lsmkv.tools.sample_keys import unicode_names
names = unicode_names().records[:100_000]
db = lsmkv.DB("names", create_if_missing=True)
begun = time.perf_counter()
for key, value in names:
    db.put(key, value)

print(f"{len(names)} names in {time.perf_counter() - begun:.2f} s")
"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, and prints nothing."""

    def log_message(self, *_: object) -> None:
        """Nothing."""


def make_folder(place: Path) -> None:
    """A store that LevelDB writes: names of 16 bytes, and values that no codec makes smaller."""
    rng = random.Random(1)
    pool = rng.randbytes(1 << 20)
    order = list(range(ENTRIES))
    rng.shuffle(order)
    db = plyvel.DB(str(place), create_if_missing=True, bloom_filter_bits=10)
    for begin in range(0, ENTRIES, 1000):
        with db.write_batch() as batch:
            for number in order[begin : begin + 1000]:
                at = rng.randrange(len(pool) - 112)
                batch.put(b"key %012d" % number, pool[at : at + 112])
    db.compact_range()
    db.close()


class Clock:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._begun = time.perf_counter()

    def __call__(self) -> float:
        return time.perf_counter() - self._begun


Figure = tuple[str, float, str]
"""What was measured, the figure, and its unit."""


def story(page: Page, url: str) -> Iterator[Figure]:
    """The story with a cold cache."""
    clock = Clock()
    page.goto(url)
    page.locator(READY).wait_for(state="attached")
    ready = clock()
    page.locator("#lookup .asking-key input").wait_for()
    asked = clock()
    page.locator("#lookups .sentence strong").wait_for()
    yield "story: first view", page.evaluate(PAINTED) / 1000, "s"
    yield "story: the engine is loaded, and the store is being made", ready, "s"
    yield "story: a Get can be asked for", asked, "s"
    yield "story: all is shown", clock(), "s"
    page.get_by_label("on", exact=True).check()
    yield "story: a step of a Get, at most", max(page.evaluate(STEPS)), "ms"
    yield "story: a Get, at most", max(page.evaluate(GETS)), "ms"


def names(page: Page, url: str) -> Iterator[Figure]:
    """100,000 names, put in the console."""
    page.goto(f"{url}console.html")
    page.locator(READY).wait_for(state="attached")
    page.get_by_label("Python", exact=True).fill(NAMES)
    page.keyboard.press("Control+Enter")
    output = page.locator(".transcript .output", has_text="names in")
    output.wait_for()
    yield "console: 100,000 names put", float((output.text_content() or "").split()[-2]), "s"


def folder(page: Page, url: str, place: Path) -> Iterator[Figure]:
    """A folder: its levels, and the check of every file."""
    page.goto(f"{url}folder.html")
    page.locator(READY).wait_for(state="attached")
    page.locator("html[data-offline]").wait_for(state="attached")
    clock = Clock()
    page.set_input_files("#folder", str(place))
    page.locator(".figure", has_text="in tables").wait_for()
    yield "folder: levels", clock(), "s"
    clock = Clock()
    page.get_by_role("button", name="Check every file").click()
    page.locator("text=Every file is being read").wait_for()
    page.locator("text=Every file is being read").wait_for(state="detached")
    yield "folder: every file is checked", clock(), "s"


def measure(browser: Browser, use: Callable[[Page], Iterator[Figure]]) -> list[Figure]:
    """The figures of a visit, with a cold cache."""
    context = browser.new_context(viewport={"width": 1280, "height": 860}, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    found = list(use(page))
    context.close()
    return found


def main() -> None:
    """Print the median of some visits."""
    program = shutil.which(os.environ.get("LSMKV_CHROMIUM") or "chromium")
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    handler = functools.partial(Quiet, directory=str(PAGES))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/"
    with tempfile.TemporaryDirectory() as made, sync_playwright() as driver:
        place = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(made) / "leveldb"
        if not place.exists():
            make_folder(place)
        size = sum(file.stat().st_size for file in place.iterdir())
        print(f"the folder has {size:,} bytes")  # noqa: T201
        browser = driver.chromium.launch(executable_path=program, args=root)
        visits = [
            lambda page: story(page, url),
            lambda page: names(page, url),
            lambda page: folder(page, url, place),
        ]
        found: dict[tuple[str, str], list[float]] = {}
        for use in visits:
            for _ in range(ROUNDS):
                for what, figure, unit in measure(browser, use):
                    found.setdefault((what, unit), []).append(figure)
        browser.close()
    server.shutdown()
    for (what, unit), figures in found.items():
        most = ", ".join(f"{one:.3g}" for one in sorted(figures))
        print(f"{what}: {statistics.median(figures):.3g} {unit} ({most})")  # noqa: T201


if __name__ == "__main__":
    main()

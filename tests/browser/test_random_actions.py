"""Clicks, keys and texts at random on every page, while answers are late: no page has an error.

``LSMKV_BROWSER_ACTIONS`` is how many actions each page gets, ``LSMKV_BROWSER_SEED`` chooses others.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from driven import PHONE, WIDE, served
from inspected import levelled_store

ACTIONS = int(os.environ.get("LSMKV_BROWSER_ACTIONS", "30"))
SEED = int(os.environ.get("LSMKV_BROWSER_SEED", "1"))
PAGES = ("", "bloom.html", "folder.html", "console.html", "course.html")
VIEWS = ("levels", "get", "filters", "life", "live", "write", "entries")
TEXTS = (
    *("swan", "LATIN SMALL LETTER A", "word 00001", "0", "7", "-1", "1e9", "6 * 7", "x" * 1500),
    *("<b>\u202e", "\\x00\\xff", "\\xz", " ", "", "none block:10", "db = lsmkv.DB('a'", "1 / 0"),
)
KEYS = (
    *("ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown", "Home", "End", "PageDown", "Tab"),
    *("Enter", "Space", "Escape", "Control+Enter", "Delete", "1", "4", "7", "/", "?", "r"),
)

LATE = """{
  // Answers are up to half a second late, in their order, and the first of each kind longer: a page
  // is used before each of them.
  let state = %d;
  const chance = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  const known = new Set();
  const pause = (kind) => new Promise((resolve) => {
    setTimeout(resolve, known.has(kind) ? 500 * chance() ** 2 : 1500);
    known.add(kind);
  });
  let before = Promise.resolve();
  const { postMessage } = Worker.prototype;
  Worker.prototype.postMessage = function (...given) {
    before = before.then(() => pause(given[0].view)).then(() => postMessage.apply(this, given));
  };
  const direct = window.fetch;
  window.fetch = async (...given) => {
    const answer = await direct(...given);
    await pause(new URL(answer.url).pathname);
    return answer;
  };
}"""

PICK = """chance => {
  const found = [...document.querySelectorAll(`button, input:not([type=file]), select, textarea,
    summary, a[href^="#"], [tabindex="0"], [data-bit], .cm-content, canvas`)].filter(one => {
    const { width, height } = one.getBoundingClientRect();
    return width > 0 && height > 0;
  });
  // As many of each kind: a filter has hundreds of bits.
  const kinds = Map.groupBy(found, one => `${one.tagName} ${one.type ?? ""}`);
  if (!kinds.size) return null;
  const kind = [...kinds.values()][Math.floor(chance * kinds.size)];
  const chosen = kind[Math.floor(chance * 7919) % kind.length];
  chosen.scrollIntoView({ block: "center" });
  const { x, y, width, height } = chosen.getBoundingClientRect();
  const name = chosen.getAttribute("aria-label") ?? (chosen.textContent || chosen.id);
  return { x: x + width / 2, y: y + height / 2, name: `${chosen.tagName} ${name.slice(0, 40)}`,
    types: chosen.matches("input[type=text], input[type=number], textarea, .cm-content") };
}"""


SWEEP = """seed => {
  let state = seed;
  const below = number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * number);
  };
  const found = [...document.querySelectorAll(`button, input:not([type=file]), summary,
    a[href^="#"], [data-bit]`)].filter(one => one.getClientRects().length);
  const kinds = Map.groupBy(found, one => `${one.tagName} ${one.type ?? ""}`);
  const some = [...kinds.values()].flatMap(kind => (kind[0].dataset.bit ? kind.slice(0, 4) : kind));
  for (let at = some.length - 1; at > 0; at--) {
    const other = below(at + 1);
    [some[at], some[other]] = [some[other], some[at]];
  }
  const click = () => new MouseEvent("click", { bubbles: true, cancelable: true });
  for (const one of some) one.dispatchEvent(click());
  return some.length;
}"""
"""Clicks every control once, in random order, without waiting for anything."""


class Visitor:
    """Acts at random on a page; ``done`` has what it did."""

    def __init__(self, page: Any, seed: int) -> None:
        self.page = page
        self.rng = random.Random(seed)
        self.done: list[str] = []
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(f"{error}\n{error.stack}"))
        page.on("dialog", lambda dialog: dialog.accept())
        page.on("filechooser", lambda _: None)

    def act(self, times: int) -> None:
        for _ in range(times):
            if self.errors:
                return
            self._act()
            self.page.wait_for_timeout(self.rng.choice((0, 0, 30, 150)))

    def _act(self) -> None:
        rng, page = self.rng, self.page
        what = rng.random()
        if what < 0.25:
            key = rng.choice(KEYS)
            self.done.append(f"press {key}")
            page.keyboard.press(key)
        elif what < 0.3:
            size = rng.choice((WIDE, PHONE))
            self.done.append(f"resize to {size['width']}")
            page.set_viewport_size(size)
        else:
            found = page.evaluate(PICK, rng.random())
            if found is None:
                return
            self.done.append(f"click {found['name']}")
            page.mouse.click(found["x"], found["y"])
            if found["types"] and rng.random() < 0.7:
                text = rng.choice(TEXTS)
                self.done.append(f"type {text[:20]!r}")
                page.keyboard.press("ControlOrMeta+a")
                page.keyboard.insert_text(text)
                page.keyboard.press(rng.choice(("Enter", "Tab", "Control+Enter")))

    def sweep(self) -> None:
        """Click all that can be clicked now."""
        with contextlib.suppress(Exception):  # a click may have led to another document
            count = self.page.evaluate(SWEEP, self.rng.randrange(1 << 30))
            self.done.append(f"click {count} controls")

    def end(self) -> None:
        """Wait for what is late; there must have been no error."""
        self.page.wait_for_timeout(1200)
        said = "\n".join([*self.errors, f"after, with seed {SEED}:", *self.done[-12:]])
        assert not self.errors, said


@contextlib.contextmanager
def visited(context: Any, seed: int) -> Iterator[Visitor]:
    page = context.new_page()
    page.add_init_script(LATE % seed)
    yield Visitor(page, seed)
    page.close()


def waited(page: Any, selector: str) -> None:
    """Wait for a state of the page, unless the visitor has led it elsewhere."""
    with contextlib.suppress(Exception):
        page.wait_for_selector(selector, state="attached", timeout=30_000)


@pytest.mark.parametrize("path", PAGES)
def test_a_page_of_the_playground_has_no_error(shared: Any, playground_url: str, path: str) -> None:
    """Before the engine is loaded, while it answers for the first time, and afterwards."""
    with visited(shared, SEED) as visitor:
        page = visitor.page
        page.goto(playground_url + path, wait_until="domcontentloaded", timeout=120_000)
        visitor.sweep()
        visitor.act(ACTIONS // 3)
        if path == "folder.html" and page.get_by_role("button", name="Show an example").count():
            page.get_by_role("button", name="Show an example").click()
        waited(page, "html[data-engine=ready]")
        visitor.act(ACTIONS // 3)
        shown = {"": "#lookup .hint-key", "folder.html": "html[data-folder]"}
        waited(page, shown.get(path, "main"))
        visitor.sweep()
        visitor.act(ACTIONS - 2 * (ACTIONS // 3))
        visitor.end()


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_of_the_inspector_has_no_error(browser: Any, store: str, view: str) -> None:
    context = browser.new_context(viewport=WIDE)
    with visited(context, SEED + len(view)) as visitor:
        visitor.page.goto(f"{store}#/{view}", wait_until="domcontentloaded")
        visitor.sweep()
        visitor.act(ACTIONS)
        visitor.sweep()
        visitor.end()
    context.close()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the inspector of a store is."""
    path: Path = levelled_store(tmp_path_factory.mktemp("random") / "store")
    with served(path) as url:
        yield url

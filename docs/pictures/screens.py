"""Takes the pictures of docs/inspect.md: every view, light and dark, wide and on a phone.

``make screens`` runs it (extra ``browser``, and Chromium).  The store holds the names of Unicode
characters in random order, and is made again each time; a second one is
written to and read while its picture is taken.
"""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

import lsmkv
from lsmkv.engine.options import L0_COMPACTION_TRIGGER
from lsmkv.tools.sample_keys import unicode_names

HERE = Path(__file__).resolve().parent / "inspect"
SIZES = {1280: 800, 390: 844}
SCHEMES = ("light", "dark")
MOST_BYTES = 150_000
FLUSHES = 9
WATCHED = 25  # seconds for which the live store is watched before its first picture


def make_store(path: Path) -> None:
    """A store with several tables on several levels, and some writes in its log.

    It is the same store each time: a flush comes only once the compaction before it has ended.
    """
    records = [
        (key, b"U+%04X" % ord(value.decode()))
        for key, value in unicode_names(0).records
        if not key.startswith((b"CJK", b"HANGUL", b"TANGUT", b"NUSHU", b"KHITAN"))
    ]
    random.Random(2).shuffle(records)
    chunk = len(records) // FLUSHES
    with lsmkv.DB(path, create_if_missing=True, max_file_size=48 << 10) as db:
        for number, (key, value) in enumerate(records, 1):
            db.put(key, value)
            if number % chunk == 0 and number // chunk < FLUSHES:
                db.flush()
                while db.stats().levels[0].files >= L0_COMPACTION_TRIGGER:
                    time.sleep(0.02)


def telling_key(path: Path) -> bytes:
    """A key whose Get has many steps: filters save reads, and one block has the answer."""
    rng = random.Random(3)
    with lsmkv.DB(path, read_only=True) as db:
        keys = rng.sample(list(db.iterator(include_value=False)), 3000)
        explained = [db.explain(key) for key in keys]
    best = max(explained, key=lambda one: (one.blocks_searched == 2, one.blocks_without_filters))
    return best.key


def take(browser: Browser, url: str, places: dict[str, str]) -> None:
    """All pictures."""
    for scheme in SCHEMES:
        for width, height in SIZES.items():
            page = browser.new_page(
                viewport={"width": width, "height": height}, color_scheme=scheme
            )
            for name, place in places.items():
                page.goto("about:blank")
                page.goto(f"{url}#/{place}")
                page.wait_for_load_state("networkidle")
                if name == "write":
                    write_something(page)
                if name == "replay" and page.locator(".verdict").count() == 0:  # the first time
                    page.get_by_role("button", name="Replay", exact=True).click()
                    page.locator(".verdict").wait_for()
                page.wait_for_timeout(400)
                whole = name != "get" or width < 1000  # its list of steps scrolls by itself
                save(page.screenshot(full_page=whole), f"{name}-{scheme}-{width}.png")
            page.close()


def take_live(browser: Browser, url: str) -> None:
    """The pictures of a store in use."""
    wait = WATCHED
    for scheme in SCHEMES:
        for width, height in SIZES.items():
            page = browser.new_page(
                viewport={"width": width, "height": height}, color_scheme=scheme
            )
            page.goto(f"{url}#/live")
            page.wait_for_timeout(1000 * wait)
            wait = 3
            save(page.screenshot(full_page=True), f"live-{scheme}-{width}.png")
            page.close()


@contextmanager
def used_store(path: Path) -> Iterator[None]:
    """A store that is written to and read in a thread, and publishes what it does."""
    ended = threading.Event()
    rng = random.Random(4)

    def use() -> None:
        while not ended.wait(0.01):
            for _ in range(rng.randrange(10, 30)):
                key = b"user %08d" % rng.randrange(200_000)
                db.put(key, b"value" * 20)
                for _ in range(rng.randrange(4)):
                    db.get(b"user %08d" % rng.randrange(250_000))
            next(db.iterator(start=key), None)

    with lsmkv.DB(
        path,
        create_if_missing=True,
        publish_stats=True,
        write_buffer_size=256 << 10,
        max_file_size=128 << 10,
    ) as db:
        user = threading.Thread(target=use)
        user.start()
        try:
            yield
        finally:
            ended.set()
            user.join()


@contextmanager
def served(directory: str, store: str) -> Iterator[str]:
    """The URL of the page of a store, served by the command."""
    command = [sys.executable, "-m", "lsmkv", "inspect", store, "--port", "0", "--json"]
    with subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        yield json.loads(server.stdout.readline())["url"]
        server.terminate()


def write_something(page: Page) -> None:
    """Fill the scratch store, so that the picture shows each part of it."""
    page.get_by_role("button", name="Start again").click()
    for _ in range(6):
        page.get_by_role("button", name="Put 20 keys").click()
        page.wait_for_timeout(300)
    page.get_by_role("button", name="Put", exact=True).click()
    page.wait_for_timeout(300)


def save(png: bytes, name: str) -> None:
    """Keep a picture with at most 128 colors, and only the top of a very long one."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    image = image.crop((0, 0, image.width, min(image.height, 1600)))
    small = image.quantize(255, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    small.save(HERE / name, optimize=True)
    size = (HERE / name).stat().st_size
    print(f"{name}: {size:,} bytes")  # noqa: T201
    if size > MOST_BYTES:
        raise ValueError(f"{name} has {size:,} bytes; at most {MOST_BYTES:,} are wanted")


def main() -> None:
    """Make the store, serve it, and take the pictures."""
    HERE.mkdir(exist_ok=True)
    program = shutil.which(os.environ.get("LSMKV_CHROMIUM") or "chromium")
    with tempfile.TemporaryDirectory(prefix="lsmkv-screens-") as directory:
        store = Path(directory, "names")
        make_store(store)
        with lsmkv.DB(store, read_only=True) as db:
            table = max(db.tables(), key=lambda one: (one.level == 1, one.size))
        key = urllib.parse.quote(telling_key(store))
        places = {
            "levels": f"levels?table={table.name}",
            "keys": "levels?bars=keys",
            "table": f"table?name={table.name}&block=0",
            "get": f"get?key={key}",
            "filter": f"filters?show=table&name={table.name}&bit=259&hex={table.smallest.hex()}",
            "replay": "filters?show=replay",
            "life": "life",
            "write": "write",
        }
        with sync_playwright() as driver:
            root = ["--no-sandbox"] if os.geteuid() == 0 else []
            browser = driver.chromium.launch(executable_path=program, args=root)
            with served(directory, "names") as url:
                take(browser, url, places)
            with used_store(Path(directory, "users")), served(directory, "users") as url:
                take_live(browser, url)
            browser.close()


if __name__ == "__main__":
    main()

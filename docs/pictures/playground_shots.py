"""Photograph build/playground for docs/playground.md: two pages, light and dark.

python docs/pictures/playground_shots.py

It needs the extra ``browser`` and Debian's ``chromium``, or the one that LSMKV_CHROMIUM names;
``make playground`` builds the pages.
"""

from __future__ import annotations

import functools
import http.server
import io
import os
import shutil
import threading
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).resolve().parent
PAGES = HERE.parents[1] / "build" / "playground"
PATIENCE = 120_000  # milliseconds


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, and prints nothing."""

    def log_message(self, *_: object) -> None:
        """Nothing."""


def get(page: Page, url: str) -> None:
    """The story's Get that a filter misleads, with the bits of this filter."""
    page.goto(f"{url}#filters=on")
    page.locator("#lookups .sentence strong").wait_for()
    page.locator(".suggestions p", has_text="a filter errs").get_by_role("button").click()
    step = page.locator(".get-steps li", has_text="a false positive").get_by_role("button")
    step.click()
    page.locator(".zoom .lines path").first.wait_for(state="attached")
    page.locator(".get-steps").evaluate("one => one.scrollIntoView()")
    page.mouse.wheel(0, -90)


def stranger(page: Page, url: str) -> None:
    """A false positive, and lines to the keys that set its bits."""
    page.goto(f"{url}bloom.html#n=32&bits=10")
    page.get_by_role("button", name="Find a false positive").click()
    page.locator(".culprits li").first.wait_for()


def main() -> None:
    """Write the pictures."""
    folder = HERE / "playground"
    folder.mkdir(exist_ok=True)
    program = shutil.which(os.environ.get("LSMKV_CHROMIUM") or "chromium")
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    handler = functools.partial(Quiet, directory=str(PAGES))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=root)
        for scheme in ("light", "dark"):
            page = browser.new_page(
                viewport={"width": 1280, "height": 860},
                color_scheme="dark" if scheme == "dark" else "light",
                reduced_motion="reduce",
            )
            page.set_default_timeout(PATIENCE)
            for use in (get, stranger):
                use(page, url)
                page.wait_for_timeout(500)
                image = Image.open(io.BytesIO(page.screenshot()))
                few = image.convert("RGB").quantize(255)
                few.save(folder / f"{use.__name__}-{scheme}.png", optimize=True)
            page.close()
        browser.close()
    server.shutdown()


if __name__ == "__main__":
    main()

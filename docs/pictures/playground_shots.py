"""Photograph build/playground for docs/playground.md: four pages, light and dark.

python docs/pictures/playground_shots.py [get|stranger|folder|course...]

It needs the extra ``browser`` and Debian's ``chromium``, or the one that LSMKV_CHROMIUM names;
``make playground`` builds the pages.
"""

from __future__ import annotations

import functools
import http.server
import io
import os
import shutil
import sys
import threading
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGES = ROOT / "build" / "playground"
WRONG = """

def probes(bits_per_key: int) -> int:
    return int(bits_per_key * 0.69)
"""
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
    page.mouse.wheel(0, 20)  # the header hides the first steps, and all keys are seen


def stranger(page: Page, url: str) -> None:
    """A false positive, and lines to the keys that set its bits."""
    page.goto(f"{url}bloom.html#n=32&bits=10")
    page.get_by_role("button", name="Find a false positive").click()
    page.locator(".culprits li").first.wait_for()


def folder(page: Page, url: str) -> None:
    """The levels of a folder, after the check of every file."""
    page.goto(f"{url}folder.html")
    page.get_by_role("button", name="Show an example").click()
    page.get_by_role("button", name="Check every file").click()
    page.locator(".sound").wait_for()


def course(page: Page, url: str) -> None:
    """A lab, in which one of the functions is wrong."""
    page.goto(f"{url}course.html#lab=4")
    page.locator("html[data-lab='4']").wait_for(state="attached")
    page.locator(".editor .cm-content").click()
    page.keyboard.press("ControlOrMeta+a")
    solved = ROOT / "tests" / "course" / "references" / "lab4_bloom.py"
    page.keyboard.insert_text(solved.read_text(encoding="utf-8") + WRONG)
    page.get_by_role("button", name="Run the checks").click()
    page.locator(".results .total").wait_for()
    page.evaluate("scrollTo(0, 0)")


USES = (get, stranger, folder, course)


def main() -> None:
    """Write the pictures."""
    wanted = [use for use in USES if use.__name__ in (sys.argv[1:] or [use.__name__])]
    target = HERE / "playground"
    target.mkdir(exist_ok=True)
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
            for use in wanted:
                use(page, url)
                page.wait_for_timeout(500)
                image = Image.open(io.BytesIO(page.screenshot()))
                few = image.convert("RGB").quantize(255)
                few.save(target / f"{use.__name__}-{scheme}.png", optimize=True)
            page.close()
        browser.close()
    server.shutdown()


if __name__ == "__main__":
    main()

"""Takes the pictures of docs/playground.md: its pages, light and dark, wide and on a phone.

``make screens`` runs it after ``make playground`` (extra ``browser``, and Chromium).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright
from screens import SCHEMES, SIZES, save

HERE = Path(__file__).resolve().parent / "playground"
TARGET = HERE.parents[2] / "build" / "playground"
PATIENCE = 120_000  # milliseconds
PAGES = {"story": "#filters=on", "bloom": "bloom.html#n=32&bits=10&ask=tiger"}


def ready(page: Page) -> None:
    """Wait until the engine has answered all that the page asks at first."""
    page.wait_for_selector("html[data-engine=ready]", state="attached", timeout=PATIENCE)
    page.wait_for_selector("#view:not(:has(.pending))", timeout=PATIENCE)
    page.wait_for_load_state("networkidle")
    if page.locator("#hashes").count():
        page.wait_for_selector("#lookups .sentence strong", timeout=PATIENCE)
        page.get_by_role("button", name="Ask 1,000 absent keys of each").click()
        page.locator("#hashes p strong").wait_for()
    else:
        page.locator(".rate-curve circle").nth(11).wait_for(timeout=PATIENCE)


def main() -> None:
    """Serve what is built, and take the pictures."""
    HERE.mkdir(exist_ok=True)
    program = shutil.which(os.environ.get("LSMKV_CHROMIUM") or "chromium")
    command = [sys.executable, "-m", "lsmkv", "playground", "--port", "0", "--json"]
    command += ["--directory", str(TARGET)]
    with sync_playwright() as driver, subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        url = json.loads(server.stdout.readline())["url"]
        root = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = driver.chromium.launch(executable_path=program, args=root)
        for scheme in SCHEMES:
            for width, height in SIZES.items():
                context = browser.new_context(
                    viewport={"width": width, "height": height},
                    color_scheme=scheme,
                    reduced_motion="reduce",
                )
                for name, place in PAGES.items():
                    page = context.new_page()
                    page.goto(url + place)
                    ready(page)
                    path = HERE / f"{name}-{scheme}-{width}.png"
                    save(page.screenshot(full_page=True), path)
                    page.close()
                context.close()
        browser.close()
        server.terminate()


if __name__ == "__main__":
    main()

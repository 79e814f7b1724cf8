"""Photograph docs/lab.html for docs/filters.md: wide and narrow, light and dark.

python docs/pictures/lab_shots.py

It needs the extra ``browser`` and Debian's ``chromium``, or the one that LSMKV_CHROMIUM names.
"""

from __future__ import annotations

import io
import os
import shutil
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).resolve().parent
SIZES = {1280: 940, 390: 1500}
"""Width and height of the pictures, in pixels."""


def use(page: Page) -> None:
    """Add keys and ask for one that is not there, so that there is something to see."""
    page.goto((HERE.parent / "lab.html").as_uri())
    page.get_by_role("button", name="Add 10").click()
    page.get_by_role("button", name="Add 10").click()
    page.get_by_label("Ask for a key").fill("cat")
    page.locator(".lab-bits .lab-set").nth(20).click()


def main() -> None:
    """Write the four pictures."""
    folder = HERE / "lab"
    folder.mkdir(exist_ok=True)
    program = shutil.which(os.environ.get("LSMKV_CHROMIUM") or "chromium")
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=root)
        for width, height in SIZES.items():
            for scheme in ("light", "dark"):
                page = browser.new_page(
                    viewport={"width": width, "height": height},
                    color_scheme="dark" if scheme == "dark" else "light",
                )
                use(page)
                image = Image.open(io.BytesIO(page.screenshot()))
                few = image.convert("RGB").quantize(255)
                few.save(folder / f"{width}-{scheme}.png", optimize=True)
                page.close()
        browser.close()


if __name__ == "__main__":
    main()

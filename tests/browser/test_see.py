"""The page of ``lsmkv course see`` in Chromium: two filters bit by bit, and where they part."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from course_stores import folder_of_references, plant
from driven import PHONE, WIDE, fits, running, serious_faults

from lsmkv.course.labs.registry import find
from lsmkv.course.see_page import application
from lsmkv.engine.filter.bloom import BloomFilterPolicy

Show = Callable[[str, Path], Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return folder_of_references(tmp_path / "labs")


@pytest.fixture(params=[(WIDE, "light"), (PHONE, "dark")], ids=["wide", "narrow"])
def shown(browser: Any, request: pytest.FixtureRequest) -> Iterator[Show]:
    """Shows a lab of a folder; the page must not complain."""
    viewport, scheme = request.param
    complaints: list[str] = []
    with contextlib.ExitStack() as stack:
        context = browser.new_context(viewport=viewport, color_scheme=scheme)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))

        def show(slug: str, folder: Path) -> Any:
            lab = find(slug)
            page.goto(stack.enter_context(running(application(lab, str(folder / lab.file_name)))))
            return page

        yield show
        assert fits(page)
        assert serious_faults(page) == []
        context.close()
    assert complaints == []


def bits(page: Any, side: str) -> list[int]:
    cells = page.get_by_role("region", name=side, exact=True).locator(".bits i")
    found: list[int] = cells.evaluate_all(
        "cells => cells.map((cell, at) => cell.classList.contains('set') ? at : -1)"
    )
    return [at for at in found if at >= 0]


def ones(data: bytes) -> list[int]:
    return [at for at in range(8 * len(data) - 8) if data[at >> 3] >> (at & 7) & 1]


def test_steps_are_revealed_and_the_first_that_differs_is_shown(shown: Show, folder: Path) -> None:
    plant(
        folder,
        4,
        "def create_filter(keys, bits):\n    return bytes([16, 17, 0, 0, 1, 1, 1, 16, 6])\n",
    )
    page = shown("bloom", folder)
    page.get_by_text("They part at step 4: byte 1 of the filter.").wait_for()
    right = ones(BloomFilterPolicy(10).create_filter([b"owl"]))
    assert bits(page, "The engine's") == [at for at in right if at < 16]
    assert set(bits(page, "Yours")) - set(right) == {8}
    assert page.locator(".bits .other").count() == 2
    page.keyboard.press("End")
    assert bits(page, "The engine's") == right
    page.keyboard.press("Home")
    assert page.locator(".bits i").count() == 0
    page.get_by_label("Key").fill("<b>emu")
    page.keyboard.press("Enter")
    page.get_by_text("hash of <b>emu").first.wait_for()


def test_the_page_follows_the_file(shown: Show, folder: Path) -> None:
    page = shown("block", folder)
    page.get_by_text("All steps are the engine's.").wait_for()
    plant(folder, 3, "def seek(data, target):\n    return None\n")
    page.get_by_text("They part at step").wait_for()
    assert page.locator(".see-steps tr.differs").count() == 1


def test_the_blocks_of_a_get_are_counted(shown: Show, folder: Path) -> None:
    page = shown("reading", folder)
    page.get_by_text("All steps are the engine's.").wait_for()
    page.keyboard.press("End")
    for side in ("Yours", "The engine's"):
        region = page.get_by_role("region", name=side, exact=True)
        assert "0 blocks read, 5 filters asked" in region.text_content()

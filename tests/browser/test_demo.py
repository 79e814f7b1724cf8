"""The page of ``lsmkv demo --report`` in Chromium: ``make test-browser``."""

from __future__ import annotations

import random
import urllib.parse
from typing import Any

import pytest
from driven import PHONE, WIDE, fits, quiet_page, serious_faults
from typer.testing import CliRunner

from lsmkv.tools.app import app

NAMES = ["filters off", "per 2 KiB", "whole table", "whole 64-bit", "whole, fuse"]
SIZES = pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("demo")
    rng = random.Random(1)
    lines = [b"%s %05d" % (rng.choice([b"ant", b"bee", b"cow"]), n) for n in range(6000)]
    (directory / "keys").write_bytes(b"\n".join(lines))
    file = directory / "demo.html"
    options = ["demo", "--keys", str(directory / "keys"), "--lookups", "300", "--report", str(file)]
    assert CliRunner().invoke(app, options).exit_code == 0
    return file.as_uri()


def go(page: Any, url: str, view: str, **query: object) -> None:
    page.goto("about:blank")
    page.goto(f"{url}#/{view}?{urllib.parse.urlencode(query)}")
    page.wait_for_selector(".view")


@SIZES
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_on_the_result(
    browser: Any, report: str, size: dict[str, int], scheme: str
) -> None:
    with quiet_page(browser, report, viewport=size, color_scheme=scheme) as page:
        page.goto(report)
        page.locator(".findings li").first.wait_for()
        assert page.locator("h1").text_content() == "What a filter saves"
        assert page.locator("nav a[aria-current]").text_content() == "Result"
        assert "without reading a block" in page.locator(".findings").text_content()
        for kind in ("An absent key", "A present key"):
            rows = page.get_by_role("region", name=kind, exact=True).first
            assert rows.locator("dt").all_text_contents() == NAMES
        off, *filtered = [
            float(text)
            for text in page.locator(".reads").first.locator("strong").all_text_contents()
        ]
        assert off > 0.9
        assert max(filtered) < 0.1
        # One scale for all bars: what is read and what is saved are together what was read before.
        script = """() => [...document.querySelectorAll(".reads")[0].querySelectorAll(".reads-bar")]
          .map((bar) => [bar.getBoundingClientRect().width, [...bar.children].map(
            (part) => part.getBoundingClientRect().width).reduce((a, b) => a + b)])"""
        widths = page.evaluate(script)
        assert max(width for width, _ in widths) - min(width for width, _ in widths) < 1
        assert all(used == pytest.approx(widths[0][1], abs=3) for _, used in widths)
        assert page.get_by_role("region", name="Figures of all stores").first.is_visible()
        assert fits(page)
        assert serious_faults(page) == []


@SIZES
def test_the_story_of_an_absent_key(browser: Any, report: str, size: dict[str, int]) -> None:
    with quiet_page(browser, report, viewport=size) as page:
        page.goto(report)
        stories = page.locator(".story")
        stories.first.wait_for()
        assert stories.count() == len(NAMES)
        assert stories.first.locator("li.wasted", has_text="no filter; a wasted block").count() >= 1
        assert page.locator("li.saved", has_text="filter: no; block not read").count() >= 3
        page.get_by_role("link", name="Step by step").click()
        page.locator(".verdict strong", has_text="not there").wait_for()
        assert fits(page)
        with page.expect_popup() as opened:  # the data of the first view
            go(page, report, "demo")
            page.locator("a.json").click()
        opened.value.close()


def test_the_bits_of_a_filter_can_be_touched_on_a_phone(browser: Any, report: str) -> None:
    with quiet_page(browser, report, viewport=PHONE) as page:
        for part in ("play", "table"):
            go(page, report, "filters", show=part)
            page.locator("rect[data-bit='9']").wait_for()
            script = """() => [...document.querySelectorAll("rect[data-bit]")].slice(0, 64)
              .map((bit) => bit.getBoundingClientRect())
              .map((box) => Math.min(box.width, box.height))"""
            assert min(page.evaluate(script)) >= 14
            assert fits(page)
        page.locator("rect[data-bit='0']").click()
        page.keyboard.press("End")
        box = page.locator(".lab-stage").bounding_box()
        bit = page.locator("rect.lab-selected").bounding_box()
        assert box["y"] <= bit["y"] <= box["y"] + box["height"]  # the box has scrolled to it


def test_a_filter_states_its_keys_its_fill_and_its_bits_a_key(browser: Any, report: str) -> None:
    with quiet_page(browser, report) as page:
        go(page, report, "filters", show="table")
        page.locator(".figure", has_text="keys, n").wait_for()
        terms = page.locator(".filters .figure dt").all_text_contents()
        figures = dict(
            zip(terms, page.locator(".filters .figure dd").all_text_contents(), strict=True)
        )
        keys, bits = (int(figures[name].replace(",", "")) for name in ("keys, n", "bits, m"))
        assert float(figures["bits a key"]) == pytest.approx(bits / keys, abs=0.06)
        assert 40 < float(figures["fill"].removesuffix("%")) < 55


@SIZES
def test_no_arrow_leads_nowhere(browser: Any, report: str, size: dict[str, int]) -> None:
    """Every arrow that can be pressed changes what is shown, and none complains."""
    with quiet_page(browser, report, viewport=size) as page:
        pressed = 0
        for view, query in (
            *(("get", {}), ("life", {}), ("write", {}), ("filters", {"show": "table"})),
            ("levels", {}),
        ):
            go(page, report, view, **query)
            page.wait_for_timeout(200)
            for name in ("Last step", "First step", "Step forward", "Step back", "The next filter"):
                for button in page.get_by_role("button", name=name, exact=True).all():
                    if button.is_disabled():
                        continue
                    before = page.url, page.locator(".view").inner_text()
                    button.click()
                    page.wait_for_timeout(100)
                    assert (page.url, page.locator(".view").inner_text()) != before, (view, name)
                    assert page.locator(".trouble:visible").count() == 0
                    pressed += 1
        assert pressed > 6
        go(page, report, "filters", show="table")
        page.locator(".lab-keys button").first.wait_for()
        assert page.get_by_label("The next filter").count() == 1
        assert not page.get_by_label("The next filter").is_visible()
        assert not page.get_by_label("The previous filter").is_visible()


def test_the_arrow_keys_go_over_all_parts_of_a_table(browser: Any, report: str) -> None:
    with quiet_page(browser, report) as page:
        go(page, report, "levels")
        page.locator(".bars").focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        page.locator(".legend li").first.wait_for()
        page.locator(".bars").focus()
        seen = set()
        for _ in range(12):
            page.keyboard.press("ArrowRight")
            page.wait_for_timeout(50)
            assert page.locator(".trouble:visible").count() == 0
            seen.add(page.locator(".inside h2").text_content())
        assert len(seen) == 12
        assert page.locator(".inside", has_text="does not include the content").count() == 1
        assert page.get_by_role("link", name="Get its first key").count() == 0


def test_a_block_with_more_entries_than_the_report_has_says_so(browser: Any, report: str) -> None:
    with quiet_page(browser, report) as page:
        go(page, report, "levels")
        page.locator("summary:visible").click()
        page.locator("details table a").first.click()
        page.locator(".legend li").first.wait_for()
        name = urllib.parse.parse_qs(page.url.partition("?")[2])["name"][0]
        for show in ("entries", "bytes"):
            go(page, report, "table", name=name, block=0, show=show)
            page.locator(".inside table").wait_for()
            for button in page.get_by_role("button", name="more →").all():
                if not button.is_disabled():
                    button.click()
                    page.wait_for_timeout(100)
            assert page.locator(".trouble:visible").count() == 0
        assert page.locator(".inside", has_text="but not in this report").count() == 1

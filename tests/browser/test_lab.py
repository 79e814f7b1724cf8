"""The filter lab in Chromium: its bits are BloomFilterPolicy's, and everything works by keyboard.

The page is docs/lab.html, opened as a file, as the documentation has it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lsmkv
from lsmkv.engine.filter.bloom import BloomFilterPolicy
from lsmkv.engine.filter.rates import expected_rate

playwright = pytest.importorskip(
    "playwright.sync_api", reason="needs the extra 'browser': pip install -e '.[browser]'"
)

PAGE = Path(lsmkv.__file__).parents[1] / "docs" / "lab.html"


@pytest.fixture(params=[(1280, "light"), (390, "dark")], ids=["wide", "narrow"])
def page(browser: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The lab, which must not complain or ask for anything while it is used."""
    width, scheme = request.param
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
    )
    opened = context.new_page()
    complaints: list[str] = []
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("request", lambda request: complaints.append(request.url))
    opened.goto(PAGE.as_uri())
    yield opened
    assert complaints == [PAGE.as_uri()]
    assert opened.evaluate("document.documentElement.scrollWidth") == width
    context.close()


def bits(page: Any, kind: str) -> set[int]:
    """The positions of the cells of a kind."""
    cells = page.locator(f".lab-bits rect.{kind}")
    return set(cells.evaluate_all("cells => cells.map(cell => Number(cell.dataset.bit))"))


def shown_bytes(page: Any) -> bytes:
    return bytes.fromhex(page.locator(".lab-bytes").text_content())


def add(page: Any, key: str) -> None:
    page.get_by_label("Add a key").fill(key)
    page.keyboard.press("Enter")


def ask(page: Any, key: str) -> str:
    page.get_by_label("Ask for a key").fill(key)
    verdict: str = page.locator(".lab-answer").text_content()
    return verdict


def expect_keys(page: Any, number: int) -> None:
    page.get_by_label("Keys expected, n").fill(str(number))


def test_bits_are_those_of_the_policy(page: Any) -> None:
    rng = random.Random(1)
    page.get_by_role("button", name="Start over").click()
    keys = [f"key {rng.randrange(10**6)}" for _ in range(20)] + ["é☃", "<b>", "a" * 300]
    expect_keys(page, len(keys))
    for key in keys:
        add(page, key)
    for bits_per_key in (1, 10, 20):
        page.get_by_label("Bits a key").last.fill(str(bits_per_key))
        policy = BloomFilterPolicy(bits_per_key)
        data = policy.create_filter([key.encode() for key in keys])
        assert shown_bytes(page) == data
        ones = {at for at in range(8 * len(data) - 8) if data[at >> 3] >> (at & 7) & 1}
        assert bits(page, "lab-set") == ones
        for key in [*keys[:5], *(f"other {number}" for number in range(40))]:
            verdict = ask(page, key)
            answer = policy.key_may_match(key.encode(), data)
            assert verdict.startswith("Maybe" if answer else "No: ")
            assert ("false positive" in verdict) == (answer and key not in keys)
            looked = policy.probed_positions(policy.key_hash(key.encode()), data)
            assert set(looked) <= bits(page, "lab-probed")
            assert bits(page, "lab-probed") - ones == bits(page, "lab-probed.lab-clear")
            if not answer:
                assert f"bit {looked[-1]} is 0" in verdict


def test_a_filter_of_a_table(page: Any) -> None:
    """The keys and the size of a filter that exists: the lab shows its very bits."""
    keys = [b"\xff\xfe", b"\x00", "é".encode(), *(b"row %d" % number for number in range(30))]
    data = BloomFilterPolicy(12).create_filter(keys)
    page.evaluate(
        """([keys, bits, probes]) => mountLab(document.getElementById("lab"), {
          keys: keys.map((key) => Uint8Array.from(key)), expected: keys.length, bits, probes })""",
        [[list(key) for key in keys], 8 * len(data) - 8, data[-1]],
    )
    assert shown_bytes(page) == data
    first = page.locator(".lab-keys button").first
    assert first.text_content() == "\\xff\\xfe"
    first.click()
    assert "“\\xff\\xfe” was added." in page.locator(".lab-answer").text_content()


def test_a_bit_tells_which_keys_set_it(page: Any) -> None:
    page.get_by_role("button", name="Start over").click()
    add(page, "ant")
    first = min(bits(page, "lab-set"))
    page.locator(f"[data-bit='{first}']").click()
    note = page.locator(".lab-stage + .lab-note")
    assert note.text_content() == f"Bit {first}, in byte {first // 8}, is 1, set by “ant”."
    page.locator(f"[data-bit='{min(bits(page, 'lab-clear'))}']").click()
    assert note.text_content().endswith("is 0: no key set it.")


def test_it_works_by_keyboard(page: Any) -> None:
    page.get_by_role("button", name="Start over").focus()
    page.keyboard.press("Enter")
    assert page.locator(".lab-keys button").count() == 0
    page.get_by_label("Add a key").focus()
    page.keyboard.type("zebra")
    page.keyboard.press("Enter")
    assert page.locator(".lab-keys").text_content() == "zebra"
    page.get_by_label("Ask for a key").focus()
    page.keyboard.type("!")
    assert "zebra!" in page.locator(".lab-answer").text_content()
    grid = page.locator(".lab-bits")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert grid.evaluate("grid => grid === document.activeElement")
    note = page.locator(".lab-stage + .lab-note")
    for press, position in (("ArrowRight", 0), ("ArrowRight", 1), ("End", 319), ("Home", 0)):
        page.keyboard.press(press)
        assert note.text_content().startswith(f"Bit {position},")
    page.keyboard.press("ArrowUp")  # nothing is above
    assert note.text_content().startswith("Bit 0,")


def test_sizes_follow(page: Any) -> None:
    size = page.locator("fieldset .lab-note")
    expect_keys(page, 100)
    assert "m = 1,000 bits, 125 bytes; k = 6." in size.text_content()
    page.get_by_label("a rate", exact=True).check()
    page.get_by_label("Rate wanted").fill("0.1")
    policy = BloomFilterPolicy.for_false_positive_rate(0.001)
    while expected_rate(100, -(-policy.bits_per_key * 100 // 8) * 8, policy.probes) > 0.001:
        policy = policy.with_bits(policy.bits_per_key + 1)  # 100 keys are few
    wanted = f"m = {8 * -(-policy.bits_per_key * 100 // 8):,} bits"
    assert wanted in size.text_content()
    assert f"k = {policy.probes}." in size.text_content()
    page.get_by_label("its bits").check()
    page.get_by_label("Bits, m").fill("800")
    assert "m = 800 bits, 100 bytes; k = 5." in size.text_content()
    page.get_by_label("k follows").uncheck()
    page.get_by_label("Probes, k").fill("1")
    assert "k = 1." in size.text_content()
    probes = page.get_by_label("Probes, k")
    probes.fill("99")  # out of range: the last one stays
    assert "k = 1." in size.text_content()
    allowed = page.locator(".lab-allowed:not(:empty)")
    assert allowed.all_text_contents() == ["Allowed: 1 to 30."]
    probes.blur()
    assert allowed.all_text_contents() == ["Allowed: 1 to 30."]
    assert probes.input_value() == "1"
    probes.fill("2")
    assert allowed.count() == 0
    assert "k = 2." in size.text_content()
    probes.fill("1")
    page.get_by_label("Bits, m").fill("8")
    assert allowed.all_text_contents() == ["Allowed: 64 to 2,048."]
    page.get_by_label("Bits, m").fill("800")
    page.get_by_label("Keys expected, n").focus()
    assert page.get_by_label("Probes, k").input_value() == "1"


def test_curves_grow_with_the_keys(page: Any) -> None:
    dots = page.locator(".lab-curves figure").first.locator("circle")
    before = dots.count()
    page.get_by_role("button", name="Add 10").click()
    assert dots.count() == before + 10
    for _ in range(50):
        page.get_by_role("button", name="Add 10").click()
    assert 50 < dots.count() < 70
    figures = page.locator(".lab-figures").text_content()
    assert "keys added500" in figures
    assert re.search(r"absent keys that pass\d,\d{3} of 5,000", figures)


def test_hostile_keys_are_shown_escaped_and_cut(page: Any) -> None:
    add(page, "<img src=x onerror=alert(1)>")
    add(page, "\u202e\u0007" + "x" * 100_000)
    assert page.locator(".lab img").count() == 0
    last = page.locator(".lab-keys li").last.text_content()
    assert last.startswith("\\u202e\\u0007xx")
    assert last.endswith("x… (100,002 characters)")

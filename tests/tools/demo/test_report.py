"""The report of the demo on a terminal."""

from __future__ import annotations

import io
import re

import pytest
from demos import LINES, measurement, printed
from rich.console import Console

from lsmkv.tools.demo import command
from lsmkv.tools.demo.reading import headline
from lsmkv.tools.demo.report import print_report, spread, table
from lsmkv.tools.demo.run import Outcome, Plan, place, run_demo
from lsmkv.tools.sample_keys import lines_as_keys


@pytest.fixture(scope="module")
def demo() -> tuple[Plan, Outcome]:
    """The demo of 2,000 keys, of which one is too long for a line."""
    lines = [*LINES, b"9" * 200 + b"\n"]
    data = lines_as_keys(lines, "file")
    plan = Plan(data, command.DEFAULT_LAYOUTS, 1000, 1, None)
    with place(plan) as directory:
        return plan, run_demo(plan, directory)


def test_the_spread_of_the_times_is_printed(demo: tuple[Plan, Outcome]) -> None:
    text = " ".join(printed(*demo, 80).split())
    assert text.count("µs: a store's slowest round took up to ") == 1  # one table of stores
    assert "the stores take turns" in text
    assert "took up to 1.50 times as long" in spread([measurement("off")])


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_report_fits_the_terminal(demo: tuple[Plan, Outcome], width: int) -> None:
    lines = printed(*demo, width).splitlines()
    assert max(map(len, lines)) <= min(max(width, 50), 80)
    assert not any(re.match(r" *([KM]i)?B\b", line) for line in lines)  # a unit without a figure


def test_the_headline_has_the_factor_and_the_price() -> None:
    off = measurement("off", blocks=2500)
    block = measurement("block", blocks=25, asked=2500, positives=25, predicted=0.011, filters=1260)
    assert headline([off, block], 1000, 0, 10) == (
        "With a filter, a Get of an absent key reads 100 times fewer blocks: 0.025 instead of"
        " 2.500, for 10.1 bits a key."
    )
    assert headline([off, block], 1000, 1, 10) == "1 of 10 answers were WRONG."
    assert headline([off], 1000, 0, 10).startswith("Without filters,")
    none = measurement("block", blocks=0, asked=2500, predicted=0.011, filters=1260)
    assert headline([off, none], 1000, 0, 10).startswith("The filters answered")


@pytest.mark.parametrize("width", [60, 80])
def test_the_three_findings_come_first(demo: tuple[Plan, Outcome], width: int) -> None:
    title, *lines = printed(*demo, width).split("\n\n")[0].splitlines()
    assert title == "lsmkv demo: what a filter saves"
    assert re.fullmatch(
        r"1\. The filters answered 9\d\.\d% of the Gets of absent keys without reading a block:"
        r" 0\.0\d\d blocks a Get instead of (0\.9\d\d|1\.000)\."
        r" 2\. A Get of an existing key read 1\.000 blocks with and without them: one of them is"
        r" the block that holds it\."
        r" 3\. The filters cost 10\.\d bits a key: [\d.]+ KiB beside tables of [\d.]+ KiB\.",
        " ".join(line.strip() for line in lines),
    )


@pytest.mark.parametrize(("encoding", "mark"), [("utf-8", "█"), ("ascii", "#")])
def test_the_picture_at_the_end_has_bars_that_the_encoding_can_show(
    demo: tuple[Plan, Outcome], encoding: str, mark: str
) -> None:
    text = printed(*demo, 60, encoding)
    title, *lines = text.split("\n\n")[-1].splitlines()
    assert title == "Data blocks read per Get, as loaded"
    bars = [line for line in lines if "." in line]
    high = [float(bar.split()[-2]) > 0.9 for bar in bars]
    assert high == [True, False, False, False, False] + [True] * 5
    assert max(bar.count(mark) for bar in bars) == 32
    assert bars[1].split()[-1] in ("▍", "▎", "▏", "#")  # small, and visible
    assert text.isascii() == (encoding == "ascii")


def test_the_colors_tell_what_filters_save(demo: tuple[Plan, Outcome]) -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, color_system="standard")
    print_report(console, *demo)
    picture = out.getvalue().split("\n\n")[-1]
    bars = [line for line in picture.splitlines() if line.startswith("    ")]
    yellow, green = "\x1b[33m", "\x1b[32m"
    assert [yellow in bar for bar in bars] == [True, False, False, False, False] * 2
    assert [green in bar for bar in bars] == [False, True, True, True, True] * 2
    plain = printed(*demo, 80)
    assert "\x1b" not in plain
    assert re.sub("\x1b\\[[\\d;]*m", "", out.getvalue()) == plain


def test_the_table_that_does_not_fit_is_two_tables() -> None:
    off = measurement("off", blocks=2500)
    block = measurement("block", blocks=25, asked=2500, positives=25, predicted=0.011, filters=1260)
    lines = [line.plain for line in table([off, block], 1000, 59)]
    assert max(map(len, lines)) <= 59
    assert lines[-1].split() == ["per", "2", "KiB", "absent", "1.00%", "1.10%", "0.84%", "10.08"]
    assert lines[-5] == ""
    assert "" not in [line.plain for line in table([off], 1000, 59)]


def test_the_table_of_costs_and_false_positives() -> None:
    off = measurement("off", blocks=2500)
    asked = {"asked": 2500, "positives": 25, "blocks": 25}
    block = measurement("block", **asked, predicted=0.011, filters=1260)
    fuse = measurement("fuse", **asked, predicted=0.004, filters=1200)
    *_, exists, absent, kept, lost, _, fused = [
        line.plain for line in table([off, block, fuse], 1000, 79)
    ]
    assert exists.split() == ["filters", "off", "exists", "1.000", "2,000", "-", "10.0"]
    assert absent.split() == ["absent", "2.500", "5,000", "-", "5.0"]
    assert kept.split() == ["per", "2", "KiB", "exists", "1.000", "2,000", "2.50", "10.0"]
    costs = ["absent", "0.025", "50", "2.50", "5.0"]
    assert lost.split() == [*costs, "1.00%", "1.10%", "0.84%", "10.08"]
    assert fused.split() == [*costs, "1.00%", "0.40%", "0.39%", "9.60"]

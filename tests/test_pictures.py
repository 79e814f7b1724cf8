"""README.md's pictures say what was measured, and its speeds are docs/performance.md's."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest
from documents import ROOT, SVG, load_script, svg_texts

DOCS = ROOT / "docs"
PICTURES = DOCS / "pictures"


@pytest.fixture(autouse=True)
def _pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script imports its neighbor as a program started there does."""
    monkeypatch.syspath_prepend(str(PICTURES))


def script(name: str) -> ModuleType:
    return load_script(PICTURES / f"{name}.py")


def readme(block: str) -> str:
    page = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    found = re.search(rf"(?s)<!-- {block} -->\n(.*?)<!-- end {block} -->", page)
    assert found is not None
    return found[1]


def bars(svg: str, color: str) -> list[float]:
    return [
        float(node.attrib["width"])
        for node in ElementTree.fromstring(svg).iter(f"{SVG}rect")
        if node.attrib["class"] == color and node.attrib["width"] != node.attrib["height"]
    ]


def demo(off: float, block: float, table: float, fuse: float) -> dict[str, Any]:
    """What ``lsmkv demo --json`` prints, as far as it is drawn; keys that exist take one more."""

    def one(layout: str, blocks: float) -> dict[str, Any]:
        return {
            "layout": layout,
            "tables_per_level": {"0": 2, "1": 1},
            "filter_bytes": 160_000,
            "absent": {"gets": 5000, "blocks_per_get": blocks},
            "present": {"gets": 5000, "blocks_per_get": blocks + 1},
        }

    measured = [one("off", off), one("block", block), one("table", table), one("fuse", fuse)]
    return {"keys": 138552, "bits_per_key": 10, "as_loaded": measured}


def test_bars_of_the_filters_are_as_long_as_the_figures() -> None:
    svg = script("filters").draw(demo(3.0, 0.25, 1.0, 0.125))
    assert "138,552 Unicode names in 3 tables, 5,000 Gets of either kind" in svg_texts(svg)
    assert {"3.00", "0.25", "1.00", "0.12", "4.00", "1.25", "2.00", "1.12"} <= set(svg_texts(svg))
    assert "10 bits a key, fuse 9.2; no block cache. Made by lsmkv demo." in svg_texts(svg)
    lengths = bars(svg, "weak") + bars(svg, "strong")
    longest = max(lengths)
    shares = [length / longest for length in lengths]
    filtered = [0.25, 1, 0.125, 1.25, 2, 1.125]
    assert shares == pytest.approx([3 / 4, 1, *(one / 4 for one in filtered)], abs=0.01)


def test_the_picture_of_filters_says_what_its_description_says() -> None:
    svg = (PICTURES / "filters.svg").read_text(encoding="utf-8")
    described = re.search(r"<desc[^>]*>(.*)</desc>", svg)
    assert described is not None
    figures = re.findall(r"\d\.\d+", described[1])
    assert len(figures) == 8
    assert [word for word in svg_texts(svg) if re.fullmatch(r"\d\.\d+", word)] == figures
    off, block = figures[:2]
    assert f"{block} blocks a Get instead of {off}." in readme("one get"), "run make pictures"


def test_the_moving_picture_is_a_get_of_the_engine() -> None:
    svg, description = script("one_get").drawn()
    kept = (PICTURES / "one_get.svg").read_text(encoding="utf-8")
    # Bytes of compressed blocks are those of another codec's release, perhaps.
    shown, drawn = (re.sub(r"[\d.,]+", "#", one) for one in (kept, svg))
    assert shown == drawn, "run make pictures"
    assert svg.count("filter: no") == svg.count("reads a block: not there") == 3
    assert "prefers-reduced-motion" in svg
    assert description[:60] in readme("one get")


def test_readme_has_rows_of_the_page_about_processes() -> None:
    page = (DOCS / "guides" / "processes.md").read_text(encoding="utf-8")
    readme_lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    (first,) = [at for at, line in enumerate(readme_lines) if line.startswith("|  | lsmkv |")]
    rows = readme_lines[first : first + 5]
    assert "puts by 2" in rows[2]
    assert "Gets by 4" in rows[4]
    assert not set(rows) - set(page.splitlines()), "docs/guides/processes.md was measured again"


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 130


def test_the_demo_prints_what_the_picture_of_filters_needs(tmp_path: Path) -> None:
    names = tmp_path / "names.txt"
    names.write_text("".join(f"name {number}\n" for number in range(2000)), encoding="utf-8")
    command = [sys.executable, "-m", "lsmkv", "demo", "--json", "--lookups", "100"]
    done = subprocess.run([*command, "--keys", str(names)], capture_output=True, check=True)
    svg = script("filters").draw(json.loads(done.stdout))
    assert len(bars(svg, "weak")) == 2
    assert len(bars(svg, "strong")) == 6


def test_readme_states_the_speed_that_the_page_of_figures_does() -> None:
    speed = script("speed")
    found = speed.speeds((DOCS / "performance.md").read_text(encoding="utf-8"))
    assert len(found) == len(speed.ROWS)
    assert readme("speed") == speed.markdown(found), "run make pictures"
    assert (PICTURES / "speed.svg").read_text(encoding="utf-8") == speed.draw(found)


def test_the_picture_of_top_is_one_of_a_live_store() -> None:
    svg = (PICTURES / "top.svg").read_text(encoding="utf-8")
    assert svg == script("top").tidied(svg)
    assert "url(http" not in svg
    shown = " ".join(svg_texts(svg)).replace("\xa0", " ")
    for word in ("inventory", "Operations", "Hits", "Filters", "Written", "Background", "Levels"):
        assert word in shown
    assert re.search(r"[1-9][\d,]*/s", shown)
    assert re.search(r"[1-9][\d.]* us", shown)


def test_the_picture_of_explain_is_up_to_date() -> None:
    svg = (PICTURES / "explain.svg").read_text(encoding="utf-8")
    assert "url(http" not in svg
    # Bytes of compressed blocks are those of another codec's release, perhaps.
    shown, drawn = (re.sub(r"[\d.,]+", "#", " ".join(svg_texts(one))) for one in (svg, explained()))
    assert shown == drawn, "run make pictures"
    for word in ("saved", "wasted", "false", "positive", "without", "filters"):
        assert word in shown.replace("\xa0", " ")


def explained() -> str:
    picture: str = script("explain").drawn()
    return picture


def test_a_page_without_the_table_is_refused() -> None:
    with pytest.raises(ValueError, match="no table"):
        script("speed").speeds("# Performance\n")


def test_a_block_that_the_page_lacks_is_refused() -> None:
    drawing = script("drawing")
    page = "a\n<!-- speed -->\nold\n<!-- end speed -->\nb\n"
    assert drawing.replace_block(page, "speed", "new\n") == page.replace("old", "new")
    with pytest.raises(ValueError, match="0 blocks"):
        drawing.replace_block(page, "filters", "new\n")


# The curves of docs/filters.md


def test_the_page_of_filters_shows_the_curves() -> None:
    page = (DOCS / "filters.md").read_text(encoding="utf-8")
    for name, axis in (
        ("rate", "bits a key"),
        ("fill", "keys in a filter of 1,000 bits with 6 probes"),
        ("replay", "data blocks read per Get"),
    ):
        assert f"](pictures/{name}.svg)" in page
        assert axis in svg_texts((PICTURES / f"{name}.svg").read_text(encoding="utf-8"))


def test_the_curves_are_measured_the_same_again() -> None:
    rate = script("rate")
    assert rate.rate(35, 5, 2000) == rate.rate(35, 5, 2000) == pytest.approx(0.094, abs=0.03)
    points = rate.filling()
    assert points == rate.filling()
    assert points[9] == (100, pytest.approx(0.451, abs=0.02))


def test_the_reads_that_are_drawn() -> None:
    reads = script("rate").reads(600, 0x3000)
    assert next(iter(reads)) == "none"
    used, wasted = reads["none"]
    assert used == 0.5
    assert wasted == pytest.approx(2, abs=0.1)  # of three tables, a present key is in the second
    assert reads["block:20"] == (0.5, pytest.approx(0, abs=0.01))


def test_the_pictures_of_the_lab_are_small() -> None:
    page = (DOCS / "filters.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"pictures/lab/[\w-]+\.png", page))
    assert shown == {f"pictures/lab/{at.name}" for at in (PICTURES / "lab").iterdir()}
    assert len(shown) == 4
    assert all(at.stat().st_size < 150_000 for at in (PICTURES / "lab").iterdir())


def test_the_drawings_of_how_it_works_are_those_that_the_script_makes() -> None:
    made = script("how").PICTURES
    assert sorted(made) == sorted(path.stem for path in (PICTURES / "how").glob("*.svg"))
    for name, draw in made.items():
        assert (PICTURES / "how" / f"{name}.svg").read_text(encoding="utf-8") == draw()
        page = {"handing_over": "processes", "recovery": "durability"}.get(name, name)
        text = (DOCS / "how" / f"{page}.md").read_text(encoding="utf-8")
        assert f"](../pictures/how/{name}.svg)" in text


def test_the_drawing_of_shard_sets_is_the_one_that_the_script_makes() -> None:
    drawn = script("scale").draw()
    assert (PICTURES / "scale.svg").read_text(encoding="utf-8") == drawn


def report_of_chaos(owner: str, **counted: Any) -> dict[str, Any]:
    """What ``chaos.py --report`` writes."""
    events = [("kill", 1.0), ("kill of the owner", 2.0), ("stop", 3.0), ("reload", 4.0)]
    found = {"writes": 1000, "lost": 0, "stale": 0, "errors": {}, "longest": 2.5}
    waits = [(2.0, 0.3), (2.0, 0.2), (90.0, 2.5)]
    times = {"events": events, "waits": waits}
    return {"seconds": 100.0, "owner": owner, **found, **times, **counted}


def test_the_picture_of_chaos_shows_kills_of_owners_and_waits() -> None:
    chaos = script("chaos")
    svg, words = chaos.draw([report_of_chaos("worker"), report_of_chaos("process")])
    assert "4 kills, 0 writes lost" in svg_texts(svg)[0]
    lines = [one.attrib["class"] for one in ElementTree.fromstring(svg).iter(f"{SVG}line")]
    assert lines == ["killed"] * 2
    assert len(bars(svg, "strong")) == 4  # two spans of time in each part
    assert "2,000 writes" in words
    assert "4 kills (2 of the owner), 2 stops of 3 s, 2 reloads and 0 deploys" in words.replace(
        "\n", " "
    )


@pytest.mark.parametrize("fault", [{"lost": 1}, {"stale": 1}, {"errors": {"IOError": 1}}])
def test_there_is_no_picture_of_a_run_with_a_fault(fault: dict[str, Any]) -> None:
    with pytest.raises(SystemExit, match="there is no picture"):
        script("chaos").draw([report_of_chaos("worker", **fault)])


def test_the_picture_of_chaos_is_the_one_that_readme_tells_of() -> None:
    svg = (PICTURES / "chaos.svg").read_text(encoding="utf-8")
    told = ElementTree.fromstring(svg).find(f"{SVG}desc")
    assert told is not None
    assert told.text in readme("chaos").replace("\n", " ")

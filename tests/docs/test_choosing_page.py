"""docs/guides/choosing.md: its table has what its program measures, and bears out what it says."""

from __future__ import annotations

import re

import page_parts
from documents import ROOT, section

PAGE = (ROOT / "docs" / "guides" / "choosing.md").read_text(encoding="utf-8")
PROGRAM = (ROOT / "docs" / "performance" / "make" / "choosing.py").read_text(encoding="utf-8")
NAMES = ["lsmkv", "plyvel", "rocksdict", "lmdb", "sqlite3", "diskcache", "redis"]


def figures() -> dict[str, dict[str, float]]:
    """The measured table: the figures of a row by the engine."""
    text = PAGE.partition(page_parts.BEGIN)[2].partition(page_parts.END)[0]
    head, _, *lines = [
        [cell.strip(" *") for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    assert head[1:] == NAMES
    return {
        row: {
            name: float(cell.replace(",", ""))
            for name, cell in zip(NAMES, cells, strict=True)
            if cell != "-"
        }
        for row, *cells in lines
    }


def row(table: dict[str, dict[str, float]], begin: str) -> dict[str, float]:
    """The only row whose title begins so."""
    (found,) = [figures for title, figures in table.items() if title.startswith(begin)]
    return found


def test_the_table_has_every_row_and_every_store() -> None:
    table = figures()
    titles = re.findall(r'^    "\w+": f?"([^"{]+)', PROGRAM, re.MULTILINE)
    titles += re.findall(r'^        "(?:import|memory|disk)": "([^"]+)"', PROGRAM, re.MULTILINE)
    assert len(titles) == 12
    for title in titles:
        assert row(table, title).keys() >= {"lsmkv", "lmdb", "sqlite3"}
    assert "lsmkv 0." in PAGE
    assert "compiled;" in " ".join(PAGE.split())


def test_the_best_of_each_row_is_in_bold() -> None:
    for line in PAGE.splitlines():
        if line.startswith("|") and re.search(r"(?:[µm]s|MiB) \|", line):
            cells = [cell.strip() for cell in line.strip("|").split("|")][1:]
            numbers = [float(cell.strip("*").replace(",", "")) for cell in cells if cell != "-"]
            bold = [float(cell.strip("*").replace(",", "")) for cell in cells if "**" in cell]
            assert set(bold) == {min(numbers)}


def test_it_says_who_reads_faster() -> None:
    """Where lsmkv is behind, the page says so; and it is behind there."""
    table = figures()
    large = row(table, "Get from ")
    assert large["lmdb"] < large["rocksdict"] < large["lsmkv"]
    assert "there, lmdb and rocksdict read faster, and lmdb by far" in " ".join(PAGE.split())
    opening = row(table, "open")
    assert max(opening["lmdb"], opening["sqlite3"]) < opening["lsmkv"]
    ranges = row(table, "seek, then ten entries")
    assert 1.3 < ranges["lsmkv"] / ranges["plyvel"] < 1.7
    assert "half as long again as plyvel's" in PAGE
    beside = row(table, "Get beside a writing thread")
    assert sorted(beside, key=lambda name: beside[name])[-2:] == ["lsmkv", "sqlite3"]
    assert "only sqlite3's Gets take longer" in PAGE
    imports = row(table, "import")
    assert max(imports["lmdb"], imports["sqlite3"]) < imports["lsmkv"]


def test_what_it_says_for_lsmkv_is_in_the_table() -> None:
    table = figures()
    puts = row(table, "put, random order")
    assert puts["lsmkv"] == min(puts.values())
    scans = row(table, "scan")
    assert scans["lsmkv"] <= min(scans[name] for name in ("plyvel", "rocksdict", "sqlite3"))


def test_pages_where_people_choose_lead_here() -> None:
    for page in ("README.md", "docs/performance.md", "docs/guides/README.md", "mkdocs.yml"):
        assert "choosing.md" in (ROOT / page).read_text(encoding="utf-8")
    assert "Where lsmkv is not the right choice" in PAGE
    assert len(re.findall(r"(?m)^- \*\*", section(PAGE, "Where lsmkv is not the right choice"))) > 5

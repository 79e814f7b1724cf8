"""docs/performance.md is made of what was measured, and CONTRIBUTING.md hides no missed target."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import page
import plots
import pytest
import rows
import suite
from typer.testing import CliRunner

import lsmkv
from lsmkv.tools.app import app
from lsmkv.tools.bench.measuring import Histogram
from lsmkv.tools.bench.settings import Settings, Shape
from lsmkv.tools.bench.workloads import WORKLOADS

ROOT = Path(__file__).parents[2]
RATIO_ROW = r"(?m)^\| \w+ \| (\S+) \| [\d.,]+ \| [\d.,]+ \| ([\d.,]+ \([\d.,-]+\)) \|$"
MACHINE = {
    "system": "Linux",
    "architecture": "x86_64",
    "processor": "A Processor",
    "cores": 2,
    "memory_bytes": 8 << 30,
    "file_system": "ext4",
    "python": "CPython 3.11.7",
}


def results(
    *,
    compiled: bool = True,
    ratio: float = 1.0,
    names: tuple[str, ...] = tuple(WORKLOADS),
    **more: Any,
) -> dict[str, Any]:
    """A run in which plyvel takes ``ratio`` times as long, whatever it does."""
    spread = {"median": ratio, "low": ratio / 2, "high": ratio * 2}
    by_engine = {
        "lsmkv": {"micros": {"median": 2.0, "low": 1.0, "high": 4.0}},
        "plyvel": {"micros": {"median": 2 * ratio, "low": 1.0, "high": 9.0}, "ratio": spread},
    }
    return {
        "lsmkv": "0.1.0",
        "compiled": compiled,
        "machine": MACHINE,
        "settings": Settings(num=1000).to_dict(),
        "rounds": 3,
        "engines": {"lsmkv": {"version": "0.1.0"}, "plyvel": {"version": "1.5.1"}},
        "workloads": {name: {"ops": 1000, "engines": by_engine} for name in names},
        "studies": {},
    } | more


def study(name: str, own: dict[str, Any], peer: dict[str, Any]) -> dict[str, Any]:
    return results(names=(), studies={name: {"lsmkv": own, "plyvel": peer}})


def sustained(seconds: float, slowest: int, over: int) -> dict[str, Any]:
    histogram = Histogram.of([1000] * 900 + [slowest * 1000] * 100).to_dict()
    return {"ops": 1000, "seconds": seconds, "over_50_ms": over, "histogram": histogram}


def growth(*times: float) -> dict[str, Any]:
    points = [{"entries": 10 ** (at + 5), "micros_per_get": time} for at, time in enumerate(times)]
    return {"points": points}


def incompressible(micros: float, resident: int) -> dict[str, Any]:
    return {"entries": 1000, "micros_per_get": micros, "resident_bytes": resident}


def footprint(disk: int, compacted: int, written: int) -> dict[str, Any]:
    return {
        "entries": 1000,
        "disk_bytes": disk,
        "disk_bytes_compacted": compacted,
        "table_bytes_written": written,
    }


@pytest.fixture
def no_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ratio_plot", "growth_plot", "latency_plot"):
        monkeypatch.setattr(plots, name, lambda *_: b"<svg/>")


def rows_of(text: str) -> dict[str, list[str]]:
    cells = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {row[0]: row[1:] for row in cells}


@pytest.mark.usefixtures("no_plots")
def test_the_page_says_who_is_ahead() -> None:
    text, figures = page.make_page({"entries": results(ratio=1.3)}, {}, "performance")
    found = rows_of(text)
    assert found["open"] == ["(lsmkv)", "2.000", "2.600", "1.30 (0.65-2.60)"]
    for ratio, first in ((2.5, "lsmkv"), (0.4, "plyvel")):
        other, _ = page.make_page({"entries": results(ratio=ratio)}, {}, "performance")
        assert rows_of(other)["open"][0] == first
    assert f"faster than LevelDB in {len(WORKLOADS)} of {len(WORKLOADS)} workloads." in text
    assert figures == {"compiled.svg": b"<svg/>"}
    assert "![Ratios, compiled](performance/compiled.svg)" in text
    assert "Pure Python" not in text
    for word in ("target", "reached", "bar |", ">="):
        assert word not in text


def test_a_missed_target_is_bold() -> None:
    (table,) = page.target_tables({"entries": results(ratio=1.3)}, {})
    found = rows_of("\n".join(table))
    assert found["what"] == ["target", "compiled, 1,000 entries"]
    assert found["open"] == [">= 1.00", "1.30"]
    assert found["fillbatch"] == [">= 1.60", "**1.30**"]
    assert "seekrandom" not in found
    for name, target in rows.COMPILED.items():
        assert found[name][1] == ("1.30" if target <= 1.3 else "**1.30**")


def test_pure_mode_has_its_own_targets() -> None:
    runs = {"entries": results(compiled=False, ratio=0.3)}
    runs["threads"] = results(
        compiled=False, ratio=0.5, names=("fillsync",), settings=Settings(threads=8).to_dict()
    )
    (table,) = page.target_tables({}, runs)
    found = rows_of("\n".join(table))
    assert found["readseq"] == [">= 0.20", "0.30", "-"]
    assert found["fillsync"] == [">= 0.40", "**0.30**", "0.50"]


def test_targets_go_where_a_page_has_their_place() -> None:
    text = "# Page\n\n<!-- targets -->\nold\n<!-- end targets -->\n\nEnd.\n"
    once = page.with_targets(text, [["| a |"], ["| b |"]])
    expected = "<!-- targets -->\n\n| a |\n\n| b |\n\n<!-- end targets -->"
    assert once == f"# Page\n\n{expected}\n\nEnd.\n"
    assert page.with_targets(once, [["| a |"], ["| b |"]]) == once
    for wrong in ("# Page\n", text + text):
        with pytest.raises(ValueError, match="one place"):
            page.with_targets(wrong, [])


def test_the_project_shows_who_is_ahead_on_the_page_and_its_targets_in_contributing() -> None:
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    compared = 0
    for first, shown in re.findall(RATIO_ROW, text):
        median, low, high = map(float, re.findall(r"[\d.]+", shown.replace(",", "")))
        assert first == rows.ahead_by_ratio(median, low, high)
        compared += 1
    assert compared > 60
    for words in ("**Who is ahead**: compiled, ", "| workload | ahead |"):
        assert words in text
    for word in ("target", "reached", " bar ", ">="):
        assert word not in text
    first = re.search(r"\*\*Who is ahead\*\*: compiled, .*? in (\d+ of \d+) workloads", text)
    assert first is not None
    table = text.partition("### 200,000 entries, 5 rounds: compiled")[2].partition("###")[0]
    winners = [winner.strip("()") for winner, _ in re.findall(RATIO_ROW, table)]
    assert first[1] == f"{winners.count('lsmkv')} of {len(winners)}"
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"faster than LevelDB's C++ through plyvel in {first[1]} benchmarks." in readme
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    page.with_targets(contributing, [])
    missed = re.search(r"^\| import, milliseconds \|[^|]*\| ([\d.]+) ", text, re.MULTILINE)
    assert missed is not None
    for target in ("| readmissing | >= 2.50 |", "| readmissing | >= 0.20 |", f"**{missed[1]}**"):
        assert target in contributing


@pytest.mark.parametrize(
    ("name", "own", "peer", "reached"),
    [
        ("sustained", sustained(2, 290, 0), sustained(3.1, 10, 5), [True, True, True]),
        ("sustained", sustained(2, 310, 1), sustained(2.9, 10, 0), [False, False, False]),
        ("growth", growth(1, 2, 3), growth(2, 4, 6.1), [True]),
        ("growth", growth(1, 2, 3.1), growth(2, 4, 6), [False]),
        ("incompressible", incompressible(5, 9), incompressible(6, 10), [True, True]),
        ("incompressible", incompressible(5, 11), incompressible(5.9, 10), [False, False]),
        ("footprint", footprint(102, 98, 105), footprint(100, 100, 100), [True, True, True]),
        ("footprint", footprint(103, 104, 106), footprint(100, 100, 100), [False] * 3),
        ("footprint", footprint(100, 100, 0), footprint(100, 100, 0), [True, True, None]),
        ("absent", {"gets": 9, "bytes_written": 0}, {"gets": 9, "bytes_written": 7}, [True]),
        ("absent", {"gets": 9, "bytes_written": 1}, {"gets": 9, "bytes_written": 7}, [False]),
        ("absent", {"gets": 9, "bytes_written": None}, {"skipped": "no"}, [None]),
        ("memory", {"peak": 15, "entries": 1}, {"peak": 10, "entries": 1}, [True]),
        ("memory", {"peak": 16, "entries": 1}, {"peak": 10, "entries": 1}, [False]),
        ("import", {"milliseconds": 34.9}, {"milliseconds": 5.0}, [True]),
        ("import", {"milliseconds": 35.0}, {"milliseconds": 5.0}, [False]),
    ],
)
def test_targets_of_studies(
    name: str, own: dict[str, Any], peer: dict[str, Any], reached: list[bool | None]
) -> None:
    found = rows.study_rows({name: {"lsmkv": own, "plyvel": peer}})
    assert [row.reached for row in found] == reached
    assert all(row.target for row in found)


def test_a_study_without_a_peer_has_no_verdict_that_needs_one() -> None:
    memory = {"lsmkv": {"peak": 5, "entries": 1}}
    alone = rows.study_rows({"growth": {"lsmkv": growth(1, 2)}, "memory": memory})
    assert [row.reached for row in alone] == [None, None]
    assert [row.peer for row in alone] == ["-", "-"]
    assert [row.ahead for row in alone] == ["", ""]


def test_less_is_better_in_a_study() -> None:
    own, peer = sustained(2, 900, 3), sustained(1, 1100, 3)
    found = rows.study_rows({"sustained": {"lsmkv": own, "plyvel": peer}})
    assert [row.ahead for row in found] == ["plyvel", "lsmkv", "even"]


@pytest.mark.usefixtures("no_plots")
def test_the_whole_page() -> None:
    peers = results()
    peers["engines"] |= {"rocksdict": {"missing": True}, "dbm": {"version": "dumb"}}
    for workload in peers["workloads"].values():
        workload["engines"] = workload["engines"] | {"dbm": {"skipped": "it cannot"}}
    cached = results(names=("readrandom",), settings=Settings(num=1000, cache_size=5).to_dict())
    threads = results(names=("fillsync",), settings=Settings(num=1000, threads=8).to_dict())
    latencies = results(names=("readrandom",))
    for figures in latencies["workloads"]["readrandom"]["engines"].values():
        figures["histogram"] = sustained(1, 70, 0)["histogram"]
    written = Settings(num=1000, shape=Shape.WRITTEN).to_dict()
    compiled = {
        "entries": results(),
        "threads": threads,
        "cached": cached,
        "defaults": results(settings=Settings(num=1000, own_defaults=True).to_dict()),
        "latencies": latencies,
        "peers": peers,
        "written": results(names=suite.READS, settings=written),
        "sustained": study("sustained", sustained(2, 5, 0), sustained(1, 5, 0)),
        "growth": study("growth", growth(1, 2), growth(1, 3)),
        "import": study("import", {"milliseconds": 49.0}, {"milliseconds": 5.0}),
    }
    pure = {"entries": results(compiled=False)}
    text, figures = page.make_page(compiled, pure, "performance")
    assert set(figures) == {"compiled.svg", "pure.svg", "latency.svg", "growth.svg"}
    for name in figures:
        assert f"(performance/{name})" in text
    for words in (
        "A Processor, 2 cores, 8 GiB of memory, Linux on x86_64, ext4, CPython 3.11.7.",
        "### 1,000 entries, 3 rounds: compiled",
        "### 1,000 entries, 3 rounds: pure",
        "### 8 threads, 1,000 entries",
        "### All cached, 1,000 entries",
        "### Each with its own defaults, 1,000 entries, 3 rounds: compiled\n\nIn the other tables",
        "$ lsmkv bench --against plyvel --num 1000 --own-defaults --rounds 3",
        "Not installed where this was measured: rocksdict.",
        "| fillseq | lsmkv | 2.000 | 2.000, 1.00 (0.50-2.00) | - |",
        f"of all engines, the fastest is lsmkv in {len(WORKLOADS)}.",
        "| workload | engine | p50 | p99 | p99.9 | slowest |",
        "| readrandom | plyvel | 1.000 | 70.00 | 70.00 | 70.00 |",
        "$ lsmkv bench --against plyvel --num 1000 --rounds 3",
        "$ lsmkv bench fillsync --against plyvel --num 1000 --threads 8 --rounds 3",
        "$ lsmkv bench readrandom --against plyvel --num 1000 --cache-size 5 --rounds 3",
        "$ lsmkv bench sustained --against plyvel --num 1000\n",
        "## Reads, by the shape of the store",
        "### As written: the last quarter in the memtable\n\n| us/op | fastest | lsmkv | plyvel |",
        "seek10 --against plyvel --num 1000 --shape written --rounds 3",
    ):
        assert words in text
    assert text.count("```") % 2 == 0
    assert (text, figures) == page.make_page(compiled, pure, "performance")


def test_commands_of_the_page_are_commands() -> None:
    """What is printed for copying parses, and names what there is."""
    arguments = page.command_of(results(names=("fillseq",), rounds=1) | {"engines": {"lsmkv": {}}})
    done = CliRunner().invoke(app, ["bench", *arguments, "--num", "50", "--json"])
    assert done.exit_code == 0
    assert list(json.loads(done.stdout)["workloads"]) == ["fillseq"]


def test_plots_are_the_same_for_the_same_figures() -> None:
    pytest.importorskip("matplotlib")
    by_engine = {"lsmkv": sustained(2, 5, 0), "plyvel": sustained(1, 9, 0)}
    sizes = {"lsmkv": growth(1, 2), "plyvel": growth(1, 3), "dbm": {"skipped": "no"}}
    for draw in (
        lambda: plots.ratio_plot(results(ratio=1.1)),
        lambda: plots.latency_plot(by_engine),
        lambda: plots.growth_plot(sizes),
    ):
        first = draw()
        assert first == draw()
        assert first.startswith(b"<?xml")
        assert b"<svg " in first
        assert b"<dc:date>" not in first
    assert b">fillseq</text>" in plots.ratio_plot(results())


def test_the_suite_leaves_what_the_page_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("plyvel")
    for name in ("ratio_plot", "growth_plot", "latency_plot"):
        monkeypatch.setattr(plots, name, lambda *_: b"<svg/>")
    small = {"num": 300, "large": 300, "sustained": 300, "growth": 300, "rounds": 1}
    suite.suite(str(tmp_path), ["threads", "cached"], **small)
    mode = "compiled" if lsmkv.COMPILED else "pure"
    assert sorted(path.name for path in (tmp_path / mode).iterdir()) == [
        "cached.json",
        "threads.json",
    ]
    (tmp_path / "targets.md").write_text("<!-- targets -->\n<!-- end targets -->\n")
    written = str(tmp_path / "performance.md"), str(tmp_path / "targets.md")
    page.page(str(tmp_path), *written)
    text = (tmp_path / "performance.md").read_text()
    assert f"### 8 threads, 300 entries, 1 round: {mode}" in text
    assert f"{mode}, 8 threads, 300 entries" in (tmp_path / "targets.md").read_text()
    (tmp_path / mode).rename(tmp_path / ("pure" if lsmkv.COMPILED else "compiled"))
    with pytest.raises(BaseException, match="2"):  # typer's Exit
        page.page(str(tmp_path), *written)


def test_runs_name_what_there_is() -> None:
    scale = suite.Scale(1000, 2000, 3000, 4000, 5000, 5)
    every = suite.runs(scale, True)
    assert tuple(every) == suite.COMPILED_RUNS
    assert set(suite.PURE_RUNS) <= set(every)
    for run in every.values():
        assert set(run.names) <= set(page.WORKLOADS) | set(page._STUDIES)
    assert set(rows.COMPILED) <= set(suite.LARGE_WORKLOADS) | {"fillsync", "readwhilewriting"}
    assert set(rows.PURE) <= set(WORKLOADS)


def test_an_unknown_run_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BaseException, match="2"):
        suite.suite(str(tmp_path), ["nothing"])
    assert "no such run: nothing" in capsys.readouterr().err


def test_no_figures_are_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BaseException, match="2"):
        page.page(str(tmp_path), str(tmp_path / "performance.md"), str(tmp_path / "targets.md"))
    assert "no figures here" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []

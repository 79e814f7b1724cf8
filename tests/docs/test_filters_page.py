"""The tables of docs/filters.md are made of what was measured, and hide no miss."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import corpora
import filters
import filters_page
import page_parts
import pytest

import lsmkv

MODE = "compiled" if lsmkv.COMPILED else "pure"
EMPTY = f"# Page\n\n{page_parts.BEGIN}\n{page_parts.END}\n\nThe end.\n"
SMALL: dict[str, int] = {"keys": 60, "run": 10, "gets": 50, "series": 6}


def setting(false_positives: int, bits: float = 9.8, **more: Any) -> dict[str, Any]:
    """What was measured of one setting, of 10,000 keys asked."""
    return {
        "loaded": 10_000,
        "tables": 1,
        "bits_a_key": bits,
        "asked": 10_000,
        "false_positives": false_positives,
        "gets": 10_000,
        "blocks_read": false_positives,
        "get_ns": 1000.0,
        "build_ns": 2000.0,
        "probe_ns": 500.0,
    } | more


def levels(uniform: int, by_level: int) -> dict[str, Any]:
    figures = {"filter_bytes": 1000, "gets": 1000, "bits": [19.0, 14.0, 9.5]}
    return {
        "uniform": figures | {"false_positives": [uniform, 0, 0]},
        "by level": figures | {"false_positives": [by_level, 0, 0]},
    }


def scans(blocks: int, prefixes: bool) -> dict[str, Any]:
    return {
        "scans": 100,
        "blocks_read": blocks,
        "filters_asked": 500 if prefixes else 0,
        "prefix_filter_bytes": 125 if prefixes else 0,
        "prefixes": 100,
    }


def figures(**more: Any) -> dict[str, Any]:
    """All figures of one mode; the bars are reached."""
    corpus = {
        "bloom, 2 KiB": setting(900, 11.2, get_ns=2000.0),
        "bloom64, table": setting(90),
        "bloom64, 2 KiB": setting(110),
        "fuse": setting(45),
    }
    return {
        "machine": {"processor": "A Processor", "python": "CPython 3.11.7"},
        "scale": {"run": 2000},
        "corpora": {"counters": corpus, "words": corpus},
        "missing": [],
        "levels": {"bloom, 2 KiB": levels(18, 10)},
        "scans": {"fuse": scans(500, False), "fuse and prefixes": scans(10, True)},
    } | more


def with_setting(name: str, changed: dict[str, Any]) -> dict[str, Any]:
    """Figures in which one corpus has other ones for a setting."""
    found = figures()
    found["corpora"]["words"] = found["corpora"]["words"] | {name: changed}
    return found


def verdicts(modes: dict[str, dict[str, Any]]) -> dict[str, str]:
    """What the table of bars says: by the beginning of each bar."""
    tables = filters_page.tables(modes)
    rows = [line[2:-2].split(" | ") for line in tables.partition("**Targets**")[2].splitlines()]
    return {row[0]: row[2] for row in rows if len(row) == 3}


def missed(modes: dict[str, dict[str, Any]]) -> list[str]:
    return [bar for bar, verdict in verdicts(modes).items() if verdict == "**no**"]


def test_bars_that_are_reached() -> None:
    found = verdicts({"pure": figures()})
    assert [verdict for bar, verdict in found.items() if bar not in ("target", "---")] == [
        "yes"
    ] * 7


@pytest.mark.parametrize(
    ("changed", "bar"),
    [
        (with_setting("fuse", setting(66)), "fuse from 10,000 keys: at most 0.45%"),
        (with_setting("fuse", setting(45, 9.91)), "fuse from 10,000 keys: at most 9.9 bits"),
        (with_setting("bloom64, table", setting(91)), "bloom64, table: at most 0.9%"),
        (with_setting("bloom64, 2 KiB", setting(111)), "bloom64, 2 KiB: at most 1.1%"),
        (figures(levels={"bloom, 2 KiB": levels(17, 10)}), "bits by level, bloom, 2 KiB"),
        (figures(scans={"fuse and prefixes": scans(11, True)}), "scan, fuse and prefixes"),
    ],
)
def test_a_bar_that_is_missed_is_shown(changed: dict[str, Any], bar: str) -> None:
    (only,) = missed({"pure": changed})
    assert only.startswith(bar)


def test_fuse_filters_that_are_slower_to_ask_than_leveldbs_are_shown() -> None:
    slow = figures()
    slow["corpora"] = {
        name: found | {"fuse": setting(45, get_ns=2001.0)}
        for name, found in slow["corpora"].items()
    }
    (only,) = missed({"compiled": slow, "pure": figures()})
    assert "compiled" in only


def test_small_tables_have_no_bars() -> None:
    found = figures()
    small = setting(500, 12.0, loaded=9_999)
    found["corpora"] = {
        name: one | {"fuse": small, "fuse, 10,000 keys": small}
        for name, one in found["corpora"].items()
    }
    assert not any("fuse from" in bar for bar in verdicts({"pure": found}))


def test_the_tables() -> None:
    tables = filters_page.tables({"pure": figures(missing=["UUIDs: none here"])})
    for words in (
        "A Processor, CPython 3.11.7",
        "10,000 counters, 10,000 words",
        "| keys | bloom, 2 KiB | bloom64, table | bloom64, 2 KiB | fuse |",
        "| counters | 9.00 | 0.90 | 1.10 | 0.45 |",
        "| filter | bits a key | blocks | build, pure | ask, pure | Get, pure |",
        "| bloom, 2 KiB | 11.20 | 90.0 | 2,000 | 500 | 2,000 |",
        "2,000, 20,000 and 200,000 random keys",
        "| bloom, 2 KiB | 19.0 / 14.0 / 9.5 | 18.0 | 10.0 | 1.80 | 1.000 |",
        "| fuse | 5.000 | 0.0 | - |",
        "| fuse and prefixes | 0.100 | 5.0 | 10.0 |",
        "Not measured, since the keys are missing: UUIDs: none here.",
    ):
        assert words in tables


def test_both_modes_stand_side_by_side_and_counts_are_taken_once() -> None:
    compiled = figures()
    compiled["corpora"] = {
        name: {one: found | {"get_ns": 100.0} for one, found in corpus.items()}
        for name, corpus in compiled["corpora"].items()
    }
    tables = filters_page.tables({"compiled": compiled, "pure": figures()})
    assert "| fuse | 9.80 | 4.5 | 2,000 | 500 | 100 | 2,000 | 500 | 1,000 |" in tables
    assert tables.count("**False positives") == 1


def test_only_what_stands_between_the_marks_is_replaced() -> None:
    once = filters_page.with_tables(EMPTY, {"pure": figures()})
    assert once.startswith("# Page\n\n<!-- measured -->\n")
    assert once.endswith("<!-- end measured -->\n\nThe end.\n")
    assert filters_page.with_tables(once, {"pure": figures()}) == once


@pytest.mark.parametrize("page", ["# Page\n", EMPTY + EMPTY])
def test_a_page_without_one_place_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="once"):
        filters_page.with_tables(page, {"pure": figures()})


def test_the_page_of_this_project_has_its_place_and_tables() -> None:
    page = Path(__file__).parents[2] / "docs" / "filters.md"
    text = page.read_text(encoding="utf-8")
    tables = text.partition(page_parts.BEGIN)[2].partition(page_parts.END)[0]
    assert "**Targets**" in tables


def test_a_measurement_leaves_figures_and_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nothing() -> list[bytes]:
        raise corpora.MissingCorpusError("not on this machine")

    few = {"counters": corpora.counters, "words": nothing, "time series": corpora.time_series}
    monkeypatch.setattr(corpora, "CORPORA", few)
    page = tmp_path / "filters.md"
    page.write_text(EMPTY)
    filters.filters(str(tmp_path), str(page), **SMALL)
    found = json.loads((tmp_path / MODE / "filters.json").read_text())
    assert found["compiled"] is lsmkv.COMPILED
    assert list(found["corpora"]) == ["counters", "time series"]
    assert list(found["corpora"]["counters"]) == list(filters.SETTINGS)
    for measured in found["corpora"]["counters"].values():
        assert measured["asked"] in (29, 30)  # a key beyond the table asks none
        assert measured["gets"] == 30
        assert measured["false_positives"] == measured["blocks_read"]
        assert measured["bits_a_key"] >= 10
    for measured in found["levels"].values():
        assert measured["by level"]["filter_bytes"] <= 1.05 * measured["uniform"]["filter_bytes"]
        assert len(measured["by level"]["false_positives"]) == 3
    assert found["scans"]["bloom:10"]["blocks_read"] == 5 * found["scans"]["bloom:10"]["scans"]
    assert found["scans"]["bloom:10 and prefixes"]["blocks_read"] <= 1
    text = page.read_text()
    assert "Not measured, since the keys are missing: words: not on this machine." in text
    assert "| counters |" in text
    assert "| words |" not in text
    assert "counters: 60 keys" in capsys.readouterr().err


def test_figures_of_another_mode_are_refused(tmp_path: Path) -> None:
    other = "pure" if lsmkv.COMPILED else "compiled"
    (tmp_path / other).mkdir()
    (tmp_path / other / "filters.json").write_text(json.dumps({"compiled": lsmkv.COMPILED}))
    with pytest.raises(ValueError, match=f"not those of lsmkv {other}"):
        filters.read_figures(str(tmp_path))


@pytest.mark.parametrize("name", ["Unicode names", "counters", "UUIDs", "time series"])
def test_corpora_are_sorted_distinct_and_the_same_again(name: str) -> None:
    keys = corpora.CORPORA[name]()
    assert keys == sorted(set(keys))
    assert len(keys) >= 100_000
    assert keys == corpora.CORPORA[name]()


@pytest.mark.parametrize("name", ["words", "package names"])
def test_corpora_that_are_not_here_are_missing(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(corpora, "WORDS", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(corpora.MissingCorpusError, match=r"none|apt-cache"):
        corpora.CORPORA[name]()

"""The report fits its terminal, and says in figures and bars what was counted."""

from __future__ import annotations

import io
import json
import re

import pytest
from rich.console import Console

from lsmkv.filter_lab import Replay, SettingReads, TableReads
from lsmkv.tools.bars import EIGHTHS
from lsmkv.tools.lab.heat import Heat, TableHeat
from lsmkv.tools.lab.outcome import Outcome
from lsmkv.tools.lab.report import print_report
from lsmkv.tools.lab.verdict import RULE, judge


def outcome(scans: int = 100, name: str = "block:9") -> Outcome:
    def setting(name: str, wasted: int, memory: int) -> SettingReads:
        reads = [
            TableReads(0, 12, 900, 900, 900 - wasted, wasted, 9, wasted, wasted, memory),
            TableReads(2, 7, 500, 0, 0, 1_234_567, 9, 0, 0, 0),
        ]
        return SettingReads(name, reads)

    results = [setting("as stored", 800, 10), setting("none", 900, 0), setting(name, 50, 4096)]
    replay = Replay(1000, 3, 499, 1234, results)
    heat = Heat(1000, scans, [TableHeat(0, 12, 800, 220 if scans else 0), TableHeat(2, 7, 0, 0)])
    return Outcome("zoo", "1,000 keys of a list", 1, replay, heat, judge(replay))


def printed(width: int, given: Outcome, encoding: str = "utf-8") -> list[str]:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding)
    print_report(Console(file=file, width=width, highlight=False), given)
    file.flush()
    return raw.getvalue().decode(encoding).splitlines()


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("scans", [0, 100])
def test_it_fits(width: int, scans: int) -> None:
    lines = printed(width, outcome(scans))
    if width >= 80:
        lines += printed(width, outcome(scans, "block:10,10,10"))
        lines += printed(width, outcome(scans, "table64:auto:12.5"))
    assert max(map(len, lines)) <= min(width, 120)
    assert lines == [line.rstrip() for line in lines]


def test_the_verdict_comes_first() -> None:
    text = " ".join(printed(80, outcome()))
    assert text.startswith(
        "lsmkv filter-lab: what other filters would save"
        " 9 bits a key would save 750 of 800 wasted reads for 4.0 KiB more memory."
    )
    assert text.endswith(RULE)


def test_the_figures() -> None:
    lines = printed(120, outcome())
    (line,) = [line for line in lines if line.startswith("block:9")]
    assert line.split()[1:6] == ["1,234,617", "1234.617", "50", "4.0", "KiB"]
    assert "5.56%" in line
    assert line.endswith("█") or line[-1] in EIGHTHS
    assert any(line.endswith(("log scale", "on a log scale")) for line in lines)
    text = " ".join(lines)
    assert "A memtable answered 3 Gets." in text
    assert "000012.ldb level 0 800" in " ".join(text.split())
    assert "each reads 2.2 blocks on average" in text


@pytest.mark.parametrize("width", [80, 120])
def test_bars_tell_small_counts_from_large_ones(width: int) -> None:
    reads = {"as stored": 1790, "none": 45_777, "block:9": 9, "block:15": 100}
    results = [SettingReads(name, [TableReads(0, 1, wasted_reads=n)]) for name, n in reads.items()]
    replay = Replay(1000, 0, 0, 10, results)
    given = Outcome("zoo", "1,000 keys", 1, replay, Heat(1000, 0, []), judge(replay))
    lengths = {}
    for line in printed(width, given):
        name, bar = line.split("  ")[0], line.rsplit("  ", 1)[-1]
        if name in reads:
            lengths[name] = len(bar)
    assert lengths["block:9"] < lengths["block:15"] < lengths["as stored"] < lengths["none"]


def test_the_hottest_tables_are_counted_as_the_levels_are() -> None:
    """Gets and scans apart, each table in the columns of its level."""
    given = outcome()
    tables = [TableHeat(0, 12, 800, 220), TableHeat(2, 7, 0, 5), TableHeat(2, 8, 3, 0)]
    lines = printed(80, given._replace(heat=Heat(1000, 100, tables)))
    at = lines.index("hottest tables")
    rows = [re.findall(r"[\d,]+(?= |$)", line[24:]) for line in lines[at + 1 : at + 4]]
    assert [line[:20].split() for line in lines[at + 1 : at + 4]] == [
        ["000012.ldb", "level", "0"],
        ["000008.ldb", "level", "2"],
        ["000007.ldb", "level", "2"],
    ]
    assert rows == [["800", "220"], ["3", "0"], ["0", "5"]]
    level = next(line for line in lines if line.startswith("level 0"))
    assert level[24:] == lines[at + 1][24:]


def test_a_terminal_without_the_characters() -> None:
    text = "\n".join(printed(80, outcome(), "ascii"))
    assert text.isascii()
    assert "##" in text


def test_json() -> None:
    report = json.loads(json.dumps(outcome().to_dict()))
    assert report["settings"][2]["setting"] == "block:9"
    assert report["settings"][2]["wasted_reads"] == 50
    assert report["settings"][2]["filter_bytes"] == 4096
    assert report["settings"][2]["false_positive_rate"] == pytest.approx(50 / 900)
    assert report["heat"]["tables"][0] == {"level": 0, "number": 12, "gets": 800, "scans": 220}
    assert report["verdict"]["setting"] == "block:9"
    assert report["verdict"]["rule"] == RULE


def test_a_store_without_tables() -> None:
    nothing = Replay(10, 10, 10, 0, [SettingReads("as stored")])
    given = Outcome("zoo", "10 keys", 1, nothing, Heat(10, 0, []), judge(nothing))
    assert "The store has no tables." in printed(80, given)

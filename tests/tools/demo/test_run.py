from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from demos import LINES
from rich.console import Console
from typer.testing import CliRunner

import lsmkv
from lsmkv.tools import app, commands
from lsmkv.tools.demo.keys import DataSet, lines_as_keys
from lsmkv.tools.demo.measure import (
    LAYOUTS,
)
from lsmkv.tools.demo.report import Report
from lsmkv.tools.demo.run import Plan, run_demo


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "keys.txt"
    path.write_bytes(b"".join(LINES))
    return path


@pytest.fixture(scope="module")
def figures(key_file: Path) -> dict[str, Any]:
    done = CliRunner().invoke(app.app, ["demo", "--keys", str(key_file), "--json"])
    assert done.exit_code == 0
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_figures(figures: dict[str, Any]) -> None:
    assert figures["keys"] == 2000
    assert figures["wrong_answers"] == 0
    assert figures["compacted"] == []  # one table: nothing to compact
    off, block, whole = figures["as_loaded"]
    assert [one["layout"] for one in (off, block, whole)] == ["off", "block", "table"]
    for one in (off, block, whole):
        assert one["present"]["gets"] == one["absent"]["gets"] == 2000
        assert one["present"]["blocks_per_get"] >= 1
        assert one["metadata_reads"] > 0
    assert off["absent"]["blocks_per_get"] >= 0.9
    assert off["absent"]["filters_asked"] == 0
    assert off["predicted_rate"] is off["measured_rate"] is None
    for one in (block, whole):
        assert one["absent"]["blocks_per_get"] <= 0.05
        assert one["absent"]["bytes_per_get"] < off["absent"]["bytes_per_get"] / 20
        assert one["disk_bytes"] > off["disk_bytes"]
        assert one["predicted_rate"] == pytest.approx(figures["textbook_rate"], rel=0.25)
        assert one["measured_rate"] == pytest.approx(one["predicted_rate"], abs=0.01)
        assert one["absent"]["blocks_read"] == one["absent"]["filter_positives"]


def test_a_seed_gives_the_same_figures_again(figures: dict[str, Any], key_file: Path) -> None:
    options = ["--keys", str(key_file), "--json", "--layout", "block", "--seed"]
    same, other = [
        json.loads(CliRunner().invoke(app.app, ["demo", *options, seed]).stdout)
        for seed in ("1", "2")
    ]

    def absent(result: dict[str, Any], at: int) -> list[int]:
        return [result["as_loaded"][at]["absent"][name] for name in ("bytes_read", "blocks_read")]

    assert absent(same, 0) == absent(figures, 1)
    assert absent(other, 0) != absent(figures, 1)


# What it prints


def test_the_report_fits_80_columns_and_tells_all(key_file: Path) -> None:
    done = CliRunner().invoke(app.app, ["demo", "--keys", str(key_file)])
    assert done.exit_code == 0
    assert done.stderr == ""
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\x1b" not in done.stdout
    for words in (
        "2,000 keys",
        "block cache",
        "pread",
        "textbook",
        "As loaded: at most 1 table",
        "per 2 KiB",
        "whole table",
        "All 12,000 answers were right.",
    ):
        assert words in done.stdout


def test_stores_are_kept_where_the_user_says(key_file: Path, tmp_path: Path) -> None:
    stores = tmp_path / "stores"
    options = ["demo", "--keys", str(key_file), "--dir", str(stores), "--layout", "both"]
    assert CliRunner().invoke(app.app, options).exit_code == 0
    with lsmkv.DB(stores / "both") as db:
        assert db.get(LINES[0].rstrip()) == b"1"
    again = CliRunner().invoke(app.app, options)
    assert again.exit_code == 2
    assert again.stdout == ""
    assert again.stderr == f"lsmkv: {stores / 'both'} exists; the demo makes its stores anew\n"


def test_overlapping_tables_are_compacted_and_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LAYOUTS, "block", LAYOUTS["block"] | {"write_buffer_size": 16 << 10})
    data = lines_as_keys(LINES, "file")
    with open(tmp_path / "report", "w", encoding="utf-8") as out:
        report = Report(Console(file=out, width=80))
        outcome = run_demo(Plan(data, ("block",), 500, 1, None), report)
    (before,), (after,) = outcome.as_loaded, outcome.compacted
    assert before.overlapping > 1
    assert after.overlapping == 1
    assert outcome.wrong == 0
    assert before.absent.checks_per_get > 1.5
    assert after.absent.checks_per_get <= 1
    told = (tmp_path / "report").read_text(encoding="utf-8")
    assert "After compact_range(): at most 1 table" in told


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--keys", "no such file"], "no such file: No such file or directory"),
        (["--keys", "/dev/null"], "no keys"),
        (["--keys", "/dev/null", "--more", "5"], "--more"),
    ],
)
def test_bad_input(options: list[str], words: str) -> None:
    done = CliRunner().invoke(app.app, ["demo", *options])
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("lsmkv: ")
    assert done.stderr.count("\n") == 1
    assert words in done.stderr


def test_keys_from_stdin() -> None:
    done = CliRunner().invoke(
        app.app, ["demo", "--keys", "-", "--json", "--layout", "off"], input=b"one\ntwo\none\n"
    )
    assert done.exit_code == 0
    assert json.loads(done.stdout)["duplicates"] == 1


def test_a_wrong_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    data = DataSet("wrong", [(b"a", b"1"), (b"b", b"2")], {b"a": b"1", b"b": b"other"})
    monkeypatch.setattr(commands, "lines_as_keys", lambda *_: data)
    done = CliRunner().invoke(app.app, ["demo", "--keys", "/dev/null"])
    assert done.exit_code == 2
    assert "3 of 12 answers were WRONG" in done.stdout
    assert done.stderr == "lsmkv: 3 wrong answers\n"

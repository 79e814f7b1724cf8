"""``lsmkv demo`` as a user starts it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from demos import LINES
from typer.testing import CliRunner

import lsmkv
from lsmkv.tools import app
from lsmkv.tools.demo import command
from lsmkv.tools.sample_keys import DataSet


@pytest.fixture(scope="module")
def figures(key_file: Path) -> dict[str, Any]:
    done = CliRunner().invoke(app.app, ["demo", "--keys", str(key_file), "--json"])
    assert done.exit_code == 0
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_the_figures_show_what_filters_save(figures: dict[str, Any]) -> None:
    assert figures["keys"] == 2000
    assert figures["wrong_answers"] == 0
    assert figures["compacted"] == []  # one table: nothing to compact
    off, *filtered = figures["as_loaded"]
    assert [one["layout"] for one in filtered] == ["block", "table", "table64", "fuse"]
    for one in (off, *filtered):
        assert one["present"]["gets"] == one["absent"]["gets"] == 2000
        assert one["present"]["blocks_per_get"] >= 1
        assert one["metadata_reads"] > 0
        assert one["identity_check_reads"] == 1
    assert off["absent"]["blocks_per_get"] >= 0.9
    assert off["absent"]["filters_asked"] == 0
    assert off["predicted_rate"] is off["measured_rate"] is off["textbook_rate"] is None
    assert filtered[0]["textbook_rate"] == figures["textbook_rate"]
    for one in filtered:
        assert one["absent"]["blocks_per_get"] <= 0.05
        assert one["absent"]["bytes_per_get"] < off["absent"]["bytes_per_get"] / 20
        assert one["disk_bytes"] > off["disk_bytes"]
        assert one["predicted_rate"] == pytest.approx(one["textbook_rate"], rel=0.25)
        assert one["measured_rate"] == pytest.approx(one["predicted_rate"], abs=0.01)
        assert one["absent"]["blocks_read"] == one["absent"]["filter_positives"]
        # One table: a Get reads a block exactly if its one filter says maybe.
        assert one["filters_answered"] == 2000 - one["absent"]["filter_positives"]
        assert 9 < 8 * one["filter_bytes"] / figures["keys"] < 12
    assert off["filters_answered"] is None
    assert off["filter_bytes"] == 0
    fuse = filtered[-1]
    assert fuse["textbook_rate"] == 1 / 256
    assert fuse["absent"]["blocks_read"] < min(one["absent"]["blocks_read"] for one in filtered[:3])


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


def test_the_summary_says_it_in_a_screen(key_file: Path, tmp_path: Path) -> None:
    page = tmp_path / "a page.html"
    options = ["demo", "--keys", str(key_file), "--lookups", "200", "--report", str(page)]
    done = CliRunner().invoke(app.app, options)
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 80
    assert "Get of an absent key reads" in lines[1]
    assert "--details" in lines[-1]
    assert done.stderr.endswith(f" {page.as_uri()}\n")
    assert "a%20page.html" in done.stderr
    rows = [line.split() for line in lines if line.startswith(("filters off", "per 2 KiB"))]
    assert [len(row) for row in rows] == [7, 8]
    assert rows[0][-1] == "-"


def test_the_report_of_a_process_tells_all(key_file: Path) -> None:
    options = ["demo", "--keys", str(key_file), "--lookups", "200", "--details"]
    done = CliRunner().invoke(app.app, options)
    assert done.exit_code == 0
    assert done.stderr == ""
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\x1b" not in done.stdout
    for words in (
        "2,000 keys",
        "block cache",
        "textbook",
        "As loaded: at most 1 table",
        "per 2 KiB",
        "whole table",
        "whole 64-bit",
        "whole, fuse",
        "asks filters only in the store with a filter per 2 KiB.",
        "All 2,000 answers were right.",
    ):
        assert words in " ".join(done.stdout.split())


def test_stores_stay_in_the_directory_given(key_file: Path, tmp_path: Path) -> None:
    stores = tmp_path / "stores"
    options = ["demo", "--keys", str(key_file), "--dir", str(stores), "--layout", "both"]
    options += ["--lookups", "10"]
    assert CliRunner().invoke(app.app, options).exit_code == 0
    with lsmkv.DB(stores / "both") as db:
        assert db.get(LINES[0].rstrip()) == b"1"
    again = CliRunner().invoke(app.app, options)
    assert again.exit_code == 2
    assert again.stdout == ""
    assert again.stderr == f"lsmkv: {stores / 'both'} exists; the demo makes new stores\n"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--keys", "no such file"], "no such file: No such file or directory"),
        (["--keys", "/dev/null"], "no keys"),
        (["--keys", "/dev/null", "--more", "5"], "--more"),
    ],
)
def test_keys_that_cannot_be_used_are_an_error(options: list[str], words: str) -> None:
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


def test_a_wrong_answer_of_the_demo_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    data = DataSet("wrong", [(b"a", b"1"), (b"b", b"2")], {b"a": b"1", b"b": b"other"})
    monkeypatch.setattr(command, "lines_as_keys", lambda *_: data)
    done = CliRunner().invoke(app.app, ["demo", "--keys", "/dev/null"])
    assert done.exit_code == 2
    lines = done.stdout.splitlines()
    assert lines[1] == "5 of 20 answers were WRONG."
    assert "without reading a block" not in done.stdout
    assert done.stderr == "lsmkv: 5 wrong answers\n"

"""The demo's report as a page."""

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


def answers_in(page: str) -> list[dict[str, Any]]:
    _, _, rest = page.partition('<script type="application/json" id="lsmkv-answers">')
    found: list[dict[str, Any]] = json.loads(rest.partition("</script>")[0])
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def options(key_file: Path, place: Path) -> list[str]:
    """One run, with its page and its stores in ``place``."""
    where = ["--report", str(place / "demo.html"), "--dir", str(place / "stores")]
    return ["demo", "--keys", str(key_file), "--lookups", "200", "--json", *where]


@pytest.fixture(scope="module")
def figures(options: list[str], place: Path) -> dict[str, Any]:
    done = CliRunner().invoke(app.app, options)
    assert done.exit_code == 0
    assert (place / "demo.html").as_uri() in done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def answers(figures: dict[str, Any], place: Path) -> list[dict[str, Any]]:
    assert figures["wrong_answers"] == 0
    return answers_in((place / "demo.html").read_text(encoding="utf-8"))


def test_the_report_opens_on_the_result(
    figures: dict[str, Any], answers: list[dict[str, Any]], options: list[str]
) -> None:
    loaded = figures["as_loaded"]
    assert {one["view"] for one in answers} > {"demo", "levels", "table", "get", "filter"}
    assert answers[0]["view"] == "demo"
    result = answers[0]["answer"]
    assert len(result["findings"]) == 3
    assert (result["keys"], result["lookups"]) == (2000, 200)
    assert result["found"] == result["shown"] == "with a filter per 2 KiB"
    (state,) = result["states"]
    assert [one["layout"] for one in state["stores"]] == list(command.DEFAULT_LAYOUTS)
    for shown, counted in zip(state["stores"], loaded, strict=True):
        for kind in ("present", "absent"):
            assert shown[kind]["blocks"] == counted[kind]["blocks_per_get"]
            assert shown[kind]["microseconds"] == counted[kind]["microseconds_per_get"] > 0
        assert shown["measured_rate"] == counted["measured_rate"]
        assert shown["bits_per_key"] == 8 * counted["filter_bytes"] / 2000
    again = CliRunner().invoke(app.app, options)
    assert again.exit_code == 2
    assert "it exists already" in again.stderr
    assert CliRunner().invoke(app.app, ["demo", "--report", "-"]).exit_code == 2


def test_the_story_of_an_absent_key_says_what_each_filter_answers(
    answers: list[dict[str, Any]], place: Path
) -> None:
    story = answers[0]["answer"]["story"]
    key = story["key"]["text"].encode()
    assert key + b"\n" not in LINES
    assert story["near"]["text"].encode() + b"\n" in LINES
    assert next(one for one in answers if one["view"] == "get")["query"]["key"] == key.decode()
    for one in story["stores"]:
        with lsmkv.DB(place / "stores" / one["layout"]) as db:  # one table: not compacted since
            found = db.explain(key)
        assert (one["searched"], one["without"]) == (
            found.blocks_searched,
            found.blocks_without_filters,
        )
        (table,) = one["tables"]
        assert table["name"] == found.tables[0].name
        if one["layout"] == "off":
            assert (table["filter"], table["tone"]) == (None, "wasted")
        elif found.blocks_searched:
            assert (table["filter"], table["tone"]) == ("maybe", "wasted")
        else:
            assert (table["filter"], table["tone"]) == ("no", "saved")

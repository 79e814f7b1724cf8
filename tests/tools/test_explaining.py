"""``lsmkv explain``: text where it is piped, and on a terminal the same as a tree, in colors."""

from __future__ import annotations

import io
import json
import os
import re
from pathlib import Path

import pytest
from commands import Done, on_terminal
from commands import lsm_bytes as lsm
from rich.console import Console

import lsmkv
from lsmkv.engine.util.outline import Line
from lsmkv.tools.explaining import STYLES, tree


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with three keys in one table."""
    path = tmp_path / "store"
    with lsmkv.DB(path, create_if_missing=True) as db:
        for key in (b"a", "né".encode(), b"\xff"):
            db.put(key, b"value")
        db.flush()
    return path


def test_explain_prints_the_steps_of_a_get(store: Path) -> None:
    with lsmkv.DB(store, read_only=True) as db:
        explanation = db.explain(b"a")
        missing = db.explain(b"none")
    done = lsm("explain", store, "a")
    assert done == Done(0, f"{explanation}\n".encode(), "")
    assert done.out.startswith(b"get 'a': found, ")
    assert lsm("explain", store, "61", "--hex") == done
    assert lsm("explain", store, "none") == Done(1, f"{missing}\n".encode(), "")
    done = lsm("explain", store, "a", "--json")
    assert (done.status, json.loads(done.out)) == (0, explanation.to_dict())
    done = lsm("explain", store, "none", "--json")
    assert (done.status, json.loads(done.out)) == (1, missing.to_dict())


def test_keys_are_escaped_as_scan_prints_them(store: Path) -> None:
    shown = [line.split("\t")[0] for line in lsm("scan", store).out.decode().splitlines()]
    for key in shown[1:]:
        argument = os.fsdecode(b"\xff") if key == "\\xff" else key
        assert json.loads(lsm("explain", store, argument, "--json").out)["key"] == key
        assert lsm("explain", store, argument).out.decode().startswith(f"get '{key}': found")


def test_explain_beside_a_writer(store: Path) -> None:
    with lsmkv.DB(store) as db:
        db.delete(b"a")
        before = sorted(os.listdir(store))
        done = lsm("explain", store, "a")
        assert sorted(os.listdir(store)) == before
    assert done.status == 1
    assert done.out.startswith(b"get 'a': deleted, ")


OUTLINE = [
    Line(0, "plain", "get [bold]'k'[/]: not there"),
    Line(1, "saved", "level 0: no"),
    Line(2, "quiet", "bits"),
    Line(3, "plain", "deep"),
    Line(1, "wasted", "level 1: wasted"),
    Line(2, "read", "block " + "of many words " * 10),
]


def drawn(
    width: int,
    encoding: str = "utf-8",
    colors: bool = False,
    lines: list[Line] | None = None,
) -> str:
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(file=out, width=width, color_system="standard" if colors else None)
    console.print(tree(lines or OUTLINE, width))
    out.seek(0)
    return out.read()


def test_the_tree_has_the_lines_of_the_outline() -> None:
    lines = drawn(200).splitlines()
    assert [line.rstrip() for line in lines[:5]] == [
        "get [bold]'k'[/]: not there",
        "├── level 0: no",
        "│   └── bits",
        "│       └── deep",
        "└── level 1: wasted",
    ]
    for line, shown in zip(OUTLINE, lines, strict=True):
        assert re.sub("^[├└│─ ]+", "", shown).strip() == line.text.strip()


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_tree_fits_the_terminal(width: int, encoding: str) -> None:
    text = drawn(width, encoding)
    assert max(map(len, text.splitlines())) <= width
    words = " ".join(re.sub("[├└│─`|+-]", " ", text).split())
    assert words == " ".join(" ".join(line.text for line in OUTLINE).split())


@pytest.mark.parametrize("width", range(40, 121))
def test_a_figure_stays_with_its_unit(width: int) -> None:
    words = "range: 'LATIN SMALL LETTER A' .. 'ZNAMENNY', 212.2 KiB, 1,575 bytes in 17 data blocks"
    lines = [Line(0, "plain", words), Line(1, "plain", words), Line(2, "plain", words)]
    shown = [
        re.sub("^[├└│─ ]+", "", line).strip() for line in drawn(width, lines=lines).splitlines()
    ]
    assert not any(re.search(r"\d$", line) for line in shown)
    assert " ".join(shown) == " ".join([words] * 3)


@pytest.mark.parametrize(
    ("text", "code"), [("level 0: no", "32"), ("level 1: wasted", "31"), ("block", "33")]
)
def test_colors_say_saved_read_and_wasted(text: str, code: str) -> None:
    assert f"\x1b[{code}m{text}" in drawn(80, colors=True)
    assert set(STYLES) == {"plain", "quiet", "saved", "read", "wasted"}


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_on_a_terminal_it_is_a_tree_of_the_same_lines(store: Path, columns: int) -> None:
    status, shown = on_terminal("explain", str(store), "b", columns=columns)
    assert status == 1
    assert "\x1b[32m" in shown
    lines = re.sub("\x1b\\[[\\d;]*m", "", shown).splitlines()
    assert max(map(len, lines)) <= columns
    assert lines[1].startswith("├── memtable")
    words = " ".join(re.sub("[├└│─]", " ", " ".join(lines)).split())
    assert words == " ".join(lsm("explain", store, "b").out.decode().split())


def test_no_color_where_none_is_wanted(store: Path) -> None:
    _, shown = on_terminal("explain", str(store), "b", columns=80, environment={"NO_COLOR": "1"})
    assert not re.search("\x1b\\[3\\dm", shown)
    assert "a filter says no" in shown

"""``lsmkv course fault`` as a student starts it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import lsm
from own_data import call_that_shows

SHOWS = call_that_shows("bloom", "ann")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    lsm("course", "new", tmp_path / "ann", "--student", "ann")
    monkeypatch.chdir(tmp_path / "ann")
    return tmp_path / "ann"


def test_a_fault_is_searched_and_found(folder: Path) -> None:
    done = lsm("course", "fault", "4")
    assert (done.status, done.err) == (0, "")
    assert "  create_filter([keys], bits for each key)\n" in done.out
    assert "  faults/fault4.ldb: lsmkv dump faults/fault4.ldb\n" in done.out
    assert lsm("dump", "faults/fault4.ldb").status == 0
    assert lsm("course", "fault", "4", "bloom_hash(b'')").out == "3164544308\n"
    assert "there is no x" in lsm("course", "fault", "4", "x()").err
    (folder / "fault4.txt").write_text("bloom_hash(b'')\n")
    done = lsm("course", "fault", "4")
    assert (done.status, done.out) == (
        1,
        "fault4.txt: bloom_hash(b'')\nThis shows nothing: both answer 3164544308.\n",
    )
    (folder / "fault4.txt").write_text(SHOWS)
    done = lsm("course", "fault", "4")
    assert done.status == 0
    assert "This shows the fault: the broken code answers " in done.out
    assert done.out.endswith("Say what the code does wrong, in a line that begins with '#'.\n")


def test_json(folder: Path) -> None:
    answer = json.loads(lsm("course", "fault", "4", "bloom_hash(b'')", "--json").out)
    assert answer == {"lab": 4, "answer": "3164544308"}
    (folder / "fault4.txt").write_text(f"{SHOWS}\n# Wrong.")
    answer = json.loads(lsm("course", "fault", "4", "--json").out)
    assert (answer["is_found"], answer["sentence"], answer["size"]) == (
        True,
        "Wrong.",
        answer["least"],
    )
    assert set(answer["functions"]) == {"bloom_hash", "create_filter", "key_may_match"}


@pytest.mark.parametrize("lab", range(1, 13))
def test_the_files_of_every_lab_are_read_by_tools(folder: Path, lab: int) -> None:
    assert lsm("course", "fault", str(lab)).status == 0
    for path in (folder / "faults").iterdir():
        if path.suffix != ".txt":
            done = lsm("dump", path)
            assert done.out or "damage" in done.err

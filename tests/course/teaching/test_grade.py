"""``lsmkv course grade``: the table of a class whose students have data of their own."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest
from commands import lsm
from labs import reference
from own_data import answers_of, call_that_shows

from lsmkv.course.labs.registry import find
from lsmkv.course.predict.registry import write_for
from lsmkv.course.seeds import Owner, seed_of, write_owner

BLOOM = find("bloom")


@pytest.fixture
def group(tmp_path: Path) -> Path:
    for name in ("ann", "bob"):
        (tmp_path / name).mkdir()
        write_for(str(tmp_path / name), name)
    shutil.copy(reference(BLOOM), tmp_path / "ann")
    kept = {"4": [answers_of("bloom", "ann")[0], "7"]}
    write_owner(str(tmp_path / "ann"), Owner("ann", seed_of("ann"), kept))
    (tmp_path / "ann" / "fault4.txt").write_text(f"{call_that_shows('bloom', 'ann')}\n# Wrong.\n")
    return tmp_path


def test_points_of_predictions_and_faults(group: Path) -> None:
    options = ("--lab", "4", "--points", "--weight", "4=1.5", "--csv")
    head, most, ann, bob = csv.reader(io.StringIO(lsm("course", "grade", group, *options).out))
    assert head == ["student", "lab 4", "predictions", "faults", "points", "look at"]
    assert most == ["maximum", "13.5", "3", "3", "19.5", ""]
    assert ann[:5] == ["ann", "13.5", "1.5", "3", "18"]
    assert bob == ["bob", "", "0", "0", "0", ""]


def test_numbers_of_predictions_and_faults(group: Path) -> None:
    lines = lsm("course", "grade", group, "--lab", "4").out.splitlines()
    assert lines[:4] == [
        "lab        4  predictions       faults",
        "checks     8            2            1",
        "ann        8            1            1",
        "bob        -            0            0",
    ]


def test_what_was_done_is_in_the_json(group: Path) -> None:
    ann, bob = json.loads(lsm("course", "grade", group, "--lab", "4", "--json").out)["submissions"]
    assert (ann["student"], bob["student"]) == ("ann", "bob")
    own = ann["labs"][0]["own"]
    assert own["asked"] == 2
    assert [one["predicted"] for one in own["predictions"]][1] == "7"
    assert (own["finding"]["is_found"], own["finding"]["sentence"]) == (True, "Wrong.")
    assert bob["labs"][0]["own"] == {"asked": 2, "predictions": [], "finding": None}


def test_a_damaged_file_is_said(group: Path) -> None:
    (group / "bob" / "student.json").write_text("?")
    *_, bob = csv.reader(io.StringIO(lsm("course", "grade", group, "--lab", "4", "--csv").out))
    assert bob[-1] == "student.json is damaged"

"""``lsmkv course report`` as an autograder starts it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

from commands import lsm
from labs import reference

from lsmkv.course.labs.registry import find

BLOOM = find("bloom")


def test_a_folder_is_reported(tmp_path: Path) -> None:
    shutil.copy(reference(BLOOM), tmp_path)
    done = lsm("course", "report", tmp_path, "--lab", "4")
    assert (done.status, done.err) == (0, "")
    assert json.loads(done.out)["score"] == 9
    file = tmp_path / "report.xml"
    done = lsm("course", "report", tmp_path, "--lab", "4", "--format", "junit", "--output", file)
    assert done.out == "9 of 9 points\n"
    done = lsm("course", "report", tmp_path, "--lab", "4", "--output", tmp_path / "a", "--json")
    points = {"path": str(tmp_path / "a"), "score": 9, "max_score": 9}
    assert json.loads(done.out) == points
    (suite,) = ET.parse(file).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("8", "0")


def test_errors(tmp_path: Path) -> None:
    assert "No such file" in lsm("course", "report", tmp_path / "none").err
    done = lsm("course", "report", tmp_path, "--format", "csv")
    assert (done.status, done.err) == (
        2,
        "lsmkv: --format csv: it must be gradescope or junit\n",
    )

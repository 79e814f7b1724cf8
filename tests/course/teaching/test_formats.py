"""Grades as Gradescope and JUnit's readers want them."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from own_data import answers_of, call_that_shows

from lsmkv.course.grading import LabGrade, Submission
from lsmkv.course.labs.registry import find
from lsmkv.course.owned import find_own, own_work
from lsmkv.course.predict.registry import write_for
from lsmkv.course.running import Result
from lsmkv.course.seeds import Owner, seed_of, write_owner
from lsmkv.course.teaching.formats import gradescope, junit

BLOOM = find("bloom")


@pytest.fixture
def submission(tmp_path: Path) -> Submission:
    write_for(str(tmp_path), "ann")
    kept = {"4": [answers_of("bloom", "ann")[0], "7"]}
    write_owner(str(tmp_path), Owner("ann", seed_of("ann"), kept))
    (tmp_path / "fault4.txt").write_text(f"{call_that_shows('bloom', 'ann')}\n# Wrong \x1b.")
    own = find_own(str(tmp_path))
    assert own is not None
    checks = [
        Result("a", "passed", "fine"),
        Result("b", "failed", "bad\x00 & <more>\nline 2"),
        Result("c", "error", "it raised"),
        Result("d", "not written", "f is not written yet"),
        Result("e", "stopped", "it was stopped"),
        Result("f", "passed", "good"),
    ]
    lab = LabGrade(4, BLOOM.title, BLOOM.file_name, 2, 3, 7, checks, own_work(own, BLOOM))
    return Submission("ann", [lab], ["lab 4 is late"], "ann")


def test_gradescope(submission: Submission) -> None:
    found = gradescope(submission)
    assert found["score"] == 1 + 2 + 1 + 2
    tests = {test["name"]: test for test in found["tests"]}
    assert sum(test["max_score"] for test in found["tests"]) == 7 + 2 + 2
    assert {test["status"] for test in found["tests"]} == {"passed", "failed"}
    assert tests["Lab 4: f"]["score"] == tests["Lab 4: f"]["max_score"] == 2
    assert tests["Lab 4: predictions"]["output"] == "1 of 2 are right"
    hidden = {name for name, test in tests.items() if test["visibility"] == "hidden"}
    assert hidden == {"Look at", "Lab 4: what the student says of the fault"}
    assert "\x1b" not in tests["Lab 4: what the student says of the fault"]["output"]


def test_junit(submission: Submission) -> None:
    root = ET.fromstring(junit(submission))
    (suite,) = root
    assert (root.tag, suite.get("name")) == ("testsuites", "Lab 4: The Bloom filter")
    counted = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counted == {"tests": "9", "failures": "3", "errors": "1", "skipped": "1"}
    outcomes = {case.get("name"): [one.tag for one in case] for case in suite}
    assert outcomes == {
        **{"a": [], "b": ["failure"], "c": ["error"], "d": ["skipped"], "e": ["failure"], "f": []},
        **{"prediction 1": [], "prediction 2": ["failure"], "the fault": []},
    }
    message = suite.find("testcase[@name='b']/failure")
    assert message is not None
    assert message.text == "bad? & <more>\nline 2"

"""The page of ``lsmkv course see``, over HTTP."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from course_stores import folder_of_references, plant
from inspected import request

from lsmkv.course.labs.registry import find
from lsmkv.course.see_page import application


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return folder_of_references(tmp_path / "labs") / "lab4_bloom.py"


def test_the_steps_follow_the_file_and_the_key(file: Path) -> None:
    app = application(find("bloom"), str(file), "emu")
    first = json.loads(request(app, "/api/see").body)
    assert (first["key"], first["differs"], first["file"]) == ("emu", None, "lab4_bloom.py")
    assert json.loads(request(app, "/api/saved").body) == {"stamp": first["stamp"]}
    plant(file.parent, 4, "def bloom_hash(key):\n    return 7\n")
    again = json.loads(request(app, "/api/see", query="key=moa").body)
    assert (again["key"], again["differs"]) == ("moa", 0)
    assert again["steps"][0]["yours"] == "0x00000007"
    assert again["stamp"] != first["stamp"]


def test_a_file_that_is_gone_is_an_error_until_it_is_back(file: Path) -> None:
    app = application(find("bloom"), str(file))
    os.rename(file, f"{file}~")
    gone = request(app, "/api/see")
    assert gone.status == 409
    assert "No such file" in json.loads(gone.body)["error"]
    assert json.loads(request(app, "/api/saved").body) == {"stamp": None}
    os.rename(f"{file}~", file)
    assert json.loads(request(app, "/api/see").body)["outcome"] == "passed"


def test_only_pages_of_this_machine_are_answered(file: Path) -> None:
    app = application(find("bloom"), str(file))
    for path in ("/", "/api/see", "/api/saved"):
        assert request(app, path, host="evil.example").status == 403
        assert request(app, path, origin="http://evil.example").status == 403
    page = request(app, "/")
    assert page.status == 200
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert request(app, "/static/see.js").status == 200


def test_a_lab_without_steps_is_refused(file: Path) -> None:
    with pytest.raises(ValueError, match="no steps of lab 5"):
        application(find("5"), str(file))

from __future__ import annotations

import base64
import io
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from lsmkv.course.labs.registry import LABS
from lsmkv.course.tab import FOLDER, VIEWS

SOURCE = (Path(__file__).parent / "references" / "lab1_keys.py").read_text(encoding="utf-8")


def ask(view: str, **query: object) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    reports: list[dict[str, Any]] = []
    return VIEWS[f"course/{view}"](query, reports.append), reports


def checked(source: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    return ask("check", lab="1", files={"lab1_keys.py": source})


def test_labs_and_texts() -> None:
    found, _ = ask("labs")
    assert [one["number"] for one in found["labs"]] == [lab.number for lab in LABS]
    lab, _ = ask("lab", lab="4")
    assert lab["text"].startswith("# Lab 4")
    assert len(lab["hints"]) > 1
    assert lab["starter"] == LABS[3].starter()


def test_a_solved_lab_passes() -> None:
    path, modules = list(sys.path), list(sys.meta_path)
    found, reports = checked(SOURCE)
    assert found == {"passed": 7, "checks": 7}
    assert [one["outcome"] for one in reports] == ["passed"] * 7
    assert (sys.path, sys.meta_path) == (path, modules)
    assert "lab1_keys" not in sys.modules


def test_an_exception_names_the_line() -> None:
    found, reports = checked(SOURCE + "\n\ndef encode_varint(value):\n    return 1 // 0\n")
    assert found["passed"] < 7
    failed = [one for one in reports if one["outcome"] == "error"]
    assert "ZeroDivisionError" in failed[0]["message"]
    assert "return 1 // 0" in failed[0]["message"]


def test_a_file_that_cannot_be_run() -> None:
    found, reports = checked("def f(:\n")
    assert found["passed"] == 0
    assert all("the file cannot be run: SyntaxError" in one["message"] for one in reports)


def test_what_is_printed_is_reported() -> None:
    _, reports = checked("print('hello')\n")
    assert "".join(one.get("printed", "") for one in reports) == "hello\n"


def test_files_of_other_names_are_refused() -> None:
    for files in (None, {"../x.py": ""}, {"lab1_keys.py": 1}):
        with pytest.raises(ValueError, match=r"a source|files must be"):
            ask("check", lab="1", files=files)
    with pytest.raises(ValueError, match="there is no lab"):
        ask("lab", lab="13")


def test_the_archive_is_the_folder_of_the_course() -> None:
    found, _ = ask("archive", files={"lab1_keys.py": "# mine\n"})
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(found["base64"]))) as archive:
        assert archive.namelist() == [f"{FOLDER}/{lab.file_name}" for lab in LABS]
        assert archive.read(f"{FOLDER}/lab1_keys.py") == b"# mine\n"
        assert archive.read(f"{FOLDER}/lab2_log.py").decode() == LABS[1].starter()

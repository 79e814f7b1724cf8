"""``lsmkv doctor`` as a user starts it: text, JSON and exit status."""

from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path

import pytest
from commands import lsm_bytes as lsm

import lsmkv
from lsmkv.tools.doctor import place as place_module
from lsmkv.tools.doctor.trial import Trials


def protected(_: str) -> Trials:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


def test_all_that_is_asked_for_is_printed(tmp_path: Path) -> None:
    done = lsm("doctor", tmp_path)
    assert done.status == 0
    text = done.out.decode()
    kind = "compiled" if lsmkv.COMPILED else "pure Python"
    assert text.startswith(f"lsmkv {lsmkv.__version__}, {kind}\n")
    labels = re.findall(r"(?m)^  (\S+(?: \S+)*?)  +\S", text)
    wanted = {"Python", "system", "compression", "CRC-32C", "file system", "free", "hard links"}
    assert wanted <= set(labels)
    assert ("All is well." in text) or ("Stores work here." in text)
    assert os.listdir(tmp_path) == []


def test_the_working_directory_is_looked_at_if_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "\n.\n  file system" in lsm("doctor").out.decode()


def test_a_write_protected_directory_is_a_problem_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place_module, "try_directory", protected)
    done = lsm("doctor", tmp_path)
    assert done.status == 1
    assert "Read-only file system" in done.out.decode()
    assert "read_only=True" in done.out.decode()
    assert "Stores work here" not in done.out.decode()
    assert done.err == ""
    (problem,) = json.loads(lsm("doctor", tmp_path, "--json").out)["problems"]
    assert "Read-only file system" in problem["what"]


def test_a_directory_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    done = lsm("doctor", tmp_path / "missing", "--json")
    assert done.status == 1
    plain = json.loads(done.out)
    assert plain["directory"]["works"] is None
    assert "No such file" in plain["problems"][0]["what"]
    assert lsm("doctor", tmp_path / "missing").status == 1
    assert not (tmp_path / "missing").exists()

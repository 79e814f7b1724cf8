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
from lsmkv.env.trial import Trials
from lsmkv.tools.doctor import command, report
from lsmkv.tools.doctor import place as place_module
from lsmkv.tools.doctor.engine import Advice, engine


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


def test_json_has_the_fields_that_the_help_names(tmp_path: Path) -> None:
    done = lsm("doctor", tmp_path, "--json")
    assert done.status == 0
    plain = json.loads(done.out)
    told = (command.doctor.__doc__ or "").partition("JSON:")[2]
    directory = plain["directory"]
    named = set(re.findall(r'"(\w+)"', told))
    assert named == {*plain, *directory, *directory["works"], "what", "do"}
    assert plain["problems"] == []
    assert directory["works"]["lock"] is True
    assert directory["tried_in"] == "the directory"


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


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_lines_are_no_wider_than_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    pure = engine()._replace(
        compiled=False,
        pure=Advice("it was built where there was no compiler " * 3, "Install one. " * 12),
        dependencies={f"package-{number}": "1.2.3" for number in range(12)},
        extras={"tools": {"rich": None}},
    )
    monkeypatch.setattr(report, "engine", lambda: pure)
    monkeypatch.setattr("lsmkv.tools.doctor.findings.sys.platform", "linux")
    unmapped = Trials("", "", "", "", "", is_ofd=True, mapped_log=False)
    monkeypatch.setattr(place_module, "try_directory", lambda _: unmapped)
    monkeypatch.chdir(tmp_path)
    lines = lsm("doctor", ".").out.decode().splitlines()
    assert max(map(len, lines)) <= min(columns, 100)
    assert all(line == line.rstrip() for line in lines)
    assert sum("package-" in line for line in lines) > 1
    assert any("rich (not there)" in line for line in lines)
    assert any(line.startswith("- The log is written to") for line in lines)


def test_only_the_path_that_was_given_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "data").mkdir()
    for arguments in ((), ("--json",)):
        text = lsm("doctor", tmp_path / "data", *arguments).out.decode()
        assert "~/data" in text
        assert str(tmp_path) not in text

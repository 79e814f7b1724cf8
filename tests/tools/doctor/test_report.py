"""The report of ``lsmkv doctor``, as lines and as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from commands import lsm_bytes as lsm

import lsmkv
from lsmkv.tools.doctor import command, report
from lsmkv.tools.doctor import place as place_module
from lsmkv.tools.doctor.engine import Advice, engine
from lsmkv.tools.doctor.trial import Trials


def test_json_has_the_fields_that_the_help_names(tmp_path: Path) -> None:
    done = lsm("doctor", tmp_path, "--json")
    assert done.status == 0
    plain = json.loads(done.out)
    documented = (command.doctor.__doc__ or "").partition("JSON:")[2]
    directory = plain["directory"]
    named = set(re.findall(r'"(\w+)"', documented))
    lsmkv.DB(tmp_path / "store", create_if_missing=True).close()
    there = json.loads(lsm("doctor", tmp_path / "store", "--json").out)["directory"]
    of_store, access = there["store"], there["access"]
    assert named == {
        *(*plain, *directory, *directory["works"], *of_store, "what", "do"),
        *(access[0] if access else ("name", "mode", "links", "who")),
    }
    assert directory["store"] is None
    assert plain["problems"] == []
    assert directory["works"]["lock"] is True
    assert directory["tried_in"] == "the directory"


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

"""The ``lsmkv`` command without its extra."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from commands import lsm_bytes as lsm
from processes import run_python
from started import ENVIRONMENT

import lsmkv


def without(missing: str, *arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    """Run a command as if a package were not installed."""
    program = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from lsmkv.tools.cli import main\n"
        "sys.exit(main())"
    )
    return run_python("-c", program, *arguments, text=False, env=ENVIRONMENT)


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_the_extra_doctor_reports_the_same(missing: str, store: Path) -> None:
    text, fields = without(missing, "doctor", store), without(missing, "doctor", "--json", store)
    assert (text.returncode, text.stderr) == (fields.returncode, fields.stderr) == (0, b"")
    # The room that is free changes as others write.
    reports = [
        re.sub(r"(?m)^  free .*$", "", out.decode())
        for out in (text.stdout, lsm("doctor", store).out)
    ]
    engines = [report.split("extra 'tools'")[0] for report in reports]
    places = [report.split("\n\n")[1] for report in reports]
    assert engines[0] == engines[1]
    assert places[0] == places[1]
    own = json.loads(fields.stdout)
    assert own.keys() == json.loads(lsm("doctor", "--json", store).out).keys()
    assert own["directory"]["holds_store"]


def test_without_the_extra_doctor_has_the_same_statuses_and_help(tmp_path: Path) -> None:
    missing = without("typer", "doctor", tmp_path / "none")
    assert missing.returncode == lsm("doctor", tmp_path / "none").status == 1
    assert b"Traceback" not in missing.stderr
    described = without("typer", "doctor", "--help")
    assert described.returncode == 0
    assert b"usage: lsmkv doctor [-h] [--json] [DIR]" in described.stdout
    assert without("typer", "doctor", "--nonsense").returncode == 2


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_the_extra_one_line_says_how_to_get_it(missing: str) -> None:
    done = without(missing, "demo")
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.count(b"\n") == 1
    assert b"pip install '.[tools]' in lsmkv's checkout" in done.stderr


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_without_the_extra_the_version_is_printed(option: str) -> None:
    done = without("typer", option)
    assert done.returncode == 0
    assert done.stdout.startswith(f"lsmkv {lsmkv.__version__} (".encode())
    assert done.stderr == b""

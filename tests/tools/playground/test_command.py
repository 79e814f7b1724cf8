from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from commands import fails, lsm, without
from processes import ENVIRON

from lsmkv.tools.inspect.server import listen
from lsmkv.tools.playground import command


@pytest.fixture
def made(tmp_path: Path) -> Path:
    (tmp_path / "files.json").write_text("{}")
    (tmp_path / "index.html").write_text("the page")
    return tmp_path


def test_it_serves_a_directory_until_a_signal(made: Path) -> None:
    arguments = ["playground", "--directory", str(made), "--port", "0", "--json"]
    started = [sys.executable, "-m", "lsmkv", *arguments]
    with subprocess.Popen(started, stdout=subprocess.PIPE, env=ENVIRON) as process:
        assert process.stdout is not None
        line = json.loads(process.stdout.readline())
        assert line["path"] == str(made)
        with urllib.request.urlopen(line["url"], timeout=30) as answer:
            assert answer.read() == b"the page"
        process.terminate()
    assert process.returncode == 128 + 15


def test_what_is_missing_is_said(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = tmp_path / "nothing"
    fails(lsm("playground", "--directory", nothing), "nothing: there is no playground", "npm")
    monkeypatch.setattr(command, "PLACES", (str(nothing),))
    fails(lsm("playground"), "'make playground' in a checkout of lsmkv")
    with listen("127.0.0.1", 0) as taken:
        port = str(taken.getsockname()[1])
        fails(lsm("playground", "--directory", made, "--port", port), "in use", "--port 0")


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, made: Path) -> None:
    without(monkeypatch, "lsmkv.tools.inspect.server", "uvicorn")
    fails(lsm("playground", "--directory", made), "pip install '.[tools]'")

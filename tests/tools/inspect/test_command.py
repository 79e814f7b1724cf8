from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from commands import fails, lsm, without

import lsmkv
from lsmkv.tools.inspect.server import listen


def start(*arguments: str | Path) -> tuple[subprocess.Popen[str], str]:
    """The command in a process of its own, and the URL that it prints."""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in sys.path if path))
    # As a terminal starts it, even if the suite runs in the background.
    program = (
        "import signal, sys\nfrom lsmkv.tools import cli\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\nsys.exit(cli.main())"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, "inspect", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stderr is not None
    line = process.stderr.readline()
    found = re.search(r"http://\S+", line)
    assert found, line + process.stderr.read()
    return process, found[0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_a_signal(made_store: Path, number: int) -> None:
    process, url = start(made_store, "--port", "0")
    with process:
        with urllib.request.urlopen(f"{url}api/levels", timeout=30) as answer:
            assert answer.status == 200
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert out == ""
    assert "Traceback" not in err


def test_a_token_opens_the_page(made_store: Path) -> None:
    process, url = start(made_store, "--port", "0", "--token", "correct horse battery")
    with process:
        base = url.partition("?")[0]
        asked = urllib.request.Request(
            f"{base}api/levels", headers={"Authorization": "Bearer correct horse battery"}
        )
        with urllib.request.urlopen(asked, timeout=30) as answer:
            assert answer.status == 200
        process.terminate()
        process.communicate(timeout=30)


def test_what_is_refused(made_store: Path, tmp_path: Path) -> None:
    fails(lsm("inspect", tmp_path / "nothing"), "no database here")
    fails(lsm("inspect", made_store, "--host", "0.0.0.0", "--port", "0"), "give --token")
    fails(lsm("inspect", made_store, "--token", "short"), "at least 8 characters")
    fails(lsm("inspect", made_store, "--trace", tmp_path / "trace"), "No such file", "trace")
    fails(lsm("inspect", made_store, "--policy", tmp_path / "own.py"), "No such file", "own.py")
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        fails(lsm("inspect", made_store, "--port", str(port)), "in use", "--port 0")


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, made_store: Path) -> None:
    without(monkeypatch, "lsmkv.tools.inspect.server", "uvicorn")
    fails(lsm("inspect", made_store), "pip install '.[tools]'")


def test_it_works_beside_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with lsmkv.DB(path, create_if_missing=True) as writer:
        process, url = start(path, "--port", "0")
        with process:
            writer.put(b"ant", b"six legs")
            with urllib.request.urlopen(f"{url}api/get?key=ant", timeout=30) as answer:
                assert b'"found":true' in answer.read()
            process.terminate()
            process.communicate(timeout=30)

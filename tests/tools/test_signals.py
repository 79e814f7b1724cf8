"""Signals that end a command."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from started import ENVIRONMENT, records

WAITING = (
    "import signal, sys\n"
    "from lsmkv.tools import cli, load\n"
    "def load_lines(*_):\n"
    "    try:\n"
    "        print('ready', flush=True)\n"
    "        while True:\n"
    "            signal.pause()\n"
    "    finally:\n"
    "        print('cleaned up', flush=True)\n"
    "load.load_lines = load_lines\n"
)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_sigterm_and_sighup_run_the_finally_blocks(tmp_path: Path, number: signal.Signals) -> None:
    # As a terminal starts it, even if the suite runs under nohup.
    heard = f"signal.signal({int(number)}, signal.SIG_DFL)"
    program = f"{WAITING}{heard}\nsys.exit(cli.main())"
    with subprocess.Popen(
        [sys.executable, "-c", program, "load", str(tmp_path / "db"), "/dev/null", "--create"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as load:
        assert load.stdout is not None
        assert load.stdout.readline() == b"ready\n"
        load.send_signal(number)
        out, err = load.communicate()
    assert load.returncode == 128 + number
    assert out == b"cleaned up\n"
    assert b"Traceback" not in err
    assert records(tmp_path / "db") == []  # it was closed


def test_sighup_is_ignored_under_nohup(tmp_path: Path) -> None:
    program = f"{WAITING}signal.signal(signal.SIGHUP, signal.SIG_IGN)\nsys.exit(cli.main())"
    with subprocess.Popen(
        [sys.executable, "-c", program, "load", str(tmp_path / "db"), "/dev/null", "--create"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as load:
        assert load.stdout is not None
        assert load.stdout.readline() == b"ready\n"
        load.send_signal(signal.SIGHUP)
        load.send_signal(signal.SIGTERM)
        load.communicate()
    assert load.returncode == 128 + signal.SIGTERM

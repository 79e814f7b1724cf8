"""Signals that end a command."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from started import ended_by, records

WAITING = (
    "from lsmkv.tools import load\n"
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
    load = ended_by([number], WAITING, "load", tmp_path / "db", "/dev/null", "--create")
    assert (load.status, load.out) == (128 + number, b"cleaned up\n")
    assert b"Traceback" not in load.err
    assert records(tmp_path / "db") == []  # it was closed


def test_sighup_is_ignored_under_nohup(tmp_path: Path) -> None:
    numbers = [signal.SIGHUP, signal.SIGTERM]
    arguments = ("load", tmp_path / "db", "/dev/null", "--create")
    load = ended_by(numbers, WAITING, *arguments, ignored=signal.SIGHUP)
    assert load.status == 128 + signal.SIGTERM

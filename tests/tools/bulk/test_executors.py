"""Who works in a bulk build."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from built_sets import PAIRS, content
from commands import lsm
from processes import ENVIRON

import lsmkv
import lsmkv.shards
from lsmkv.files.exchange import json_line
from lsmkv.tools.bulk.executors import open_executor


def test_any_number_of_workers_makes_the_same_bytes(source: Path, tmp_path: Path) -> None:
    for workers in (1, 2):
        done = lsm(
            *("bulk", "build", source, "--into", tmp_path / "set"),
            *("--shards", 2, "--workers", workers, "--work", tmp_path / "work"),
        )
        assert (done.status, done.err) == (0, "")
    first, second = lsmkv.bulk.versions(tmp_path / "set")
    for a, b in zip(first.shards, second.shards, strict=True):
        assert (a.first, a.pairs, a.meta, a.files) == (b.first, b.pairs, b.meta, b.files)


def assert_none_is_left(session: int) -> None:
    """Wait until no process of the session is left: what ends them has a moment to be heard."""
    with contextlib.suppress(ProcessLookupError):
        while True:
            os.killpg(session, 0)
            time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_build_and_its_workers(
    source: Path, tmp_path: Path, number: signal.Signals
) -> None:
    assert lsm("bulk", "build", source, "--into", tmp_path / "set", "--workers", 1).status == 0
    arguments = ["bulk", "build", source, "-", "--into", tmp_path / "set", "--workers", 2]
    build = subprocess.Popen(
        [sys.executable, "-m", "lsmkv", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRON,
        start_new_session=True,
    )
    with build:
        assert build.stdin is not None
        # It reads the second line only once it has begun.
        fill = json_line(b"new", b"v" * 60_000)
        for _ in range(40):
            build.stdin.write(fill)
        build.stdin.flush()
        os.killpg(build.pid, number)
        out, err = build.communicate()
    assert build.returncode == 128 + number
    assert out == b""
    assert b"Traceback" not in err
    assert_none_is_left(build.pid)
    assert content(tmp_path / "set") == PAIRS


def test_one_process_is_this_one_and_more_are_workers() -> None:
    with open_executor(1, None) as executor:
        assert executor is None
    with open_executor(2, None) as executor:
        assert executor is not None
        assert executor.submit(os.getpid).result() != os.getpid()

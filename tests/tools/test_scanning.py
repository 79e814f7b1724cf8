"""``lsmkv scan``, ``keys`` and ``count``."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from commands import Done, fails
from commands import lsm_bytes as lsm
from started import start
from stores import put_numbered

import lsmkv


def test_scan_prints_one_safe_line_for_each_record(store: Path) -> None:
    expected = "a\tcafé\nb\\n\t\\x1b[31m\n\\xff\t\\\\\n"
    assert lsm("scan", store) == Done(0, expected.encode(), "")


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        ([], ["a", "ab", "b", "c"]),
        (["--start", "ab"], ["ab", "b", "c"]),
        (["--stop", "b"], ["a", "ab"]),
        (["--start", "ab", "--stop", "c"], ["ab", "b"]),
        (["--prefix", "a"], ["a", "ab"]),
        (["--prefix", "x"], []),
        (["--reverse"], ["c", "b", "ab", "a"]),
        (["--reverse", "--limit", "2"], ["c", "b"]),
        (["--limit", "0"], []),
        (["--start", "6162", "--stop", "63", "--hex"], ["6162", "62"]),
    ],
)
def test_scan_of_a_range(tmp_path: Path, options: list[str], keys: list[str]) -> None:
    with lsmkv.DB(tmp_path / "db", create_if_missing=True) as db:
        for key in (b"a", b"ab", b"b", b"c"):
            db.put(key, b"value")
    expected = Done(0, "".join(f"{key}\n" for key in keys).encode(), "")
    assert lsm("scan", tmp_path / "db", "--keys-only", *options) == expected
    assert lsm("keys", tmp_path / "db", *options) == expected
    if not {"--reverse", "--limit"} & set(options):
        expected = Done(0, f"{len(keys)}\n".encode(), "")
        assert lsm("count", tmp_path / "db", *options) == expected
    is_hex = "--hex" in options
    values = lsm("scan", tmp_path / "db", *options).out.decode().splitlines()
    assert values == [f"{key}\t{b'value'.hex() if is_hex else 'value'}" for key in keys]


def test_count_of_more_keys_than_one_step_takes(tmp_path: Path) -> None:
    with lsmkv.DB(tmp_path / "db", create_if_missing=True) as db, db.write_batch() as batch:
        put_numbered(batch, b"%05d", range(20_001), b"")
    assert lsm("count", tmp_path / "db") == Done(0, b"20001\n", "")


@pytest.mark.parametrize("command", ["scan", "keys", "count"])
def test_a_prefix_excludes_other_bounds(store: Path, command: str) -> None:
    fails(lsm(command, store, "--prefix", "a", "--stop", "b"), "--prefix", "--stop")


def test_scan_into_a_closed_pipe_exits_like_sigpipe(tmp_path: Path) -> None:
    with lsmkv.DB(tmp_path / "db", create_if_missing=True) as db:
        put_numbered(db, b"%05d", range(5000), bytes(100))
    with start("scan", tmp_path / "db", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as scan:
        assert scan.stdout is not None
        assert scan.stderr is not None
        assert scan.stdout.readline().startswith(b"00000\t")
        scan.stdout.close()
        assert scan.stderr.read() == b""
    assert scan.returncode == 128 + signal.SIGPIPE

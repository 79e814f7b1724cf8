"""The command line: stdout, stderr, exit status, and files on disk."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import Done, fails
from commands import lsm_bytes as lsm
from started import ENVIRONMENT, NAMES, into, on_a_terminal, records, start

import lsmkv


def test_the_exit_status_of_a_process(store: Path) -> None:
    for key, status in (("a", 0), ("none", 1)):
        with start("get", store, key, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as done:
            done.communicate()
        assert done.returncode == status


def test_every_command_prints_json(tmp_path: Path) -> None:
    for name in NAMES:
        assert "--json" in lsm(*name.split(), "--help").out.decode(), name
    where = tmp_path / "db"

    def said(*arguments: str | Path, status: int = 0, stdin: bytes = b"") -> list[Any]:
        done = lsm(*arguments, "--json", stdin=stdin)
        assert done.status == status
        return [json.loads(line) for line in done.out.splitlines()]

    path = str(where)
    put = said("put", where, "k", "v\u00e9", "--create")
    assert put == [{"path": path, "key": "k", "bytes": 3}]
    assert said("put", where, "ff", "00", "--hex") == [{"path": path, "key_hex": "ff", "bytes": 1}]
    assert said("get", where, "k") == [{"key": "k", "value": "v\u00e9"}]
    assert said("get", where, "none", status=1) == [{"key": "none", "value": None}]
    assert said("scan", where) == [
        {"key": "k", "value": "v\u00e9"},
        {"key_base64": "/w==", "value": "\0"},
    ]
    keys = [{"key_hex": "6b"}, {"key_hex": "ff"}]
    assert said("scan", where, "--keys-only", "--hex") == keys
    assert said("keys", where, "--hex") == keys
    assert said("count", where) == [{"path": path, "keys": 2}]
    (loaded,) = said("load", where, "-", stdin=b"a\tb\n\nc\n")
    assert (loaded["records"], loaded["blank_lines"]) == (2, 1)
    assert said("delete", where, "k") == [{"path": path, "key": "k"}]
    fails(lsm("get", where, "k", "--raw", "--json"), "not both")


def test_a_wrong_call_is_status_2() -> None:
    for arguments in (["frobnicate"], ["get"], ["scan", "x", "--limit", "-1"], ["get", "x", "--y"]):
        done = lsm(*arguments)
        assert done.status == 2
        assert done.out == b""
        assert "Traceback" not in done.err
    assert "frobnicate" in lsm("frobnicate").err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("command", [["get", "a"], ["scan"], ["stats"]])
def test_stdout_on_a_full_disk_is_an_error(store: Path, command: list[str]) -> None:
    name, *rest = command
    assert into("/dev/full", name, store, *rest) == (2, b"lsmkv: No space left on device\n")


def test_progress_is_drawn_on_a_terminal_at_stderr(tmp_path: Path) -> None:
    line = b"key\tvalue\n"
    load = on_a_terminal("stderr", "load", tmp_path / "db", "-", "--create", stdin=line)
    assert load.out == b""
    assert b"Loading" in load.terminal
    assert b"1 record loaded" in load.terminal


# load


def test_load_from_a_file(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_bytes(b"b\tsecond\na\tfirst\n\nalone\n")
    done = lsm("load", tmp_path / "db", lines, "--create")
    assert done.status == 0
    assert done.out == b""
    assert done.err.startswith("lsmkv: 3 records loaded in ")
    assert "1 blank line left out" in done.err
    assert records(tmp_path / "db") == [(b"a", b"first"), (b"alone", b""), (b"b", b"second")]


@pytest.mark.parametrize("how", ["--escaped", "--hex"])
def test_load_reads_what_scan_prints(store: Path, tmp_path: Path, how: str) -> None:
    printed = lsm("scan", store, *(["--hex"] if how == "--hex" else []))
    assert lsm("load", tmp_path / "copy", "-", "--create", how, stdin=printed.out).status == 0
    assert records(tmp_path / "copy") == records(store)


def test_load_names_a_bad_line_and_puts_those_before_it(store: Path) -> None:
    done = lsm("load", store, "-", "--hex", stdin=b"00\t01\nxyz\n")
    assert done.status == 2
    message, error = done.err.splitlines()
    assert message.startswith("lsmkv: 1 record loaded")
    assert error == "lsmkv: line 2: not hexadecimal: 'xyz'"
    assert lsm("get", store, "00", "--hex").out == b"01\n"
    fails(lsm("load", store, "-", "--hex", "--escaped"), "--escaped", "--hex")


def test_load_of_a_file_that_cannot_be_read(store: Path, tmp_path: Path) -> None:
    fails(lsm("load", store, tmp_path / "none"), "none: No such file or directory")
    fails(lsm("load", store, tmp_path), "Is a directory")
    fails(lsm("load", tmp_path / "new", tmp_path / "none", "--create"), "none")
    assert not (tmp_path / "new").exists()


# Stores that are missing, in use or damaged


READERS: list[Callable[[Path], list[str | Path]]] = [
    lambda path: ["get", path, "k"],
    lambda path: ["delete", path, "k"],
    lambda path: ["scan", path],
    lambda path: ["keys", path],
    lambda path: ["count", path],
    lambda path: ["explain", path, "k"],
    lambda path: ["stats", path],
    lambda path: ["put", path, "k", "v"],
    lambda path: ["load", path, "-"],
]


@pytest.mark.parametrize("command", READERS)
def test_nothing_creates_a_store_by_accident(
    command: Callable[[Path], list[str | Path]], tmp_path: Path
) -> None:
    done = lsm(*command(tmp_path / "none"))
    fails(done, f"{tmp_path / 'none'}: no database here")
    # The commands that can create a store say how.
    assert ("--create" in done.err) == (command(tmp_path)[0] in ("put", "load"))
    assert not (tmp_path / "none").exists()
    (tmp_path / "empty").mkdir()
    fails(lsm(*command(tmp_path / "empty")), "no database here")
    assert list((tmp_path / "empty").iterdir()) == []


def test_the_error_says_why_a_store_cannot_be_created(tmp_path: Path) -> None:
    deep = tmp_path / "missing" / "store"
    fails(lsm("put", "--create", deep, "k", "v"), f"{deep}: the directory above it does not exist")
    done = lsm("put", "--create", "", "k", "v")
    fails(done, "'': ")
    assert "no database here" not in done.err


def test_a_file_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    fails(lsm("get", tmp_path / "file", "k"), "file: Not a directory")


def test_a_store_in_use_can_be_read_but_not_written(store: Path) -> None:
    with lsmkv.DB(store) as db:
        fails(lsm("put", store, "a", "b"), str(store), "in use", "held by this process")
        db.put(b"new", b"one")
        assert lsm("get", store, "new") == Done(0, b"one\n", "")


def test_a_damaged_table_is_named(store: Path) -> None:
    (table,) = store.glob("*.ldb")
    content = bytearray(table.read_bytes())
    content[5] ^= 0xFF
    table.write_bytes(content)
    fails(lsm("get", store, "a"), table.name, "offset 0")


def test_a_damaged_current_is_named(store: Path) -> None:
    (store / "CURRENT").write_bytes(b"nonsense\n")
    fails(lsm("scan", store), "CURRENT")


# Signals


def test_ctrl_c_ends_a_load_without_a_traceback(tmp_path: Path) -> None:
    # A shell's background job ignores SIGINT, and its children inherit that.
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from lsmkv.tools.cli import main\n"
        "sys.exit(main())"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, "load", str(tmp_path / "db"), "-", "--create"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as load:
        assert load.stdin is not None
        assert load.stderr is not None
        # This is more than a pipe and a batch hold: once it is written, the load has begun.
        load.stdin.write(b"".join(b"%d\n" % number for number in range(100_000)))
        load.stdin.flush()
        load.send_signal(signal.SIGINT)
        err = load.stderr.read().decode()
    assert load.returncode == 130
    assert "Traceback" not in err
    assert err.endswith("lsmkv: interrupted\n")
    assert len(records(tmp_path / "db")) > 0

"""``lsmkv put``, ``get`` and ``delete``."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from commands import Done, fails
from commands import lsm_bytes as lsm
from others import Other, new
from started import on_a_terminal, records

from lsmkv.shared.system.local import SHARES


def test_put_and_get(store: Path) -> None:
    assert lsm("put", store, "ключ", "значение") == Done(0, b"", "")
    assert lsm("get", store, "ключ") == Done(0, "значение\n".encode(), "")
    assert lsm("put", store, "ключ", "") == Done(0, b"", "")
    assert lsm("get", store, "ключ") == Done(0, b"\n", "")


def test_a_value_from_stdin_is_kept_byte_for_byte(store: Path) -> None:
    value = bytes(range(256)) + b"\n"
    assert lsm("put", store, "k", "-", stdin=value).status == 0
    assert lsm("get", store, "k").out == value + b"\n"
    assert lsm("get", store, "k", "--raw").out == value
    assert lsm("get", store, "6b", "--hex").out == value.hex().encode() + b"\n"


def test_keys_and_values_in_hexadecimal(store: Path) -> None:
    assert lsm("put", store, "00ff", "0A0b", "--hex") == Done(0, b"", "")
    assert lsm("put", store, "00fe", "-", "--hex", stdin=b"01 02\n") == Done(0, b"", "")
    assert dict(records(store))[b"\x00\xff"] == b"\n\x0b"
    assert dict(records(store))[b"\x00\xfe"] == b"\x01\x02"
    for arguments in (["zz", "00"], ["00", "0"], ["00", "-"]):
        fails(lsm("put", store, *arguments, "--hex", stdin=b"0 0 0"), "not hexadecimal")
    fails(lsm("get", store, "zz", "--hex"), "not hexadecimal: 'zz'")


def test_a_key_that_is_not_utf8(store: Path) -> None:
    assert lsm("get", store, os.fsdecode(b"\xff")).out == b"\\\n"


def test_a_miss_is_status_1(store: Path) -> None:
    assert lsm("get", store, "no\x1bkey") == Done(1, b"", "lsmkv: no\\x1bkey: no such key\n")


def test_delete(store: Path) -> None:
    assert lsm("delete", store, "a") == Done(0, b"", "")
    assert lsm("get", store, "a").status == 1
    assert lsm("delete", store, "a") == Done(0, b"", "")
    assert lsm("delete", store, "ff", "--hex") == Done(0, b"", "")
    assert records(store) == [(b"b\n", b"\x1b[31m")]


def test_control_characters_are_escaped_on_a_terminal(store: Path) -> None:
    for options, expected in (([], b"\\x1b[31m\r\n"), (["--raw"], b"\x1b[31m")):
        done = on_a_terminal("stdout", "get", store, "b\n", *options)
        assert (done.status, done.terminal) == (0, expected)


def test_create_makes_a_store(tmp_path: Path) -> None:
    assert lsm("put", tmp_path / "db", "k", "v", "--create") == Done(0, b"", "")
    assert records(tmp_path / "db") == [(b"k", b"v")]


@pytest.mark.skipif(not SHARES, reason="stores are shared on Linux and macOS")
def test_a_store_that_processes_share_is_joined(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with new(path) as db:
        owner = Other(path)  # and another process owns it as soon as this one leaves
        try:
            (tmp_path / "lines").write_bytes(b"loaded\tl\n")
            assert lsm("put", path, "k", "v").status == 0
            assert lsm("load", path, tmp_path / "lines").status == 0
            assert owner("db.get(b'k'), db.get(b'loaded')") == (b"v", b"l")
            assert lsm("delete", path, "k").status == 0
            assert owner("db.get(b'k')") is None
            copy = tmp_path / "copy"
            assert lsm("export", path, "-o", copy).status == 0
            assert lsm("delete", path, "loaded").status == 0
            assert lsm("import", path, copy).status == 0
            assert owner("db.get(b'loaded')") == b"l"
            assert lsm("compact", path).status == 0
            assert db.stats().levels[0].files == 0
            fails(lsm("compact", path, "--filter", "none"), "open it with lsmkv.SharedDB")
            db.close()
            assert lsm("put", path, "k", "w").status == 0
            assert owner("db.get(b'k'), db.role") == (b"w", "owner")
        finally:
            owner.kill()


RANGES: list[tuple[list[str], str]] = [
    (["--prefix", "b"], "1 key"),
    (["--start", "a", "--stop", "b"], "1 key"),
    (["--start", "a"], "3 keys"),
    (["--start", "61", "--stop", "62", "--hex"], "1 key"),
]


@pytest.mark.parametrize(("bounds", "counted"), RANGES)
def test_delete_a_range(store: Path, bounds: list[str], counted: str) -> None:
    before = len(records(store))
    fails(lsm("delete", store, *bounds), f"this deletes {counted}: give --yes")
    assert len(records(store)) == before
    assert lsm("delete", store, *bounds, "--yes") == Done(0, f"deleted {counted}\n".encode(), "")
    assert len(records(store)) == before - int(counted[0])
    done = lsm("delete", store, *bounds, "--yes", "--json")
    assert json.loads(done.out) == {"path": str(store), "keys": 0}


@pytest.mark.parametrize(("answer", "status"), [(b"y\n", 0), (b"\n", 1)])
def test_delete_of_a_range_asks_on_a_terminal(store: Path, answer: bytes, status: int) -> None:
    before = len(records(store))
    done = on_a_terminal("stdin", "delete", store, "--prefix", "a", stdin=answer)
    assert done.status == status
    assert f"Delete 1 key of {store}? [y/N]".encode() in done.err
    assert len(records(store)) == before - (status == 0)


def test_delete_takes_a_key_or_a_range(store: Path) -> None:
    for arguments in ([], ["a", "--prefix", "a"], ["a", "--start", "a"]):
        fails(
            lsm("delete", store, *arguments, "--yes"), "give a KEY, or --start, --stop or --prefix"
        )
    fails(lsm("delete", store, "--prefix", "a", "--stop", "b", "--yes"), "not both")

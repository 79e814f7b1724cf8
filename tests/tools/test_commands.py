"""``lsmkv put``, ``get`` and ``delete``."""

from __future__ import annotations

import os
from pathlib import Path

from commands import Done, fails
from commands import lsm_bytes as lsm
from started import on_a_terminal, records


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

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmkv.files.programs.nbt import nbt_text


def named(kind: int, name: str, payload: bytes = b"") -> bytes:
    encoded = name.encode()
    return bytes([kind]) + struct.pack("<H", len(encoded)) + encoded + payload


def root(*members: bytes, name: str = "") -> bytes:
    return named(10, name) + b"".join(members) + b"\x00"


FLOAT = struct.pack("<f", 1.3)


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ([], "{}"),
        ([named(1, "a", b"\xff"), named(2, "b", b"\x00\x80")], "{a: -1, b: -32768}"),
        ([named(3, "a", b"\x01\x00\x00\x00"), named(4, "b", b"\xff" * 8)], "{a: 1, b: -1}"),
        ([named(5, "f", FLOAT), named(6, "d", struct.pack("<d", 0.5))], "{f: 1.3, d: 0.5}"),
        ([named(7, "a", b"\x02\x00\x00\x00ab")], "{a: <2 bytes>}"),
        ([named(11, "a", struct.pack("<iii", 2, 1, 2))], "{a: <2 integers>}"),
        ([named(12, "a", struct.pack("<iq", 1, 1))], "{a: <1 integer>}"),
        ([named(8, "identifier", b"\x03\x00pig")], '{identifier: "pig"}'),
        ([named(9, "Pos", b"\x05" + struct.pack("<i", 2) + FLOAT * 2)], "{Pos: [1.3, 1.3]}"),
        ([named(9, "none", b"\x00\x00\x00\x00\x00")], "{none: []}"),
        ([named(9, "l", b"\x0a\x02\x00\x00\x00\x00" + named(1, "x", b"\x07") + b"\x00")],
         "{l: [{}, {x: 7}]}"),
        ([named(10, "a b", named(1, "", b"\x01") + b"\x00")], '{"a b": {"": 1}}'),
    ],
)  # fmt: skip
def test_compounds(members: list[bytes], text: str) -> None:
    assert nbt_text(root(*members)) == text
    assert nbt_text(root(*members, name="n")) == f"n: {text}"
    assert nbt_text(root(*members) * 2) == f"{text}, {text}"


@pytest.mark.parametrize(
    "data", [b"", b"\x0a", b"\x0a\x00", b"\x09\x00\x00", b"ant", b"\x0a\x09\x00"]
)
def test_other_bytes_have_no_text(data: bytes) -> None:
    assert nbt_text(data) is None


def test_a_list_of_nothing_has_no_length() -> None:
    endless = named(9, "l", b"\x00\xff\xff\xff\x7f")
    assert nbt_text(root(endless)) == "{l: []}"


@pytest.mark.parametrize(
    "payload",
    [
        named(13, "x"),
        named(9, "x", b"\x01\xff\xff\xff\x7f"),
        named(7, "x", b"\xff\xff\xff\xff"),
        named(12, "x", b"\xff\xff\xff\x7f"),
        named(9, "x", b"\x09\x01\x00\x00\x00" * 100_000),
        named(10, "x") * 100_000,
    ],
)
def test_what_makes_no_sense_ends_the_text(payload: bytes) -> None:
    text = nbt_text(root(payload))
    assert text is not None
    assert text.endswith("…")
    assert len(text) < 1000


@given(st.binary(), st.sampled_from([b"", b"\x0a\x00\x00", root()]))
def test_any_bytes_have_a_text_or_none(data: bytes, head: bytes) -> None:
    text = nbt_text(head + data)
    assert text is None or text

"""lsmkv.shards.remote.disk_page: a page's file, byte for byte."""

from __future__ import annotations

import hashlib

import pytest

from lsmkv.errors import CorruptionError
from lsmkv.shards.remote.disk_page import check_page, decode_page, encode_page, page_key, page_name

KEY = page_key("sha256 00ff", 300)


def test_the_exact_bytes() -> None:
    assert KEY == b"\x0bsha256 00ff\xac\x02"
    assert encode_page(KEY, b"data") == b"lsPg" + bytes.fromhex("b78b827f") + KEY + b"data"
    assert page_name(KEY) == hashlib.sha256(KEY).hexdigest()


def test_round_trip() -> None:
    for data in (b"", b"x", bytes(range(256)) * 128):
        assert decode_page(encode_page(KEY, data), KEY) == data
        check_page(encode_page(KEY, data), page_name(KEY))


def test_a_cut_at_every_byte_is_corruption() -> None:
    content = encode_page(KEY, b"data" * 5)
    for length in range(len(content)):
        with pytest.raises(CorruptionError):
            decode_page(content[:length], KEY)
    with pytest.raises(CorruptionError):
        decode_page(content + b"\0", KEY)


def test_a_change_of_any_bit_is_corruption() -> None:
    content = encode_page(KEY, b"data" * 5)
    for at in range(len(content)):
        for bit in range(8):
            damaged = content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]
            with pytest.raises(CorruptionError):
                decode_page(damaged, KEY)


def test_a_page_of_another_key_is_refused() -> None:
    content = encode_page(KEY, b"data")
    for other in (page_key("sha256 00ff", 301), page_key("sha256 00fe", 300), page_key("", 0)):
        with pytest.raises(CorruptionError, match="another"):
            decode_page(content, other)
        with pytest.raises(CorruptionError, match="another page's name"):
            check_page(content, page_name(other))

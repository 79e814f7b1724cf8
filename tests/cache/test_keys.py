"""The keys of a cache's store."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmkv.cache.codecs import DefaultCodec
from lsmkv.cache.keys import (
    MOST,
    decode_key,
    encode_key,
    head_key,
    moment,
    position_number,
    tag_prefix,
)
from lsmkv.errors import CorruptionError, UnsupportedValueError

CODEC = DefaultCodec()
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.integers(-3, 3)
SIMPLE = NUMBERS | st.text() | st.binary() | st.none() | st.booleans()
KEYS = st.recursive(SIMPLE, lambda keys: st.lists(keys, max_size=3).map(tuple))


@pytest.mark.parametrize(
    ("key", "encoded"),
    [
        ("ant", b"\x20ant"),
        (b"ant", b"\x30ant"),
        (7, b"\x10\x80\0\0\0\0\0\0\x07"),
        (7.0, b"\x10\x80\0\0\0\0\0\0\x07"),
        (-1, b"\x10\x7f\xff\xff\xff\xff\xff\xff\xff"),
        (0.5, b"\x10\x80\0\0\0\0\0\0\0\xbf\xe0\0\0\0\0\0\0"),
        (None, b"\x01"),
        (False, b"\x02"),
        (True, b"\x03"),
        (("a", b"\0"), b"\x40\x20a\0\0\x30\0\xff\0\0\0"),
        ([1], b"\x50[\x01\x81"),
    ],
)
def test_exact_bytes(key: Any, encoded: bytes) -> None:
    assert encode_key(key, CODEC) == encoded
    assert head_key(key, CODEC) == b"h" + encoded
    assert decode_key(encoded, CODEC) == key


@given(KEYS)
def test_a_key_comes_back(key: Any) -> None:
    assert decode_key(encode_key(key, CODEC), CODEC) == key


@given(NUMBERS, NUMBERS)
def test_numbers_are_in_their_order(one: float, other: float) -> None:
    encoded = encode_key(one, CODEC), encode_key(other, CODEC)
    assert (encoded[0] < encoded[1], encoded[0] == encoded[1]) == (one < other, one == other)


@given(st.lists(st.text(), max_size=3).map(tuple), st.lists(st.text(), max_size=3).map(tuple))
def test_tuples_are_in_the_order_of_their_items(one: Any, other: Any) -> None:
    in_bytes = tuple(text.encode() for text in one) < tuple(text.encode() for text in other)
    assert (encode_key(one, CODEC) < encode_key(other, CODEC)) == in_bytes


@given(st.lists(NUMBERS, max_size=3).map(tuple), st.lists(NUMBERS, max_size=3).map(tuple))
def test_so_are_tuples_of_numbers(one: Any, other: Any) -> None:
    assert (encode_key(one, CODEC) < encode_key(other, CODEC)) == (one < other)


def test_not_a_number_is_a_key() -> None:
    assert math.isnan(decode_key(encode_key(math.nan, CODEC), CODEC))


@pytest.mark.parametrize("key", [2**63, -(2**63) - 1, [1, "a"], {"a": 1}, (1, [2]), (2**63,)])
def test_the_codec_takes_other_keys(key: Any) -> None:
    encoded = encode_key(key, CODEC)
    assert encoded[0] == 0x50
    assert decode_key(encoded, CODEC) == key


def test_a_key_that_nobody_takes() -> None:
    with pytest.raises(UnsupportedValueError):
        head_key({object()}, CODEC)


@given(KEYS, st.data())
def test_cut_and_changed_keys_are_damage_or_keys(key: Any, data: st.DataObject) -> None:
    encoded = bytearray(encode_key(key, CODEC))
    at = data.draw(st.integers(0, len(encoded) - 1))
    encoded[at] = data.draw(st.integers(0, 255))
    for damaged in (bytes(encoded), bytes(encoded[:at])):
        try:
            decode_key(damaged, CODEC)
        except CorruptionError:
            pass


def test_a_moment_is_in_microseconds() -> None:
    assert position_number(moment(1.5)) == 1_500_000
    assert position_number(moment(-1.0)) == 0
    assert position_number(moment(math.inf)) == MOST


def test_no_tag_is_the_beginning_of_another() -> None:
    assert not tag_prefix(encode_key("insects", CODEC)).startswith(
        tag_prefix(encode_key("insect", CODEC))
    )

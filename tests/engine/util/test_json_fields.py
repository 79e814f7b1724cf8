"""lsmkv.engine.util.json_fields: any bytes in fields of JSON, and back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmkv.engine.util.json_fields import json_field, parse_json_object, take_field


@given(st.binary(), st.booleans())
def test_any_bytes_come_back(data: bytes, is_hex: bool) -> None:
    fields = parse_json_object(json.dumps(json_field("key", data, is_hex)).encode())
    assert take_field(fields, "key") == data
    assert fields == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"{", "not JSON: .* at column 2"),
        (b"[1]", "not a JSON object"),
        (b'{"a": 1, "a": 1}', "occurs twice"),
        (b'{"\xff": 1}', "not UTF-8: byte 3"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_object_is_said(text: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_json_object(text)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "the key is missing"),
        ({"key": "a", "key_hex": "61"}, "in several forms"),
        ({"key": 1}, "key is not a string"),
        ({"key_hex": "6"}, "key_hex is not hexadecimal"),
        ({"key_base64": "/w="}, "key_base64 is not base64"),
        ({"key": "\ud800"}, "half of a surrogate pair"),
    ],
)
def test_a_field_that_is_wrong_is_named(fields: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        take_field(fields, "key")

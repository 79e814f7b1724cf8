"""The head of an entry."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmkv.cache.entry_head import (
    CHUNK_SIZE,
    ENTRY_OVERHEAD,
    Pointer,
    entry_size,
    make,
    parse,
    with_expiry,
)
from lsmkv.errors import CorruptionError

NUMBER = b"number of 12"
TIMES = st.none() | st.floats(allow_nan=False)
TAGS = st.none() | st.binary(max_size=5)


def test_exact_bytes() -> None:
    plain = make(NUMBER, 1.0, None, None, False, b"value")
    assert plain == b"\0" + NUMBER + b"\x3f\xf0\0\0\0\0\0\0" + b"value"
    whole = make(NUMBER, 1.0, 2.0, b"tag", True, Pointer(5, NUMBER))
    assert whole == (
        b"\x0f" + NUMBER + b"\x3f\xf0\0\0\0\0\0\0" + b"\x40\0\0\0\0\0\0\0"
        b"\0\x03tag" + b"\0\0\0\0\0\0\0\x05" + NUMBER
    )


@given(TIMES, TAGS, st.booleans(), st.binary(max_size=5))
def test_a_head_comes_back(
    expiry: float | None, tag: bytes | None, raw: bool, value: bytes
) -> None:
    data = make(NUMBER, 1.5, expiry, tag, raw, value)
    head = parse(data)
    assert (head.number, head.stored, head.expiry, head.tag) == (NUMBER, 1.5, expiry, tag)
    assert data[head.begin :] == value
    assert head.pointer is None
    assert parse(with_expiry(data, head, 3.0))[2:5] == (1.5, 3.0, tag)


def test_a_pointer_comes_back() -> None:
    pointer = Pointer(CHUNK_SIZE + 1, NUMBER)
    data = make(NUMBER, 1.5, None, b"tag", False, pointer)
    assert parse(data).pointer == pointer
    assert pointer.chunks == 2
    assert parse(with_expiry(data, parse(data), 3.0)).pointer == pointer


def test_the_moment_of_expiry_is_expired() -> None:
    head = parse(make(NUMBER, 1.0, 2.0, None, False, b""))
    assert [head.expired(now) for now in (1.9, 2.0)] == [False, True]


def test_size() -> None:
    assert entry_size(b"name", b"head", None) == 8 + ENTRY_OVERHEAD
    assert entry_size(b"name", b"head", Pointer(100, NUMBER)) == 108 + ENTRY_OVERHEAD


def test_a_head_that_ends_early_is_damaged() -> None:
    data = make(NUMBER, 1.0, 2.0, b"tag", False, Pointer(5, NUMBER))
    for end in range(len(data)):
        with pytest.raises(CorruptionError):
            parse(data[:end])


def test_a_tag_that_is_too_long() -> None:
    with pytest.raises(ValueError, match="65,536"):
        make(NUMBER, 1.0, None, bytes(65_536), False, b"")

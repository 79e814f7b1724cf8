"""Replies as bytes, read back by hiredis."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving import parsed

from lsmkv.server.resp import (
    NULL_ARRAY,
    OK,
    ByKey,
    CommandError,
    Members,
    Pairs,
    Push,
    Simple,
    Verbatim,
    encode,
    format_double,
)


@pytest.mark.parametrize(
    ("reply", "resp2", "resp3"),
    [
        (None, b"$-1\r\n", b"_\r\n"),
        (NULL_ARRAY, b"*-1\r\n", b"_\r\n"),
        (b"a\r\n", b"$3\r\na\r\n\r\n", b"$3\r\na\r\n\r\n"),
        (-7, b":-7\r\n", b":-7\r\n"),
        (True, b":1\r\n", b"#t\r\n"),
        (False, b":0\r\n", b"#f\r\n"),
        (1.5, b"$3\r\n1.5\r\n", b",1.5\r\n"),
        ([], b"*0\r\n", b"*0\r\n"),
        ([1, (b"a", None)], b"*2\r\n:1\r\n*2\r\n$1\r\na\r\n$-1\r\n",
         b"*2\r\n:1\r\n*2\r\n$1\r\na\r\n_\r\n"),
        (Members([1]), b"*1\r\n:1\r\n", b"~1\r\n:1\r\n"),
        ({b"k": [True]}, b"*2\r\n$1\r\nk\r\n*1\r\n:1\r\n", b"%1\r\n$1\r\nk\r\n*1\r\n#t\r\n"),
        (Pairs([(b"m", 2.0)]), b"*2\r\n$1\r\nm\r\n$1\r\n2\r\n", b"*1\r\n*2\r\n$1\r\nm\r\n,2\r\n"),
        (ByKey([(b"k", [1])]),
         b"*1\r\n*2\r\n$1\r\nk\r\n*1\r\n:1\r\n", b"%1\r\n$1\r\nk\r\n*1\r\n:1\r\n"),
        (Push([b"message"]), b"*1\r\n$7\r\nmessage\r\n", b">1\r\n$7\r\nmessage\r\n"),
        (Verbatim(b"hi"), b"$2\r\nhi\r\n", b"=6\r\ntxt:hi\r\n"),
        (Simple("PONG"), b"+PONG\r\n", b"+PONG\r\n"),
        (OK, b"+OK\r\n", b"+OK\r\n"),
        (CommandError("ERR a\r\nb\udcff"), b"-ERR a  b\xff\r\n", b"-ERR a  b\xff\r\n"),
    ],
)  # fmt: skip
def test_each_type(reply: Any, resp2: bytes, resp3: bytes) -> None:
    assert encode(reply) == resp2
    assert encode(reply, resp3=True) == resp3
    for nested, data in ((encode([reply, reply]), resp2), (encode([reply, reply], True), resp3)):
        assert nested == b"*2\r\n" + data * 2


def test_another_type_is_none() -> None:
    with pytest.raises(TypeError, match="no reply: 'text'"):
        encode("text")
    with pytest.raises(TypeError, match="no reply"):
        encode([object()])


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.binary()
    | st.floats(allow_nan=False)
)
replies = st.recursive(
    scalars,
    lambda inner: st.lists(inner) | st.dictionaries(st.binary(), inner),
    max_leaves=20,
)


@given(st.lists(replies, min_size=1))
def test_hiredis_reads_resp3_back(sent: list[Any]) -> None:
    assert parsed(b"".join(encode(one, resp3=True) for one in sent)) == sent


def flat(reply: Any) -> Any:
    """What RESP2 makes of a reply."""
    if isinstance(reply, bool):
        return int(reply)
    if isinstance(reply, float):
        return format_double(reply)
    if isinstance(reply, dict):
        return [flat(one) for pair in reply.items() for one in pair]
    return [flat(one) for one in reply] if isinstance(reply, list) else reply


@given(st.lists(replies, min_size=1))
def test_hiredis_reads_resp2_back(sent: list[Any]) -> None:
    assert parsed(b"".join(encode(one) for one in sent)) == [flat(one) for one in sent]


@given(st.floats(allow_nan=False))
def test_a_double_keeps_its_value(value: float) -> None:
    text = format_double(value)
    assert float(text) == value
    assert math.copysign(1, float(text)) == math.copysign(1, value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.0, b"3"), (-0.0, b"-0"), (0.1, b"0.1"), (0.1 + 0.2, b"0.30000000000000004"),
        (1e16, b"10000000000000000"), (1e17, b"1e+17"), (1e-7, b"1e-07"), (-math.inf, b"-inf"),
    ],
)  # fmt: skip
def test_how_a_double_is_written(value: float, text: bytes) -> None:
    assert format_double(value) == text

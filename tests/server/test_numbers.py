"""Numbers in requests."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmkv.server.numbers import MAX_INT, MIN_INT, add_decimal, to_float, to_int
from lsmkv.server.resp import CommandError


@given(st.integers(MIN_INT, MAX_INT))
def test_integers(number: int) -> None:
    assert to_int(b"%d" % number) == number


@pytest.mark.parametrize(
    "text",
    [b"", b" 1", b"1 ", b"+1", b"-0", b"01", b"1.0", b"1e3", b"0x1", b"1_0", b"\xd9\xa1", b"1\n",
     b"%d" % (MAX_INT + 1), b"%d" % (MIN_INT - 1), b"9" * 5000],
)  # fmt: skip
def test_what_is_no_integer(text: bytes) -> None:
    with pytest.raises(CommandError, match=r"^ERR value is not an integer or out of range$"):
        to_int(text)
    with pytest.raises(CommandError, match=r"^ERR mine$"):
        to_int(text, "ERR mine")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"1", 1.0), (b"-1.5e3", -1500.0), (b"+.5", 0.5), (b"5.", 5.0), (b"0E-400", 0.0),
        (b"inf", math.inf), (b"-INFINITY", -math.inf), (b"0x1F", 31.0), (b"-0xa", -10.0),
        (b"1" + b"0" * 300, 1e300),
    ],
)  # fmt: skip
def test_floats(text: bytes, value: float) -> None:
    assert to_float(text) == value


@pytest.mark.parametrize(
    "text",
    [b"", b" 1", b"1 ", b"nan", b"-NaN", b"1e", b".", b"e5", b"1e400", b"-1e400", b"1_0", b"0x",
     b"infin", b"0x" + b"f" * 300, b"9" * 5000],
)  # fmt: skip
def test_what_is_no_float(text: bytes) -> None:
    with pytest.raises(CommandError, match=r"^ERR value is not a valid float$"):
        to_float(text)


@pytest.mark.parametrize(
    ("old", "increment", "total"),
    [
        (b"0.1", b"0.2", b"0.3"), (b"10.50", b"0.1", b"10.6"), (b"5.0e3", b"2.0e2", b"5200"),
        (b"1", b"-1", b"0"), (b"-0.1", b"0.1", b"0"), (b"3", b"-5", b"-2"), (b"0", b"1e-400", b"0"),
        (b"0", b"1e20", b"100000000000000000000"),
    ],
)  # fmt: skip
def test_sums(old: bytes, increment: bytes, total: bytes) -> None:
    assert add_decimal(old, increment) == total


@given(st.decimals(-(10**15), 10**15, places=9), st.decimals(-(10**15), 10**15, places=9))
def test_sums_are_exact(one: Decimal, other: Decimal) -> None:
    total = add_decimal(f"{one:f}".encode(), f"{other:f}".encode())
    assert Decimal(total.decode()) == one + other


@pytest.mark.parametrize(
    "text", [b"", b"a", b" 1", b"1 ", b"1_0", b"nan", b"\xff", b"1e1000000", b"-1e999999"]
)
def test_what_cannot_be_added(text: bytes) -> None:
    for one, other in ((text, b"1"), (b"1", text)):
        with pytest.raises(CommandError, match=r"^ERR value is not a valid float$"):
            add_decimal(one, other)


def test_a_sum_that_is_too_large() -> None:
    with pytest.raises(CommandError, match="would produce NaN or Infinity"):
        add_decimal(b"1.1e4932", b"1.1e4932")

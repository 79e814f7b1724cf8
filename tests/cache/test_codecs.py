"""Codecs: exact types, exact bytes, errors with a place, and bytes from a stranger."""

from __future__ import annotations

import collections
import copy
import enum
import hashlib
import hmac
import math
import pickle
import struct
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmkv.cache.codecs import Codec, DefaultCodec, PickleCodec
from lsmkv.errors import CorruptionError, Error, UnsupportedValueError

CODEC = DefaultCodec()
KEY = b"a key of the test"


class Color(enum.IntEnum):
    RED = 1


class Sub(str):
    pass


Point = collections.namedtuple("Point", "x y")

scalars = st.one_of(
    st.binary(max_size=200),
    st.text(st.characters(codec=None), max_size=50),
    st.integers(),
    st.integers(-300, 300),
    st.floats(),
    st.none(),
    st.booleans(),
)
hashable = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=5)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(hashable, inner, max_size=4),
    ),
    max_leaves=20,
)


def exact(value: Any) -> Any:
    """What two values have in common that are equal, with all of their types."""
    kind = type(value)
    if kind is float:
        return kind, struct.pack("<d", value)
    if kind in (list, tuple):
        return kind, [exact(item) for item in value]
    if kind is dict:
        return kind, [(exact(key), exact(item)) for key, item in value.items()]
    return kind, value


# DefaultCodec


@given(values)
def test_a_value_comes_back_with_all_of_its_types(value: Any) -> None:
    assert exact(CODEC.decode(CODEC.encode(value))) == exact(value)


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (b"", b"b"),
        (b"ab", b"bab"),
        ("", b"s"),
        ("é", b"s\xc3\xa9"),
        ("\ud800", b"s\xed\xa0\x80"),
        (0, b"\x80"),
        (127, b"\xff"),
        (128, b"i\x80\x00"),
        (-1, b"i\xff"),
        (-128, b"i\x80\xff"),
        (1 << 64, b"i" + bytes(8) + b"\x01"),
        (1.0, b"d" + struct.pack("<d", 1.0)),
        (None, b"n"),
        (True, b"t"),
        (False, b"f"),
        ((), b"(\x00"),
        ([b"a", "b", 128, 5], b"[\x04b\x01as\x01bi\x02\x80\x00\x85"),
        ({1: (True,)}, b"{\x01\x81(\x01t"),
    ],
)
def test_the_bytes_of_values(value: Any, data: bytes) -> None:
    assert CODEC.encode(value) == data
    assert exact(CODEC.decode(data)) == exact(value)


def test_true_is_not_one_and_an_order_of_a_dict_is_kept() -> None:
    value = {"b": True, "a": 1, "c": 1.0, ("t",): [None]}
    again = CODEC.decode(CODEC.encode(value))
    assert list(again) == ["b", "a", "c", ("t",)]
    assert [type(item) for item in again.values()] == [bool, int, float, list]


def test_a_nan_and_a_negative_zero_keep_their_bits() -> None:
    assert math.isnan(CODEC.decode(CODEC.encode(float("nan"))))
    assert math.copysign(1, CODEC.decode(CODEC.encode([-0.0]))[0]) == -1


@pytest.mark.parametrize(
    ("value", "kind", "where"),
    [
        ({1}, "set", "value"),
        (object(), "object", "value"),
        (bytearray(b"x"), "bytearray", "value"),
        (memoryview(b"x"), "memoryview", "value"),
        (1j, "complex", "value"),
        (Color.RED, f"{__name__}.Color", "value"),
        ([1, Sub("text")], f"{__name__}.Sub", "value[1]"),
        ((1, Point(1, 2)), f"{__name__}.Point", "value[1]"),
        ({"a": [1, {b"b": {2}}]}, "set", "value['a'][1][b'b']"),
        ({frozenset(): 1}, "frozenset", "the key <frozenset> of value"),
        ([{(1, Color.RED): 1}], f"{__name__}.Color", "the key <tuple> of value[0][1]"),
        ({"k" * 100: {1}}, "set", f"value['{'k' * 36}...]"),
        ({(1, 2): {1}}, "set", "value[<tuple>]"),
    ],
)
def test_a_refused_value_is_named_with_its_place(value: Any, kind: str, where: str) -> None:
    with pytest.raises(UnsupportedValueError) as caught:
        CODEC.encode(value)
    assert (caught.value.kind, caught.value.where) == (kind, where)
    article = "an" if kind[0] in "aeiou" else "a"
    assert str(caught.value).startswith(f"{article} {kind} at {where}: this codec takes bytes, str")
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, Error)


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_containers_are_nested_at_most_64_deep() -> None:
    assert CODEC.decode(CODEC.encode(nested(64))) == nested(64)
    with pytest.raises(UnsupportedValueError, match="64 containers within each other") as caught:
        CODEC.encode(nested(65))
    assert caught.value.where == "value" + 64 * "[0]"
    with pytest.raises(CorruptionError, match="nested more than 64 deep"):
        CODEC.decode(b"[\x01" * 64 + b"[\x00")


def test_a_list_that_contains_itself_is_refused() -> None:
    value: list[Any] = [1]
    value.append(value)
    with pytest.raises(UnsupportedValueError, match="64 containers"):
        CODEC.encode(value)


# Bytes from a stranger


def read(data: bytes) -> Any:
    """The value, or None for the one error that there may be."""
    try:
        return CODEC.decode(data)
    except CorruptionError:
        return None


@given(st.binary(max_size=300))
def test_any_bytes_are_a_value_or_corruption(data: bytes) -> None:
    value = read(data)
    assert exact(CODEC.decode(CODEC.encode(value))) == exact(value)


@given(st.lists(st.sampled_from([*b"bsidntf([{PS", 0, 1, 2, 3, 128, 255]), max_size=60))
def test_bytes_of_the_format_in_any_order_are_a_value_or_corruption(data: list[int]) -> None:
    read(bytes(data))


@given(values, st.data())
def test_a_changed_value_is_a_value_or_corruption(value: Any, data: st.DataObject) -> None:
    encoded = bytearray(CODEC.encode(value))
    at = data.draw(st.integers(0, len(encoded) - 1))
    encoded[at] ^= data.draw(st.integers(1, 255))
    read(bytes(encoded))


VALUE = {"a": [1, 300, 2.5, (None, True)], b"key": "text"}


def test_a_container_cut_anywhere_is_corruption() -> None:
    data = CODEC.encode(VALUE)
    for end in range(len(data)):
        with pytest.raises(CorruptionError):
            CODEC.decode(data[:end])
    with pytest.raises(CorruptionError, match="more bytes behind it"):
        CODEC.decode(data + b"n")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "without a byte"),
        (b"x", "kind 120"),
        (b"P\x80\x05N.", "kind 80"),
        (b"s\xff", "not UTF-8"),
        (b"[\x01s\x02\xc3\x28", "not UTF-8"),
        (b"[\xff\xff\xff\xff\x0f", "ends early"),
        (b"{\x02nnnn", "two equal keys"),
        (b"{\x02\x81ntn", "two equal keys"),  # 1 and True
        (b"{\x01[\x00n", "a key that has no hash"),
        (b"{\x01(\x01[\x00n", "a key that has no hash"),
        (b"d1234567", "ends early"),
        (b"[\x80", "truncated"),
        (b"(\x01b\xff\xff\xff\xff\x7f", "varint"),
    ],
)
def test_hostile_bytes(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptionError, match=reason):
        CODEC.decode(data)


def test_a_count_allocates_nothing_that_is_not_there() -> None:
    bombs = [b"[\xff\xff\xff\x7f", b"(\xff\xff\xff\x7f" * 60, b"{\xff\xff\xff\x7f", b"[\x02" * 60]
    tracemalloc.start()
    try:
        for bomb in bombs:
            assert read(bomb + bytes(1000)) is None
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 200_000


@pytest.mark.parametrize("item", [b"[\x00", b"{\x00", b"(\x01n", b"s\x00"])
def test_the_memory_of_a_value_is_bounded_by_its_bytes(item: bytes) -> None:
    data = b"[\xa0\x1f" + 4000 * item
    tracemalloc.start()
    try:
        value = CODEC.decode(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(value) == 4000
    assert peak < 50 * len(data)


# PickleCodec


@pytest.mark.parametrize("codec", [PickleCodec(), PickleCodec(2), PickleCodec(key=KEY)])
def test_pickle_codec_takes_what_pickle_takes(codec: PickleCodec) -> None:
    for value in (b"b", "s", 1, 1.5, None, True, {1, 2}, Color.RED, Point(1, 2), [b"x", (1,)]):
        again = codec.decode(codec.encode(value))
        assert again == value
        assert type(again) is type(value)


def test_scalars_cost_no_pickle_without_a_key() -> None:
    for value in (b"bytes", "text", 7, 1 << 70, 1.5, None, True):
        assert PickleCodec().encode(value) == CODEC.encode(value)
    assert PickleCodec().encode([1])[:1] == b"P"
    assert PickleCodec().decode(CODEC.encode([1, (2,)])) == [1, (2,)]


def test_a_signature_is_hmac_sha256_of_the_pickle() -> None:
    data = PickleCodec(4, KEY).encode("text")
    pickled = pickle.dumps("text", 4)
    assert data[33:] == pickled
    assert data[:1] == b"S"
    made = hmac.new(KEY, b"lsmkv.PickleCodec\0" + pickled, hashlib.sha256)
    assert data[1:33] == made.digest()


class Trap:
    """Unpickled, it runs."""

    sprung = 0

    def __reduce__(self) -> Any:
        return _spring, ()


def _spring() -> int:
    Trap.sprung += 1
    return Trap.sprung


def test_nothing_is_unpickled_before_its_signature_is_checked() -> None:
    Trap.sprung = 0
    codec = PickleCodec(key=KEY)
    forged = pickle.dumps(Trap())
    other = PickleCodec(key=b"another key").encode(Trap())
    own = codec.encode(Trap())
    for data in (b"P" + forged, b"S" + bytes(32) + forged, b"S" + forged, other, b"S", b"", b"b"):
        with pytest.raises(CorruptionError):
            codec.decode(data)
    for at in range(len(own)):
        changed = bytearray(own)
        changed[at] ^= 1
        with pytest.raises(CorruptionError):
            codec.decode(bytes(changed))
    assert Trap.sprung == 0
    assert codec.decode(own) == 1


def test_default_codec_never_unpickles() -> None:
    Trap.sprung = 0
    for data in (PickleCodec().encode(Trap()), PickleCodec(key=KEY).encode(Trap())):
        with pytest.raises(CorruptionError, match="does not read"):
            CODEC.decode(data)
    with pytest.raises(CorruptionError, match="has no key"):
        PickleCodec().decode(PickleCodec(key=KEY).encode(Trap()))
    assert Trap.sprung == 0


@given(st.binary(max_size=100))
def test_a_broken_pickle_is_corruption(data: bytes) -> None:
    for codec in (PickleCodec(), PickleCodec(key=KEY)):
        with pytest.raises(CorruptionError):
            codec.decode(b"S" + data)
    with pytest.raises(CorruptionError, match="a pickle cannot be read"):
        PickleCodec().decode(b"P\x80\x05(" + data[:0])


def test_arguments_of_pickle_codec() -> None:
    with pytest.raises(ValueError, match="no protocol 99"):
        PickleCodec(99)
    with pytest.raises(ValueError, match="no protocol -2"):
        PickleCodec(-2)
    with pytest.raises(ValueError, match="empty key"):
        PickleCodec(key=b"")
    with pytest.raises(TypeError, match="bytes"):
        PickleCodec(key="text")  # type: ignore[arg-type]
    assert PickleCodec(-1).protocol == pickle.HIGHEST_PROTOCOL
    assert PickleCodec(3).protocol == 3
    assert not PickleCodec().signs
    assert PickleCodec(key=bytearray(KEY)).signs


def test_codecs_are_equal_copied_and_shown_without_their_key() -> None:
    codecs: list[Codec] = [DefaultCodec(), PickleCodec(3), PickleCodec(3, KEY), PickleCodec(4)]
    for number, codec in enumerate(codecs):
        for again in (copy.copy(codec), pickle.loads(pickle.dumps(codec))):
            assert [again == other for other in codecs] == [n == number for n in range(4)]
            assert hash(again) == hash(codec)
    assert repr(codecs[0]) == "DefaultCodec()"
    assert repr(codecs[1]) == "PickleCodec(protocol=3)"
    assert repr(codecs[2]) == "PickleCodec(protocol=3, key=...)"

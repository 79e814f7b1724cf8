"""Codecs: exact types, exact bytes, errors with a place, and bytes from a stranger."""

from __future__ import annotations

import collections
import copy
import dataclasses
import datetime
import decimal
import enum
import fractions
import hashlib
import hmac
import math
import pickle
import struct
import tracemalloc
import uuid
import zoneinfo
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmkv.cache.codecs import Codec, DefaultCodec, PickleCodec
from lsmkv.errors import CorruptionError, Error, UnsupportedValueError

HOURS = datetime.timedelta(hours=23)
UTC = datetime.UTC
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
KEY = b"a key of the test"


class Color(enum.IntEnum):
    RED = 1


class Flavor(enum.Flag):
    SWEET = 1
    SOUR = 2


@dataclasses.dataclass(frozen=True)
class Place:
    name: Any
    at: Any = ()


class Sub(str):
    pass


class Zone(datetime.tzinfo):
    pass


CODEC = DefaultCodec(types=[Flavor, Place])
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
zones = st.one_of(
    st.sampled_from([None, UTC, BERLIN]),
    st.builds(datetime.timezone, st.timedeltas(-HOURS, HOURS)),
    st.builds(datetime.timezone, st.timedeltas(-HOURS, HOURS), st.text(max_size=5)),
)
dates = st.datetimes(datetime.datetime(2, 1, 1), datetime.datetime(9998, 1, 1))
"""Not the first and the last ones, whose hash in a time zone may be beyond all dates."""
folds = st.integers(0, 1)
standard = st.one_of(
    st.complex_numbers(),
    st.fractions(),
    st.decimals().filter(lambda value: not value.is_snan()),
    st.uuids(),
    st.dates(),
    st.timedeltas(),
    zones,
    st.builds(lambda day, zone, fold: day.replace(tzinfo=zone, fold=fold), dates, zones, folds),
    st.builds(lambda at, zone, fold: at.replace(tzinfo=zone, fold=fold), st.times(), zones, folds),
    st.builds(range, st.integers(), st.integers(), st.integers(1)),
    st.integers(0, 3).map(Flavor),
)
hashable = st.recursive(
    scalars | standard,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.frozensets(inner, max_size=3),
        st.builds(Place, inner, inner),
    ),
    max_leaves=5,
)
values = st.recursive(
    scalars | standard | st.binary(max_size=200).map(bytearray),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(hashable, inner, max_size=4),
        st.sets(hashable, max_size=4),
        st.builds(Place, inner, inner),
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
    if kind in (set, frozenset):
        return kind, sorted(repr(exact(item)) for item in value)
    if kind is Place:
        return kind, exact(value.name), exact(value.at)
    return kind, repr(value)


def name_of(cls: type) -> bytes:
    """The qualified name of a type as an item, without its first byte."""
    return CODEC.encode([f"{__name__}.{cls.__name__}"])[3:]


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
        (bytearray(b"ab"), b"a\x02ab"),
        (set(), b"<\x00"),
        ({2, None, "a", 1}, b"<\x04ns\x01a\x81\x82"),
        (frozenset({frozenset()}), b"|\x01|\x00"),
        (1 - 2j, b"cd" + struct.pack("<d", 1) + b"d" + struct.pack("<d", -2)),
        (range(1, 9, 2), b"r\x81\x89\x82"),
        (fractions.Fraction(-1, 3), b"qi\x01\xff\x83"),
        (decimal.Decimal("-1.50E+7"), b"ms\x08-1.50E+7"),
        (uuid.UUID(int=1), b"ub\x10" + bytes(15) + b"\x01"),
        (datetime.date(2026, 1, 2), b"Di\x02\xea\x07\x81\x82"),
        (datetime.time(1, 2, 3, 4, fold=1), b"h\x81\x82\x83\x84\x81n"),
        (
            datetime.datetime(100, 1, 2, 3, 4, 5, 6, UTC),
            b"T\xe4\x81\x82\x83\x84\x85\x86\x80ze\x80\x80\x80n",
        ),
        (datetime.timedelta(-1, 2, 3), b"ei\x01\xff\x82\x83"),
        (datetime.timezone(datetime.timedelta(0), "a"), b"ze\x80\x80\x80s\x01a"),
        (BERLIN, b"Zs\x0dEurope/Berlin"),
        (Flavor.SWEET, b"Es" + name_of(Flavor) + b"s\x05SWEET"),
        (
            Place("a"),
            b"Os" + name_of(Place) + b"{\x02s\x04names\x01as\x02at(\x00",
        ),
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
        (object(), "object", "value"),
        (memoryview(b"x"), "memoryview", "value"),
        (Color.RED, f"{__name__}.Color", "value"),
        ([1, Sub("text")], f"{__name__}.Sub", "value[1]"),
        ((1, Point(1, 2)), f"{__name__}.Point", "value[1]"),
        ({"a": [1, {b"b": ...}]}, "ellipsis", "value['a'][1][b'b']"),
        ({frozenset({...}): 1}, "ellipsis", "an item of the key <frozenset> of value"),
        ({1, ...}, "ellipsis", "an item of value"),
        ([Place(1, ...)], "ellipsis", "value[0].fields['at']"),
        (datetime.time(tzinfo=Zone()), f"{__name__}.Zone", "value.tzinfo"),
        ([{(1, Color.RED): 1}], f"{__name__}.Color", "the key <tuple> of value[0][1]"),
        ({"k" * 100: ...}, "ellipsis", f"value['{'k' * 36}...]"),
        ({(1, 2): ...}, "ellipsis", "value[<tuple>]"),
    ],
)
def test_a_refused_value_is_named_with_its_place(value: Any, kind: str, where: str) -> None:
    with pytest.raises(UnsupportedValueError) as caught:
        CODEC.encode(value)
    assert (caught.value.kind, caught.value.where) == (kind, where)
    article = "an" if kind[0] in "aeiou" else "a"
    assert str(caught.value).startswith(f"{article} {kind} at {where}: this codec takes bytes, str")
    assert str(caught.value).endswith("takes any object (docs/guides/caching.md#values)")
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


def test_a_time_in_a_zone_is_nested_as_containers_are() -> None:
    at = datetime.time(tzinfo=UTC)
    value: Any = [at]
    for _ in range(60):
        value = (value,)
    assert CODEC.decode(CODEC.encode(value)) == value
    with pytest.raises(UnsupportedValueError, match=r"tzinfo.offset: .* 64 containers"):
        CODEC.encode((value,))
    with pytest.raises(CorruptionError, match="nested more than 64 deep"):
        CODEC.decode(b"h\x80\x80\x80\x80\x80" * 65 + b"n")


def test_equal_sets_have_equal_bytes_in_any_order() -> None:
    items = [0, 64, 128, "a", "b", None, (1,), datetime.date(1, 1, 1)]
    sets = [frozenset(items), frozenset(reversed(items))]
    assert len({CODEC.encode(one) for one in sets}) == 1


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


@given(
    st.lists(st.sampled_from([*b"bsidntf([{PS<|acrqmuDhTezZEO", 0, 1, 2, 3, 128, 255]), max_size=60)
)
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
    with pytest.raises(CorruptionError, match="more bytes after it"):
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
        (b"<\x02nn", "two equal items"),
        (b"|\x02\x81t", "two equal items"),
        (b"<\x01<\x00", "an item that has no hash"),
        (b"<\xff\xff\xff\xff\x0f", "ends early"),
        (b"a\x03ab", "ends early"),
        (b"r\x81\x82\x80", "must not be zero"),
        (b"r\x81\x82n", "a part of type NoneType"),
        (b"r\x81\x82t", "a part of type bool"),
        (b"qs\x0b1e999999999n", "a part of type str"),
        (b"q\x81\x80", "ZeroDivisionError"),
        (b"ms\x01x", "InvalidOperation"),
        (b"ub\x01x", "16"),
        (b"D\x80\x81\x81", "year"),
        (b"h\x98\x80\x80\x80\x80n", "hour"),
        (b"h\x80\x80\x80\x80\x82n", "fold"),
        (b"h\x80\x80\x80\x80\x80s\x00", "a part of type str"),
        (b"ei\x05\xff\xff\xff\xff\x7f\x80\x80", "OverflowError"),
        (b"ze\x81\x80\x80n", "offset"),
        (b"Zs\x0c../../passwd", "not the name of a time zone"),
        (b"Zs\x0b/etc/passwd", "not the name of a time zone"),
        (b"Zs\x07os.path", "not the name of a time zone"),
        (b"Zs\x07No/Such", "No time zone found"),
        (b"Es\x05a.Oops\x01R", "made without a.Oop"),
        (b"Os\x05a.Oop{\x00", "made without a.Oop"),
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


@pytest.mark.parametrize(
    "item",
    [
        *(b"[\x00", b"{\x00", b"(\x01n", b"s\x00", b"<\x00", b"|\x01n", b"a\x00", b"q\x80\x81"),
        *(b"<\x05\x80\x81\x82\x83\x84", b"r\x80\x80\x81", b"ms\x010", b"e\x80\x80\x80"),
    ],
)
def test_the_memory_of_a_value_is_bounded_by_its_bytes(item: bytes) -> None:
    data = b"[\xa0\x1f" + 4000 * item
    tracemalloc.start()
    try:
        value = CODEC.decode(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(value) == 4000
    assert peak < 120 * len(data)


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
    codecs.append(CODEC)
    for number, codec in enumerate(codecs):
        for again in (copy.copy(codec), pickle.loads(pickle.dumps(codec))):
            assert [again == other for other in codecs] == [n == number for n in range(5)]
            assert hash(again) == hash(codec)
    assert repr(codecs[0]) == "DefaultCodec()"
    assert repr(codecs[1]) == "PickleCodec(protocol=3)"
    assert repr(codecs[2]) == "PickleCodec(protocol=3, key=...)"
    assert repr(CODEC) == f"DefaultCodec(types=[{__name__}.Flavor, {__name__}.Place])"
    assert DefaultCodec(types=[Place, Flavor]) == CODEC
    assert pickle.loads(pickle.dumps(CODEC)).types == (Flavor, Place)


def test_a_codec_that_an_earlier_release_has_pickled() -> None:
    codec = pickle.loads(b"\x80\x04\x8c\x12lsmkv.cache.codecs\x8c\x0cDefaultCodec\x93)\x81.")
    assert codec == DefaultCodec()
    assert codec.decode(codec.encode({1})) == {1}

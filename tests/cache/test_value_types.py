"""Types that are stored in parts: those of the standard library, and registered ones."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import functools
import io
import pickle
import re
import struct
import zoneinfo
from typing import Any

import pytest
from plain_values import PLAIN

import lsmkv
from lsmkv.cache.codecs import DefaultCodec
from lsmkv.errors import CorruptionError, UnsupportedValueError


class Shade(enum.StrEnum):
    DARK = "d"
    NIGHT = "d"


class Access(enum.IntFlag, boundary=enum.KEEP):
    READ = 4
    WRITE = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    x: float
    y: float = 0.0


@dataclasses.dataclass
class Doubled:
    given: int
    twice: int = dataclasses.field(init=False)
    made = 0

    def __post_init__(self) -> None:
        type(self).made += 1
        self.given *= 2
        self.twice = self.given * 2

    @functools.cached_property
    def text(self) -> str:
        return f"{self.given}"


TYPES = [Shade, Access, Point, Doubled, re.RegexFlag]


def again(value: Any) -> Any:
    return DefaultCodec(TYPES).decode(DefaultCodec(TYPES).encode(value))


@pytest.mark.parametrize(
    "member",
    [Shade.DARK, Shade.NIGHT, Access.READ, Access.READ | Access.WRITE, Access(0), re.I | re.M],
)
def test_a_member_of_an_enum_comes_back_as_itself(member: enum.Enum) -> None:
    assert again([member])[0] is member


def test_a_flag_without_a_name_is_refused() -> None:
    with pytest.raises(UnsupportedValueError, match=r"a .*Access at value: "):
        again(Access.READ | 64)


def test_an_instance_has_all_of_its_fields_and_no_constructor_runs() -> None:
    value = Doubled(3)
    assert (value.text, Doubled.made) == ("6", 1)
    found = again({"a": value})["a"]
    assert (found, vars(found)) == (value, {"given": 6, "twice": 12})
    assert Doubled.made == 1
    assert again({Point(1.0, -2.0)}) == {Point(1.0, -2.0)}


def test_an_instance_without_a_field_is_refused() -> None:
    value = Doubled(3)
    del value.twice
    with pytest.raises(UnsupportedValueError, match=r"Doubled at value\[0\]: "):
        again([value])


def version(*fields: Any) -> type:
    """The class of one release of a program."""
    return dataclasses.make_dataclass("Version", fields, namespace={"__module__": __name__})


def test_a_field_that_a_later_release_adds_has_its_default() -> None:
    old = version("a")
    data = DefaultCodec([old]).encode(old(1))
    new = version(("b", int, 7), ("c", list[int], dataclasses.field(default_factory=list)))
    new = version("a", *[(field.name, field.type, field) for field in dataclasses.fields(new)])
    assert repr(DefaultCodec([new]).decode(data)) == "Version(a=1, b=7, c=[])"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [(("b",), "the field b was not stored"), ((), "there is no field a"), (("a", "b"), "field b")],
)
def test_fields_that_differ_are_corruption(fields: tuple[str, ...], reason: str) -> None:
    old, new = version("a"), version(*fields)
    with pytest.raises(CorruptionError, match=reason):
        DefaultCodec([new]).decode(DefaultCodec([old]).encode(old(1)))


class Hashed:
    """A dataclass whose hash raises for what a stranger may write."""

    def __hash__(self) -> int:
        raise KeyError("a hash of the user")


def test_what_the_code_of_a_user_raises_is_corruption() -> None:
    rude = dataclasses.make_dataclass("Rude", [], bases=(Hashed,), eq=False)
    codec = DefaultCodec([rude])
    data = codec.encode(rude())
    for container in (b"<\x01" + data, b"{\x01" + data + b"n"):
        with pytest.raises(CorruptionError, match="no hash"):
            codec.decode(container)
    old, new = version(), version(("a", int, dataclasses.field(default_factory=lambda: {}[0])))
    with pytest.raises(CorruptionError, match="KeyError: 0"):
        DefaultCodec([new]).decode(DefaultCodec([old]).encode(old()))


def test_a_type_is_read_only_where_it_is_registered() -> None:
    value = Point(1.0)
    with pytest.raises(UnsupportedValueError, match="Point at value: this codec takes"):
        DefaultCodec().encode(value)
    data = DefaultCodec([Point]).encode(value)
    for codec in (DefaultCodec(), DefaultCodec([Shade])):
        with pytest.raises(CorruptionError, match=f"made without {__name__}.Point among its types"):
            codec.decode(data)
    # As the other kind of type, and as a part of the wrong one.
    with pytest.raises(CorruptionError, match="made without"):
        DefaultCodec([Point]).decode(b"E" + data[1 : data.index(b"{")] + b"s\x01x")
    with pytest.raises(CorruptionError, match="a part of type NoneType"):
        DefaultCodec([Point]).decode(data[: data.index(b"{")] + b"n")
    with pytest.raises(CorruptionError, match="KeyError"):
        codec.decode(DefaultCodec([Shade]).encode(Shade.DARK)[:-4] + b"DUSK")


class Made:
    def __new__(cls, *given: Any) -> Any:
        return object.__new__(cls)


@pytest.mark.parametrize(
    "given",
    [
        *(int, Made, 5, "name", Point(1.0), type("Sub", (Point,), {})),
        dataclasses.make_dataclass("Failure", [], bases=(Exception,)),
        dataclasses.make_dataclass("Own", [], bases=(Made,)),
        dataclasses.make_dataclass("Pairs", [], bases=(dict,)),
    ],
)
def test_what_is_no_enum_and_no_plain_dataclass_is_not_registered(given: Any) -> None:
    with pytest.raises(TypeError, match="neither an Enum nor a dataclass without __new__"):
        DefaultCodec(types=[given])


def test_two_types_of_one_name_are_not_registered() -> None:
    with pytest.raises(ValueError, match=r"two registered types have the name .*\.Version"):
        DefaultCodec(types=[version("a"), version("a")])
    assert DefaultCodec(types=[Point, Point]).types == (Point,)


def test_the_text_of_a_decimal_does_not_depend_on_the_context() -> None:
    value = decimal.Decimal("123456789E+20")
    data = DefaultCodec().encode(value)
    with decimal.localcontext(prec=2, capitals=0, traps=[]):
        assert DefaultCodec().encode(value) == data
        assert str(DefaultCodec().decode(data)) == "1.23456789e+28"
        with pytest.raises(CorruptionError, match="InvalidOperation"):
            DefaultCodec().decode(b"ms\x03one")


def test_earlier_releases_know_no_byte_of_these_types() -> None:
    values = [*PLAIN.values(), datetime.timedelta(1), datetime.UTC, Shade.DARK, Point(1.0)]
    tags = {DefaultCodec(TYPES).encode(value)[0] for value in values}
    assert tags == set(b"<|acrqmuDhTezZEO")
    assert not tags & set(b"bsidntf([{PS")


def test_a_zone_without_a_key_is_refused() -> None:
    file = b"TZif" + bytes(16) + struct.pack(">6L", 0, 0, 0, 0, 1, 4) + bytes(6) + b"UTC\0"
    zone = zoneinfo.ZoneInfo.from_file(io.BytesIO(file))
    with pytest.raises(UnsupportedValueError, match=r"ZoneInfo at value\.tzinfo: "):
        DefaultCodec().encode(datetime.datetime(2026, 1, 1, tzinfo=zone))
    berlin = zoneinfo.ZoneInfo("Europe/Berlin")
    assert DefaultCodec().decode(DefaultCodec().encode(berlin)) is berlin


def test_values_and_keys_of_a_cache_and_of_its_pickled_handle() -> None:
    with lsmkv.Cache(shared=True, codec=DefaultCodec(TYPES)) as cache:
        keys = [datetime.date(2026, 1, 1), (Point(1.0), Shade.DARK), frozenset({1, "a"}), 1j]
        for key in keys:
            cache.set(key, {key}, tag=key)
        with pickle.loads(pickle.dumps(cache)) as other:
            assert [other[key] for key in keys] == [{key} for key in keys]
            assert other.get(frozenset(["a", 1]), tag=True) == ({keys[2]}, keys[2])
            assert set(other) == set(keys)
            assert [other.evict(key) for key in keys] == [1, 1, 1, 1]

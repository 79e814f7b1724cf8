"""Types that a codec stores in parts: the standard library's, and those that a user registers.

A value of such a type is stored as the byte of its type and its parts, one after the other, each as
a separate value.  A part is used only if it has exactly one of the types that are possible there.

====  ===========  ============================================================
byte  type         parts
====  ===========  ============================================================
``c`` complex      real, imag
``r`` range        start, stop, step
``q`` Fraction     numerator, denominator
``m`` Decimal      its text
``u`` UUID         its 16 bytes
``D`` date         year, month, day
``h`` time         hour, minute, second, microsecond, fold, tzinfo
``T`` datetime     year, month, day, and those of a time
``e`` timedelta    days, seconds, microseconds
``z`` timezone     offset, name or None
``Z`` ZoneInfo     key
``E`` Enum         the qualified name of its type, and the member's name
``O`` dataclass    the qualified name of its type, and a dict of its fields
====  ===========  ============================================================

Names of types are looked up among those that are registered: nothing is imported.  The zone of a
``ZoneInfo`` is looked up by its key, among the time zones of this machine.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import operator
import re
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Context, Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, Final, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

_EXACT: Final = Context(capitals=1, traps=[InvalidOperation])
"""Decimals are written, and read, in one way, whatever the context of the program."""
_ZONE: Final = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*")
_ENUM, _DATACLASS = b"EO"

Split = Callable[[Any], tuple[Any, ...] | None]


class ValueType(NamedTuple):
    """A type, and the division of its values into parts."""

    tag: int
    names: tuple[str, ...]
    """Names of the parts, which say where a refused one is."""
    split: Split
    """The parts of a value; None for one that cannot be stored."""


class _Maker(NamedTuple):
    """Construction of a value from its parts."""

    types: tuple[tuple[type, ...], ...]
    """Those that each part may have."""
    make: Callable[..., Any]
    """Raises any exception for invalid parts."""


_STANDARD: Final[dict[type, ValueType]] = {}
_MAKERS: Final[dict[int, _Maker]] = {
    _ENUM: _Maker(((str,), (str,)), NotImplemented),
    _DATACLASS: _Maker(((str,), (dict,)), NotImplemented),
}


def _define(
    tag: bytes,
    kind: type,
    names: str,
    types: list[Any],
    make: Callable[..., Any] | None = None,
    split: Split | None = None,
) -> None:
    """Add a type of the standard library.  Its parts have a type of ``types``, or one of a tuple of
    them; they are its attributes unless ``split`` makes them."""
    attributes = tuple(names.split())

    def split_by_name(value: Any) -> tuple[Any, ...]:
        return tuple([getattr(value, name) for name in attributes])

    possible = tuple(one if isinstance(one, tuple) else (one,) for one in types)
    _STANDARD[kind] = ValueType(tag[0], attributes, split or split_by_name)
    _MAKERS[tag[0]] = _Maker(possible, make or kind)


def _decimal(text: str) -> Decimal:
    return Decimal(text, _EXACT)


def _parts_of_decimal(value: Decimal) -> tuple[str]:
    return (_EXACT.to_sci_string(value),)


def _zone(key: str) -> ZoneInfo:
    # Other keys would name files beside those of time zones, or other modules.
    if _ZONE.fullmatch(key) is None:
        raise ValueError(f"{key!r} is not the name of a time zone")
    return ZoneInfo(key)


def _parts_of_zone(zone: ZoneInfo) -> tuple[str] | None:
    """None for a zone from a file, which has no key."""
    return (zone.key,) if zone.key is not None and _ZONE.fullmatch(zone.key) else None


def _clocked(kind: Any) -> Callable[..., Any]:
    """A maker of times, whose last parts are fold and tzinfo."""
    return lambda *parts: kind(*parts[:-2], fold=parts[-2], tzinfo=parts[-1])


def _offset(offset: timedelta, name: str | None) -> timezone:
    return timezone(offset) if name is None else timezone(offset, name)


def _parts_of_offset(zone: Any) -> tuple[timedelta, str | None]:
    offset, *name = zone.__getinitargs__()
    return offset, name[0] if name else None


_ZONES: Final = (type(None), timezone, ZoneInfo)
_CLOCK: Final = "hour minute second microsecond fold tzinfo"
_define(b"c", complex, "real imag", [float, float])
_define(b"r", range, "start stop step", [int, int, int])
_define(b"q", Fraction, "numerator denominator", [int, int])
_define(b"m", Decimal, "text", [str], _decimal, _parts_of_decimal)
_define(b"u", UUID, "bytes", [bytes], lambda data: UUID(bytes=data))
_define(b"D", date, "year month day", [int, int, int])
_define(b"h", time, _CLOCK, [int] * 5 + [_ZONES], _clocked(time))
_define(b"T", datetime, "year month day " + _CLOCK, [int] * 8 + [_ZONES], _clocked(datetime))
_define(b"e", timedelta, "days seconds microseconds", [int, int, int])
_define(b"z", timezone, "offset name", [timedelta, (str, type(None))], _offset, _parts_of_offset)
_define(b"Z", ZoneInfo, "key", [str], _zone, _parts_of_zone)


class ValueTypes:
    """The types that one codec stores in parts: the standard library's and the registered ones."""

    def __init__(self, registered: Iterable[Any] = ()) -> None:
        """``TypeError`` for one that is neither an Enum nor a dataclass, or whose instances cannot
        be made without calling it; ``ValueError`` for two of one name."""
        self.registered: tuple[Any, ...] = tuple(dict.fromkeys(registered))
        self.by_type: dict[type, ValueType] = dict(_STANDARD)
        self._by_name: dict[str, Any] = {}
        for cls in self.registered:
            if isinstance(cls, type) and issubclass(cls, enum.Enum):
                value_type = ValueType(_ENUM, ("type", "name"), _member_parts)
            elif _is_plain_dataclass(cls):
                value_type = ValueType(_DATACLASS, ("type", "fields"), _fields)
            else:
                raise TypeError(f"{cls!r} is neither an Enum nor a dataclass without __new__")
            name = _full_name(cls)
            if name in self._by_name:
                raise ValueError(f"two registered types have the name {name}")
            self._by_name[name] = cls
            self.by_type[cls] = value_type

    def count(self, tag: int) -> int:
        """The number of parts of a value with this byte; 0 if it is none of these."""
        maker = _MAKERS.get(tag)
        return 0 if maker is None else len(maker.types)

    def make(self, tag: int, parts: list[Any]) -> Any:
        """The value of such parts.  ``ValueError`` if they are invalid."""
        maker = _MAKERS[tag]
        for part, types in zip(parts, maker.types, strict=True):
            if type(part) not in types:
                raise ValueError(f"it has a part of type {type(part).__name__}")
        make = maker.make
        if tag in (_ENUM, _DATACLASS):
            name = parts.pop(0)
            cls = self._by_name.get(name)
            if cls is None or self.by_type[cls].tag != tag:
                raise ValueError(f"the codec was made without {name[:200]} among its types")
            make = functools.partial(_member if tag == _ENUM else _instance, cls)
        try:
            return make(*parts)
        except Exception as error:  # of any type: what a constructor raises, or a default
            raise ValueError(f"{type(error).__name__}: {error}") from error


def _is_plain_dataclass(cls: Any) -> bool:
    own = isinstance(cls, type) and "__dataclass_fields__" in vars(cls)
    return own and cls.__new__ is object.__new__


def _full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _member_parts(member: Any) -> tuple[str, str] | None:
    """None for flags that have no names."""
    cls, name = type(member), member.name or ""
    try:
        found = _member(cls, name)
    except (KeyError, ValueError):
        return None
    return (_full_name(cls), name) if found is member else None


def _member(cls: Any, name: str) -> Any:
    if not issubclass(cls, enum.Flag):
        return cls.__members__[name]
    if name == "":
        return cls(0)
    return functools.reduce(operator.or_, [cls.__members__[one] for one in name.split("|")])


def _fields(value: Any) -> tuple[str, dict[str, Any]] | None:
    """None for an instance that lacks a field."""
    cls = type(value)
    try:
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(cls)}
    except AttributeError:
        return None
    return _full_name(cls), fields


def _instance(cls: Any, stored: dict[str, Any]) -> Any:
    """Make an instance as unpickling does, without the class and ``__post_init__``, which could
    change the fields once more.  A field that the class has since gained has its default."""
    value = object.__new__(cls)
    for field in dataclasses.fields(cls):
        if field.name in stored:
            part = stored.pop(field.name)
        elif field.default is not dataclasses.MISSING:
            part = field.default
        elif field.default_factory is not dataclasses.MISSING:
            part = field.default_factory()
        else:
            raise ValueError(f"the field {field.name} was not stored")
        object.__setattr__(value, field.name, part)
    if stored:
        raise ValueError(f"there is no field {str(next(iter(stored)))[:200]}")
    return value

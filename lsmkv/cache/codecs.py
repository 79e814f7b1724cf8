"""Encoding of values as bytes: :class:`DefaultCodec` and :class:`PickleCodec`.

A cache calls a codec for each value that it stores and for each that it returns.  What it reads may
have been written by anybody who can write to the directory, so a codec trusts no byte: ``decode``
returns a value or raises :class:`~lsmkv.errors.CorruptionError`.

**The layout.**  The first byte is the type.

========  =============================================  =======================================
byte      value                                          what follows
========  =============================================  =======================================
``b``     bytes                                          the bytes
``s``     str                                            its UTF-8; surrogates too
``i``     int                                            little-endian, two's complement
128..255  an int of 0 to 127                             nothing
``d``     float                                          8 bytes, little-endian
``n``     None                                           nothing
``t f``   True, False                                    nothing
``(``     tuple                                          the number of its items, and each item
``[``     list                                           the same
``{``     dict                                           the number of its pairs; key, value, ...
``<``     set                                            the number of its items, which are sorted
``|``     frozenset                                      the same
``a``     bytearray                                      the number of its bytes, and these
letters   types of the standard library; registered      parts (:mod:`lsmkv.cache.value_types`)
          ones
``P``     anything, by :class:`PickleCodec`              a pickle
``S``     the same, signed                               32 bytes of HMAC-SHA256, and a pickle
========  =============================================  =======================================

Within a container the bytes of a bytes, a str and an int have their number before them.  Numbers
are varints (:mod:`lsmkv.engine.util.coding`).  A value alone needs none, since it ends with its
data.

**Why not msgspec.**  Its MessagePack is several times as fast for large containers.  But it turns
tuples into lists, and refuses integers beyond 64 bits: exact types need its extension types, for
which it calls Python again, item by item.  Most values of a cache are one str or one bytes object,
for which this costs one byte and one copy.  So the standard library does, and a cache needs nothing
else installed.  Of the standard library, ``json`` knows neither bytes nor tuples, and ``marshal``
and ``pickle`` must not read what a stranger has written.
"""

from __future__ import annotations

import hmac
import pickle
import struct
from collections.abc import Iterable
from typing import Any, Final, Protocol

from mypy_extensions import mypyc_attr

from lsmkv.cache.value_types import ValueType, ValueTypes
from lsmkv.engine.errors import CorruptionError, UnsupportedValueError
from lsmkv.engine.util.arguments import as_bytes
from lsmkv.engine.util.coding import decode_varint32, encode_varint
from lsmkv.engine.util.introspection import described

__all__ = ["Codec", "DefaultCodec", "PickleCodec"]

MOST_DEPTH: Final = 64
"""Containers within each other that a value may have."""
_LONGEST_KEY: Final = 40
"""Characters of a key in the text of an error."""
_FLOAT: Final = struct.Struct("<d")
_BYTES, _STR, _INT, _FLOATING = b"bsid"
_NONE, _TRUE, _FALSE = b"ntf"
_TUPLE, _LIST, _DICT = b"([{"
_SET, _FROZENSET, _BYTEARRAY = b"<|a"
_TAGS: Final = [bytes([number]) for number in range(128)]
_SMALL: Final = 128
"""The first byte of small integers."""
_SMALL_INTS: Final = [bytes([_SMALL + number]) for number in range(128)]
_PICKLED: Final = b"P"
_SIGNED: Final = b"S"
_SIGNATURE: Final = 32
_STANDARD: Final = ValueTypes()
_PURPOSE: Final = b"lsmkv.PickleCodec\0"
"""Signed with each pickle, so that a key's signature of something else is none of a pickle."""


class Codec(Protocol):
    """Converts the values of a cache to bytes, and back.

    ``decode(encode(value))`` equals ``value`` and has its type.

    >>> class Upper:
    ...     def encode(self, value: str) -> bytes:
    ...         return value.upper().encode()
    ...     def decode(self, data: bytes) -> str:
    ...         return data.decode()
    >>> codec: Codec = Upper()
    >>> codec.decode(codec.encode("word"))
    'WORD'
    """

    def encode(self, value: Any) -> bytes:
        """The bytes of a value.  :class:`~lsmkv.UnsupportedValueError` if it has none."""
        ...

    def decode(self, data: bytes) -> Any:
        """The value of such bytes.  :class:`~lsmkv.CorruptionError` for any others."""
        ...


@described
@mypyc_attr(native_class=False)
class DefaultCodec:
    """Values of Python's own types and of the standard library's, and of registered types.

    It takes bytes, bytearray, str, int, float, complex, None, bool, range; tuples, lists, dicts,
    sets and frozensets; date, time, datetime, timedelta, timezone and ``ZoneInfo``; Decimal,
    Fraction, UUID; and of the Enums and dataclasses in ``types`` the members and the instances.
    These are stored by the qualified name of their type and the name of the member, or the names
    and values of the fields, and read by a codec that has the same type in its ``types``.  An
    instance is made without calling its class; a field that was not stored has its default.

    Types are exact: a tuple stays a tuple, and True is not 1.  A value of a subclass is refused,
    since it would come back as something else; so is one nested more than 64 deep, for example a
    list that contains itself (:class:`~lsmkv.UnsupportedValueError`, which says where it is).
    Equal sets have equal bytes if their items do; other equal values may have different ones.
    Raises ``TypeError`` if one of ``types`` is neither an Enum nor a dataclass, or has a
    ``__new__``, and ``ValueError`` for two of one name.

    Bytes from a stranger run no code but ``__hash__`` and ``__eq__`` of registered types, and
    import nothing but time zones of ``tzdata``, which ``ZoneInfo`` reads where the system has none.
    They become a value or raise :class:`~lsmkv.CorruptionError`.  The value takes at most about 120
    times the memory of its bytes: an empty set has two bytes here, and 216 in Python.  Cost:
    O(size); for bytes and str that of a copy; for sets that of sorting.  Dicts and sets from a
    stranger may have items of equal hashes, which costs time that grows with the square of their
    number, as it does in any dict; so do the digits of a Fraction.

    >>> from datetime import date
    >>> codec = DefaultCodec()
    >>> codec.encode("text"), codec.encode(7), codec.encode((None, True))
    (b'stext', b'\\x87', b'(\\x02nt')
    >>> codec.decode(codec.encode({"a": [1, 2.5], (b"key", 7): -(10**30)}))
    {'a': [1, 2.5], (b'key', 7): -1000000000000000000000000000000}
    >>> codec.decode(codec.encode({date(2026, 11, 30): {"Ann"}}))
    {datetime.date(2026, 11, 30): {'Ann'}}
    >>> codec.encode({"names": ["Ann", object()]})
    Traceback (most recent call last):
    lsmkv.errors.UnsupportedValueError: an object at value['names'][1]: this codec takes bytes, ...
    >>> codec.decode(b"(\\x02n")
    Traceback (most recent call last):
    lsmkv.errors.CorruptionError: a value ends early (at offset 3)

    >>> import enum
    >>> class Color(enum.Enum):
    ...     RED = 1
    >>> codec = DefaultCodec(types=[Color])
    >>> codec.decode(codec.encode([Color.RED]))
    [<Color.RED: 1>]
    """

    # Also those of a codec that an earlier release has pickled.
    _types = _STANDARD
    _by_type = _STANDARD.by_type

    def __init__(self, types: Iterable[type] = ()) -> None:
        given = tuple(types)
        if given:
            self._types = ValueTypes(given)
            self._by_type = self._types.by_type

    @property
    def types(self) -> tuple[type, ...]:
        """The registered types, in the order in which they were given."""
        return self._types.registered

    def encode(self, value: Any) -> bytes:
        """The bytes of a value; :class:`~lsmkv.UnsupportedValueError` if the codec has none."""
        kind = type(value)
        if kind is str:
            text: str = value
            return b"s" + text.encode("utf-8", "surrogatepass")
        if kind is bytes:
            plain: bytes = value
            return b"b" + plain
        if kind is int:
            return _encode_int(value)
        if value is None or kind is bool:
            return b"n" if value is None else b"t" if value else b"f"
        if kind is float:
            return b"d" + _FLOAT.pack(value)
        parts: list[bytes] = []
        try:
            _append(parts, value, MOST_DEPTH, self._by_type)
        except _RefusedError:
            raise _refusal(value, self._by_type) from None
        return b"".join(parts)

    def decode(self, data: bytes) -> Any:
        """The value of such bytes; :class:`~lsmkv.CorruptionError` for any others."""
        if not data:
            raise CorruptionError("a value without a byte")
        tag = data[0]
        if tag == _BYTES:
            return data[1:]
        if tag == _STR:
            return _decode_str(data, 1, len(data))
        if tag == _INT:
            return int.from_bytes(data[1:], "little", signed=True)
        if len(data) == 1 and (tag >= _SMALL or tag == _NONE):
            return None if tag == _NONE else tag - _SMALL
        value, end = _decode(data, 0, MOST_DEPTH, self._types)
        if end != len(data):
            raise CorruptionError("a value with more bytes after it", None, end)
        return value

    def __repr__(self) -> str:
        """With the names of the registered types."""
        names = ", ".join([_name_of(one) for one in self.types])
        return f"DefaultCodec(types=[{names}])" if names else "DefaultCodec()"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DefaultCodec) or type(other) is not type(self):
            return NotImplemented
        return set(self.types) == set(other.types)

    def __hash__(self) -> int:
        return hash((type(self), frozenset(self.types)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the codec as its types, which are pickled by name."""
        return type(self), ((self.types,) if self.types else ())


@described
@mypyc_attr(native_class=False)
class PickleCodec:
    """Any object that ``pickle`` takes.  Only for a directory to which no stranger can write.

    To unpickle is to run what the bytes say: without a ``key``, who can write to the directory can
    run code in every process that reads it.  With a ``key``, each value has an HMAC-SHA256, which
    is compared in constant time before anything is unpickled.  A value without one, or with a wrong
    one, raises :class:`~lsmkv.CorruptionError`.  A signature does not say which key of the cache
    the value belongs to: a stranger can still remove values, or put an older one elsewhere.

    Without a ``key``, what :class:`DefaultCodec` stores without a container is stored in the same
    way, so bytes and str cost no pickle, and a value of either codec is read by this one.

    ``protocol`` is pickle's.  Raises ``ValueError`` for a protocol that pickle lacks, and for an
    empty key.  Methods raise what pickle raises for a value that it cannot take, most often
    ``PicklingError`` or ``TypeError``.  Cost: pickle's, and that of SHA-256 with a key.

    >>> codec = PickleCodec(key=b"a secret of 32 bytes, for example")
    >>> data = codec.encode({1, 2})
    >>> codec.decode(data)
    {1, 2}
    >>> codec.decode(data[:-1] + b"!")
    Traceback (most recent call last):
    lsmkv.errors.CorruptionError: the signature of a pickle is wrong
    >>> PickleCodec().encode(b"bytes")
    b'bbytes'
    """

    def __init__(
        self, protocol: int = pickle.HIGHEST_PROTOCOL, key: bytes | bytearray | None = None
    ) -> None:
        if not -1 <= protocol <= pickle.HIGHEST_PROTOCOL:
            raise ValueError(f"pickle has no protocol {protocol}")
        self.protocol = pickle.HIGHEST_PROTOCOL if protocol < 0 else protocol
        """Pickle's protocol, which determines the Pythons that can read the values."""
        self._key = None if key is None else as_bytes(key, "key")
        if self._key == b"":
            raise ValueError("an empty key signs nothing")
        self._plain = DefaultCodec()

    @property
    def signs(self) -> bool:
        """True if values are signed, and unsigned ones are refused."""
        return self._key is not None

    def encode(self, value: Any) -> bytes:
        """The bytes of a value; raises what pickle raises for one that it cannot take."""
        key = self._key
        if key is None:
            if type(value) in _SCALARS:
                return self._plain.encode(value)
            return _PICKLED + pickle.dumps(value, self.protocol)
        pickled = pickle.dumps(value, self.protocol)
        return b"".join((_SIGNED, _signature(key, pickled), pickled))

    def decode(self, data: bytes) -> Any:
        """The value of such bytes; :class:`~lsmkv.CorruptionError` for any others."""
        first = data[:1]
        key = self._key
        if key is not None:
            if first != _SIGNED:
                raise CorruptionError("a value that is not signed")
            pickled = data[1 + _SIGNATURE :]
            if not hmac.compare_digest(_signature(key, pickled), data[1 : 1 + _SIGNATURE]):
                raise CorruptionError("the signature of a pickle is wrong")
            return _unpickled(pickled)
        if first == _SIGNED:
            raise CorruptionError("a signed value: this codec has no key")
        if first == _PICKLED:
            return _unpickled(data[1:])
        return self._plain.decode(data)

    def __repr__(self) -> str:
        """Without the key."""
        key = "" if self._key is None else ", key=..."
        return f"PickleCodec(protocol={self.protocol}{key})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PickleCodec) or type(other) is not type(self):
            return NotImplemented
        return (self.protocol, self._key) == (other.protocol, other._key)

    def __hash__(self) -> int:
        return hash((type(self), self.protocol, self._key))


_TAKES: Final = (
    "this codec takes bytes, str, int, float, None, bool, containers and values of the standard"
    " library, and the types that it is given; PickleCodec takes any object"
    " (docs/guides/caching.md#values)"
)
_SCALARS: Final = frozenset((bytes, str, int, float, bool, type(None)))


# Encoding


class _RefusedError(Exception):
    """There is something in the value that the codec does not take; raised without its place."""


def _append(parts: list[bytes], value: Any, depth: int, types: dict[type, ValueType]) -> None:
    """Append the bytes of an item, or of a value that is neither bytes, str nor int."""
    kind = type(value)
    if kind is str:
        data = value.encode("utf-8", "surrogatepass")
        parts += (b"s", encode_varint(len(data)), data)
    elif kind is int:
        if 0 <= value < 128:
            parts.append(_SMALL_INTS[value])
        else:
            data = _int_bytes(value)
            parts += (b"i", encode_varint(len(data)), data)
    elif kind is bytes:
        parts += (b"b", encode_varint(len(value)), value)
    elif value is None:
        parts.append(b"n")
    elif kind is bool:
        parts.append(b"t" if value else b"f")
    elif kind is float:
        parts += (b"d", _FLOAT.pack(value))
    elif depth == 0:
        raise _RefusedError
    elif kind is dict:
        parts += (b"{", encode_varint(len(value)))
        for key, item in value.items():
            _append(parts, key, depth - 1, types)
            _append(parts, item, depth - 1, types)
    elif kind is list or kind is tuple:
        parts += (b"[" if kind is list else b"(", encode_varint(len(value)))
        for item in value:
            _append(parts, item, depth - 1, types)
    elif kind is set or kind is frozenset:
        encoded: list[bytes] = []
        for item in value:
            of_item: list[bytes] = []
            _append(of_item, item, depth - 1, types)
            encoded.append(b"".join(of_item))
        encoded.sort()  # so that equal sets are one key of a cache
        parts += (b"<" if kind is set else b"|", encode_varint(len(encoded)), *encoded)
    elif kind is bytearray:
        data = bytes(value)
        parts += (b"a", encode_varint(len(data)), data)
    else:
        value_type = types.get(kind)
        items = None if value_type is None else value_type.split(value)
        if value_type is None or items is None:
            raise _RefusedError
        parts.append(_TAGS[value_type.tag])
        for item in items:
            _append(parts, item, depth - 1, types)


def _encode_int(value: int) -> bytes:
    return _SMALL_INTS[value] if 0 <= value < 128 else b"i" + _int_bytes(value)


def _int_bytes(value: int) -> bytes:
    return value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)


def _refusal(value: Any, types: dict[type, ValueType]) -> UnsupportedValueError:
    """Return the error for a refused value, which names the first part that is refused."""
    found = _find(value, "value", MOST_DEPTH, types)
    assert found is not None
    part, where, is_deep = found
    takes = f"this codec takes {MOST_DEPTH} containers within each other" if is_deep else _TAKES
    return UnsupportedValueError(_name_of(type(part)), where, takes)


def _name_of(kind: type) -> str:
    name = kind.__qualname__
    return name if kind.__module__ == "builtins" else f"{kind.__module__}.{name}"


def _find(
    value: Any, where: str, depth: int, types: dict[type, ValueType]
) -> tuple[Any, str, bool] | None:
    """A part that is refused, its place, and whether it is refused for its depth."""
    kind = type(value)
    if kind in _SCALARS:
        return None
    inner: list[tuple[Any, str]] = []
    value_type = types.get(kind)
    if kind is dict:
        for key, item in value.items():
            shown = repr(key) if type(key) in _SCALARS else f"<{_name_of(type(key))}>"
            if len(shown) > _LONGEST_KEY:
                shown = shown[: _LONGEST_KEY - 3] + "..."
            inner += [(key, f"the key {shown} of {where}"), (item, f"{where}[{shown}]")]
    elif kind in (tuple, list):
        inner = [(item, f"{where}[{number}]") for number, item in enumerate(value)]
    elif kind in (set, frozenset):
        inner = [(item, f"an item of {where}") for item in value]
    elif kind is not bytearray:
        items = None if value_type is None else value_type.split(value)
        if value_type is None or items is None:
            return value, where, False
        inner = [
            (item, f"{where}.{name}") for item, name in zip(items, value_type.names, strict=True)
        ]
    if depth == 0:
        return value, where, True
    for item, place in inner:
        found = _find(item, place, depth - 1, types)
        if found is not None:
            return found
    return None


# Decoding


def _decode(data: bytes, at: int, depth: int, types: ValueTypes) -> tuple[Any, int]:
    """The item at a position, and the position after it."""
    if at >= len(data):
        raise _early(at)
    tag = data[at]
    at += 1
    if tag >= _SMALL:
        return tag - _SMALL, at
    if tag == _STR:
        begin, end = _span(data, at)
        return _decode_str(data, begin, end), end
    if tag == _NONE:
        return None, at
    if tag == _INT:
        begin, end = _span(data, at)
        return int.from_bytes(data[begin:end], "little", signed=True), end
    if tag == _BYTES:
        begin, end = _span(data, at)
        return data[begin:end], end
    if tag == _FLOATING:
        if at + 8 > len(data):
            raise _early(len(data))
        return _FLOAT.unpack_from(data, at)[0], at + 8
    if tag in (_TRUE, _FALSE):
        return tag == _TRUE, at
    if tag in (_LIST, _TUPLE):
        items: list[Any] = []
        count, at = _count(data, at, 1, depth)
        for _ in range(count):
            item, at = _decode(data, at, depth - 1, types)
            items.append(item)
        return (items if tag == _LIST else tuple(items)), at
    if tag == _DICT:
        return _decode_dict(data, at, depth, types)
    if tag in (_SET, _FROZENSET):
        found, at = _decode_set(data, at, depth, types)
        return (found if tag == _SET else frozenset(found)), at
    if tag == _BYTEARRAY:
        begin, end = _span(data, at)
        return bytearray(data[begin:end]), end
    return _decode_parts(data, at, depth, types)


def _decode_parts(data: bytes, at: int, depth: int, types: ValueTypes) -> tuple[Any, int]:
    """A value that was stored in parts, which begin at a position; its byte is before it."""
    tag, begin = data[at - 1], at - 1
    count: int = types.count(tag)
    if count == 0:
        raise CorruptionError(f"a value of kind {tag}, which this codec does not read", None, begin)
    if depth == 0:
        raise _nested(begin)
    parts: list[Any] = []
    for _ in range(count):
        part, at = _decode(data, at, depth - 1, types)
        parts.append(part)
    try:
        return types.make(tag, parts), at
    except ValueError as error:
        raise CorruptionError(f"a malformed value: {error}", None, begin) from error


def _decode_set(data: bytes, at: int, depth: int, types: ValueTypes) -> tuple[set[Any], int]:
    count, at = _count(data, at, 1, depth)
    items: set[Any] = set()
    for number in range(count):
        begin = at
        item, at = _decode(data, at, depth - 1, types)
        try:
            items.add(item)
        except Exception:  # as in a dict
            raise CorruptionError("a set with an item that has no hash", None, begin) from None
        if len(items) <= number:
            raise CorruptionError("a set with two equal items", None, begin)
    return items, at


def _decode_dict(data: bytes, at: int, depth: int, types: ValueTypes) -> tuple[dict[Any, Any], int]:
    count, at = _count(data, at, 2, depth)
    pairs: dict[Any, Any] = {}
    for number in range(count):
        begin = at
        key, at = _decode(data, at, depth - 1, types)
        item, at = _decode(data, at, depth - 1, types)
        try:
            pairs[key] = item
        except Exception:  # of any type: the hash of a time asks its zone, and users write theirs
            raise CorruptionError("a dict with a key that has no hash", None, begin) from None
        if len(pairs) <= number:
            raise CorruptionError("a dict with two equal keys", None, begin)
    return pairs, at


def _count(data: bytes, at: int, least: int, depth: int) -> tuple[int, int]:
    """The number of a container's items, of which each takes at least this many bytes."""
    if depth == 0:
        raise _nested(at - 1)
    count, begin = decode_varint32(data, at)
    if count * least > len(data) - begin:
        raise _early(len(data))
    return count, begin


def _nested(at: int) -> CorruptionError:
    return CorruptionError(f"containers nested more than {MOST_DEPTH} deep", None, at)


def _span(data: bytes, at: int) -> tuple[int, int]:
    """Return the begin and the end of an item's data."""
    size, begin = decode_varint32(data, at)
    if size > len(data) - begin:
        raise _early(len(data))
    return begin, begin + size


def _decode_str(data: bytes, begin: int, end: int) -> str:
    try:
        return data[begin:end].decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise CorruptionError("a str that is not UTF-8", None, begin + error.start) from None


def _early(at: int) -> CorruptionError:
    return CorruptionError("a value ends early", None, at)


# Pickles


def _unpickled(pickled: bytes) -> Any:
    try:
        return pickle.loads(pickled)
    except Exception as error:  # pickle raises whatever the bytes, and the classes, make it raise
        reason = f"a pickle cannot be read: {type(error).__name__}: {error}"
        raise CorruptionError(reason) from error


def _signature(key: bytes, pickled: bytes) -> bytes:
    made = hmac.new(key, _PURPOSE, "sha256")
    made.update(pickled)
    return made.digest()

"""Chromium's IndexedDB: the key order ``idb_cmp1``, and the meaning of the keys.

Chromium keeps the IndexedDB databases of an origin in one LevelDB directory.  Its keys are tuples
of fields that do not sort as bytes, so it has its own order:

>>> import lsmkv
>>> from lsmkv.indexeddb import IndexedDBComparator, decode_key
>>> with lsmkv.DB(":memory:", create_if_missing=True, comparator=IndexedDBComparator()) as db:
...     db.put(bytes.fromhex("00010101 03 000000000000f03f"), b"the number 1")
...     db.put(bytes.fromhex("00010101 03 000000000000f0bf"), b"the number -1")
...     [(str(decode_key(key)), value) for key, value in db]  # doctest: +NORMALIZE_WHITESPACE
[('database 1, object store 1: record -1.0', b'the number -1'),
 ('database 1, object store 1: record 1.0', b'the number 1')]

A key is a prefix, then fields that depend on it.  The prefix is one byte with the lengths of three
ids in bytes, less one (database: the top 3 bits; object store: 3; index: 2), then the three ids,
little-endian.

=================================  ===============================================================
prefix                             fields
=================================  ===============================================================
0, any, any                        about all databases: a type byte; 0..6 nothing more; 50 bytes;
                                   100 varint; 201 string (origin), string (database name)
database, 0, any                   about one database: a type byte; 0..5 nothing more; 50 varint
                                   (object store), byte; 100 varint, varint (index), byte;
                                   150 varint; 151 varint, varint; 200 string; 201 varint, string
database, object store, 1, 2 or 3  IDB key: a record, its "exists" entry, its blobs
database, object store, 30 and up  an index: IDB key (the index's), then, each if the one before it
                                   is there: varint (obsolete), IDB key (the record's)
=================================  ===============================================================

A string is its length in UTF-16 units as a varint, then UTF-16, big-endian.  An IDB key is a type
byte and a payload: 1 string; 2 date and 3 number, a little-endian double; 4 array, a varint count
and as many IDB keys; 6 binary, a varint length and bytes; 5 (lowest) and 0 (highest) have none and
stand in range bounds alone.  They sort lowest < number < date < string < binary < array < highest.

Source: Chromium, ``content/browser/indexed_db``: ``docs/leveldb_coding_scheme.md`` and
``indexed_db_leveldb_coding.cc``.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.former_paths import keep_paths
from lsmkv.engine.util.coding import decode_varint64

__all__ = ["Date", "DecodedKey", "IndexedDBComparator", "decode_key"]

# Types of IDB keys; _END is in no file: it closes an array.
_HIGHEST, _STRING, _DATE, _NUMBER, _ARRAY, _LOWEST, _BINARY, _END = range(8)
_SORTED = {
    _END: b"\x00",
    _LOWEST: b"\x01",
    _NUMBER: b"\x02",
    _DATE: b"\x03",
    _STRING: b"\x04",
    _BINARY: b"\x05",
    _ARRAY: b"\x06",
    _HIGHEST: b"\x07",
}
_MALFORMED = b"\xff"  # no well-formed field sorts as high as this

_RECORD, _EXISTS, _BLOBS, _FIRST_INDEX = 1, 2, 3, 30
_SIGN = 1 << 63
_ALL = (1 << 64) - 1
_DEEPEST = 100
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class _Layout:
    """The fields after a prefix, a letter each: ``b``yte, ``v``arint, ``s``tring, IDB ``k``ey.

    ``r`` is the unparsed rest, ``i`` the content of an entry of an index.
    """

    name: str
    fields: str = ""


_GLOBAL = {
    0: _Layout("schema version"),
    1: _Layout("highest database id"),
    2: _Layout("data version"),
    3: _Layout("blobs to recover"),
    4: _Layout("blobs in use"),
    5: _Layout("earliest sweep"),
    6: _Layout("earliest compaction"),
    50: _Layout("scopes", "r"),
    100: _Layout("free database id", "v"),
    201: _Layout("id of database", "ss"),
}
_DATABASE = {
    0: _Layout("origin"),
    1: _Layout("name"),
    2: _Layout("version as text"),
    3: _Layout("highest object store id"),
    4: _Layout("version"),
    5: _Layout("next blob number"),
    50: _Layout("object store", "vb"),
    100: _Layout("index", "vvb"),
    150: _Layout("free object store id", "v"),
    151: _Layout("free index id", "vv"),
    200: _Layout("id of object store", "s"),
    201: _Layout("id of index", "vs"),
}
_RECORDS = {
    _RECORD: _Layout("record", "k"),
    _EXISTS: _Layout("exists", "k"),
    _BLOBS: _Layout("blobs", "k"),
}
_INDEX = _Layout("entry", "i")
_UNKNOWN = _Layout("unknown", "r")
_ABOUT = {
    "object store": (
        *("name", "key path", "auto increment", "evictable", "last version"),
        *("highest index id", "has key path", "next key"),
    ),
    "index": ("name", "unique", "key path", "multi-entry"),
}
"""The meaning of the last byte of these metadata keys."""


class _KeyReader:
    """Takes the fields of a key off its front; :class:`CorruptionError` if one is malformed."""

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.at = 0
        self.mark = 0
        """The start of the field, or of the part of an IDB key, that is being read."""

    @property
    def at_end(self) -> bool:
        return self.at == len(self.key)

    def take(self, size: int) -> bytes:
        end = self.at + size
        if end > len(self.key):
            raise CorruptionError("truncated key", None, self.at)
        taken = self.key[self.at : end]
        self.at = end
        return taken

    def rest(self) -> bytes:
        return self.take(len(self.key) - self.at)

    def byte(self) -> int:
        return self.take(1)[0]

    def varint(self) -> int:
        value, self.at = decode_varint64(self.key, self.at)
        return _signed(value)

    def string(self) -> bytes:
        """UTF-16, big-endian: these bytes sort as JavaScript's strings do."""
        return self.take(2 * self.varint())

    def prefix(self) -> tuple[int, int, int]:
        sizes = self.byte()
        database = int.from_bytes(self.take((sizes >> 5) + 1), "little")
        store = int.from_bytes(self.take((sizes >> 2 & 7) + 1), "little")
        index = int.from_bytes(self.take((sizes & 3) + 1), "little")
        return _signed(database), _signed(store), index

    def layout(self, database: int, store: int, index: int) -> tuple[int | None, _Layout]:
        """The type byte, if these ids have one, and the fields after it."""
        if database == 0 or store == 0:
            kind = self.byte()
            layouts = _GLOBAL if database == 0 else _DATABASE
            return kind, layouts.get(kind, _UNKNOWN)
        if index >= _FIRST_INDEX:
            return None, _INDEX
        return None, _RECORDS.get(index, _UNKNOWN)

    def idb_key(self) -> Iterator[tuple[int, bytes]]:
        """The parts of an IDB key: type and payload; an array's elements come before its end.

        A loop, because arrays in a hostile key may be nested more deeply than Python recurses.
        """
        left: list[int] = []  # remaining elements of each open array
        while True:
            self.mark = self.at
            kind = self.byte()
            payload = b""
            if kind in (_NUMBER, _DATE):
                payload = self.take(8)
                if math.isnan(_double(payload)):
                    raise CorruptionError("NaN in a key", None, self.mark)
            elif kind == _STRING:
                payload = self.string()
            elif kind == _BINARY:
                payload = self.take(self.varint())
            elif kind == _ARRAY:
                left.append(self.varint())
            elif kind not in (_HIGHEST, _LOWEST):
                raise CorruptionError("unknown type of IDB key", None, self.mark)
            yield kind, payload
            while left and left[-1] == 0:
                left.pop()
                yield _END, b""
            if not left:
                return
            left[-1] -= 1


def _signed(value: int) -> int:
    if value >= _SIGN:
        raise CorruptionError("a number in a key is out of range")
    return value


def _double(payload: bytes) -> float:
    value: float = struct.unpack("<d", payload)[0]
    return value


# Order


class IndexedDBComparator:
    """The order ``idb_cmp1``: pass it as ``comparator=`` to open Chromium's IndexedDB.

    Every pair of well-formed keys compares as in Chromium.  Different bytes may be equal: -0 and 0,
    a varint with more bytes than it needs, bytes after the last field.  So a store gets no Bloom
    filters unless it asks for them.  Keys are not shortened in the index of a table.

    Chromium calls a malformed key equal to every other, which is not an order.  Here its
    well-formed fields are compared.  At its first malformed field it sorts after all well-formed
    keys with the same beginning, by its bytes.  A NaN, an id or a varint above 2**63-1 and a type
    that the module does not name are malformed.  No bytes raise an error.  O(length of the keys).

    >>> order = IndexedDBComparator()
    >>> number, string = bytes.fromhex("0001010103000000000000f03f"), bytes.fromhex("000101010100")
    >>> order.compare(number, string), order.compare(string, number), order.compare(b"", number)
    (-1, 1, 1)
    >>> sorted([string, b"", number], key=order.sort_key) == [number, string, b""]
    True
    >>> order.find_shortest_separator(number, string) == number
    True
    >>> order.find_short_successor(number) == number
    True
    """

    name: str = "idb_cmp1"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def compare(self, a: bytes, b: bytes, /) -> int:
        """-1, 0 or 1 as ``a`` sorts before, with or after ``b``."""
        if a == b:
            return 0
        x, y = self.sort_key(a), self.sort_key(b)
        if x < y:
            return -1
        return 0 if x == y else 1

    def sort_key(self, key: bytes, /) -> bytes:
        """The key recoded so that its bytes compare as the keys do, and are equal if these are.

        Numbers become big-endian.  A field without a fixed length ends in a byte or two that sort
        before any continuation.
        """
        reader = _KeyReader(key)
        out: list[bytes] = []
        try:
            ids = reader.prefix()
            out.append(struct.pack(">QQL", *ids))
            if not reader.at_end:  # a prefix alone is the lower bound of the keys with it
                kind, layout = reader.layout(*ids)
                if kind is not None:
                    out.append(bytes([kind]))
                for field in layout.fields:
                    reader.mark = reader.at
                    _sort_field(reader, field, out)
        except CorruptionError:
            out.append(_MALFORMED + key[reader.mark :])
        return b"".join(out)

    def find_shortest_separator(self, start: bytes, limit: bytes, /) -> bytes:
        """``start``, as in Chromium."""
        return start

    def find_short_successor(self, key: bytes, /) -> bytes:
        """``key``, as in Chromium."""
        return key


def _sort_field(reader: _KeyReader, field: str, out: list[bytes]) -> None:
    if field == "k":
        for kind, payload in reader.idb_key():
            out.append(_SORTED[kind])
            if kind in (_NUMBER, _DATE):
                out.append(_sort_double(payload))
            elif kind in (_STRING, _BINARY):
                out.append(_sort_text(payload))
    elif field == "i":
        _sort_field(reader, "k", out)
        if not reader.at_end:
            reader.mark = reader.at
            number = reader.varint()
            if not reader.at_end:  # a number without the record's key is ignored
                _sort_field(reader, "k", out)
                out.append(number.to_bytes(8, "big"))
    elif field == "v":
        out.append(reader.varint().to_bytes(8, "big"))
    elif field == "s":
        out.append(_sort_text(reader.string()))
    elif field == "b":
        out.append(reader.take(1))
    else:
        out.append(reader.rest())


def _sort_text(payload: bytes) -> bytes:
    return payload.replace(b"\x00", b"\x00\xff") + b"\x00\x00"


def _sort_double(payload: bytes) -> bytes:
    bits = int.from_bytes(payload, "little")
    if bits == _SIGN:  # minus zero equals zero
        bits = 0
    return (bits ^ _ALL if bits & _SIGN else bits | _SIGN).to_bytes(8, "big")


# For people


@dataclass(frozen=True)
class Date:
    """A JavaScript date.  ``repr`` is ISO 8601 where Python's ``datetime`` reaches that far.

    It raises nothing, and costs what a float costs.

    >>> Date(0.0), Date(8.64e15)
    (Date('1970-01-01T00:00:00+00:00'), Date(8640000000000000.0))
    """

    milliseconds: float
    """Since 1970, UTC."""

    def __repr__(self) -> str:
        try:
            return f"Date('{(_EPOCH + timedelta(milliseconds=self.milliseconds)).isoformat()}')"
        except OverflowError:
            return f"Date({self.milliseconds!r})"


@dataclass(frozen=True)
class DecodedKey:
    """The result of :func:`decode_key`.  ``str`` is one line; raises nothing, O(its length).

    >>> str(DecodedKey(1, 2, 1, "record", ("a", 2.0)))
    "database 1, object store 2: record 'a' 2.0"
    """

    database: int
    """0 if the key is about all databases of the origin."""
    object_store: int
    """0 if the key is about databases."""
    index: int
    """30 and up for an entry of an index; below that, the kind of data of an object store."""
    what: str
    """``record``, ``exists``, ``blobs``, ``entry`` of an index, or the kind of metadata."""
    values: tuple[object, ...]
    """The fields.  An IDB key is a float, :class:`Date`, str, bytes or a list of these; for an
    entry of an index, the record's key follows it.  Names are str, ids int."""
    rest: bytes = b""
    """The bytes that could not be decoded, or that follow the last field."""

    def __str__(self) -> str:
        """Place, kind and values in a line."""
        ids = [("database", self.database), ("object store", self.object_store)]
        if self.index >= _FIRST_INDEX:
            ids.append(("index", self.index))
        place = ", ".join(f"{name} {number}" for name, number in ids if number)
        what = " ".join([self.what, *map(repr, self.values)])
        rest = f" and the bytes {self.rest!r}" if self.rest else ""
        return f"{place or 'all databases'}: {what}{rest}"


def decode_key(key: bytes) -> DecodedKey:
    """The ids and the fields of a key of Chromium's IndexedDB.  Raises nothing: see ``rest``.

    Arrays nested more than 100 deep count as unreadable.  O(length of the key).

    >>> decode_key(bytes.fromhex("0001010103000000000000f03f")).values
    (1.0,)
    >>> print(decode_key(bytes.fromhex("00000000c90001 0061")))
    all databases: id of database '' 'a'
    """
    reader = _KeyReader(key)
    ids = 0, 0, 0
    what = "unreadable"
    values: list[object] = []
    done = 0
    try:
        ids = reader.prefix()
        what, done = "lower bound", reader.at
        if not reader.at_end:
            _, layout = reader.layout(*ids)
            what, done = layout.name, reader.at
            for value in _values(reader, layout):
                values.append(value)
                done = reader.at
    except CorruptionError:
        pass  # ``rest`` shows it
    return DecodedKey(*ids, what, tuple(values), key[done:])


def _values(reader: _KeyReader, layout: _Layout) -> Iterator[object]:
    for field in layout.fields:
        if field == "k":
            yield _idb_value(reader)
        elif field == "i":
            yield _idb_value(reader)
            if not reader.at_end:
                reader.varint()
                yield _idb_value(reader)
        elif field == "v":
            yield reader.varint()
        elif field == "s":
            yield _text(reader.string())
        elif field == "b":
            number = reader.byte()
            names = _ABOUT.get(layout.name, ())
            yield names[number] if number < len(names) else number


def _idb_value(reader: _KeyReader) -> object:
    found: list[object] = []
    into = [found]  # the list that is being filled, inside its parents
    for kind, payload in reader.idb_key():
        if kind == _ARRAY:
            if len(into) > _DEEPEST:
                raise CorruptionError("arrays nested too deeply to show", None, reader.mark)
            inner: list[object] = []
            into[-1].append(inner)
            into.append(inner)
        elif kind == _END:
            into.pop()
        else:
            into[-1].append(_scalar(kind, payload))
    return found[0]


def _scalar(kind: int, payload: bytes) -> object:
    if kind == _NUMBER:
        return _double(payload)
    if kind == _DATE:
        return Date(_double(payload))
    if kind == _STRING:
        return _text(payload)
    if kind == _BINARY:
        return payload
    raise CorruptionError("the bound of a range, not a key")


def _text(payload: bytes) -> str:
    """Decode a string of JavaScript; halves of surrogate pairs are kept."""
    return payload.decode("utf-16-be", "surrogatepass")


keep_paths(*(globals()[name] for name in __all__))

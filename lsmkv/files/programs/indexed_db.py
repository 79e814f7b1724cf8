"""Chromium's IndexedDB with the names of databases, object stores and indexes.

:mod:`lsmkv.indexeddb` has the layout of keys.  The name of a database is in the key of its id;
those of object stores and indexes are values, in UTF-16, big-endian.
"""

from __future__ import annotations

from typing import Final

from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.indexeddb import decode_key
from lsmkv.engine.util.coding import encode_varint
from lsmkv.files.programs.blink import value_text
from lsmkv.files.programs.reading import Find, Reader, literal

_FIRST_INDEX: Final = 30
_OBJECT_STORE, _INDEX = 50, 100
_NAMES_OF_DATABASES: Final = bytes([0, 0, 0, 0, 201, 0, 0])
"""The first key that could be the id of a database: an empty origin and an empty name."""
_MOST_DATABASES: Final = 1000
_TEXTS: Final = ("name", "origin", "version as text")
_WITHOUT_NUMBERS: Final = ("unreadable", "unknown", "scopes", "blobs")
_LARGEST: Final = 8  # bytes of a number


class IndexedDB:
    """The texts of one site's databases."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._databases: dict[int, str] | None = None
        self._place: tuple[tuple[int, int, int], str] = ((0, 0, 0), "all databases")
        """The ids that were shown last, and their names: the next key mostly has the same."""

    def key(self, key: bytes) -> str | None:
        """Names, and the key that JavaScript gave; None if it is not as Chromium writes it."""
        found = decode_key(key)
        values = list(found.values)
        ids = found.database, found.object_store, found.index
        what = found.what
        if what in ("unreadable", "unknown"):
            return None
        wanted = {"object store": 1, "index": 2}.get(what, -1)
        numbers = [value for value in values[:-1] if isinstance(value, int)]
        if len(numbers) == len(values) - 1 == wanted:
            ids = found.database, numbers[0], numbers[1] if what == "index" else 0
            what, values = str(values[-1]), []
        if what == "entry" and len(values) > 1:
            return f"{self._named(ids)}: entry {literal(values[0])} of record {literal(values[1])}"
        return " ".join([f"{self._named(ids)}: {what}", *map(literal, values)])

    def value(self, key: bytes, value: bytes) -> str | None:
        """Return the value that JavaScript stored, a name, or a number; None for another value."""
        found = decode_key(key)
        has_field = found.what in ("object store", "index") and len(found.values) > 0
        field = found.values[-1] if has_field else found.what
        try:
            if field == "record":
                reader = Reader(value)
                reader.varint()  # the version of the record
                return value_text(value[reader.at :])
            if field == "entry":
                return f"version {Reader(value).varint()}"
            if field == "key path":
                return _key_path(Reader(value))
        except CorruptionError:
            return None
        if field in _TEXTS:
            return value.decode("utf-16-be", "replace") if len(value) % 2 == 0 else None
        if field == "data version" and len(value) <= _LARGEST:
            blink, v8 = value[:4], value[4:]
            return f"Blink {int.from_bytes(blink, 'little')}, V8 {int.from_bytes(v8, 'little')}"
        if found.what not in _WITHOUT_NUMBERS and len(value) <= _LARGEST:
            return str(int.from_bytes(value, "little"))
        return None

    def _named(self, ids: tuple[int, int, int]) -> str:
        """Names of database, object store and index; their numbers where they have none."""
        if ids != self._place[0]:
            database, store, index = ids
            parts = [self._database(database)] if database else ["all databases"]
            if store:
                fields = encode_varint(store)
                about = self._name(database, _OBJECT_STORE, fields)
                parts.append(about or f"object store {store}")
                if index >= _FIRST_INDEX:
                    about = self._name(database, _INDEX, fields + encode_varint(index))
                    parts.append(about or f"index {index}")
            self._place = ids, " / ".join(parts)
        return self._place[1]

    def _database(self, number: int) -> str:
        if self._databases is None:
            self._databases = {}
            for key, value in self._find(_NAMES_OF_DATABASES, _MOST_DATABASES):
                found = decode_key(key)
                if found.what == "id of database" and len(found.values) == 2:
                    self._databases[int.from_bytes(value, "little")] = str(found.values[1])
        return self._databases.get(number) or f"database {number}"

    def _name(self, database: int, kind: int, fields: bytes) -> str | None:
        ids = database.to_bytes(max(1, (database.bit_length() + 7) // 8), "little")
        key = bytes([len(ids) - 1 << 5]) + ids + bytes([0, 0, kind]) + fields + b"\x00"
        for found, name in self._find(key, 1):
            if found == key:
                return name.decode("utf-16-be", "replace")
        return None


def _key_path(reader: Reader) -> str:
    """The property that is the key: two bytes 0, a type, and one text or a number of them."""
    if reader.take(2) != b"\x00\x00":
        raise CorruptionError("an old key path")
    kind = reader.byte()
    if kind == 0:
        return "none"
    number = reader.varint() if kind == 2 else 1
    paths = [reader.take(2 * reader.varint()).decode("utf-16-be", "replace") for _ in range(number)]
    return ", ".join(paths)

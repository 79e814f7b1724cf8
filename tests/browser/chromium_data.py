"""What a page stored in Chromium, read from the files with lsmkv, in the page's own terms.

``page.html`` reports what it sees through JavaScript; the functions here bring the report and the
files to the same Python values, so that they can be compared, order included.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lsmkv
from lsmkv.engine.util.coding import decode_varint64
from lsmkv.indexeddb import Date, DecodedKey, decode_key

Databases = dict[str, dict[str, dict[str, Any]]]


def open_indexeddb(directory: Path) -> lsmkv.DB:
    return lsmkv.DB(directory, read_only=True)  # it names its order itself


def indexeddb(db: lsmkv.DB) -> Databases:
    """``{database: {object store: {"keys": [...], "indexes": {index: [...]}}}}`` from the files."""
    entries = [(decode_key(key), value) for key, value in db]
    for found, _ in entries:
        assert found.what not in ("unknown", "unreadable"), found
        assert not found.rest or found.what == "scopes", found
    names = dict(_names(entries))
    versions = {
        (found.database, found.object_store, repr(found.values[0])): int.from_bytes(value, "little")
        for found, value in entries
        if found.what == "exists"
    }
    databases: Databases = {name: {} for ids, name in names.items() if len(ids) == 1}
    for ids, name in names.items():
        if len(ids) == 2:
            databases[names[ids[:1]]][name] = {"keys": [], "indexes": {}}
    for ids, name in names.items():
        if len(ids) == 3:
            databases[names[ids[:1]]][names[ids[:2]]]["indexes"][name] = []
    for found, value in entries:
        if found.what not in ("record", "entry"):
            continue
        ids = found.database, found.object_store
        store = databases[names[ids[:1]]][names[ids]]
        if found.what == "record":
            store["keys"].append(found.values[0])
            continue
        # Entries that a later write of the record left behind carry another version than it.
        if versions.get((*ids, repr(found.values[1]))) == decode_varint64(value, 0)[0]:
            store["indexes"][names[(*ids, found.index)]].append(list(found.values))
    return databases


def _names(entries: list[tuple[DecodedKey, bytes]]) -> Iterator[tuple[tuple[int, ...], str]]:
    """The names of databases, of object stores and of indexes by their ids."""
    for found, value in entries:
        if found.what == "id of database":
            yield (int.from_bytes(value, "little"),), str(found.values[1])
        elif found.what in ("object store", "index") and found.values[-1] == "name":
            ids = [number for number in found.values if isinstance(number, int)]
            yield (found.database, *ids), value.decode("utf-16-be")


def reported(databases: Databases) -> Databases:
    """The same of the page's report."""
    return {
        name: {
            store: {
                "keys": [_key(key) for key in seen["keys"]],
                "indexes": {
                    index: [[_key(key), _key(primary)] for key, primary in pairs]
                    for index, pairs in seen["indexes"].items()
                },
            }
            for store, seen in stores.items()
        }
        for name, stores in databases.items()
    }


def _key(plain: dict[str, Any]) -> object:
    ((kind, value),) = plain.items()
    if kind == "number":
        return float(value)
    if kind == "date":
        return Date(float(value))
    if kind == "string":
        return value
    if kind == "binary":
        return bytes(value)
    return [_key(element) for element in value]


def local_storage(db: lsmkv.DB, origin: str) -> dict[str, str]:
    """The items of one origin: ``_origin NUL key``; texts begin with 0 (UTF-16) or 1 (Latin-1)."""
    prefix = b"_%s\x00" % origin.encode("ascii")
    return {
        local_text(key.removeprefix(prefix)): local_text(value)
        for key, value in db.iterator(prefix=prefix)
    }


def local_text(stored: bytes) -> str:
    assert stored[0] in (0, 1)
    return stored[1:].decode("utf-16-le" if stored[0] == 0 else "latin-1")


def fingerprint(directory: Path) -> dict[str, tuple[int, int, int, str]]:
    """Every file with inode, size, time of its last change and hash."""
    return {
        path.name: (
            path.stat().st_ino,
            path.stat().st_size,
            path.stat().st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest(),
        )
        for path in sorted(directory.iterdir())
    }

"""What ``lsmkv import --from diskcache`` reads: the directory of a ``diskcache.Cache``.

It reads the SQLite file and the files beside it (diskcache 5's layout), and needs no diskcache.  A
``FanoutCache`` is a directory of such directories.  Nothing is unpickled unless the caller says so,
and no file outside of the directory is opened, whatever the database says.
"""

from __future__ import annotations

import os
import pickle
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import lsmkv

_DATABASE: Final = "cache.db"
_RAW, _BINARY, _TEXT, _PICKLE = range(1, 5)
_QUERY: Final = "SELECT key, raw, expire_time, tag, mode, filename, value FROM Cache ORDER BY rowid"
_NOT_FOUND: Final = 2
_NUMBERS: Final = ("size_limit", "cull_limit")
_POLICIES: Final = (
    "least-recently-used",
    "least-recently-stored",
    "least-frequently-used",
    "none",
)


class Moved(NamedTuple):
    """What an import has moved."""

    entries: int
    left_out: dict[str, int]
    """How many entries were not moved, by the reason."""


class _LeftOutError(Exception):
    """An entry that is not moved; its text is the reason."""


def databases(directory: str) -> list[str]:
    """The directories with a database: this one, or those of a ``FanoutCache``.

    :class:`NotFoundError` if there is none.
    """
    if os.path.exists(os.path.join(directory, _DATABASE)):
        return [directory]
    try:
        names = sorted(name for name in os.listdir(directory) if re.fullmatch(r"\d{3}", name))
    except OSError:
        names = []
    places = [os.path.join(directory, name) for name in names]
    found = [place for place in places if os.path.exists(os.path.join(place, _DATABASE))]
    if not found:
        raise lsmkv.NotFoundError(_NOT_FOUND, "no cache of diskcache here", directory)
    return found


def settings_of(place: str) -> dict[str, Any]:
    """Those of its settings that a :class:`lsmkv.Cache` has too, as its keywords."""
    with closing(_connect(place)) as connection:
        rows = _rows(connection, "SELECT key, value FROM Settings", place)
        found: dict[str, Any] = {}
        for name, value in rows:
            if name in _NUMBERS and isinstance(value, int) and value >= 0:
                found[name] = value
            elif name == "eviction_policy" and value in _POLICIES:
                found["eviction"] = value
        return found


def import_diskcache(
    cache: lsmkv.Cache,
    places: list[str],
    trust_pickle: bool,
    progress: Callable[[], object],
) -> Moved:
    """Copy the entries that have not expired, with expiry and tag, in the order of storing.

    Left out, and counted: pickles without ``trust_pickle``, values that the cache's codec does not
    take, and values whose file is missing.  :class:`CorruptionError` for a damaged database.
    """
    entries = 0
    left_out: dict[str, int] = {}
    now = time.time()
    for place in places:
        with closing(_connect(place)) as connection:
            for key, raw, expire_time, tag, mode, filename, value in _rows(
                connection, _QUERY, place
            ):
                try:
                    if expire_time is not None and expire_time <= now:
                        raise _LeftOutError("expired")
                    found = _value(place, mode, filename, value, trust_pickle)
                    expire = None if expire_time is None else expire_time - now
                    cache.set(_key(key, raw, trust_pickle), found, expire=expire, tag=tag)
                    entries += 1
                except _LeftOutError as reason:
                    left_out[str(reason)] = left_out.get(str(reason), 0) + 1
                except lsmkv.UnsupportedValueError:
                    left_out["unsupported"] = left_out.get("unsupported", 0) + 1
                progress()
    return Moved(entries, left_out)


def _connect(place: str) -> sqlite3.Connection:
    path = quote(os.path.abspath(os.path.join(place, _DATABASE)))
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True)


def _rows(connection: sqlite3.Connection, query: str, place: str) -> Iterator[tuple[Any, ...]]:
    try:
        yield from connection.execute(query)
    except sqlite3.Error as error:
        path = os.path.join(place, _DATABASE)
        raise lsmkv.CorruptionError(f"not a database of diskcache: {error}", path) from error


def _key(key: Any, raw: Any, trust_pickle: bool) -> Any:
    return key if raw else _unpickled(key, trust_pickle)


def _value(place: str, mode: Any, filename: Any, value: Any, trust_pickle: bool) -> Any:
    if mode == _RAW:
        return value
    if mode not in (_BINARY, _TEXT, _PICKLE):
        raise _LeftOutError("of an unknown kind")
    content = value if filename is None else _content(place, filename)
    if mode == _PICKLE:
        return _unpickled(content, trust_pickle)
    if mode == _TEXT and isinstance(content, bytes):
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise _LeftOutError("damaged") from None
    return content


def _content(place: str, filename: Any) -> bytes:
    """The bytes of a value's file."""
    parts = str(filename).replace("\\", "/").split("/")
    path = os.path.join(place, *parts)
    inside = os.path.realpath(path).startswith(os.path.realpath(place) + os.sep)
    if os.path.isabs(str(filename)) or ".." in parts or not inside:
        raise _LeftOutError("outside of the directory")
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        raise _LeftOutError("without its file") from None


def _unpickled(data: Any, trust_pickle: bool) -> Any:
    if not trust_pickle:
        raise _LeftOutError("pickled")
    try:
        return pickle.loads(data)
    except Exception:  # pickle raises what the bytes make it raise
        raise _LeftOutError("damaged") from None

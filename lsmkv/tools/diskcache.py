"""Source of ``lsmkv import --from diskcache``: the directory of a ``diskcache.Cache``.

It reads the SQLite file and the files beside it (diskcache 5's layout), and needs no diskcache.  A
``FanoutCache`` is a directory of such directories.  Nothing is unpickled unless the caller says so.

The directory may be a stranger's.  Only regular files in it are opened, without waiting: no links,
and no files that have other names.  SQLite reads two tables, no views or computed columns, and
stops at rows of more than 64 MiB and at more work than the size of its file explains.
"""

from __future__ import annotations

import itertools
import os
import pickle
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, BinaryIO, Final, NamedTuple
from urllib.parse import quote

import lsmkv
from lsmkv.tools.foreign import NotRegularError, open_foreign

_DATABASE: Final = "cache.db"
_RAW, _BINARY, _TEXT, _PICKLE = range(1, 5)
_BESIDE: Final = ("-wal", "-shm", "-journal")
"""Suffixes of the names of files that SQLite opens with the database."""
_MOST_IN_ROW: Final = 64 << 20
"""Bytes of a value in the database; diskcache keeps 32 KiB there, and larger ones in files."""
_MOST_IN_MEMORY: Final = 256 << 20
"""Bytes of a text or pickle in a file.  Others are copied in pieces."""
_STEPS_AT_ONCE: Final = 10_000
_MOST_STEPS: Final = (100_000, 5)
"""Steps of SQLite's machine for a database, and for each of its bytes.  A sound one needs 0.5."""
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
    """The result of an import."""

    entries: int
    left_out: dict[str, int]
    """The number of entries not moved, by the reason."""


class _LeftOutError(Exception):
    """An entry that is not moved; its text is the reason."""


def databases(directory: str) -> list[str]:
    """The directories with a database: this one, or those of a ``FanoutCache``.

    :class:`NotFoundError` if there is none.  ``OSError`` and :class:`CorruptionError` for one that
    is not read: what :func:`import_diskcache` raises.
    """
    if os.path.lexists(os.path.join(directory, _DATABASE)):
        found = [directory]
    else:
        try:
            names = sorted(name for name in os.listdir(directory) if re.fullmatch(r"\d{3}", name))
        except OSError:
            names = []
        places = [os.path.join(directory, name) for name in names]
        found = [place for place in places if os.path.lexists(os.path.join(place, _DATABASE))]
    if not found:
        raise lsmkv.NotFoundError(_NOT_FOUND, "no cache of diskcache here", directory)
    for place in found:
        _connect(place).close()
    return found


def settings_of(place: str) -> dict[str, Any]:
    """Those of its settings that a :class:`lsmkv.Cache` also has, as its keywords."""
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
    take, and values whose file is missing, is not an own regular file, or is too large.
    :class:`CorruptionError` for a damaged database, ``OSError`` for one that is no regular file.
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
                    if expire_time is not None and not isinstance(expire_time, (int, float)):
                        raise _LeftOutError("damaged")
                    if expire_time is not None and expire_time <= now:
                        raise _LeftOutError("expired")
                    expire = None if expire_time is None else expire_time - now
                    kept = _key(key, raw, trust_pickle)
                    if mode == _BINARY and filename is not None:
                        with _file(place, filename) as file:
                            cache.set(kept, file, expire=expire, read=True, tag=tag)
                    else:
                        found = _value(place, mode, filename, value, trust_pickle)
                        cache.set(kept, found, expire=expire, tag=tag)
                    entries += 1
                except _LeftOutError as reason:
                    left_out[str(reason)] = left_out.get(str(reason), 0) + 1
                except lsmkv.UnsupportedValueError:
                    left_out["unsupported"] = left_out.get("unsupported", 0) + 1
                progress()
    return Moved(entries, left_out)


def _connect(place: str) -> sqlite3.Connection:
    path = os.path.join(place, _DATABASE)
    size = sum(_size(place, _DATABASE + end) for end in ("", *_BESIDE))
    connection = sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode=ro", uri=True)
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_IN_ROW)
        least, per_byte = _MOST_STEPS
        calls = itertools.count(1)
        most = (least + per_byte * size) // _STEPS_AT_ONCE
        connection.set_progress_handler(lambda: next(calls) > most, _STEPS_AT_ONCE)
        for setting in ("trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0"):
            list(_rows(connection, f"PRAGMA {setting}", place))
        for table in ("Cache", "Settings"):
            _require_table(connection, table, place)
    except BaseException:
        connection.close()
        raise
    return connection


def _size(place: str, name: str) -> int:
    """The bytes of a file that SQLite will open; 0 for a missing one besides the database."""
    try:
        with open_foreign(place, name, alone=True) as file:
            return os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        if name == _DATABASE:
            raise
        return 0


def _require_table(connection: sqlite3.Connection, table: str, place: str) -> None:
    """Refuse what is computed when it is read: a view, a virtual table, a computed column."""
    named = f"FROM sqlite_master WHERE name = '{table}' COLLATE NOCASE"
    kinds = [tuple(row) for row in _rows(connection, f"SELECT type, rootpage > 0 {named}", place)]
    columns = list(_rows(connection, f"PRAGMA table_xinfo({table})", place))
    if kinds != [("table", 1)] or any(hidden for *_, hidden in columns):
        path = os.path.join(place, _DATABASE)
        raise lsmkv.CorruptionError(f"not a database of diskcache: {table} is not a table", path)


def _rows(connection: sqlite3.Connection, query: str, place: str) -> Iterator[tuple[Any, ...]]:
    try:
        yield from connection.execute(query)
    except sqlite3.Error as error:
        path = os.path.join(place, _DATABASE)
        reason = str(error)
        if reason == "interrupted":
            reason = "reading it takes more steps than its size explains"
        raise lsmkv.CorruptionError(f"not a database of diskcache: {reason}", path) from error


def _key(key: Any, raw: Any, trust_pickle: bool) -> Any:
    return key if raw else _unpickled(key, trust_pickle)


def _value(place: str, mode: Any, filename: Any, value: Any, trust_pickle: bool) -> Any:
    if mode == _RAW:
        return value
    if mode not in (_BINARY, _TEXT, _PICKLE):
        raise _LeftOutError("of an unknown kind")
    content = value
    if filename is not None:
        with _file(place, filename) as file:
            content = file.read(_MOST_IN_MEMORY + 1)
        if len(content) > _MOST_IN_MEMORY:
            raise _LeftOutError("too large")
    if mode == _PICKLE:
        return _unpickled(content, trust_pickle)
    if mode == _TEXT and isinstance(content, bytes):
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise _LeftOutError("damaged") from None
    return content


def _file(place: str, filename: Any) -> BinaryIO:
    """A value's file.

    Left out are files outside of the directory, and those that are not regular or have other names.
    """
    names = str(filename).replace("\\", "/").split("/")
    if os.path.isabs(str(filename)) or ".." in names:
        raise _LeftOutError("outside of the directory")
    try:
        return open_foreign(place, *names, alone=True)
    except NotRegularError:
        raise _LeftOutError("without an unshared regular file") from None
    except (OSError, ValueError):
        raise _LeftOutError("without its file") from None


def _unpickled(data: Any, trust_pickle: bool) -> Any:
    if not trust_pickle:
        raise _LeftOutError("pickled")
    try:
        return pickle.loads(data)
    except Exception:  # pickle raises what the bytes make it raise
        raise _LeftOutError("damaged") from None

"""The files to dump, and the reader of each kind."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from lsmkv.engine.errors import ForeignFormatError
from lsmkv.files import (
    Current,
    Edit,
    FileKind,
    LogRecord,
    Operation,
    Readable,
    StoreFiles,
    parse_name,
)
from lsmkv.tools.dump.annotated_logs import annotate_current, annotate_log, annotate_manifest
from lsmkv.tools.dump.annotated_tables import annotate_table
from lsmkv.tools.dump.logs import read_current, read_log, read_manifest
from lsmkv.tools.dump.records import Entry, Fault, Heading, Piece, Record
from lsmkv.tools.dump.tables import read_table

CURRENT = "CURRENT"
_WORDS: dict[FileKind, str] = {
    "current": "the MANIFEST in force",
    "manifest": "MANIFEST",
    "log": "write-ahead log",
    "table": "table",
}
_READ: dict[FileKind, Callable[[Readable], Iterator[Record]]] = {
    "current": read_current,
    "manifest": read_manifest,
    "log": read_log,
    "table": read_table,
}
_ANNOTATE: dict[FileKind, Callable[[Readable, bool], Iterator[Record]]] = {
    "current": lambda file, _: annotate_current(file),
    "manifest": annotate_manifest,
    "log": annotate_log,
    "table": annotate_table,
}
_ENDINGS: dict[str, FileKind] = {".log": "log", ".ldb": "table", ".sst": "table"}


class Wanted(NamedTuple):
    """The options of a dump."""

    annotate: bool = False
    is_hex: bool = False
    """True if annotations show keys and values in hexadecimal."""
    limit: int | None = None
    """The largest number of batches, edits, entries or pieces of each file."""


def dump_path(path: str, wanted: Wanted) -> Iterator[Record]:
    """The records of a file, or of each file of a directory, after its heading.

    ``OSError`` if it cannot be read, ``ValueError`` for a file that no store has, and
    ``NotFoundError`` for a directory without a store.  In a directory, a file that cannot be read
    is a :class:`Fault`, and the next file follows.
    """
    if not os.path.lexists(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    if os.path.isdir(path):
        with StoreFiles(path) as store:
            yield from dump_directory(store, wanted)
        return
    parent, name = os.path.split(path)
    known_kind(name)
    with StoreFiles(parent or os.curdir) as folder, contextlib.closing(folder.open(name)) as file:
        yield from dump_file(file, name, wanted)


def dump_directory(store: StoreFiles, wanted: Wanted) -> Iterator[Record]:
    """The records of CURRENT, the MANIFESTs, and then logs and tables by number."""
    names = store.names()
    if CURRENT not in names:
        yield Heading(CURRENT, _WORDS["current"], 0)
        yield Fault("damage", None, "CURRENT is missing")
    for name in names:
        try:
            file = store.open(name)
        except OSError as error:
            yield Heading(name, _WORDS[known_kind(name)], 0)
            yield _unreadable(error)
            continue
        with contextlib.closing(file):
            yield from _in_directory(store, file, name, wanted)


def _in_directory(store: StoreFiles, file: Readable, name: str, wanted: Wanted) -> Iterator[Record]:
    try:
        yield from dump_file(file, name, wanted)
        if name == CURRENT:
            named = Current(file).manifest
            if named is not None and not store.exists(named):
                yield Fault("damage", 0, f"{named} is missing")
    except (OSError, ForeignFormatError) as error:
        yield _unreadable(error)


def dump_file(file: Readable, name: str, wanted: Wanted) -> Iterator[Record]:
    """The records of one file, after its heading; ``ValueError`` if no store has such a name."""
    kind = known_kind(name)
    yield Heading(name, _WORDS[kind], file.size)
    if wanted.annotate:
        yield from _limited(_ANNOTATE[kind](file, wanted.is_hex), wanted.limit)
    else:
        yield from _limited(_READ[kind](file), wanted.limit)


def _limited(records: Iterator[Record], limit: int | None) -> Iterator[Record]:
    """The records up to the end of the ``limit``th batch, edit, entry or piece."""
    left = limit
    for record in records:
        if left is not None:
            if left == 0 and not isinstance(record, (Operation, Fault)):
                return
            if isinstance(record, (LogRecord, Edit, Entry, Piece)):
                left -= 1
        yield record


def known_kind(name: str) -> FileKind:
    """The kind of a file by its name, which is one of the engine's or has such an ending.

    ``ValueError`` for any other name.
    """
    parsed = parse_name(name)
    if parsed is not None and parsed.kind in _WORDS:
        return parsed.kind
    if name.startswith("MANIFEST-"):
        return "manifest"
    ending = os.path.splitext(name)[1]
    if ending not in _ENDINGS:
        raise ValueError(
            f"{name}: not the name of a store's file:"
            " those are *.log, *.ldb, *.sst, MANIFEST-* and CURRENT"
        )
    return _ENDINGS[ending]


def _unreadable(error: Exception) -> Fault:
    words = error.strerror if isinstance(error, OSError) else None
    return Fault("unreadable", None, words or str(error))

"""The files to dump, and the reader of each kind."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from lsmkv.env.base import Directory, RandomAccessFile
from lsmkv.env.local import LocalEnv
from lsmkv.errors import ForeignFormatError, NotFoundError
from lsmkv.format.filenames import CURRENT, FileType, parse_filename
from lsmkv.format.foreign import refuse_foreign
from lsmkv.tools.dump.annotated_logs import annotate_current, annotate_log, annotate_manifest
from lsmkv.tools.dump.annotated_tables import annotate_table
from lsmkv.tools.dump.logs import manifest_named, read_current, read_log, read_manifest
from lsmkv.tools.dump.records import (
    Batch,
    Edit,
    Entry,
    Fault,
    Heading,
    Operation,
    Piece,
    Record,
)
from lsmkv.tools.dump.tables import read_table

_WORDS = {
    FileType.CURRENT: "the MANIFEST in force",
    FileType.MANIFEST: "MANIFEST",
    FileType.LOG: "write-ahead log",
    FileType.TABLE: "table",
}
_READ: dict[FileType, Callable[[RandomAccessFile], Iterator[Record]]] = {
    FileType.CURRENT: read_current,
    FileType.MANIFEST: read_manifest,
    FileType.LOG: read_log,
    FileType.TABLE: read_table,
}
_ANNOTATE: dict[FileType, Callable[[RandomAccessFile, bool], Iterator[Record]]] = {
    FileType.CURRENT: lambda file, _: annotate_current(file),
    FileType.MANIFEST: annotate_manifest,
    FileType.LOG: annotate_log,
    FileType.TABLE: annotate_table,
}
_ENDINGS = {".log": FileType.LOG, ".ldb": FileType.TABLE, ".sst": FileType.TABLE}
_FIRST = [FileType.CURRENT, FileType.MANIFEST]


class Wanted(NamedTuple):
    """What a dump shows."""

    annotate: bool = False
    is_hex: bool = False
    """Whether annotations show keys and values in hexadecimal."""
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
        with LocalEnv().open_directory(path) as directory:
            yield from dump_directory(directory, wanted)
        return
    parent, name = os.path.split(path)
    known_kind(name)
    with LocalEnv().open_directory(parent or os.curdir) as directory, directory.open(name) as file:
        yield from dump_file(file, name, wanted)


def dump_directory(directory: Directory, wanted: Wanted) -> Iterator[Record]:
    """The records of CURRENT, the MANIFESTs, and then logs and tables by number."""
    names = directory.names()
    refuse_foreign(directory.path, names)
    ours = [name for name in names if _place(name)[0] >= 0]
    if not ours:
        raise NotFoundError(errno.ENOENT, "no database here", directory.path)
    if CURRENT not in ours:
        yield Heading(CURRENT, _WORDS[FileType.CURRENT], 0)
        yield Fault("damage", None, "CURRENT is missing")
    for name in sorted(ours, key=_place):
        try:
            file = directory.open(name)
        except OSError as error:
            yield Heading(name, _WORDS[known_kind(name)], 0)
            yield _unreadable(error)
            continue
        with file:
            yield from _in_directory(directory, file, name, wanted)


def _in_directory(
    directory: Directory, file: RandomAccessFile, name: str, wanted: Wanted
) -> Iterator[Record]:
    try:
        yield from dump_file(file, name, wanted)
        if name == CURRENT:
            named = manifest_named(file.read(0, file.size)) if file.size < 64 else None
            if named is not None and not directory.exists(named):
                yield Fault("damage", 0, f"{named} is missing")
    except (OSError, ForeignFormatError) as error:
        yield _unreadable(error)


def dump_file(file: RandomAccessFile, name: str, wanted: Wanted) -> Iterator[Record]:
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
            if isinstance(record, (Batch, Edit, Entry, Piece)):
                left -= 1
        yield record


def known_kind(name: str) -> FileType:
    """The kind of a file by its name, which is one of the engine's or has such an ending.

    ``ValueError`` for any other name.
    """
    parsed = parse_filename(name)
    if parsed is not None and parsed[1] in _WORDS:
        return parsed[1]
    if name.startswith("MANIFEST-"):
        return FileType.MANIFEST
    ending = os.path.splitext(name)[1]
    if ending not in _ENDINGS:
        raise ValueError(
            f"{name}: not the name of a store's file:"
            " those are *.log, *.ldb, *.sst, MANIFEST-* and CURRENT"
        )
    return _ENDINGS[ending]


def _place(name: str) -> tuple[int, int, str]:
    """The sort key of a store's file; (-1, ...) for any other file."""
    parsed = parse_filename(name)
    if parsed is None or parsed[1] not in _WORDS:
        return -1, 0, name
    first = _FIRST.index(parsed[1]) if parsed[1] in _FIRST else len(_FIRST)
    return first, parsed[0], name


def _unreadable(error: Exception) -> Fault:
    words = error.strerror if isinstance(error, OSError) else None
    return Fault("unreadable", None, words or str(error))

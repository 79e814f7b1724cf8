"""The names of a store's files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, NamedTuple

from lsmkv.engine.format.filenames import (
    CURRENT,
    LOCK,
    LOG,
    SHARED,
    TRACE,
    FileType,
    log_name,
    manifest_name,
    old_table_name,
    parse_filename,
    table_name,
)

FileKind = Literal[
    "log",
    "table",
    "manifest",
    "current",
    "lock",
    "info log",
    "temporary",
    "stats",
    "trace",
    "shared",
]
"""The kind of a store's file."""

_NUMBERED: Final[dict[FileKind, Callable[[int], str]]] = {
    "log": log_name,
    "table": table_name,
    "manifest": manifest_name,
}
_FIXED: Final[dict[FileKind, str]] = {
    "current": CURRENT,
    "lock": LOCK,
    "info log": LOG,
    "trace": TRACE,
    "shared": SHARED,
}


class FileName(NamedTuple):
    """The kind and the number that a file's name states.

    >>> parse_name("000007.log").number
    7
    """

    kind: FileKind
    number: int
    """0 for a kind that has no number."""


def parse_name(name: str) -> FileName | None:
    """The kind and number of a store's file; None for any other name.

    Raises nothing.  Cost: no file is read.

    >>> parse_name("000005.ldb"), parse_name("MANIFEST-000004"), parse_name("notes.txt")
    (FileName(kind='table', number=5), FileName(kind='manifest', number=4), None)
    """
    parsed = parse_filename(name)
    return None if parsed is None else FileName(parsed[1].value, parsed[0])


def make_name(kind: FileKind, number: int = 0, *, old: bool = False) -> str:
    """The name of a file: the reverse of :func:`parse_name`.

    ``old`` is for tables of databases before 2013, which end in ``.sst``.  Raises ``ValueError``
    for a kind without a fixed name.  Cost: no file is read.

    >>> make_name("table", 5), make_name("table", 5, old=True), make_name("current")
    ('000005.ldb', '000005.sst', 'CURRENT')
    """
    if kind == "table" and old:
        return old_table_name(number)
    if kind in _NUMBERED:
        return _NUMBERED[kind](number)
    if kind in _FIXED:
        return _FIXED[kind]
    raise ValueError(f"files of kind {kind!r} have no fixed name")


def parse_current(content: bytes) -> str | None:
    """The name of the MANIFEST in the content of CURRENT: that name and a newline.

    None for any other content.  Raises nothing.  Cost: O(bytes).

    >>> parse_current(b"MANIFEST-000004\\n"), parse_current(b"../MANIFEST-000004\\n")
    ('MANIFEST-000004', None)
    """
    try:
        name = content.decode("ascii")
    except UnicodeDecodeError:
        return None
    parsed = parse_filename(name[:-1])
    named = name.endswith("\n") and parsed is not None and parsed[1] is FileType.MANIFEST
    return name[:-1] if named else None

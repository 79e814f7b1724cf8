"""The names in a database directory (source: LevelDB, ``db/filename.h``).

===================  ==============================================================================
name                 what it is
===================  ==============================================================================
``NNNNNN.log``       a write-ahead log: the writes that no table holds yet
``NNNNNN.ldb``       a table (``.sst`` in databases written before 2013; read, never written)
``MANIFEST-N...``    which tables make up which level: a log of version edits
``CURRENT``          the name of the MANIFEST in force, and a newline
``LOCK``             held by the process that has the store open
``LOG``              the info log; ``LOG.old`` is that of the previous run
``NNNNNN.dbtmp``     a CURRENT that is being written
``.worker-T-N.tmp``  a table that the worker process of token T writes
``STATS.json``       counters that a live owner publishes; ``STATS.json.tmp`` is the next one
``TRACE``            a trace of operations, if the owner was asked to write it here
``SHARED``           who owns a shared store, and which versions its members lease
===================  ==============================================================================

Numbers come from one counter and are never used twice.  A file of any other name is not the
engine's, and is never touched.
"""

from __future__ import annotations

import enum
from typing import Final

from lsmkv.engine.env.base import Directory
from lsmkv.engine.errors import CorruptionError

CURRENT = "CURRENT"
LOCK = "LOCK"
LOG = "LOG"
LOG_OLD = "LOG.old"
STATS = "STATS.json"
STATS_NEW = "STATS.json.tmp"
SHARED = "SHARED"
TRACE = "TRACE"
"""The name under which ``lsmkv trace`` looks for a trace in a store's directory."""
LOST = "lost"
"""The subdirectory for logs that recovery has set aside."""
LOST_RECORD = "RECOVERY.json"
LOST_RECORD_NEW = "RECOVERY.json.tmp"
"""In that subdirectory: a record of what was left out of each of these logs; and the name under
which the next such record is written."""

MAX_FILE_NUMBER: Final = (1 << 63) - 1
"""The largest number that a file may have."""


class FileType(enum.Enum):
    """The kind of an engine file."""

    LOG = "log"
    TABLE = "table"
    MANIFEST = "manifest"
    TEMPORARY = "temporary"
    CURRENT = "current"
    LOCK = "lock"
    INFO_LOG = "info log"
    STATS = "stats"
    TRACE = "trace"
    SHARED = "shared"


_FIXED = {
    CURRENT: FileType.CURRENT,
    LOCK: FileType.LOCK,
    LOG: FileType.INFO_LOG,
    LOG_OLD: FileType.INFO_LOG,
    STATS: FileType.STATS,
    STATS_NEW: FileType.STATS,
    TRACE: FileType.TRACE,
    SHARED: FileType.SHARED,
}
_SUFFIXES = {
    "log": FileType.LOG,
    "ldb": FileType.TABLE,
    "sst": FileType.TABLE,
    "dbtmp": FileType.TEMPORARY,
}
_MOST_DIGITS = 20
_TOKEN_DIGITS = 16
_HEXADECIMAL = frozenset("0123456789abcdef")


def log_name(number: int) -> str:
    """A write-ahead log's name."""
    return f"{number:06d}.log"


def table_name(number: int) -> str:
    """A table's name."""
    return f"{number:06d}.ldb"


def old_table_name(number: int) -> str:
    """A table's name in databases of LevelDB before 1.14."""
    return f"{number:06d}.sst"


def manifest_name(number: int) -> str:
    """A MANIFEST's name."""
    return f"MANIFEST-{number:06d}"


def worker_table_name(token: str, number: int) -> str:
    """The name of a worker process's table of that number, until its owner renames it."""
    return f".worker-{token}-{number}.tmp"


def worker_token(name: str) -> str | None:
    """The token in the name of a worker process's table; None for any other name."""
    rest = name.removeprefix(".worker-")
    token, _, number = rest.partition("-")
    if rest == name or len(token) != _TOKEN_DIGITS or not _HEXADECIMAL.issuperset(token):
        return None
    digits = number.removesuffix(".tmp")
    return token if digits != number and _is_number(digits) else None


def parse_filename(name: str) -> tuple[int, FileType] | None:
    """The number (0 where there is none) and type of an engine's file; None for any other name.

    >>> parse_filename("000007.ldb")
    (7, <FileType.TABLE: 'table'>)
    >>> parse_filename("notes.txt") is None
    True
    """
    fixed = _FIXED.get(name)
    if fixed is not None:
        return 0, fixed
    digits, _, suffix = name.rpartition(".")
    kind = _SUFFIXES.get(suffix)
    if kind is None:
        digits = name.removeprefix("MANIFEST-")
        if digits == name:
            return None if worker_token(name) is None else (0, FileType.TEMPORARY)
        kind = FileType.MANIFEST
    if not _is_number(digits):
        return None
    number = int(digits)
    return (number, kind) if number <= MAX_FILE_NUMBER else None


def read_current(directory: Directory) -> str:
    """The MANIFEST's name.  Raises for any other content, so that CURRENT cannot lead elsewhere."""
    path = f"{directory.path}/{CURRENT}"
    try:
        content = directory.read_file(CURRENT, 64)
    except ValueError:
        raise CorruptionError("CURRENT is longer than any MANIFEST's name", path, 0) from None
    name = content[:-1].decode("ascii", "replace")
    digits = name.removeprefix("MANIFEST-")
    if not content.endswith(b"\n") or digits == name or not _is_number(digits):
        raise CorruptionError(f"CURRENT does not name a MANIFEST: {content!r}", path, 0)
    return name


def _is_number(digits: str) -> bool:
    """Return True if this is a number in ASCII digits, of no more than a file's number can have."""
    return digits.isdigit() and digits.isascii() and len(digits) <= _MOST_DIGITS


def set_current(directory: Directory, manifest_number: int) -> None:
    """Make CURRENT name ``MANIFEST-<number>``, which must be durable, and make CURRENT durable."""
    temporary = f"{manifest_number:06d}.dbtmp"
    with directory.create(temporary) as file:
        file.append(manifest_name(manifest_number).encode("ascii") + b"\n")
        file.sync()
    directory.rename(temporary, CURRENT)
    directory.sync()

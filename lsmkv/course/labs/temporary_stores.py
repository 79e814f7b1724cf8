"""Stores that checks make for themselves and remove."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping

import lsmkv
from lsmkv.course.failure import CheckFailure, require, shown
from lsmkv.course.labs.edits import (
    COMPARATOR,
    LAST_SEQUENCE,
    LOG_NUMBER,
    NAME_OF_ORDER,
    NEW_FILE,
    NEXT_FILE_NUMBER,
    PREV_LOG_NUMBER,
    encoded,
)
from lsmkv.course.labs.formats import frame, set_current, write
from lsmkv.files import FileKind, make_name, parse_name

try:
    import plyvel
except ImportError:
    plyvel = None


@contextlib.contextmanager
def scratch() -> Iterator[str]:
    """A directory for stores, removed at the end."""
    with tempfile.TemporaryDirectory(prefix="lsmkv-course-") as directory:
        yield directory


def store_with_log(directory: str, log: bytes) -> None:
    """Make a store with this log, which the next open recovers."""
    lsmkv.DB(directory, create_if_missing=True).close()
    (name,) = files_of(directory, "log")
    with open(name, "wb") as file:
        file.write(log)


def store_with_table(
    directory: str, table: bytes, smallest: bytes, largest: bytes, last_sequence: int
) -> None:
    """Make a store with only this table; its first and last key are internal keys."""
    edit = encoded(
        [
            (COMPARATOR, NAME_OF_ORDER),
            (LOG_NUMBER, 0),
            (PREV_LOG_NUMBER, 0),
            (NEXT_FILE_NUMBER, 3),
            (LAST_SEQUENCE, last_sequence),
            (NEW_FILE, 0, 2, len(table), smallest, largest),
        ]
    )
    with lsmkv.LocalEnv().open_directory(directory, create=True) as opened:
        write(opened, make_name("table", 2), table)
        write(opened, make_name("manifest", 1), frame(edit, 0))
        set_current(opened, 1)


def files_of(directory: str, kind: FileKind) -> list[str]:
    """The paths of a store's files of one kind, sorted."""
    found: list[str] = []
    for name in sorted(os.listdir(directory)):
        parsed = parse_name(name)
        if parsed is not None and parsed.kind == kind:
            found.append(os.path.join(directory, name))
    return found


def blocks_without_filters(directory: str, keys: Iterable[bytes]) -> int:
    """The data blocks that Gets of some keys read if no filter is asked."""
    with lsmkv.DB(directory, read_only=True, bloom_filter_bits=0, lru_cache_size=0) as db:
        before = db.stats()
        for key in keys:
            db.get(key)
        return (db.stats() - before).blocks_read


def require_content(directory: str, content: Mapping[bytes, bytes | None], what: str) -> None:
    """Check what lsmkv reads in a store; the value None means that the key must be absent."""
    try:
        with lsmkv.DB(directory, read_only=True, paranoid_checks=True) as db:
            found = {key: db.get(key) for key in content}
    except lsmkv.Error as error:
        raise CheckFailure(f"{what}: lsmkv finds it damaged. {error}") from None
    require_same(found, content, f"{what}: lsmkv reads")


def require_same(
    found: Mapping[bytes, bytes | None], content: Mapping[bytes, bytes | None], reads: str
) -> None:
    """Check that a store answered what was written to it."""
    for key, value in content.items():
        got = found[key]
        require(
            got == value,
            f"{reads} {shown(got)} for the key {key!r}, but {shown(value)} was written.",
        )


def require_content_by_leveldb(
    directory: str,
    content: Mapping[bytes, bytes | None],
    what: str,
    bloom_filter_bits: int = 0,
    paranoid_checks: bool = True,
) -> str:
    """Check that LevelDB reads the same, if plyvel is installed.  Returns a description of the
    result, or nothing."""
    if plyvel is None:
        return ""
    try:
        db = plyvel.DB(
            directory, bloom_filter_bits=bloom_filter_bits, paranoid_checks=paranoid_checks
        )
        try:
            found = {key: db.get(key) for key in content}
        finally:
            db.close()
    except plyvel.Error as error:
        raise CheckFailure(f"{what}: LevelDB finds it damaged. {error}") from None
    require_same(found, content, f"{what}: LevelDB reads")
    return ", and LevelDB itself also reads it"

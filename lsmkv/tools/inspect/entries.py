"""The entries of a store, in the order of their keys; or those of its files, one after the other.

The second way needs no store that can be opened: it reads each log and table that is there, with
every version of a key, and continues after damage.

A question is answered in windows: it ends after some entries, or some bytes, and names the place
where the next one continues.  So a search in a large store shows what it has found so far.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final, NamedTuple

import lsmkv
from lsmkv.engine.errors import Error
from lsmkv.engine.util.json_fields import json_field
from lsmkv.files import Operation
from lsmkv.files.exchange import json_line
from lsmkv.files.programs import Decoder, guess, program_named
from lsmkv.tools.decoded import LONGEST, cut, decoder_of, meaning, program_of
from lsmkv.tools.dump.logs import read_log
from lsmkv.tools.dump.records import Entry, Fault
from lsmkv.tools.dump.tables import read_table
from lsmkv.tools.inspect.plain import Plain, shown_bytes
from lsmkv.tools.inspect.source import Source
from lsmkv.tools.text import from_hex, printable

WINDOW: Final = 200
"""The most entries in one answer."""
_MOST_LOOKED_AT: Final = 20_000
_MOST_BYTES: Final = 4 << 20
"""The most entries, and bytes of them, that one question reads."""
_MOST_LINES: Final = 5_000
_BYTEWISE: Final = "leveldb.BytewiseComparator"


class Wanted(NamedTuple):
    """The filter of a question about entries."""

    prefix: bytes = b""
    text: bytes = b""
    """Bytes that the key or the value contains; ASCII letters in either case."""
    by_file: bool = False

    def matches(self, one: _Version) -> bool:
        """True if this entry is wanted."""
        if not one.key.startswith(self.prefix):
            return False
        wanted = self.text.lower()
        if not wanted or wanted in one.key.lower():
            return True
        value = (one.value or b"").lower()
        return wanted in value or _as_utf16(wanted) in value


class _Version(NamedTuple):
    """An entry as it is stored, or a fault of a file."""

    key: bytes
    value: bytes | None
    """None for a deletion."""
    file: str = ""
    sequence: int = 0
    place: str = ""
    """The position from which a question continues that begins with this entry."""
    fault: str = ""


def entries(source: Source, wanted: Wanted, place: str = "") -> Plain:
    """Up to :data:`WINDOW` entries from a place on, which an earlier answer gave as ``next``.

    ``next`` is None at the end; ``looked_at`` counts the entries that were read for it.  A store
    that cannot be opened is read file by file.
    """
    found, looked_at, rest, how = _window(source, wanted, place, WINDOW)
    db = _opened(source)
    if db is not None:
        known = program_of(db, source.path)
    else:
        keys = [one.key for one in found if not one.fault]
        known = program_named(guess(keys, source.comparator, source.path))
    decoder = decoder_of(db, known)
    return {
        "entries": [_shown(source, decoder, one) for one in found],
        "looked_at": looked_at,
        "next": rest,
        "by_file": how.by_file,
        "format": None if known is None else {"name": known.name, "words": known.words},
    }


def lines(source: Source, wanted: Wanted, place: str = "") -> Plain:
    """The same as JSON lines, for a file: as ``lsmkv export`` writes them, and ``import`` reads.

    File by file, each also has its file and sequence, and deletions have no value.
    """
    found, looked_at, rest, how = _window(source, wanted, place, _MOST_LINES)
    written = b"".join(_line(one, how.by_file) for one in found)
    return {"lines": written.decode("ascii"), "looked_at": looked_at, "next": rest}


def _opened(source: Source) -> lsmkv.DB | None:
    """The store; None if it cannot be opened."""
    try:
        return source.db()
    except Error:
        return None


def _window(
    source: Source, wanted: Wanted, place: str, most: int
) -> tuple[list[_Version], int, str | None, Wanted]:
    """The wanted entries from a place on, the number of entries read, and the next place."""
    if not wanted.by_file:
        try:
            source.db()
        except Error:
            wanted = wanted._replace(by_file=True)
    read = _of_files(source, place) if wanted.by_file else _of_store(source, wanted, place)
    found: list[_Version] = []
    looked_at = size = 0
    for one in read:
        if len(found) >= most or looked_at >= _MOST_LOOKED_AT or size >= _MOST_BYTES:
            return found, looked_at, one.place, wanted
        looked_at += 1
        size += len(one.key) + len(one.value or b"")
        if one.fault or wanted.matches(one):
            found.append(one)
    return found, looked_at, None, wanted


def _of_store(source: Source, wanted: Wanted, place: str) -> Iterator[_Version]:
    """The entries that the store shows, from the key at ``place`` on."""
    start = from_hex(place) if place else None
    prefix = wanted.prefix if wanted.prefix and source.comparator == _BYTEWISE else None
    with source.db().iterator(start=start, prefix=prefix, fill_cache=False) as found:
        for key, value in found:  # the key at ``place`` comes first
            yield _Version(key, value, place=key.hex())


def _of_files(source: Source, place: str) -> Iterator[_Version]:
    """The versions in each log and table, from ``place`` on: a file, and how many are before."""
    first, _, skipped = place.partition(":")
    skip = int(skipped) if skipped.isdigit() else 0
    for _, name in source.named("log", "table"):
        if first and name != first:
            continue
        first = ""
        for at, one in enumerate(_of_file(source, name)):
            if at >= skip:
                yield one._replace(place=f"{name}:{at}")
        skip = 0


def _of_file(source: Source, name: str) -> Iterator[_Version]:
    try:
        with source.directory.open(name) as file:
            for record in read_log(file) if name.endswith(".log") else read_table(file):
                if isinstance(record, Operation):
                    yield _Version(record.key, record.value, name, record.sequence)
                elif isinstance(record, Entry):
                    key = record.key
                    value = record.value if key.kind else None
                    yield _Version(key.user_key, value, name, key.sequence or 0)
                elif isinstance(record, Fault):
                    where = "" if record.offset is None else f" at {record.offset:,}"
                    yield _Version(b"", None, name, fault=f"{record.kind}{where}: {record.reason}")
    except (Error, OSError) as error:
        yield _Version(b"", None, name, fault=str(error))


def _shown(source: Source, decoder: Decoder | None, one: _Version) -> Plain:
    if one.fault:
        return {"file": one.file, "fault": printable(one.fault)}
    key = source.shown_key(one.key)
    value = None if one.value is None else shown_bytes(one.value)
    if decoder is not None:
        _add(key, meaning(decoder.key(one.key[:LONGEST])))
        if value is not None and one.value is not None:
            _add(value, meaning(decoder.value(one.key, cut(one.value))))
    fields: Plain = {"key": key, "value": value}
    return fields | ({"file": one.file, "sequence": one.sequence} if one.file else {})


def _add(fields: Plain, text: str | None) -> None:
    if text is not None:
        fields["meaning"] = text


def _line(one: _Version, by_file: bool) -> bytes:
    if not by_file:
        return json_line(one.key, one.value or b"")
    if one.fault:
        return json.dumps({"file": one.file, "fault": one.fault}).encode("ascii") + b"\n"
    fields = {"file": one.file, "sequence": one.sequence} | json_field("key", one.key, False)
    if one.value is not None:
        fields |= json_field("value", one.value, False)
    return json.dumps(fields).encode("ascii") + b"\n"


def _as_utf16(text: bytes) -> bytes:
    """The same text in UTF-16, in which Chromium writes many values."""
    return text.decode("utf-8", "replace").encode("utf-16-le")

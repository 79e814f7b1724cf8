"""``lsmkv export`` and ``import``: all records of a store, to a file and back.

The formats themselves are in :mod:`lsmkv.tools.formats`.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, BinaryIO

import typer

import lsmkv
from lsmkv.tools.arguments import (
    Create,
    Directory,
    Hex,
    open_input,
    open_to_read,
    open_to_write,
)
from lsmkv.tools.console import guarded, say, stdout_is_terminal, task, write_line
from lsmkv.tools.formats import (
    RAW_HEADER,
    Record,
    json_line,
    read_json_lines,
    read_raw,
    write_raw,
)
from lsmkv.tools.load import batches
from lsmkv.tools.output import open_output
from lsmkv.tools.text import count, from_argument, shown

_REPORT_EVERY = 5000


class Format(StrEnum):
    """What records are written as."""

    JSON = "json"
    RAW = "raw"


class Conflict(StrEnum):
    """What becomes of a record whose key is there already."""

    OVERWRITE = "overwrite"
    SKIP = "skip"
    ERROR = "error"


@guarded
def export(
    directory: Directory,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The file; - is stdout.")
    ] = "-",
    file_format: Annotated[
        Format, typer.Option("--format", help="JSON lines, or the raw format.")
    ] = Format.JSON,
    start: Annotated[
        str | None, typer.Option(metavar="KEY", help="From this key on, itself included.")
    ] = None,
    stop: Annotated[
        str | None, typer.Option(metavar="KEY", help="Up to this key, itself left out.")
    ] = None,
    prefix: Annotated[
        str | None, typer.Option(metavar="KEY", help="Only keys that begin with this.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it is there.")] = False,
    is_hex: Hex = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="The figures as JSON; goes with --output.")
    ] = False,
) -> None:
    """Write all records, or a range of them, in the order of their keys, for 'import' to read.

    The store is read as it is at one moment, beside a live writer too. FILE is there whole or not
    at all.

    JSON lines are {"key": "...", "value": "..."}; what is not valid UTF-8 goes by "key_base64" or
    "value_base64", and with --hex all goes by "key_hex" and "value_hex". The raw format is binary
    and notices damage and truncation.

    --json: "path", "file", "format", "records", "bytes" (of FILE).
    """
    if prefix is not None and (start is not None or stop is not None):
        raise ValueError("give --prefix, or --start and --stop, not both")
    if as_json and output == "-":
        raise ValueError("--json goes with --output FILE: stdout has the records")
    if file_format is Format.RAW and output == "-" and stdout_is_terminal():
        raise ValueError("the raw format is not for a terminal: give --output FILE, or redirect")
    bounds = [None if text is None else from_argument(text, is_hex) for text in (start, stop)]
    common = None if prefix is None else from_argument(prefix, is_hex)
    written = 0
    exported = Exported()
    started = time.perf_counter()
    with (
        open_to_read(directory) as db,
        open_output(output, force) as file,
        db.snapshot() as snapshot,
        _progress(db, snapshot, bounds, common) as report,
        snapshot.iterator(
            start=bounds[0], stop=bounds[1], prefix=common, fill_cache=False
        ) as records,
    ):
        counted = exported.count(records, report)
        if file_format is Format.RAW:
            pieces = write_raw(counted)
        else:
            pieces = (json_line(key, value, is_hex) for key, value in counted)
        for piece in pieces:
            file.write(piece)
            written += len(piece)
    seconds = time.perf_counter() - started
    if as_json:
        figures = {"records": exported.records, "bytes": written}
        about = {"path": directory, "file": output, "format": file_format.value}
        write_line(json.dumps(about | figures))
    say(f"{count(exported.records, 'record')} exported in {seconds:.1f} s")


@guarded
def import_(
    directory: Directory,
    file: Annotated[str, typer.Argument(metavar="FILE", help="What 'export' wrote; - is stdin.")],
    file_format: Annotated[
        Format | None,
        typer.Option("--format", help="What FILE must be; it says so itself if this is left out."),
    ] = None,
    create: Create = False,
    on_conflict: Annotated[
        Conflict, typer.Option(help="What to do with a record whose key is there already.")
    ] = Conflict.OVERWRITE,
    as_json: Annotated[bool, typer.Option("--json", help="The figures as JSON.")] = False,
) -> None:
    """Put every record of FILE, durably once it is done.

    A record that is damaged, or in conflict under --on-conflict error, ends it: the records before
    it are in the store then, and stderr says how many.

    JSON: "path", "file", "format", "records" (put), "skipped".
    """
    imported = Imported()
    started = time.perf_counter()
    with open_input(file) as stream:
        found, records = recognize(stream)
        if file_format is Format.RAW and found is not Format.RAW:
            raise ValueError(f"not the raw format: it does not begin with {RAW_HEADER!r}")
        if file_format is Format.JSON and found is not Format.JSON:
            raise ValueError("not JSON lines: it is in the raw format")
        first = list(itertools.islice(records, 1))  # before a store is made for it
        with open_to_write(directory, create) as db:
            try:
                with task("Importing", None, "records") as advance:
                    put_records(db, itertools.chain(first, records), on_conflict, imported, advance)
                db.sync()
            finally:
                seconds = time.perf_counter() - started
                skipped = f", {imported.skipped:,} skipped" if imported.skipped else ""
                say(f"{count(imported.records, 'record')} imported in {seconds:.1f} s{skipped}")
    if as_json:
        about = {"path": directory, "file": file, "format": found.value}
        figures = {"records": imported.records, "skipped": imported.skipped}
        write_line(json.dumps(about | figures))


@dataclass
class Exported:
    """What an export has written so far."""

    records: int = 0

    def count(self, records: Iterable[Record], report: Callable[[bytes], None]) -> Iterator[Record]:
        """The same records; ``report`` is told of a key now and then."""
        for record in records:
            yield record
            self.records += 1
            if self.records % _REPORT_EVERY == 0:
                report(record[0])


@dataclass
class Imported:
    """What an import has done so far."""

    records: int = 0
    skipped: int = 0


def recognize(stream: BinaryIO) -> tuple[Format, Iterator[Record]]:
    """The format of a file, and its records."""
    head = stream.readline(len(RAW_HEADER))
    if head == RAW_HEADER:
        return Format.RAW, read_raw(stream)
    if head and not head.endswith(b"\n"):
        head += stream.readline()
    return Format.JSON, read_json_lines(itertools.chain([head], stream))


def put_records(
    db: lsmkv.DB,
    records: Iterable[Record],
    conflict: Conflict,
    imported: Imported,
    advance: Callable[[int], None],
) -> None:
    """Put these records, in batches.

    ``imported`` is kept up to date, and ``advance`` is told of each batch: both hold when a record
    raises ``ValueError``.  Of two records with one key the later one is in conflict too.
    """
    for batch in batches(records):
        there: set[bytes] = set()
        if conflict is not Conflict.OVERWRITE:
            keys = [key for key, _ in batch]
            values = db.multi_get(keys, fill_cache=False)
            there = {key for key, value in zip(keys, values, strict=True) if value is not None}
        refused: bytes | None = None
        skipped = 0
        with db.write_batch() as writer:
            for key, value in batch:
                if key not in there:
                    writer.put(key, value)
                    if conflict is not Conflict.OVERWRITE:
                        there.add(key)
                elif conflict is Conflict.SKIP:
                    skipped += 1
                else:
                    refused = key
                    break
            put = len(writer)
        imported.records += put
        imported.skipped += skipped
        advance(put + skipped)
        if refused is not None:
            number = imported.records + 1
            raise ValueError(f"record {number:,}: the key {shown(refused, False)} is there already")


@contextlib.contextmanager
def _progress(
    db: lsmkv.DB,
    snapshot: lsmkv.Snapshot,
    bounds: list[bytes | None],
    prefix: bytes | None,
) -> Iterator[Callable[[bytes], None]]:
    """A bar in bytes of tables; what it gives is told of the key that was reached."""
    ends: list[bytes] = []
    for reverse in (False, True):
        with snapshot.iterator(
            start=bounds[0],
            stop=bounds[1],
            prefix=prefix,
            reverse=reverse,
            include_value=False,
            fill_cache=False,
        ) as keys:
            ends += itertools.islice(keys, 1)
    total = db.approximate_size(ends[0], ends[1]) if ends else 0
    done = 0
    with task("Exporting", total or None, "bytes of tables") as advance:

        def reached(key: bytes) -> None:
            nonlocal done
            here = db.approximate_size(ends[0], key)
            advance(here - done)
            done = here

        yield reached

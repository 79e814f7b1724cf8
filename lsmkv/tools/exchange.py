"""``lsmkv export`` and ``import``: all records of a store, to a file and back.

The formats themselves are in :mod:`lsmkv.files.exchange`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from types import ModuleType
from typing import Annotated

import typer

import lsmkv
from lsmkv.files.exchange import (
    RAW_HEADER,
    Format,
    Record,
    json_line,
    recognize,
    write_raw,
)
from lsmkv.shards import Shards
from lsmkv.tools.arguments import (
    Bounds,
    Create,
    Directory,
    Hex,
    Prefix,
    Start,
    Stop,
    Stored,
    key_bounds,
    open_input,
    open_stored,
    open_to_write,
)
from lsmkv.tools.as_program import As, Family, refuse_hex, texts_of
from lsmkv.tools.console import guarded, needing, say, stdout_is_terminal, write_json
from lsmkv.tools.drawing import progress
from lsmkv.tools.load import batches
from lsmkv.tools.options import argument, choice, flag, option
from lsmkv.tools.output import open_output
from lsmkv.tools.salvaged import SKIPPED, Skipped, open_salvaged
from lsmkv.tools.text import count, shown

_REPORT_EVERY = 5000


class Written(StrEnum):
    """The format of an export."""

    JSON = "json"
    RAW = "raw"
    RESP = "resp"


class From(StrEnum):
    """The source of an import."""

    FILE = "file"
    REDIS = "redis"
    DISKCACHE = "diskcache"


class Conflict(StrEnum):
    """The treatment of a record whose key is in the store already."""

    OVERWRITE = "overwrite"
    SKIP = "skip"
    ERROR = "error"


@guarded
def export(
    directory: Stored,
    output: str = option("-", "FILE", "The file; - is stdout.", "--output", "-o"),
    file_format: Written = choice(
        Written.JSON, "JSON lines, the raw format, or commands of Redis.", "--format"
    ),
    start: Start = None,
    stop: Stop = None,
    prefix: Prefix = None,
    force: bool = flag("Replace FILE if it exists.", "--force"),
    skip_damaged: bool = flag("Export what can be read of a damaged store.", "--skip-damaged"),
    is_hex: Hex = False,
    as_json: bool = flag("The figures as JSON; requires --output.", "--json"),
    family: As = None,
) -> None:
    """Write all records, or a range of them, in the order of their keys, for 'import' to read.

    The store is read as it is at one moment, even while a writer has it open. FILE appears whole
    or not at all.

    JSON lines are {"key": "...", "value": "..."}; what is not valid UTF-8 is in "key_base64" or
    "value_base64", and with --hex everything is in "key_hex" and "value_hex". The raw format is
    binary and detects damage and truncation.

    With --as, JSON lines are {"as": "...", "key_text": "...", "value_text": "..."}: names and text
    of Chromium's, Minecraft's or Bitcoin's records, for people. 'import' refuses them. On a
    terminal these programs are recognized, which stderr says; --as raw never decodes.

    resp is for a store of lsmkv serve: the commands of Redis that make its keys again, with their
    expiry, for redis-cli --pipe.

    --skip-damaged exports what a repair would keep, and leaves out what lost data may have
    replaced. The ranges of keys that are skipped are on stderr; the exit status is 3 if there are
    any. The store must not be open elsewhere. TMPDIR gets links to its tables, or copies.

    --json: "path", "file", "format", "records", "bytes" (the size of FILE). Of resp, "keys" and
    "left_out" (by kind) instead of "records". With --skip-damaged also "skipped": "ranges" ("file",
    "offset", "bytes", "missing", "reason", "after", "to"), "stale" (entries), "logs", "guessed"
    (true if no MANIFEST is intact: deleted keys may be there).
    """
    bounds = key_bounds(start, stop, prefix, is_hex)
    if as_json and output == "-":
        raise ValueError("--json requires --output FILE, since stdout carries the records")
    if file_format is not Written.JSON and output == "-" and stdout_is_terminal():
        name = "the raw format" if file_format is Written.RAW else "the format resp"
        raise ValueError(f"{name} is not for a terminal: give --output FILE, or redirect")
    refuse_hex(family, is_hex)
    if file_format is not Written.JSON and family not in (None, Family.RAW):
        raise ValueError(f"--as {family} writes JSON lines: give no --format {file_format}")
    if file_format is Written.RESP:
        if bounds != Bounds(None, None, None) or is_hex:
            raise ValueError("--format resp exports all keys: give no range, and no --hex")
        _export_resp(directory, output, force, as_json, skip_damaged)
        return
    written = 0
    exported = Exported()
    started = time.perf_counter()
    with (
        _open(directory, skip_damaged) as (db, skipped),
        open_output(output, force) as file,
        _records(db, bounds) as (records, report),
    ):
        counted = exported.count(records, report)
        is_for_a_person = output == "-" and stdout_is_terminal() and not is_hex
        texts = texts_of(db, directory, family, is_for_a_person)
        if file_format is Written.RAW:
            pieces = write_raw(counted)
        elif texts is not None:
            pieces = itertools.starmap(texts.json_line, counted)
        else:
            pieces = (json_line(key, value, is_hex) for key, value in counted)
        for piece in pieces:
            file.write(piece)
            written += len(piece)
    seconds = time.perf_counter() - started
    if as_json:
        figures = {"records": exported.records, "bytes": written}
        about = {"path": directory, "file": output, "format": file_format.value}
        write_json(about | figures | _as_field(skipped))
    say(f"{count(exported.records, 'record')} exported in {seconds:.1f} s")
    _end(skipped)


@guarded
def import_(
    directory: Directory,
    file: Annotated[
        str,
        argument(
            "FILE", "What 'export' wrote; - is stdin; or a Redis' URL; or a directory of diskcache."
        ),
    ],
    file_format: Format | None = choice(None, "Refuse any other format than this.", "--format"),
    source: From = choice(
        From.FILE, "Read a file, a Redis at redis://HOST:PORT, or a diskcache.Cache.", "--from"
    ),
    trust_pickle: bool = flag(
        "Unpickle what diskcache has pickled; those who wrote it can run code here.",
        "--trust-pickle",
    ),
    create: Create = False,
    on_conflict: Conflict = choice(
        Conflict.OVERWRITE, "What to do with a record whose key is there already."
    ),
    as_json: bool = flag("The figures as JSON.", "--json"),
) -> None:
    """Put every record of FILE; they are durable when the command returns.

    The format is recognized. A damaged record ends the import, and so does a conflict with
    --on-conflict error: the records before it stay in the store, and stderr says how many.

    --from redis copies all keys of a Redis server, or of one database, into a store of lsmkv serve,
    with their expiry. If it is interrupted, the same command continues. Write nothing to the Redis
    during the import: what changes may be copied in part. A password may be in REDISCLI_AUTH.

    --from diskcache copies a diskcache.Cache or FanoutCache into a directory of lsmkv.Cache, with
    expiry, tags and limits. Pickles are left out without --trust-pickle; with it, what is plain
    data is copied, and objects are left out.

    JSON: "path", "file", "format", "records" (put), "skipped". Of a Redis: "path", "keys",
    "left_out" (by kind). Of a diskcache: "path", "entries", "left_out" (by reason).
    """
    if trust_pickle and source is not From.DISKCACHE:
        raise ValueError("--trust-pickle requires --from diskcache")
    if source is From.DISKCACHE:
        if file_format is not None or on_conflict is not Conflict.OVERWRITE:
            raise ValueError("--from diskcache takes neither --format nor --on-conflict")
        _import_diskcache(directory, file, create, trust_pickle, as_json)
        return
    if source is From.REDIS:
        if file_format is not None or on_conflict is not Conflict.OVERWRITE:
            raise ValueError("--from redis takes neither --format nor --on-conflict")
        _import_redis(directory, file, create, as_json)
        return
    imported = Imported()
    started = time.perf_counter()
    with open_input(file) as stream:
        found, records = recognize(stream)
        if file_format is Format.RAW and found is not Format.RAW:
            raise ValueError(f"not the raw format: it does not begin with {RAW_HEADER!r}")
        if file_format is Format.JSON and found is not Format.JSON:
            raise ValueError("not JSON lines: it is in the raw format")
        first = list(itertools.islice(records, 1))  # so that a bad file creates no store
        with open_to_write(directory, create) as db:
            try:
                with progress("Importing", "record") as bar:
                    put_records(
                        db, itertools.chain(first, records), on_conflict, imported, bar.advance
                    )
                db.sync()
            finally:
                seconds = time.perf_counter() - started
                skipped = f", {imported.skipped:,} skipped" if imported.skipped else ""
                say(f"{count(imported.records, 'record')} imported in {seconds:.1f} s{skipped}")
    if as_json:
        about = {"path": directory, "file": file, "format": found.value}
        figures = {"records": imported.records, "skipped": imported.skipped}
        write_json(about | figures)


@contextlib.contextmanager
def _open(directory: str, skip_damaged: bool) -> Iterator[tuple[lsmkv.DB | Shards, Skipped | None]]:
    """Open the source of an export, and list its skipped parts if ``skip_damaged``."""
    if skip_damaged:
        with open_salvaged(directory) as found:
            yield found
    else:
        with open_stored(directory) as db:
            yield db, None


def _as_field(skipped: Skipped | None) -> dict[str, object]:
    return {} if skipped is None else {"skipped": skipped.to_dict()}


def _end(skipped: Skipped | None) -> None:
    """Print what was skipped, and end the command if anything was."""
    if skipped is not None and not skipped.is_empty:
        skipped.tell()
        raise typer.Exit(SKIPPED)


def _export_resp(
    directory: str, output: str, force: bool, as_json: bool, skip_damaged: bool
) -> None:
    server = _server()
    written = 0
    started = time.perf_counter()
    with _open(directory, skip_damaged) as (db, skipped), open_output(output, force) as file:
        if isinstance(db, Shards):
            raise ValueError(f"{directory} is no store of lsmkv serve")

        def write(data: bytes) -> None:
            nonlocal written
            file.write(data)
            written += len(data)

        with progress("Exporting", "key") as bar:
            moved = server.export_resp(
                db, write, progress=lambda done, total: bar.report_phase("RESP", "key", done, total)
            )
    if as_json:
        figures = {"keys": moved.keys, "left_out": moved.left_out, "bytes": written}
        about = {"path": directory, "file": output, "format": "resp"}
        write_json(about | figures | _as_field(skipped))
    say(f"{count(moved.keys, 'key')} exported in {time.perf_counter() - started:.1f} s")
    _say_left_out(moved.left_out)
    _end(skipped)


def _import_diskcache(
    directory: str, source: str, create: bool, trust_pickle: bool, as_json: bool
) -> None:
    from lsmkv.tools import diskcache  # noqa: PLC0415 - it loads SQLite

    started = time.perf_counter()
    places = diskcache.databases(source)
    settings = diskcache.settings_of(places[0])
    if "size_limit" in settings:
        settings["size_limit"] *= len(places)
    with (
        lsmkv.Cache(directory, create_if_missing=create, **settings) as cache,
        progress("Importing", "entry") as bar,
    ):
        moved = diskcache.import_diskcache(cache, places, trust_pickle, lambda: bar.advance(1))
    if as_json:
        figures = {"entries": moved.entries, "left_out": moved.left_out}
        write_json({"path": directory} | figures)
    seconds = time.perf_counter() - started
    say(f"{count(moved.entries, 'entry')} imported in {seconds:.1f} s")
    for reason, number in sorted(moved.left_out.items()):
        say(f"left out: {number:,} {reason}")
    if "pickled" in moved.left_out:
        say("--trust-pickle unpickles, if you trust those who could write to the directory")


def _import_redis(directory: str, url: str, create: bool, as_json: bool) -> None:
    server = _server()
    started, copied, ended = time.perf_counter(), 0, False
    try:
        with progress("Importing", "key") as bar:

            def report(done: int, total: int) -> None:
                nonlocal copied
                copied = done
                bar.report_phase("from Redis", "key", done, total)

            moved = server.import_redis(
                directory,
                url,
                create_if_missing=create,
                password=os.environ.get("REDISCLI_AUTH", ""),
                progress=report,
                notice=say,
            )
        copied, ended = moved.keys, True
    finally:
        if ended or copied:
            say(f"{count(copied, 'key')} imported in {time.perf_counter() - started:.1f} s")
        if copied and not ended:
            say("not everything was imported; the same command continues from here")
    _say_left_out(moved.left_out)
    if as_json:
        figures = {"keys": moved.keys, "left_out": moved.left_out}
        write_json({"path": directory} | figures)


def _say_left_out(left_out: dict[str, int]) -> None:
    """Say which keys could not be moved."""
    for kind, number in sorted(left_out.items()):
        say(f"left out: {count(number, 'key')} of the kind {kind}")


def _server() -> ModuleType:
    """Import ``lsmkv.server``, which needs hiredis, an extra."""
    with needing("this", "hiredis", extra="server"):
        from lsmkv import server  # noqa: PLC0415
    return server


@dataclass
class Exported:
    """The progress of an export."""

    records: int = 0

    def count(self, records: Iterable[Record], report: Callable[[bytes], None]) -> Iterator[Record]:
        """The same records; ``report`` is called with every 5,000th key."""
        for record in records:
            yield record
            self.records += 1
            if self.records % _REPORT_EVERY == 0:
                report(record[0])


@dataclass
class Imported:
    """The progress of an import."""

    records: int = 0
    skipped: int = 0


def put_records(
    db: lsmkv.DB,
    records: Iterable[Record],
    conflict: Conflict,
    imported: Imported,
    advance: Callable[[int], None],
) -> None:
    """Put these records, in batches.

    ``advance`` is called with the number of records of each batch, and ``imported`` counts them
    all, those before a record that cannot be read included.  Of two records with the same key, the
    later one is also in conflict.  No record replaces one that another process of a shared store
    has just put, unless conflicts are overwritten.
    """
    for batch in batches(records):
        if conflict is Conflict.OVERWRITE:
            pairs, skipped, refused = batch, 0, None
            _put(db, pairs)
        elif isinstance(db, lsmkv.SharedDB):  # other processes also write
            pairs, skipped, refused = db.run(partial(_put_new, batch, conflict))
        else:
            values = db.multi_get([key for key, _ in batch], fill_cache=False)
            pairs, skipped, refused = _decided(batch, values, conflict)
            _put(db, pairs)
        put = len(pairs)
        imported.records += put
        imported.skipped += skipped
        advance(put + skipped)
        if refused is not None:
            number = imported.records + 1
            raise ValueError(f"record {number}: the key {shown(refused, False)} is there already")


def _put(db: lsmkv.DB, pairs: list[Record]) -> None:
    with db.write_batch() as writer:
        for key, value in pairs:
            writer.put(key, value)


def _put_new(
    batch: list[Record], conflict: Conflict, transaction: lsmkv.Transaction
) -> tuple[list[Record], int, bytes | None]:
    values = [transaction.get(key) for key, _ in batch]
    pairs, skipped, refused = _decided(batch, values, conflict)
    for key, value in pairs:
        transaction.put(key, value)
    return pairs, skipped, refused


def _decided(
    batch: list[Record], values: list[bytes | None], conflict: Conflict
) -> tuple[list[Record], int, bytes | None]:
    """The records to put, the number of those to skip, and the first key that is refused."""
    there = {key for (key, _), value in zip(batch, values, strict=True) if value is not None}
    pairs: list[Record] = []
    skipped = 0
    for key, value in batch:
        if key not in there:
            pairs.append((key, value))
            there.add(key)
        elif conflict is Conflict.SKIP:
            skipped += 1
        else:
            return pairs, skipped, key
    return pairs, skipped, None


@contextlib.contextmanager
def _records(
    db: lsmkv.DB | Shards, bounds: Bounds
) -> Iterator[tuple[Iterable[Record], Callable[[bytes], None]]]:
    """The records as they are at one moment, and a function that takes the key reached."""
    with contextlib.ExitStack() as stack:
        report: Callable[[bytes], None]
        if isinstance(db, Shards):
            whole = bounds == Bounds(None, None, None)
            total = db.document.pairs if whole else None
            bar = stack.enter_context(progress("Exporting", "record", total))
            records = stack.enter_context(db.iterator(**bounds._asdict(), fill_cache=False))
            yield records, lambda _: bar.advance(_REPORT_EVERY)
            return
        snapshot = stack.enter_context(db.snapshot())
        report = stack.enter_context(_progress(db, snapshot, bounds))
        yield stack.enter_context(snapshot.iterator(**bounds._asdict(), fill_cache=False)), report


@contextlib.contextmanager
def _progress(
    db: lsmkv.DB, snapshot: lsmkv.Snapshot, bounds: Bounds
) -> Iterator[Callable[[bytes], None]]:
    """Show a bar in bytes of tables; the function given takes the key that was reached."""
    ends: list[bytes] = []
    for reverse in (False, True):
        with snapshot.iterator(
            **bounds._asdict(), reverse=reverse, include_value=False, fill_cache=False
        ) as keys:
            ends += itertools.islice(keys, 1)
    total = db.approximate_size(ends[0], ends[1]) if ends else 0
    done = 0
    with progress("Exporting", "byte", total or None) as bar:

        def reached(key: bytes) -> None:
            nonlocal done
            here = db.approximate_size(ends[0], key)
            bar.advance(here - done)
            done = here

        yield reached

"""The commands for a store as a whole: checkpoint, compact, destroy, approximate-sizes."""

from __future__ import annotations

import errno
import os
import time
from contextlib import suppress
from typing import Annotated

import typer

import lsmkv
from lsmkv.engine.util.json_fields import json_field
from lsmkv.files import foreign_engine, key_order, parse_name
from lsmkv.tools.arguments import (
    Directory,
    Hex,
    filter_arguments,
    open_to_read,
    open_to_write,
)
from lsmkv.tools.console import INTERRUPTED, MISS, confirmed, guarded, say, write_json, write_line
from lsmkv.tools.drawing import progress
from lsmkv.tools.filter_figures import FilterFigures
from lsmkv.tools.options import argument, flag, option
from lsmkv.tools.text import count, from_argument, printable, shown, size

AsJson = Annotated[bool, typer.Option("--json", help="The figures as JSON.")]


@guarded
def checkpoint(
    directory: Directory,
    new: Annotated[str, argument("NEW", "The directory to create.")],
    as_json: AsJson = False,
) -> None:
    """Make a second store, NEW, that holds what DIR holds now.

    Tables are shared by hard links, which take hardly any time and space; on another file system
    they are copied. NEW must not exist, and appears whole or not at all. DIR is opened for writing,
    which takes its lock and flushes its log to tables; if another process has it open, it is only
    read, and the other process may continue to write.

    JSON: "path", "checkpoint", "tables", "tables_linked", "bytes" (size of the tables).
    """
    if os.path.lexists(new):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)
    with _open_to_copy(directory) as db, progress("Checkpoint", "table") as bar:
        before = _tables_on_disk(directory)
        db.checkpoint(new, progress=bar.report)
        # Before and after: a compaction may have made tables in between, and removed others.
        inodes = {*before.values(), *_tables_on_disk(directory).values()}
    made = _tables_on_disk(new)
    linked = sum(inode in inodes for inode in made.values())
    total = sum(os.stat(os.path.join(new, name)).st_size for name in made)
    if as_json:
        figures = {"tables": len(made), "tables_linked": linked, "bytes": total}
        write_json({"path": directory, "checkpoint": new} | figures)
        return
    how = "linked" if linked == len(made) else f"{linked:,} linked, {len(made) - linked:,} copied"
    write_line(f"{printable(new)}: {count(len(made), 'table')}, {size(total)}, {how}")


def _open_to_copy(directory: str) -> lsmkv.DB:
    """The store, open for reading only if another process has it open and shares it with none."""
    try:
        return open_to_write(directory)
    except lsmkv.LockedError:
        return open_to_read(directory)


@guarded
def compact(
    directory: Directory,
    start: str | None = option(None, "KEY", "From this key on, itself included."),
    stop: str | None = option(None, "KEY", "Up to this key, itself included."),
    is_hex: Hex = False,
    filters: str | None = option(
        None, "KIND", "Rewrite every table with filters of this kind.", "--filter"
    ),
    layout: str | None = option(None, "LAYOUT", "block, table or both.", "--filter-layout"),
    prefix: str | None = option(
        None, "P", "Also filters of prefixes: P bytes, or up to text P.", "--prefix"
    ),
    as_json: AsJson = False,
) -> None:
    """Merge each level into the next, which drops deleted and overwritten data and speeds up reads.

    The whole store is compacted, or a range of its keys. Ctrl-C stops at the next step, and the
    levels merged before it stay merged. As in LevelDB, the deepest level is not rewritten alone.

    With --filter nothing moves down: every table is rewritten on its level (level 0
    goes into level 1). KIND is bloom (LevelDB's, the default of a store), bloom64, fuse, or none;
    bloom and bloom64 take bits a key (bloom64:12), bits by level (bloom:16,12,10) or auto:10.
    LevelDB reads tables with filters other than its own as if they had none. A program keeps
    using these filters if it opens the store with the same filter_policy and prefix_extractor;
    otherwise it reads them, but writes new tables with its own.

    JSON: "path", "before" and "after" (each {"tables", "bytes"}, with --filter "filter_bytes"),
    "seconds".
    """
    begin = None if start is None else from_argument(start, is_hex)
    end = None if stop is None else from_argument(stop, is_hex)
    options = filter_arguments(filters, layout, prefix)
    if (layout is not None or prefix is not None) and filters is None:
        raise ValueError("--filter-layout and --prefix require --filter")
    if options and (start is not None or stop is not None):
        raise ValueError("--filter is for the whole store, without --start and --stop")
    with open_to_write(directory, **options) as db:
        before = _extent(db, bool(options))
        started = time.perf_counter()
        try:
            with progress("Rewriting" if options else "Compacting", "byte") as bar:
                if options:
                    db.rewrite_tables(progress=bar.report)
                else:
                    db.compact_range(begin, end, progress=bar.report)
        except KeyboardInterrupt:
            kept = (
                "tables rewritten so far stay"
                if options
                else "levels compacted so far stay compacted"
            )
            say(f"cancelled: the {kept}, the rest is unchanged")
            raise typer.Exit(INTERRUPTED) from None
        seconds = time.perf_counter() - started
        after = _extent(db, bool(options))
    if as_json:
        figures = {"before": before, "after": after, "seconds": round(seconds, 3)}
        write_json({"path": directory} | figures)
        return
    for moment, extent in (("before", before), ("after", after)):
        text = f"{moment}: {count(extent['tables'], 'table')}, {size(extent['bytes'])}"
        if options:
            text += f", {size(extent['filter_bytes'])} of it filters of keys"
        write_line(text)


@guarded
def destroy(
    directory: Directory,
    yes: bool = flag("Do not ask.", "--yes"),
    as_json: AsJson = False,
) -> None:
    """Remove a store for good: its own files, and its directory if nothing else is in it.

    Other files are left. The command asks before it removes anything; without a terminal, it needs
    --yes. The exit status is 1 if the answer is no.

    JSON: "path", "removed" and "left" (names), "bytes" (removed), "directory_removed".
    """
    before = _files(directory)
    _require_database(directory, before)
    if not yes and not _confirmed(directory, before):
        say("nothing was removed")
        raise typer.Exit(MISS)
    lsmkv.destroy_db(directory)
    gone = not os.path.lexists(directory)
    left = {} if gone else _files(directory)
    removed = sorted(before.keys() - left.keys())
    freed = sum(before[name] for name in removed)
    if as_json:
        names = {"removed": removed, "left": sorted(left)}
        figures = names | {"bytes": freed, "directory_removed": gone}
        write_json({"path": directory} | figures)
        return
    write_line(f"removed {count(len(removed), 'file')}, {size(freed)}")
    for name in sorted(left):
        write_line(f"left {printable(name)}")


@guarded
def approximate_sizes(
    directory: Directory,
    keys: Annotated[
        list[str] | None, argument("[START STOP]...", "Ranges of keys; STOP is not included.")
    ] = None,
    is_hex: Hex = False,
    as_json: AsJson = False,
) -> None:
    """Print the approximate size of ranges of keys in tables: BYTES, a tab, START, a tab, STOP.

    Without a range, that is the size of all tables, with the first and the last key in them. Only
    indexes are read; entries that are in the log alone are not counted.

    JSON: "path", "bytes" (of all tables), "ranges": [{"bytes", "start", "stop"}], with field names
    as 'export' has them.
    """
    given = [from_argument(key, is_hex) for key in keys or []]
    if len(given) % 2:
        raise ValueError(f"ranges are pairs of keys, START and STOP, not {len(given)} keys")
    ranges = list(zip(given[::2], given[1::2], strict=True))
    with open_to_read(directory) as db:
        sizes = db.approximate_sizes(*ranges)
        tables = db.tables()
        of = key_order(db.options.comparator)
    total = sum(table.size for table in tables)
    if not ranges and tables:
        first = min((table.smallest for table in tables), key=of)
        ranges, sizes = [(first, max((table.largest for table in tables), key=of))], [total]
    if as_json:
        entries = [
            {"bytes": number, **json_field("start", start, is_hex)}
            | json_field("stop", stop, is_hex)
            for number, (start, stop) in zip(sizes, ranges, strict=True)
        ]
        write_json({"path": directory, "bytes": total, "ranges": entries})
        return
    for number, (start, stop) in zip(sizes, ranges, strict=True):
        write_line(f"{number}\t{shown(start, is_hex)}\t{shown(stop, is_hex)}")


def _extent(db: lsmkv.DB, with_filters: bool) -> dict[str, int]:
    levels = db.stats().levels
    extent = {
        "tables": sum(level.files for level in levels),
        "bytes": sum(level.bytes for level in levels),
    }
    if with_filters:
        filters = FilterFigures(db.path).look(db.tables())
        extent["filter_bytes"] = sum(one.size for one in filters.values())
    return extent


def _tables_on_disk(directory: str) -> dict[str, tuple[int, int]]:
    """The device and inode of each table, by file name."""
    found: dict[str, tuple[int, int]] = {}
    with os.scandir(directory) as entries:
        for entry in entries:
            parsed = parse_name(entry.name)
            if parsed is not None and parsed.kind == "table":
                try:
                    status = os.lstat(entry.path)
                except FileNotFoundError:
                    continue  # the process that has the store open has just removed it
                found[entry.name] = status.st_dev, status.st_ino
    return found


def _files(directory: str) -> dict[str, int]:
    """The size of every file, by its path in the directory."""
    found: dict[str, int] = {}
    os.listdir(directory)  # raises where os.walk would give nothing
    for place, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(place, name)
            with suppress(FileNotFoundError):  # a store in use removes files
                found[os.path.relpath(path, directory)] = os.lstat(path).st_size
    return found


def _require_database(directory: str, files: dict[str, int]) -> None:
    """Refuse a directory that holds no store, or another engine's.  A damaged store is accepted."""
    for name in files:
        parsed = parse_name(name)
        # A log or CURRENT proves nothing: other programs have files with these names.
        if parsed is not None and (parsed.kind == "manifest" or name.endswith(".ldb")):
            break
    else:
        raise lsmkv.Error(f"{directory}: no database here")
    engine = foreign_engine(list(files))
    if engine is not None:
        try:
            open_to_read(directory).close()
        except lsmkv.Error:
            raise lsmkv.ForeignFormatError(f"{directory} is a {engine} database") from None


def _confirmed(directory: str, files: dict[str, int]) -> bool:
    what = f"{count(len(files), 'file')}, {size(sum(files.values()))}"
    question = f"Destroy the database in {directory} ({what})?"
    return confirmed(question, "this removes the database")

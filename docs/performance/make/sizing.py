"""The measured table of docs/guides/tuning.md: ``python sizing.py PAGE``.

A store of equal entries, of which one in ten is read again and again, is read with block caches of
several sizes, each in a process of its own.  The table says how many Gets needed no read from a
file, how much memory the process took, and how many descriptors.  Below it stands how much memory
a memtable takes for each byte that ``write_buffer_size`` counts.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from typing import Annotated, Any

import typer
from page_parts import with_measured

import lsmkv
from lsmkv.tools.output import open_output

ENTRIES = 200_000
VALUE = 1000
"""Bytes, of which half are random: they compress to half."""
ONE_IN = 10
"""One entry in so many is read."""
CACHES = (8, 16, 32, 64, 96, 128)
"""MiB."""
_MIB = 1024 * 1024
VALUES = (20, 100, 1000)
"""Bytes of the values in a memtable that is measured."""


def key_of(number: int) -> bytes:
    """A key of 16 bytes."""
    return b"session:%08d" % number


def fill(path: str, entries: int) -> None:
    """Write the entries, and compact them."""
    rng = random.Random(1)
    with lsmkv.DB(path, create_if_missing=True) as db:
        for number in range(entries):
            db.put(key_of(number), rng.randbytes(VALUE // 2) + bytes(VALUE - VALUE // 2))
        db.compact_range()


def read(path: str, entries: int, cache: int) -> dict[str, Any]:
    """What reading the active entries in random orders takes once the cache is warm; ``cache`` is
    in bytes."""
    before, descriptors = _memory(), _descriptors()
    rng = random.Random(2)
    active = [key_of(number) for number in range(0, entries, ONE_IN)]
    with lsmkv.DB(path, lru_cache_size=cache) as db:
        at_rest = _descriptors() - descriptors
        warm = db.stats()
        for turn in range(6):
            if turn == 3:
                warm = db.stats()
            for key in rng.sample(active, len(active)):
                db.get(key)
        work = db.stats() - warm
        return {
            "cache": cache,
            "gets": work.gets,
            "blocks_read": work.blocks_read,
            "memory": _memory() - before,
            "descriptors": _descriptors() - descriptors,
            "at_rest": at_rest,
            "tables": len(db.tables()),
            "size": sum(table.size for table in db.tables()),
            "metadata": db.stats().metadata_bytes_read,
        }


def fill_memtable(path: str, value: int, size: int) -> float:
    """The memory that a memtable of about ``size`` counted bytes takes, by counted byte."""
    rng = random.Random(3)
    with lsmkv.DB(path, create_if_missing=True, write_buffer_size=4 * size) as db:
        before = _memory()
        number = 0
        while db.stats().memtable_bytes < size:
            for _ in range(1000):
                db.put(key_of(number * 7919 % 10_000_019), rng.randbytes(value))
                number += 1
        return (_memory() - before) / db.stats().memtable_bytes


def _memory() -> int:
    """Bytes that this process has in memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def measure(
    entries: int, caches: list[int], memtable: int
) -> tuple[list[dict[str, Any]], dict[int, float]]:
    """The rows of the table, one for each size of the cache, and the memory of a memtable for each
    counted byte, by the size of its values; sizes are in bytes."""
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "store")
        fill(path, entries)
        rows = [_apart("read", path, entries, cache) for cache in caches]
        memtables = {
            value: _apart("memtable", os.path.join(place, f"{value}"), value, memtable)
            for value in VALUES
        }
    return rows, memtables


def _apart(what: str, *arguments: str | int) -> Any:
    """What a measurement returns in a process of its own."""
    command = [sys.executable, __file__, f"--{what}", *map(str, arguments)]
    here = os.path.dirname(os.path.abspath(__file__))  # not in the path under PYTHONSAFEPATH
    path = os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": path}
    )
    return json.loads(done.stdout)


def table(rows: list[dict[str, Any]], memtables: dict[int, float], entries: int) -> list[str]:
    """The text between the marks."""
    first = rows[0]
    mode = "compiled" if lsmkv.COMPILED else "in pure Python"
    lines = [
        f"{entries:,} entries of {len(key_of(0)):,} and {VALUE:,} bytes, {mode}:"
        f" {first['tables']:,} tables of {first['size'] / _MIB:.0f} MiB together."
        f" {entries // ONE_IN:,} active entries are read in random orders."
        " Indexes and filters of all tables take"
        f" {first['metadata'] / _MIB:.1f} MiB. Before the first read the store has"
        f" {first['at_rest']} descriptors.",
        "",
        "| `lru_cache_size` | Gets without a read | memory of the store | descriptors |",
        "|--:|--:|--:|--:|",
    ]
    for row in rows:
        hits = 1 - row["blocks_read"] / row["gets"]
        lines.append(
            f"| {row['cache'] / _MIB:g} MiB | {hits:.0%} | {row['memory'] / _MIB:.0f} MiB |"
            f" {row['descriptors']} |"
        )
    ratios = [f"{ratio:.1f} with values of {value:,} bytes" for value, ratio in memtables.items()]
    lines += ["", f"Bytes in memory for each counted byte of a memtable: {', '.join(ratios)}."]
    return lines


def with_table(text: str, lines: list[str]) -> str:
    """The page with this table; ``ValueError`` if it has no one place for it."""
    return with_measured(text, "\n".join(["", *lines, ""]))


def sizing(
    page: Annotated[str, typer.Argument(metavar="PAGE", help="docs/guides/tuning.md.")],
) -> None:
    """Measure, and write the table into the page."""
    rows, memtables = measure(ENTRIES, [cache * _MIB for cache in CACHES], 32 * _MIB)
    with open(page, encoding="utf-8") as file:
        text = with_table(file.read(), table(rows, memtables, ENTRIES))
    with open_output(page, force=True) as out:
        out.write(text.encode())


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--read", path, entries, cache]:
            sys.stdout.write(json.dumps(read(path, int(entries), int(cache))))
        case ["--memtable", path, value, size]:
            sys.stdout.write(json.dumps(fill_memtable(path, int(value), int(size))))
        case _:
            typer.run(sizing)

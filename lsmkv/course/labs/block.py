"""Lab 3: blocks, which the engine reads, and which become part of a store's table."""

from __future__ import annotations

import functools
import os
import random
from bisect import bisect_left
from types import ModuleType

import lsmkv
from lsmkv.course.failure import CheckFailure, require, require_bytes, require_equal, shown
from lsmkv.course.given import BlockBuilder
from lsmkv.course.lab import Check, Lab
from lsmkv.course.labs.formats import entries_in, sealed
from lsmkv.course.labs.temporary_stores import (
    files_of,
    require_content,
    require_content_by_leveldb,
    scratch,
)
from lsmkv.engine.errors import CorruptionError
from lsmkv.files import Table, parse_block

Entries = list[tuple[bytes, bytes]]

SAMPLE: Entries = [(b"ant", b"1"), (b"antler", b"2"), (b"antonym", b"33"), (b"bee", b"4")]
INTERVAL = 16
"""Entries between restart points in LevelDB's data blocks."""


def built(entries: Entries, interval: int) -> bytes:
    """The engine's block."""
    builder = BlockBuilder(interval)
    for key, value in entries:
        builder.add(key, value)
    return builder.finish()


def some_entries(seed: int, number: int) -> Entries:
    """Sorted keys with long common prefixes, and values, a few of them long."""
    dice = random.Random(seed)
    keys = {bytes(dice.choices(b"ab", k=dice.randrange(9))) for _ in range(number)}
    keys |= {b"long" + bytes(dice.choices(b"xy", k=150)) for _ in range(number // 20)}
    return [(key, bytes(dice.randrange(200 if len(key) > 7 else 4))) for key in sorted(keys)]


def cases() -> list[tuple[Entries, int]]:
    """Entries and restart intervals, small ones first."""
    small = [(SAMPLE[:1], 16), (SAMPLE[:2], 16), (SAMPLE, 16), (SAMPLE, 1), (SAMPLE, 2), ([], 16)]
    return small + [(some_entries(n, n), interval) for n in (20, 100) for interval in (1, 3, 16)]


def prefixes(code: ModuleType) -> str:
    """Common prefixes of two keys."""
    pairs = (
        (b"antler", b"antonym", 3),
        (b"ant", b"antler", 3),
        (b"antler", b"ant", 3),
        (b"ant", b"bee", 0),
        (b"ant", b"ant", 3),
        (b"", b"ant", 0),
        (b"abcx", b"abdx", 2),
    )
    for a, b, expected in pairs:
        require_equal(
            code.shared_prefix(a, b),
            expected,
            f"shared_prefix({a!r}, {b!r})",
            "It ends with the first byte that differs, and at the latest with the shorter key.",
        )
    return f"{len(pairs)} pairs"


def blocks(code: ModuleType) -> str:
    """Blocks, byte for byte."""
    for entries, interval in cases():
        expected = built(entries, interval)
        few = f"the entries {entries}" if len(entries) < 3 else f"{len(entries)} entries"
        require_bytes(
            code.build_block(list(entries), interval),
            expected,
            f"the block of {few} with a restart interval of {interval}",
            functools.partial(meaning, expected),
            "An entry is: shared, unshared and value length as varints, the rest of the key, the"
            " value. Every restart_interval entries the key is whole, and shared is 0.",
        )
    return f"{len(cases())} blocks"


def meaning(data: bytes, wanted: int) -> str:
    """The meaning of the byte of a block at an offset."""
    return next(
        f"{described}, byte {wanted - start}" if size > 1 else described
        for start, size, described in parts(data)
        if start <= wanted < start + size
    )


def parts(data: bytes) -> list[tuple[int, int, str]]:
    """The parts of a block in order: offset, size, and description."""
    block = parse_block(data, "data")
    found: list[tuple[int, int, str]] = []
    for number, entry in enumerate(entries_in(data)):
        rest = data[entry.key_at : entry.value_at]
        names = (
            f"shared length, {entry.shared}",
            f"unshared length, {len(rest)}",
            f"value length, {len(entry.value)}",
            f"rest of the key, {shown_text(rest)}",
            "value",
        )
        for (start, end), described in zip(entry.spans, names, strict=True):
            if start < end:
                found.append((start, end - start, f"entry {number}: {described}"))
    at = block.entries_end
    points = block.restart_points()
    for index, point in enumerate(points):
        found.append((at + 4 * index, 4, f"restart point {index}, offset {point}"))
    found.append((at + 4 * len(points), 4, f"number of restart points, {len(points)}"))
    return found


def shown_text(data: bytes) -> str:
    """Bytes for a line, truncated."""
    return repr(data if len(data) <= 20 else data[:20] + b"...")[1:]


def reading(code: ModuleType) -> str:
    """All entries of the engine's blocks."""
    for entries, interval in cases():
        data = built(entries, interval)
        got = code.read_block(data)
        what = f"read_block of {len(entries)} entries with a restart interval of {interval}"
        require(isinstance(got, list), f"{what} must return a list, not {shown(got)}.")
        for number, (one, expected) in enumerate(zip(got, entries, strict=False)):
            require_equal(
                one,
                expected,
                f"{what}: entry {number}",
                "The key is the first `shared` bytes of the key before it, then the rest.",
            )
        require(
            len(got) == len(entries),
            f"{what} returned {len(got)} entries.\nThe entries end where the restart points begin:"
            " 4 * (their number + 1) bytes before the end.",
        )
    return f"{len(cases())} blocks"


def seeking(code: ModuleType) -> str:
    """The first entry at or after a key, for present and absent keys."""
    asked = 0
    for entries, interval in cases():
        data = built(entries, interval)
        keys = [key for key, _ in entries]
        targets = {b"", b"zzz", *keys, *(key + b"\0" for key in keys), *(key[:-1] for key in keys)}
        for target in sorted(targets):
            at = bisect_left(keys, target)
            asked += 1
            require_equal(
                code.seek(data, target),
                entries[at] if at < len(entries) else None,
                f"seek({target!r}) in a block of {len(entries)} entries with a restart interval of"
                f" {interval}",
                "Begin at the last restart point whose key is below the target (or at the "
                "first), and read until the first key that is not below it.",
            )
    return f"{asked:,} keys"


def bisecting(code: ModuleType) -> str:
    """Check that a seek near the end of a block does not read its start."""
    entries = [(b"key%04d" % n, b"v") for n in range(1000)]
    data = bytearray(built(entries, 4))
    points = parse_block(bytes(data), "data").restart_points()
    # A bisection for a late key never looks at restart points of the first third.
    data[points[1] : points[80]] = b"\xff" * (points[80] - points[1])
    for number in (900, 998, 999):
        key, value = entries[number]
        try:
            got = code.seek(bytes(data), key)
        except (ValueError, IndexError, CorruptionError):
            got = None
        require(
            got == (key, value),
            f"seek({key!r}) does not find the key if entries near the start of the block are "
            "damaged, although it does not need them. Does it read the block from its "
            "start?\nBisect the restart points first: their keys are whole, so each can be read "
            "alone.",
        )
    return "3 keys in a block of 1,000 entries"


def in_the_engine(code: ModuleType) -> str:
    """Check the student's code by reading and rebuilding each block of a table, in place."""
    content: dict[bytes, bytes | None] = {
        b"user:%05d" % n: b"value %d" % n * (n % 5) for n in range(1000)
    }
    with scratch() as directory:
        store = os.path.join(directory, "store")
        with lsmkv.DB(store, create_if_missing=True, compression=None) as db:
            for key, value in content.items():
                db.put(key, value or b"")
            db.flush()
        (path,) = files_of(store, "table")
        number = rebuild(code, path)
        what = "A store whose table has your blocks"
        require_content(store, content, what)
        by_leveldb = require_content_by_leveldb(store, content, what)
    return f"a table of {number} blocks, all read and built by you, is read by lsmkv{by_leveldb}"


def rebuild(code: ModuleType, path: str) -> int:
    """Put the student's blocks in place of a table's own.  Returns their number."""
    with Table(path) as opened:
        blocks = [(block.place.offset, block.plain) for block in opened.data_blocks()]
    with open(path, "r+b") as table:
        for number, (offset, data) in enumerate(blocks):
            entries = [(entry.key, entry.value) for entry in entries_in(data)]
            what = f"block {number} of a table of the store"
            if code.read_block(data) != entries:
                raise CheckFailure(f"Your read_block does not find the entries of {what}.")
            made = code.build_block(entries, INTERVAL)
            require_bytes(made, data, what, functools.partial(meaning, data))
            table.seek(offset)
            table.write(sealed(made))
    return len(blocks)


def drawing() -> str:
    """A block of four entries, part by part."""
    data = built(SAMPLE, 2)
    described = ", ".join(f"{key.decode()}={value.decode()}" for key, value in SAMPLE)
    lines = [f"entries {described}; a restart point every 2 entries", ""]
    lines.append(f"{'offset':>6}  {'bytes':<20}  what")
    for start, size, what in parts(data):
        lines.append(f"{start:6}  {data[start : start + size].hex(' '):<20}  {what}")
    return "\n".join(lines) + "\n"


LAB = Lab(
    number=3,
    slug="block",
    title="Blocks",
    functions=("shared_prefix", "build_block", "read_block", "seek"),
    checks=(
        Check("common prefixes", prefixes),
        Check("the bytes of a block", blocks),
        Check("reading a block", reading),
        Check("seeking in a block", seeking),
        Check("seeking by restart points", bisecting),
        Check("in the real engine", in_the_engine),
    ),
    drawing=drawing,
)

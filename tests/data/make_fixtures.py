"""Rewrites the databases of this directory: ``python tests/data/make_fixtures.py [WHERE]``.

The ones named ``hand-*`` are put together here byte by byte, from the format's description alone;
the others are written by C++ LevelDB (plyvel).  Nothing here uses lsmkv.
"""

from __future__ import annotations

import os
import runpy
import shutil
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CONTENTS: dict[str, Any] = runpy.run_path(str(HERE / "contents.py"))
BEYOND_ALL = (b"\xff" * 3, b"\xff" * 4)
"""No table holds any of this range: compacting it flushes the memtable and does nothing else."""

# By LevelDB


def apply(db: Any, changes: Any) -> None:
    for key, value in changes:
        if value is None:
            db.delete(key)
        else:
            db.put(key, value)


def levels(
    path: Path, beyond: tuple[bytes, bytes] = BEYOND_ALL, parts: Any = None, **options: Any
) -> None:
    """The first part goes onto level 2, the next onto level 1, then level 0; the last is logged."""
    import plyvel

    parts = CONTENTS["LEVELS"] if parts is None else parts
    with plyvel.DB(str(path), create_if_missing=True, block_size=1024, **options) as db:
        for changes in parts[:-1]:
            apply(db, changes)
            db.compact_range(start=beyond[0], stop=beyond[1])
        apply(db, parts[-1])


def one_table(path: Path, **options: Any) -> None:
    import plyvel

    with plyvel.DB(str(path), create_if_missing=True, block_size=1024, **options) as db:
        apply(db, CONTENTS["SMALL"])
        db.compact_range(start=BEYOND_ALL[0], stop=BEYOND_ALL[1])


def reverse_comparator(path: Path) -> None:
    parts = CONTENTS["LEVELS"][:2] + CONTENTS["LEVELS"][4:]
    options = {"comparator": reverse, "comparator_name": b"test.reverse"}
    # The empty key sorts last and is used; the range before the first key is free.
    levels(path, (b"\xff" * 4, b"\xff" * 3), parts, **options)


def reverse(a: bytes, b: bytes) -> int:
    return (a < b) - (a > b)


def unflushed_log(path: Path) -> None:
    """A process that ends without closing: all of it but the first table is in the log alone."""
    one_table(path, bloom_filter_bits=10)
    subprocess.run([sys.executable, str(HERE / "make_fixtures.py"), "--die", str(path)], check=True)


def write_and_die(path: Path) -> None:
    import plyvel

    db = plyvel.DB(str(path))
    log = CONTENTS["LOG"]
    apply(db, log[:100])
    with db.write_batch() as batch:
        apply(batch, log[100:])
    os._exit(0)


def old_sst(path: Path) -> None:
    """Tables were named so before LevelDB 1.14; it reads them to this day."""
    one_table(path, bloom_filter_bits=10)
    for table in path.glob("*.ldb"):
        table.rename(table.with_suffix(".sst"))


# By hand


def crc32c(data: bytes) -> int:
    """The slow way: bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def varint(number: int) -> bytes:
    if number < 128:
        return bytes([number])
    return bytes([number & 127 | 128]) + varint(number >> 7)


def string(data: bytes) -> bytes:
    return varint(len(data)) + data


def internal(key: bytes, sequence: int) -> bytes:
    return key + struct.pack("<Q", sequence << 8 | 1)


def block(entries: list[tuple[bytes, bytes]], interval: int) -> bytes:
    """Entries that share prefixes, the restart points, and how many there are."""
    data = bytearray()
    restarts = []
    previous = b""
    for at, (key, value) in enumerate(entries):
        shared = 0
        if at % interval == 0:
            restarts.append(len(data))
        else:
            while key[: shared + 1] == previous[: shared + 1] and shared < len(previous):
                shared += 1
        data += varint(shared) + varint(len(key) - shared) + varint(len(value))
        data += key[shared:] + value
        previous = key
    restarts = restarts or [0]
    return bytes(data) + struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))


Codec = Callable[[bytes], tuple[int, bytes]]
"""The type byte, and the block as stored under it."""


def plain(data: bytes) -> tuple[int, bytes]:
    return 0, data


def unknown(data: bytes) -> tuple[int, bytes]:
    return 9, bytes(byte ^ 0x5A for byte in data)


def zstd(data: bytes) -> tuple[int, bytes]:
    import cramjam

    return 2, bytes(cramjam.zstd.compress(data, level=3))


def zstd_raw(data: bytes) -> tuple[int, bytes]:
    """A frame of one raw block, made by hand (RFC 8878): single segment, its size in 4 bytes."""
    header = b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(data))
    return 2, header + struct.pack("<I", len(data) << 3 | 1)[:3] + data


def mojang_zlib(data: bytes) -> tuple[int, bytes]:
    packed = zlib.compress(data, 9)
    assert packed[0] == 0x78
    return 2, packed


def mojang_deflate(data: bytes) -> tuple[int, bytes]:
    stream = zlib.compressobj(9, zlib.DEFLATED, -15)
    return 4, stream.compress(data) + stream.flush()


def table(entries: list[tuple[bytes, bytes]], codecs: list[Codec], rest: Codec) -> bytes:
    """A whole table: data blocks of 20 entries take the codecs in turn, the index ``rest``."""
    data = bytearray()

    def put(content: bytes, codec: Codec) -> bytes:
        kind, stored = codec(content)
        handle = varint(len(data)) + varint(len(stored))
        data.extend(stored + bytes([kind]))
        data.extend(masked(stored + bytes([kind])))
        return handle

    index = []
    for number, first in enumerate(range(0, len(entries), 20)):
        part = entries[first : first + 20]
        index.append((part[-1][0], put(block(part, 16), codecs[number % len(codecs)])))
    handles = put(block([], 16), plain) + put(block(index, 1), rest)
    return bytes(data) + handles.ljust(40, b"\0") + bytes.fromhex("57fb808b247547db")


def by_hand(path: Path, codecs: list[Codec], rest: Codec = plain) -> None:
    """A directory with one table on level 1, a MANIFEST of one record, and an empty log."""
    entries = [(internal(key, at + 1), value) for at, (key, value) in enumerate(CONTENTS["HAND"])]
    content = table(entries, codecs, rest)
    edit = varint(1) + string(b"leveldb.BytewiseComparator")
    edit += varint(2) + varint(4) + varint(9) + varint(0)  # log, previous log
    edit += varint(3) + varint(6) + varint(4) + varint(len(entries))  # next file, last sequence
    edit += varint(7) + varint(1) + varint(5) + varint(len(content))
    edit += string(entries[0][0]) + string(entries[-1][0])
    record = masked(b"\x01" + edit) + struct.pack("<HB", len(edit), 1) + edit
    path.mkdir()
    (path / "000005.ldb").write_bytes(content)
    (path / "000004.log").write_bytes(b"")
    (path / "MANIFEST-000003").write_bytes(record)
    (path / "CURRENT").write_bytes(b"MANIFEST-000003\n")


MAKERS: dict[str, Callable[[Path], None]] = {
    "levels-snappy-bloom": lambda path: levels(path, bloom_filter_bits=10),
    "levels-none": lambda path: levels(path, compression=None),
    "none-bloom": lambda path: one_table(path, compression=None, bloom_filter_bits=10),
    "snappy": one_table,
    "reverse-comparator": reverse_comparator,
    "unflushed-log": unflushed_log,
    "old-sst": old_sst,
    "hand-zstd": lambda path: by_hand(path, [zstd, zstd_raw, plain], zstd),
    "hand-mojang-zlib": lambda path: by_hand(path, [mojang_zlib, plain], mojang_zlib),
    "hand-mojang-deflate": lambda path: by_hand(path, [mojang_deflate, plain], mojang_deflate),
    "hand-unknown-codec": lambda path: by_hand(path, [plain, unknown, plain, plain]),
}


def make(name: str, where: Path) -> Path:
    """Write one database into ``where``/``name``, and return that."""
    path = where / name
    shutil.rmtree(path, ignore_errors=True)
    MAKERS[name](path)
    for file in ("LOCK", "LOG", "LOG.old"):  # nothing that anyone reads, and times of day
        (path / file).unlink(missing_ok=True)
    return path


def main() -> None:
    if sys.argv[1:2] == ["--die"]:
        write_and_die(Path(sys.argv[2]))
    where = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for name in MAKERS:
        make(name, where)


if __name__ == "__main__":
    main()

"""Seeds for the fuzzer, taken out of stores that the engine writes while this runs."""

from __future__ import annotations

import json
import time
from typing import Any

from talk import HELLO_FRAME, READY_FRAME

from lsmkv import DB, BinaryFusePolicy, Bloom64Policy, CorruptionError, MemoryEnv
from lsmkv.engine.db.read.scan import Bounds
from lsmkv.engine.format.batch import encode_batch
from lsmkv.engine.format.filenames import FileType, parse_filename
from lsmkv.engine.format.key_order import Position
from lsmkv.engine.format.keys import pack
from lsmkv.engine.format.log import LogReader
from lsmkv.engine.table.block import Block
from lsmkv.engine.table.block_builder import BlockBuilder
from lsmkv.engine.table.format import FOOTER_SIZE, Footer, read_block
from lsmkv.shards.building.assemble import write_shard
from lsmkv.shards.building.blob import pack_columns
from lsmkv.shards.building.runs import encode_run
from lsmkv.shards.building.tables import table_settings
from lsmkv.shards.remote.disk_page import encode_page, page_key
from lsmkv.shards.remote.meta import FilePieces, Piece, encode_meta
from lsmkv.shards.remote.objects.local import LocalObjects
from lsmkv.shards.version import COMPARATOR, VersionDocument
from lsmkv.shared.frames import (
    BEGIN,
    CALL,
    DONE,
    END,
    FAILED,
    GREETING,
    HEADER,
    LEAVING,
    NUMBER,
    NUMBERS,
    PROGRESS,
    RESULT,
    WAIT,
    WRITE,
    commit_frame,
    error_frame,
    frame,
    json_frame,
)

OPTIONS: list[dict[str, Any]] = [
    {"compression": None, "block_size": 200},
    {"compression": "snappy", "block_restart_interval": 2, "filter_layout": "both"},
    {"compression": "zstd", "filter_layout": "table", "block_size": 100},
]


VERSIONS = [pack(b"k%d" % key, sequence, 1) for key in range(4) for sequence in (9, 5, 2)]
"""Several versions of each key."""
SHARED_TAILS = [pack(b"k" + pack(b"", 1, 1) * n + b"k" * (n > 0), 1, 1) for n in range(4)]
"""Keys that have the tail of the one before them inside."""


_FILES = [
    FilePieces("000002.ldb", 130, [Piece(0, b"ab"), Piece(100, b"c" * 30)]),
    FilePieces("CURRENT", 3, [Piece(0, b"abc")]),
]


def _block(interval: int, keys: list[bytes]) -> bytes:
    builder = BlockBuilder(interval)
    for number, key in enumerate(keys):
        builder.add(key, b"v%d" % number)
    return builder.finish()


def seeds() -> dict[str, list[bytes]]:
    """By target: bytes that its reader accepts."""
    found: dict[str, list[bytes]] = {
        "batch": [], "block": [], "compression": [], "filter": [], "log": [], "store": [],
        "table": [], "version-edit": [],
        # FULL, then FIRST MIDDLE LAST, then a FIRST without its end.
        "fragments": [bytes([0, 9, 1, 8, 2, 7, 3, 6, 1, 5, 0, 4])],
    }  # fmt: skip
    keys = [b"%d" % number for number in range(1000)]
    found["filter64"] = [
        Bloom64Policy(10).create_filter(keys[:20]), BinaryFusePolicy().create_filter(keys),
    ]  # fmt: skip
    found["requests"] = [
        b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$12\r\n*1\r\n$4\r\nPING\r\n" + b"*1\r\n$4\r\nPING\r\n",
        b"\r\nSET key 'a b' \"\\x00\\n\"\r\n*0\r\n*-1\r\n*2\r\n$0\r\n\r\n$1\r\na\r\nPING\n",
        b"*1\r\n$4\r\nPING\r\n*2\r\n$4\r\nECHO\r\n$8\r\n*1048577\r\n*1048577\r\n",
        b"*1\r\n$1\r\na\r\n*2\r\n~1000000\r\n", b"*1\r\n+PING\r\n", b"*1\r\n$-1\r\n",
    ]  # fmt: skip
    for interval in (1, 2, 16):
        found["block"] += [_block(interval, VERSIONS), _block(interval, SHARED_TAILS)]
    for number, options in enumerate(OPTIONS):
        _take(found, number, options)
    _take_observed(found)
    _take_shard(found)
    found["members"] = [b"", *_requests()]
    found["answers"] = _answers()
    return found


def _piece(kind: int, content: bytes) -> bytes:
    """As ``talk.pieces`` reads it."""
    return bytes([kind, len(content)]) + content


def _requests() -> list[bytes]:
    """Of members: frames as they come, and pieces of which frames are made."""
    batch = encode_batch(0, [(b"k", b"v"), (b"l", None)])
    ranges = [Bounds(Position(b"a", False), Position(b"b", True)), Bounds(None, None)]
    commit = commit_frame(0, 1, 0, True, {b"k"}, ranges, batch)
    frames = [
        HELLO_FRAME, READY_FRAME, frame(BEGIN, 0), commit, frame(WRITE, 0, b"\1" + batch),
        frame(WAIT, 0, NUMBERS.pack(0, 1)), frame(END, 0, NUMBER.pack(2)),
        json_frame(CALL, 0, {"method": "flush", "arguments": {}}),
        json_frame(CALL, 0, {"method": "compact_range", "arguments": {"start": {"bytes": "61"}}}),
    ]  # fmt: skip
    together = b"".join(_piece(one[4], one[HEADER.size :]) for one in frames)
    return [together, commit, frames[-1] + frames[-2], frames[4] * 2]


def _answers() -> list[bytes]:
    """Of owners: pieces of which frames are made, behind a byte for the page."""
    greeting = json.dumps({"epoch": 1, "slot": 3, "pid": 7, "file": 9}).encode()
    done = _piece(DONE, NUMBER.pack(5))
    end = _piece(FAILED, json_frame(FAILED, 0, {})[HEADER.size :])
    damage = error_frame(0, CorruptionError("bad", "1.ldb", 7))[HEADER.size :]
    told = _piece(PROGRESS, b'{"arguments": [1, 2, "flush"]}')
    result = _piece(RESULT, b'{"result": ["a"]}')
    begin = b"\1" + _piece(GREETING, greeting) + done
    return [
        begin + done + told + told + result + _piece(LEAVING, b""), begin + _piece(FAILED, damage),
        b"\1" + end, b"\2" + _piece(GREETING, greeting), b"\0" + json_frame(GREETING, 0, {}),
    ]  # fmt: skip


def _take_shard(found: dict[str, list[bytes]]) -> None:
    keys = [b"key%03d" % number for number in range(300)]
    values = [b"v" * (number % 50) for number in range(300)]
    found["pairs"] = [pack_columns(keys[:9], values[:9]), pack_columns([], [])]
    found["run"] = [encode_run("run", keys, values)[1], encode_run("run", keys[:1], [b""])[1]]
    found["page"] = [encode_page(page_key("an object", 7), b"x" * 40)]
    with LocalObjects(MemoryEnv(), "/set", True) as objects:
        tables = table_settings(16 * 1024, {"block_size": 500})
        entry = write_shard([(keys, values)], objects, "shards/b/0000-1", b"", tables)
        found["meta"] = [objects.get(f"{entry.path}/META"), encode_meta(_FILES)]
    document = VersionDocument(
        1, "0" * 16, "b", "2026-01-01T00:00:00+00:00", COMPARATOR, None, None, (entry,)
    )
    found["version"] = [document.encode(), document._replace(shards=()).encode()]


def _take_observed(found: dict[str, list[bytes]]) -> None:
    env = MemoryEnv()
    with DB("/db", create_if_missing=True, env=env, trace="/db/TRACE", publish_stats=True) as db:
        for key in range(40):
            db.put(b"key%02d" % key, b"x" * key)
            db.get(b"key%02d" % (2 * key))
        with db.write_batch() as batch:
            batch.put(b"a", b"")
            batch.delete(b"b")
        list(db)
        with env.open_directory("/db") as directory:
            while not directory.exists("STATS.json"):
                time.sleep(0.01)
            found["published"] = [directory.read_file("STATS.json", 1 << 20)]
    with env.open_directory("/db") as directory:
        found["trace"] = [directory.read_file("TRACE", 1 << 20)]


def _take(found: dict[str, list[bytes]], number: int, options: dict[str, Any]) -> None:
    env = MemoryEnv()
    files: dict[FileType, list[bytes]] = {}
    with DB("/db", create_if_missing=True, env=env, **options) as db:
        for generation in range(3):
            for key in range(12):
                db.put(b"key%02d" % key * (1 + key % 3), b"%d" % generation * (key * 5 + number))
            db.delete(b"key%02d" % generation)
            if generation < 2:
                db.flush()
        db.put(b"large", b"x" * 33_000 if number == 0 else b"")
        with env.open_directory("/db") as directory:
            for name in directory.names():
                parsed = parse_filename(name)
                if parsed is None:
                    continue
                with directory.open(name) as file:
                    files.setdefault(parsed[1], []).append(file.read(0, file.size))
                    if parsed[1] is FileType.TABLE:
                        _take_blocks(found, file)
                    elif parsed[1] is FileType.LOG:
                        batches = [record.payload for record in LogReader(file)]
                        found["batch"] += [*batches[:3], *batches[-3:-1]]
                    elif parsed[1] is FileType.MANIFEST:
                        found["version-edit"] += [record.payload for record in LogReader(file)]
    found["log"] += files[FileType.LOG] + files[FileType.MANIFEST]
    found["table"] += files[FileType.TABLE]
    for manifest in files[FileType.MANIFEST]:
        found["store"].append(len(manifest).to_bytes(2, "little") + manifest)
    if number == 1:
        fresh = MemoryEnv()
        with DB("/db", create_if_missing=True, env=fresh) as db:
            db.put(b"k", b"v")
            db.delete(b"l")
            with fresh.open_directory("/db") as directory:
                manifest = directory.read_file("MANIFEST-000004", 4096)
                log = directory.read_file("000003.log", 4096)
        found["store"].append(len(manifest).to_bytes(2, "little") + manifest + log)


def _take_blocks(found: dict[str, list[bytes]], file: Any) -> None:
    footer = Footer.decode(file.read(file.size - FOOTER_SIZE, FOOTER_SIZE))
    for handle in (footer.index, footer.metaindex):
        contents = read_block(file, handle, 1 << 20)
        found["block"].append(contents)
        for key, value in zip(*Block(contents).entries(), strict=True):
            inner = type(handle).decode(value)[0]
            stored = file.read(inner.offset, inner.size + 1)
            found["compression"].append(stored[-1:] + stored[:-1])
            plain = read_block(file, inner, 1 << 20)
            found["filter" if key.startswith(b"filter.") else "block"].append(plain)

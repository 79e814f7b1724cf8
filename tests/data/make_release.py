"""Writes, with the lsmkv that is installed, what later ones must be able to read.

    python tests/data/make_release.py     # when a release adds to a format: README.md

Everything of lsmkv's own is in it, small: its filters, zstd, a log, a trace, export files, a shard
set, the records of ``lsmkv serve``; and the names of the API, of the options and of the commands.
``tests/test_compatibility.py`` reads it.
"""

from __future__ import annotations

import importlib
import inspect
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lsmkv.options import OPTIONS

import lsmkv
import lsmkv.bulk
from lsmkv.testing import serving
from lsmkv.tools.app import GROUPS

DATA = Path(__file__).parent
PAIRS = [(b"key-%04d" % number, b"value %d" % (number * number)) for number in range(400)]
STORES: dict[str, dict[str, Any]] = {
    "bloom64": {"filter_policy": lsmkv.Bloom64Policy(10), "filter_layout": "both"},
    "fuse": {"filter_policy": lsmkv.BinaryFusePolicy(), "filter_layout": "table"},
    "prefix": {"filter_policy": lsmkv.Bloom64Policy(10), "prefix_extractor": b"-"},
    "zstd": {"compression": "zstd", "bloom_filter_bits": "auto:10"},
}
MODULES = (
    *("lsmkv", "lsmkv.aio", "lsmkv.bulk", "lsmkv.indexeddb", "lsmkv.mapping", "lsmkv.plot"),
    *("lsmkv.plyvel", "lsmkv.server", "lsmkv.shards", "lsmkv.testing"),
)
COMMANDS = (
    "SET text hello",
    "RPUSH list a b c",
    "HSET hash field value other thing",
    "SADD set x y",
    "ZADD zset 1.5 one -2 two",
    "PFOO",  # an error changes nothing
    "BF.ADD filter member",
    "SET kept yes EX 1000000000",
)


def write(place: Path) -> None:
    """Write all of it into a directory that is not there."""
    place.mkdir()
    for name, options in STORES.items():
        with lsmkv.DB(place / name, create_if_missing=True, background="thread", **options) as db:
            write_pairs(db)
            db.compact_range()
    with lsmkv.DB(place / "log", create_if_missing=True, trace=place / "trace") as db:
        write_pairs(db)
        db.get(b"key-0001")
    lsmkv.bulk.build(PAIRS, place / "shards", shards=2)
    for file_format in ("raw", "json"):
        command = [sys.executable, "-m", "lsmkv", "export", str(place / "fuse")]
        output = ["--format", file_format, "--output", str(place / f"pairs.{file_format}")]
        subprocess.run(command + output, check=True)
    with (
        serving(place / "serve") as server,
        socket.create_connection(("127.0.0.1", server.port)) as client,
    ):
        for line in COMMANDS:
            client.sendall(line.encode() + b"\r\n")
            reply = client.recv(1000)
            assert reply.startswith(b"-") == (line == "PFOO"), reply
    (place / "names.txt").write_text("".join(f"{line}\n" for line in names()))
    for unneeded in [*place.rglob("LOG*"), *place.rglob("LOCK")]:
        unneeded.unlink()


def names() -> Iterator[str]:
    """What is public: names with their members, options, commands."""
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in module.__all__:
            yield f"{module_name} {name}"
            value = getattr(module, name)
            if inspect.isclass(value):
                members = [member for member in dir(value) if not member.startswith("_")]
                yield from (f"{module_name} {name}.{member}" for member in members)
    yield from (f"option {name}" for name in OPTIONS)
    yield from (f"command {name}" for members in GROUPS.values() for name in members)


def write_pairs(db: lsmkv.DB) -> None:
    """Every pair, one of them twice; and a key that is deleted."""
    db.put(b"gone", b"")
    db.put(b"key-0007", b"an older value")
    for key, value in PAIRS:
        db.put(key, value)
    db.delete(b"gone")


if __name__ == "__main__":
    target = DATA / f"release-{lsmkv.__version__}"
    if target.exists():
        shutil.rmtree(target)
    write(target)

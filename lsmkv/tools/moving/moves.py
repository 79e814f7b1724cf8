"""``lsmkv import --from redis`` and ``lsmkv export --format resp``."""

from __future__ import annotations

import time
from collections import Counter
from typing import NamedTuple

from lsmkv import DB
from lsmkv.server.exporting import Exported
from lsmkv.server.importing import Importer, Position
from lsmkv.server.server import CACHE_SIZE, WRITE_BUFFER_SIZE
from lsmkv.tools.arguments import open_to_write
from lsmkv.tools.console import say
from lsmkv.tools.drawing import progress
from lsmkv.tools.moving.client import Client, encoded, parse_url
from lsmkv.tools.moving.source import Source
from lsmkv.tools.output import Output
from lsmkv.tools.text import count

_PAGE = 500
"""Keys that SCAN is asked for.  After each page an import could go on."""
_REPORT_EVERY = 1000


class Imported(NamedTuple):
    """What an import has done."""

    keys: int
    left_out: Counter[str]


def import_redis(directory: str, url: str, create: bool) -> Imported:
    """Copy the keys of a Redis into a store; they are durable then.

    An import that was interrupted goes on where it was, unless the Redis was restarted since then.
    """
    address = parse_url(url)
    client = Client(address)
    try:
        source = Source(client)
        sizes = source.sizes()
        if address.database is not None:
            sizes = {one: size for one, size in sizes.items() if one == address.database}
        options = {"write_buffer_size": WRITE_BUFFER_SIZE, "lru_cache_size": CACHE_SIZE}
        with open_to_write(directory, create, **options) as db:  # type: ignore[arg-type]
            return _copy(db, source, sizes)
    finally:
        client.close()


def _copy(db: DB, source: Source, sizes: dict[int, int]) -> Imported:
    importer, run_id = Importer(db), source.run_id()
    keys = 0
    start = _start(importer, run_id)
    total = sum(size for database, size in sizes.items() if database >= start.database)
    started = time.perf_counter()
    whole = False
    try:
        with progress("Importing", "key", total) as bar:
            for database in sorted(one for one in sizes if one >= start.database):
                importer.select(database)
                source.select(database)
                cursor = start.cursor if database == start.database else 0
                while True:
                    following, page = source.page(cursor, _PAGE)
                    for words in source.commands(page):
                        importer.run(words)
                    keys += len(page)
                    bar.advance(len(page))
                    if following == 0:
                        break
                    cursor = following
                    importer.reach(Position(run_id, database, cursor))
                importer.reach(Position(run_id, database + 1, 0))
        importer.finish()
        db.sync()
        whole = True
    finally:
        seconds = time.perf_counter() - started
        say(f"{count(keys - source.left_out.total(), 'key')} imported in {seconds:.1f} s")
        if not whole:
            say("not everything was imported; the same command goes on from here")
    say_left_out(source.left_out)
    return Imported(keys - source.left_out.total(), source.left_out)


def _start(importer: Importer, run_id: bytes) -> Position:
    """Where to begin."""
    position = importer.position
    if position is None:
        return Position(run_id, 0, 0)
    if position.source != run_id:
        say("an earlier import was interrupted, and its Redis was restarted: all keys are imported")
        return Position(run_id, 0, 0)
    say("an earlier import was interrupted: this one goes on from there")
    return position


def say_left_out(left_out: Counter[str]) -> None:
    """Say which keys could not be moved."""
    for kind, number in sorted(left_out.items()):
        say(f"left out: {count(number, 'key')} of the kind {kind}")


class Written(NamedTuple):
    """What an export has written."""

    keys: int
    bytes: int


def export_resp(db: DB, output: Output) -> Written:
    """Write the commands that make everything in a store of ``lsmkv serve`` again."""
    exported = Exported(db)
    size = reported = 0
    with progress("Exporting", "key", len(exported)) as bar:
        for words in exported.commands():
            data = encoded(words)
            output.write(data)
            size += len(data)
            if exported.keys - reported >= _REPORT_EVERY:
                bar.advance(exported.keys - reported)
                reported = exported.keys
    say_left_out(exported.left_out)
    return Written(exported.keys, size)

"""From Redis into a store of ``lsmkv serve``, and from there into Redis."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from lsmkv.engine.db.db import DB
from lsmkv.server.moving.client import Client, encoded, parse_url
from lsmkv.server.moving.exporting import Exported
from lsmkv.server.moving.importing import Importer, Position
from lsmkv.server.moving.source import Source

Progress = Callable[[int, int], object]
"""Called with the number of keys that were moved, and of all, as far as that is known."""
_WRITE_BUFFER_SIZE = 32 * 2**20
_PAGE = 500
"""SCAN's COUNT.  An import can be resumed after each page."""
_TOGETHER = 50
"""Keys that are read together, and after which progress is reported."""


class Moved(NamedTuple):
    """The result of a move."""

    keys: int
    left_out: dict[str, int]
    """The number of keys of each kind that the other side lacks."""


def import_redis(
    path: str | os.PathLike[str],
    url: str,
    *,
    create_if_missing: bool = False,
    password: str = "",
    progress: Progress | None = None,
    notice: Callable[[str], object] | None = None,
) -> Moved:
    """Copy all keys of a Redis server into the store ``path``, which ``lsmkv serve`` can serve.

    ``url`` is ``redis://[user:password@]host[:port][/database]``, ``rediss://`` for TLS, or
    ``unix://path``; ``password`` is used if the URL has none.  Keys of every kind are copied, with
    their expiry, and replace those of the same name.  They are durable on return.  O(all data).

    The store holds the position of an import.  So an interrupted one continues when it is called
    again, unless the Redis was restarted since: ``notice`` is called with a sentence that says
    which.  ``progress`` is called after every 50 keys.

    Raises what opening the store raises, ``OSError`` if the connection fails, and ``ValueError``
    for an invalid URL, an error that the Redis answers, or a store with other data.
    """
    address = parse_url(url)
    client = Client(address if address.password else address._replace(password=password))
    try:
        source = Source(client)
        sizes = source.sizes()
        if address.database is not None:
            sizes = {one: size for one, size in sizes.items() if one == address.database}
        db = DB(
            os.fsdecode(path),
            create_if_missing=create_if_missing,
            write_buffer_size=_WRITE_BUFFER_SIZE,
        )
        try:
            moved = _copy(Importer(db), source, sizes, progress, notice)
            db.sync()
        finally:
            db.close()
        return moved
    finally:
        client.close()


def _copy(
    importer: Importer,
    source: Source,
    sizes: dict[int, int],
    progress: Progress | None,
    notice: Callable[[str], object] | None,
) -> Moved:
    run_id, keys = source.run_id(), 0
    start = _start(importer, run_id, notice)
    databases = sorted(one for one in sizes if one >= start.database)
    total = sum(sizes[one] for one in databases)
    for database in databases:
        importer.select(database)
        source.select(database)
        cursor = start.cursor if database == start.database else 0
        while True:
            following, page = source.page(cursor, _PAGE)
            for at in range(0, len(page), _TOGETHER):
                part = page[at : at + _TOGETHER]
                for words in source.commands(part):
                    importer.run(words)
                keys += len(part)
                if progress is not None:
                    progress(keys, max(keys, total))
            if following == 0:
                break
            cursor = following
            importer.reach(Position(run_id, database, cursor))
        importer.reach(Position(run_id, database + 1, 0))
    importer.finish()
    return Moved(keys - source.left_out.total(), dict(source.left_out))


def _start(importer: Importer, run_id: bytes, notice: Callable[[str], object] | None) -> Position:
    """Return the position from which to import, and report a resumed or repeated import."""
    position = importer.position
    if position is None:
        return Position(run_id, 0, 0)
    same = position.source == run_id
    if notice is not None:
        then = "this one continues from there" if same else "all keys are imported again"
        since = "" if same else ", and its Redis was restarted"
        notice(f"an earlier import was interrupted{since}: {then}")
    return position if same else Position(run_id, 0, 0)


def export_resp(
    db: DB, write: Callable[[bytes], object], *, progress: Progress | None = None
) -> Moved:
    """Write a store of ``lsmkv serve`` as commands of Redis that make it again.

    ``redis-cli --pipe`` sends them.  ``db`` must be open with ``read_only=True``; another process
    may serve it.  ``write`` is called with the bytes of one command after the other.  The keys are
    as they were at the call.  O(all data).  Raises ``ValueError`` if the store holds other data.
    """
    exported = Exported(db)
    total = len(exported)
    reported = 0
    for words in exported.commands():
        write(encoded(words))
        if progress is not None and exported.keys >= reported + _TOGETHER:
            reported = exported.keys
            progress(reported, max(reported, total))
    return Moved(exported.keys, dict(Counter(exported.left_out)))

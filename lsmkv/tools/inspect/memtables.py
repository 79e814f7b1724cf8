"""The content of the memtables: the writes that are in the log, but not in a table yet.

For a store whose entries are all in its log, this is all that there is to show.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator

import lsmkv
from lsmkv.engine.errors import Error
from lsmkv.files import parse_key
from lsmkv.shared.owner import read_owner
from lsmkv.tools.inspect.plain import Plain, shown_bytes
from lsmkv.tools.inspect.source import Source
from lsmkv.tools.text import count, size

_TAG_SIZE = 8
WINDOW = 300
"""The most entries in one answer."""


def memtable(source: Source, first: int = 0, key: bytes | None = None) -> Plain:
    """The newest entry of each key in the memtables: :data:`WINDOW` of them, in order.

    They begin with entry ``first``, or with the first entry at or after ``key``.  A key that is in
    both memtables has an entry from each, the newer one first.  O(number of entries before).
    """
    db = source.db()
    order = source.order()
    entries = _entries(db, source)
    if key is not None:
        wanted = order(key)
        before = itertools.takewhile(lambda entry: order(entry[0]) < wanted, _entries(db, source))
        first = sum(1 for _ in before)
    window = list(itertools.islice(entries, first, first + WINDOW + 1))
    return {
        "first": first,
        "entries": [_shown(source, *entry) for entry in window[:WINDOW]],
        "more": len(window) > WINDOW,
    } | memtable_facts(source)


def memtable_keys(source: Source, most: int) -> list[bytes]:
    """The first keys of the memtables, in order: ``most`` of them at most."""
    return [key for key, _, _ in itertools.islice(_entries(source.db(), source), most)]


def memtable_facts(source: Source) -> Plain:
    """The size of the memtables, their logs, and when they become a table; also as a sentence.

    ``full_at`` comes from the writer, if it publishes its statistics; otherwise it is the default
    size of a memtable.  No file of the store states it.
    """
    db = source.db()
    store = db._open_store()
    view = store.open_view()
    entries = sum(len(one) for one in (view.memtable, view.immutable) if one is not None)
    logs = _logs(source, store.versions.log_number, store.versions.prev_log_number)
    full_at = _full_at(source)
    is_known = full_at is not None
    full_at = full_at or db.options.write_buffer_size
    return {
        "total": entries,
        "bytes": db.stats().memtable_bytes,
        "logs": logs,
        "full_at": full_at,
        "full_at_known": is_known,
        "where": _where(entries, logs, bool(view.version.numbers), full_at, is_known),
    }


def _where(entries: int, logs: list[str], has_tables: bool, full_at: int, is_known: bool) -> str:
    """Describe the place of the entries that are not in a table."""
    if not entries:
        return (
            "" if has_tables else "The store is empty: its log has no entry, and there is no table."
        )
    names = " and ".join(logs) or "the log"
    amount = count(entries, "entry")
    if has_tables:
        return f"{amount} in {names}, but not in a table yet."
    whose = "" if is_known else ", the default size of a memtable"
    return f"{amount}, all in {names}; a flush makes the first table at {size(full_at)}{whose}."


def _entries(db: lsmkv.DB, source: Source) -> Iterator[tuple[bytes, bytes, str]]:
    """The entries of both memtables, in the order of their keys: key, tagged value, and where."""
    view = db._open_store().open_view()
    newest = _named(view.memtable.entries(), "memtable")
    if view.immutable is None:
        return newest
    older = _named(view.immutable.entries(), "immutable memtable")
    order = source.order()
    return heapq.merge(newest, older, key=lambda entry: order(entry[0]))


def _named(
    chunks: Iterable[list[tuple[bytes, bytes]]], name: str
) -> Iterator[tuple[bytes, bytes, str]]:
    last: bytes | None = None
    for entries in chunks:
        for key, tagged in entries:
            if key != last:  # an older version follows the newest one
                yield key, tagged, name
            last = key


def _shown(source: Source, key: bytes, tagged: bytes, where: str) -> Plain:
    _, sequence, kind = parse_key(tagged[:_TAG_SIZE])
    return {
        "key": source.shown_key(key),
        "sequence": sequence,
        "type": "value" if kind else "deletion",
        "value": shown_bytes(tagged[_TAG_SIZE:]) if kind else None,
        "where": where,
    }


def _logs(source: Source, oldest: int, other: int) -> list[str]:
    """The names of the logs that no table covers, oldest first."""
    logs = source.named("log")
    return [name for number, name in logs if number >= oldest or number == other]


def _full_at(source: Source) -> int | None:
    """The size at which a memtable is flushed, if the writer publishes it."""
    try:
        owner = read_owner(source.directory)
    except Error:
        return None  # the view Now shows what is wrong
    published = owner.published
    return None if published is None or not owner.publishes else published.write_buffer_size

"""A store of ``lsmkv serve`` as the commands that make it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from lsmkv.engine.db.db import DB
from lsmkv.server.consumer_group import Group, decode_delivery, groups_of
from lsmkv.server.encoding import (
    DOUBLE,
    HASH,
    KIND_NAMES,
    LIST,
    SET,
    SORTED_SET,
    STREAM,
    STRING,
    U64,
    Entry,
    element_prefix,
    field_time_prefix,
)
from lsmkv.server.keyspace import Keyspace
from lsmkv.server.moving.recreating import (
    GroupContent,
    PendingEntry,
    StreamContent,
    Words,
    collection_commands,
    expiry_command,
    stream_commands,
)
from lsmkv.server.records import Records
from lsmkv.server.resp import format_double
from lsmkv.server.stream import Stream, decode_words
from lsmkv.server.stream_ids import NO_ID


class Exported:
    """The keys of a store that is open for reading, as they were when this was made.

    Raises ``ValueError`` if the store holds other data than the server's.
    """

    def __init__(self, db: DB) -> None:
        self._space = Keyspace(db, writable=False)
        self.keys = 0
        """The number of exported keys."""
        self.left_out: Counter[str] = Counter()
        """Keys that no Redis could hold, by their kind."""

    def __len__(self) -> int:
        """The number of keys; a few may have expired."""
        return sum(database.size for database in self._space.databases)

    def commands(self) -> Iterator[Words]:
        """The commands that make everything again, in an empty Redis.  Costs O(store)."""
        for database in self._space.databases:
            selected = False
            for key, entry in self._space.keys(database):
                if entry.kind not in _KINDS and entry.kind not in (STRING, STREAM):
                    self.left_out[KIND_NAMES[entry.kind]] += 1
                    continue
                if not selected:
                    selected = True
                    yield [b"SELECT", b"%d" % database.index]
                yield from commands_of(self._space, key, entry)
                self.keys += 1


_KINDS = (HASH, LIST, SET, SORTED_SET)


def commands_of(space: Keyspace, key: bytes, entry: Entry) -> Iterator[Words]:
    """The commands that make a key again."""
    records = space.records
    if entry.kind == STRING:
        yield [b"SET", key, space.content(entry)]
    elif entry.kind == STREAM:
        stream = Stream(records, entry)
        entries = ((id_, decode_words(record)) for id_, record in stream.walk(NO_ID))
        yield from stream_commands(key, entries, _content(records, stream))
    else:
        kind = KIND_NAMES[entry.kind]
        yield from collection_commands(kind, key, _elements(records, entry))
        if entry.fields_expire:
            yield from _field_expiries(records, key, entry)
    if entry.expires:
        yield expiry_command(key, entry.expires)


def _elements(records: Records, entry: Entry) -> Iterator[Words]:
    for element, value in records.under(element_prefix(entry)):
        if entry.kind == HASH:
            yield [element, value]
        elif entry.kind == LIST:
            yield [value]
        elif entry.kind == SET:
            yield [element]
        else:
            yield [format_double(DOUBLE.unpack(value)[0]), element]


def _field_expiries(records: Records, key: bytes, entry: Entry) -> Iterator[Words]:
    """Commands of Redis 7.4."""
    for field, time in records.under(field_time_prefix(entry)):
        yield [b"HPEXPIREAT", key, b"%d" % U64.unpack(time)[0], b"FIELDS", b"1", field]


def _content(records: Records, stream: Stream) -> StreamContent:
    groups = [_group(group) for group in groups_of(records, stream.entry)]
    pending = {one.id for group in groups for one in group.pending}
    gone = sorted(id_ for id_ in pending if stream.get(id_) is None)
    return StreamContent(stream.last, stream.deleted, stream.added, groups, gone)


def _group(group: Group) -> GroupContent:
    pending = []
    for id_, record in group.pending.walk():
        delivery = decode_delivery(record)
        pending.append(PendingEntry(id_, delivery.consumer, delivery.time, delivery.deliveries))
    consumers = [consumer.name for consumer in group.consumers()]
    return GroupContent(group.name, group.last, group.read, consumers, pending)

"""XINFO: streams, their groups and their consumers."""

from __future__ import annotations

from itertools import islice

from lsmkv.server.commands.consumer_groups import no_group
from lsmkv.server.commands.streams import find_stream
from lsmkv.server.consumer_group import Consumer, Group, decode_delivery, find_group, groups_of
from lsmkv.server.numbers import to_int, wrapped
from lsmkv.server.registry import command, container
from lsmkv.server.resp import CommandError, Reply, wrong_subcommand
from lsmkv.server.session import Session
from lsmkv.server.stream import UNKNOWN, Stream, shown
from lsmkv.server.stream_ids import NO_ID, id_text

_SHOWN = 10
"""Entries that FULL shows unless it is asked for more."""
_NODE = 100
"""Entries in a node of Redis."""

container("XINFO", group="stream")


def _known(session: Session, key: bytes) -> Stream:
    stream = find_stream(session, key)
    if stream is None:
        raise CommandError("ERR no such key")
    return stream


@command("XINFO STREAM", -3, "readonly", group="stream", usage="<key> [FULL [COUNT <count>]]")
def xinfo_stream(session: Session, args: list[bytes]) -> Reply:
    """Return the figures of a stream; FULL: with its entries, groups, consumers and deliveries."""
    stream = _known(session, args[2])
    words = [word.upper() for word in args[3:]]
    if words not in ([], [b"FULL"]) and (words[:2] != [b"FULL", b"COUNT"] or len(words) != 3):
        raise wrong_subcommand(args)
    count = to_int(args[5]) if len(words) == 3 else _SHOWN
    count = _SHOWN if count < 0 else count
    nodes = -(-stream.entry.size // _NODE)
    fields: dict[Reply, Reply] = {
        b"length": stream.entry.size,
        b"radix-tree-keys": nodes,
        b"radix-tree-nodes": nodes + 1,
        b"last-generated-id": id_text(stream.last),
        b"max-deleted-entry-id": id_text(stream.deleted),
        b"entries-added": wrapped(stream.added),
        b"recorded-first-entry-id": id_text(stream.first),
    }
    groups = groups_of(session.space.records, stream.entry)
    if words:
        fields[b"entries"] = stream.shown(NO_ID, count=count)
        fields[b"groups"] = [_full_group(stream, group, count) for group in groups]
        return fields
    fields[b"groups"] = sum(1 for _ in groups)
    for name, reverse in ((b"first-entry", False), (b"last-entry", True)):
        found = stream.slice(NO_ID, count=1, reverse=reverse)
        fields[name] = shown(*found[0]) if found else None
    return fields


def _full_group(stream: Stream, group: Group, count: int) -> Reply:
    pending: list[Reply] = []
    for id_, record in islice(group.pending.walk(), count or None):
        delivery = decode_delivery(record)
        pending.append([id_text(id_), delivery.consumer, delivery.time, delivery.deliveries])
    return {
        b"name": group.name,
        b"last-delivered-id": id_text(group.last),
        b"entries-read": None if group.read == UNKNOWN else group.read,
        b"lag": group.lag(stream),
        b"pel-count": group.pending.count,
        b"pending": pending,
        b"consumers": [_full_consumer(group, one, count) for one in group.consumers()],
    }


def _full_consumer(group: Group, consumer: Consumer, count: int) -> Reply:
    pending: list[Reply] = []
    for id_, _ in islice(consumer.pending.walk(), count or None):
        delivery = group.delivery(id_)
        if delivery is not None:
            pending.append([id_text(id_), delivery.time, delivery.deliveries])
    return {
        b"name": consumer.name,
        b"seen-time": consumer.seen,
        b"pel-count": consumer.pending.count,
        b"pending": pending,
    }


@command("XINFO GROUPS", 3, "readonly", group="stream", usage="<key>")
def xinfo_groups(session: Session, args: list[bytes]) -> Reply:
    """Return the consumer groups of a stream."""
    stream = _known(session, args[2])
    return [
        {
            b"name": group.name,
            b"consumers": group.size,
            b"pending": group.pending.count,
            b"last-delivered-id": id_text(group.last),
            b"entries-read": None if group.read == UNKNOWN else group.read,
            b"lag": group.lag(stream),
        }
        for group in groups_of(session.space.records, stream.entry)
    ]


@command("XINFO CONSUMERS", 4, "readonly", group="stream", usage="<key> <group>")
def xinfo_consumers(session: Session, args: list[bytes]) -> Reply:
    """Return the consumers of a group."""
    stream = _known(session, args[2])
    group = find_group(session.space.records, stream.entry, args[3])
    if group is None:
        raise no_group(args[2], args[3])
    now = session.space.now()
    return [
        {
            b"name": consumer.name,
            b"pending": consumer.pending.count,
            b"idle": max(0, now - consumer.seen),
        }
        for consumer in group.consumers()
    ]

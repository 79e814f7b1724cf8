"""The commands that make a key again, with all that it holds and its expiry.

``lsmkv import --from redis`` runs them, and ``lsmkv export --format resp`` writes them down.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from lsmkv.server.numbers import MAX_INT
from lsmkv.server.stream_ids import NO_ID, id_text

Words = list[bytes]
"""A request."""
_MOST_WORDS = 1000
_MOST_BYTES = 1 << 18
"""Elements are added to a command until it has this many words, or bytes."""
MAKERS = {"hash": b"HSET", "list": b"RPUSH", "set": b"SADD", "zset": b"ZADD"}
"""The commands that add elements, by the kind of a key."""


def expiry_command(key: bytes, expires: int) -> Words:
    """Return the command that sets the expiration time of a key, in milliseconds since 1970."""
    return [b"PEXPIREAT", key, b"%d" % expires]


def collection_commands(kind: str, key: bytes, elements: Iterable[Words]) -> Iterator[Words]:
    """Make a hash, list, set or sorted set again.  Each element is the words that add it: a field
    and a value, a member, a score and a member."""
    yield [b"DEL", key]
    yield from in_parts([MAKERS[kind], key], elements)


def in_parts(head: Words, elements: Iterable[Words]) -> Iterator[Words]:
    """Commands that begin with ``head`` and have some of the elements each."""
    words, size = list(head), 0
    for element in elements:
        words += element
        size += sum(map(len, element))
        if len(words) >= _MOST_WORDS or size >= _MOST_BYTES:
            yield words
            words, size = list(head), 0
    if len(words) > len(head):
        yield words


class PendingEntry(NamedTuple):
    """An entry that was delivered and is not acknowledged."""

    id: bytes
    """In 16 bytes."""
    consumer: bytes
    time: int
    """The delivery time, in milliseconds since 1970."""
    deliveries: int


class GroupContent(NamedTuple):
    """A consumer group."""

    name: bytes
    last: bytes
    """The id that was delivered last, in 16 bytes."""
    read: int
    """The number of entries read; -1 if unknown."""
    consumers: list[bytes]
    pending: list[PendingEntry]


class StreamContent(NamedTuple):
    """The content of a stream other than its entries."""

    last: bytes
    """The highest id that was ever added, in 16 bytes."""
    deleted: bytes
    """The highest id that was removed, in 16 bytes; 0 if there is none."""
    added: int
    """The number of entries ever added."""
    groups: list[GroupContent]
    gone: list[bytes]
    """The pending ids whose entries were removed, in order."""


def stream_commands(
    key: bytes, entries: Iterable[tuple[bytes, Words]], content: StreamContent
) -> Iterator[Words]:
    """Make a stream again, with its groups.

    A delivery can only be made of an entry that is there.  So entries that were removed but are
    still pending are added, and removed at the end, as they were: the oldest by trimming, for which
    Redis remembers no highest removed id, others by XDEL.
    """
    yield [b"DEL", key]
    gone = iter([*content.gone, None])
    next_gone, first = next(gone), b""
    for id_, words in entries:
        while next_gone is not None and next_gone < id_:
            yield [b"XADD", key, id_text(next_gone), b"-", b"-"]
            next_gone = next(gone)
        first = first or id_
        yield [b"XADD", key, id_text(id_), *words]
    while next_gone is not None:
        yield [b"XADD", key, id_text(next_gone), b"-", b"-"]
        next_gone = next(gone)
    if not first and not content.gone:
        yield [b"XADD", key, b"MAXLEN", b"0", b"0-1", b"-", b"-"]
    for group in content.groups:
        yield from _group_commands(key, group)
    if content.gone:
        inner = [id_text(id_) for id_ in content.gone if first and id_ > first]
        yield from in_parts([b"XDEL", key], ([id_] for id_ in inner))
        if not first:
            yield [b"XTRIM", key, b"MAXLEN", b"0"]
        elif content.gone[0] < first:
            yield [b"XTRIM", key, b"MINID", id_text(first)]
    added = content.added if 0 <= content.added <= MAX_INT else MAX_INT  # the most that is accepted
    words = [b"XSETID", key, id_text(content.last), b"ENTRIESADDED", b"%d" % added]
    if content.deleted != NO_ID:
        words += [b"MAXDELETEDID", id_text(content.deleted)]
    yield words


def _group_commands(key: bytes, group: GroupContent) -> Iterator[Words]:
    words = [b"XGROUP", b"CREATE", key, group.name, id_text(group.last)]
    yield [*words, b"ENTRIESREAD", b"%d" % max(-1, group.read)]
    for consumer in group.consumers:
        yield [b"XGROUP", b"CREATECONSUMER", key, group.name, consumer]
    for one in group.pending:
        yield [
            *(b"XCLAIM", key, group.name, one.consumer, b"0", id_text(one.id)),
            *(b"TIME", b"%d" % one.time, b"RETRYCOUNT", b"%d" % one.deliveries),
            *(b"FORCE", b"JUSTID"),
        ]

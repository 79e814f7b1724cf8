"""DUMP and RESTORE: a key as bytes, which Redis 7 also reads and writes.

The bytes are those of an RDB file: the kind, what the key holds, the version of the format (2
bytes) and a checksum (8).  Every kind is written in its simplest form, and read in all forms that
Redis 2.6 to 7.0 write.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from lsmkv.server.consumer_group import Group, decode_delivery, find_group, groups_of, make_group
from lsmkv.server.crc64 import crc64
from lsmkv.server.encoding import (
    BLOOM,
    DOUBLE,
    HASH,
    LIST,
    LIST_MIDDLE,
    SET,
    SORTED_SET,
    STREAM,
    STRING,
    TWO_U64,
    U64,
    Entry,
    element_prefix,
)
from lsmkv.server.numbers import MAX_INT, to_int, wrapped
from lsmkv.server.options import Options
from lsmkv.server.rdb import (
    RdbError,
    Reader,
    encoded_double,
    encoded_length,
    encoded_listpack,
    encoded_string,
    encoded_time,
    intset,
    listpack,
    ziplist,
)
from lsmkv.server.registry import command
from lsmkv.server.resp import OK, CommandError, Reply, syntax_error
from lsmkv.server.session import Session
from lsmkv.server.sorted_set import SortedSet
from lsmkv.server.stream import Found, Stream, decode_words
from lsmkv.server.stream_ids import MAX_U64, NO_ID, to_id

_VERSION = 10
_FOOTER = 10
"""The bytes of version and checksum."""
_TYPES = {STRING: 0, LIST: 1, SET: 2, HASH: 4, SORTED_SET: 5, STREAM: 19}
"""The types that are written."""
_NODE_ENTRIES = 100
_NODE_BYTES = 4096
"""A node of a stream has entries up to this number and size, as in Redis."""
_LARGE = 1 << 16
"""A larger payload, in bytes, is read in a thread."""
_DELETED, _SAME_FIELDS = 1, 2
"""Flags of a stream's entry."""


# Writing


@command("DUMP", 2, "readonly", group="generic")
def dump(session: Session, args: list[bytes]) -> Reply:
    """Return a key in the form that RESTORE reads, here and in Redis.  O(its size)."""
    entry = session.space.find(session.database, args[1])
    if entry is None:
        return None
    if entry.kind == BLOOM:
        raise CommandError("ERR a Bloom filter cannot be dumped: Redis has no form for it")
    if entry.fields_expire:
        raise CommandError("ERR a hash whose fields expire cannot be dumped: not in Redis 7.0")
    parts = [bytes((_TYPES[entry.kind],)), *_contents(session, entry)]
    return sealed(b"".join(parts))


def sealed(contents: bytes) -> bytes:
    """A payload: some contents with the version of the format and a checksum."""
    data = contents + _VERSION.to_bytes(2, "little")
    return data + crc64(data).to_bytes(8, "little")


def _contents(session: Session, entry: Entry) -> Iterator[bytes]:
    if entry.kind == STRING:
        yield encoded_string(session.space.content(entry))
        return
    if entry.kind == STREAM:
        yield from _stream_contents(Stream(session.space.records, entry))
        return
    yield encoded_length(entry.size)
    for element, value in session.space.records.under(element_prefix(entry)):
        if entry.kind != LIST:
            yield encoded_string(element)
        if entry.kind in (HASH, LIST):
            yield encoded_string(value)
        elif entry.kind == SORTED_SET:
            yield encoded_double(DOUBLE.unpack(value)[0])


def _stream_contents(stream: Stream) -> Iterator[bytes]:
    nodes = list(_nodes(stream.walk(NO_ID)))
    yield encoded_length(len(nodes))
    for first, node in nodes:
        yield encoded_string(first) + encoded_string(node)
    yield encoded_length(stream.entry.size)
    for id_ in (stream.last, stream.first, stream.deleted):
        yield _encoded_id(id_)
    yield encoded_length(stream.added)
    groups = list(groups_of(stream.records, stream.entry))
    yield encoded_length(len(groups))
    for group in groups:
        yield from _group_contents(group)


def _encoded_id(id_: bytes) -> bytes:
    return b"".join(map(encoded_length, TWO_U64.unpack(id_)))


def _nodes(entries: Iterator[Found]) -> Iterator[Found]:
    """Entries in listpacks, each with the id of its first entry."""
    taken: list[Found] = []
    size = 0
    for found in entries:
        taken.append(found)
        size += len(found[1])
        if len(taken) == _NODE_ENTRIES or size >= _NODE_BYTES:
            yield taken[0][0], _node(taken)
            taken, size = [], 0
    if taken:
        yield taken[0][0], _node(taken)


def _node(entries: list[Found]) -> bytes:
    """A listpack: the number of entries, the fields of the first one, and the entries, each as the
    difference to that."""
    master, first = TWO_U64.unpack(entries[0][0]), decode_words(entries[0][1])[::2]
    elements: list[int | bytes] = [len(entries), 0, len(first), *first, 0]
    for id_, record in entries:
        words = decode_words(record)
        same = words[::2] == first
        elements.append(_SAME_FIELDS if same else 0)
        numbers = zip(TWO_U64.unpack(id_), master, strict=True)
        elements += [wrapped(number - before) for number, before in numbers]
        elements += words[1::2] if same else [len(words) // 2, *words]
        elements.append(3 + (len(first) if same else 1 + len(words)))
    return encoded_listpack(elements)


def _group_contents(group: Group) -> Iterator[bytes]:
    yield encoded_string(group.name) + _encoded_id(group.last)
    yield encoded_length(group.read & MAX_U64)
    yield encoded_length(group.pending.count)
    for id_, record in group.pending.walk():
        delivery = decode_delivery(record)
        yield id_ + encoded_time(delivery.time) + encoded_length(delivery.deliveries & MAX_U64)
    yield encoded_length(group.size)
    for consumer in group.consumers():
        yield encoded_string(consumer.name) + encoded_time(consumer.seen)
        yield encoded_length(consumer.pending.count)
        for id_, _ in consumer.pending.walk():
            yield id_


# Reading


@command("RESTORE", -4, "write", group="generic")
def restore(session: Session, args: list[bytes]) -> Reply:
    """Make a key of what DUMP has returned, here or in Redis.  O(its size)."""
    replace, absolute, about = False, False, b""
    options = Options(args[4:])
    for word in options:
        if word == b"REPLACE":
            replace = True
        elif word == b"ABSTTL":
            absolute = True
        elif word in (b"IDLETIME", b"FREQ") and options.left and about in (b"", word):
            about = word  # what is known of its use, which no key has here
            what = "must be >= 0" + (" and <= 255" if word == b"FREQ" else "")
            error = f"ERR Invalid {word.decode()} value, {what}"
            if to_int(options.value()) not in range(256 if word == b"FREQ" else MAX_INT + 1):
                raise CommandError(error)
        else:
            raise syntax_error()
    space, database, key = session.space, session.database, args[1]
    if not replace and space.find(database, key) is not None:
        raise CommandError("BUSYKEY Target key name already exists.")
    expires = to_int(args[2])
    if expires < 0:
        raise CommandError("ERR Invalid TTL value, must be >= 0")
    if len(args[3]) > _LARGE:
        space.records.give_way()
    value = _restored(session, verified(args[3]))
    replaced = space.clear(database, key)
    if expires and not absolute:
        expires = wrapped(expires + space.now())
    if expires and expires <= space.now():
        if replaced:
            session.announce("g", "del", key)
        return OK
    if isinstance(value, bytes):
        space.set_string(database, key, value, expires)
    else:
        value.expires = expires
        space.replace(database, key, value)
    session.announce("g", "restore", key)
    return OK


def verified(payload: bytes) -> bytes:
    """The kind and the contents of a payload.  Raises :class:`CommandError` if it is damaged."""
    version = int.from_bytes(payload[-_FOOTER:-8], "little")
    checksum = int.from_bytes(payload[-8:], "little")
    if len(payload) < _FOOTER or version > _VERSION or crc64(payload[:-8]) != checksum:
        raise CommandError("ERR DUMP payload version or checksum are wrong")
    return payload[:-_FOOTER]


def _restored(session: Session, data: bytes) -> Entry | bytes:
    """An entry with what it holds, not yet saved, or the value of a string."""
    try:
        reader = Reader(data)
        kind = reader.byte()
        if kind == 0:
            return reader.string()
        if kind in (15, 19, 21):
            return _restored_stream(session, reader, kind)
        return _restored_collection(session, reader, kind)
    except (RdbError, ValueError):
        raise CommandError("ERR Bad data format") from None


def _restored_collection(session: Session, reader: Reader, kind: int) -> Entry:
    if kind in (1, 10, 14, 18):
        return _make_list(session, _list_elements(reader, kind))
    if kind in (2, 11, 20):
        members = _set_members(reader, kind)
        return _make_pairs(session, SET, ((member, b"") for member in members))
    if kind in (4, 13, 16):
        return _make_pairs(session, HASH, _flat_pairs(reader, kind))
    if kind in (3, 5, 12, 17):
        return _make_sorted_set(session, _scored_members(reader, kind))
    raise RdbError


def _list_elements(reader: Reader, kind: int) -> list[bytes]:
    if kind == 1:
        return reader.strings(reader.length())
    if kind == 10:
        return ziplist(reader.string())
    elements: list[bytes] = []
    for _ in range(reader.length()):
        plain = kind == 18 and reader.length() == 1
        node = reader.string()
        elements += [node] if plain else ziplist(node) if kind == 14 else listpack(node)
    return elements


def _set_members(reader: Reader, kind: int) -> list[bytes]:
    if kind == 2:
        return reader.strings(reader.length())
    return intset(reader.string()) if kind == 11 else listpack(reader.string())


def _flat_pairs(reader: Reader, kind: int) -> Iterable[tuple[bytes, bytes]]:
    if kind == 4:
        words = reader.strings(2 * reader.length())
    else:
        words = ziplist(reader.string()) if kind in (12, 13) else listpack(reader.string())
    return zip(words[::2], words[1::2], strict=True)


def _scored_members(reader: Reader, kind: int) -> Iterable[tuple[bytes, float]]:
    if kind in (12, 17):
        return [(member, float(score)) for member, score in _flat_pairs(reader, kind)]
    found: list[tuple[bytes, float]] = []
    for _ in range(reader.length()):
        member = reader.string()
        found.append((member, reader.double() if kind == 5 else _old_score(reader)))
    return found


def _old_score(reader: Reader) -> float:
    size = reader.byte()
    if size >= 253:
        return (math.nan, math.inf, -math.inf)[size - 253]
    return float(reader.take(size))


def _made(entry: Entry) -> Entry:
    if entry.size == 0:
        raise RdbError
    return entry


def _make_list(session: Session, elements: list[bytes]) -> Entry:
    entry = session.space.make(LIST)
    prefix = element_prefix(entry)
    for at, element in enumerate(elements):
        session.space.records.put(prefix + U64.pack(LIST_MIDDLE + at), element)
    entry.size = len(elements)
    return _made(entry)


def _make_pairs(session: Session, kind: int, pairs: Iterable[tuple[bytes, bytes]]) -> Entry:
    entry = session.space.make(kind)
    prefix, count = element_prefix(entry), 0
    elements: dict[bytes, bytes] = {}
    for element, value in pairs:
        elements[element] = value
        session.space.records.put(prefix + element, value)
        count += 1
    entry.size = len(elements)
    if count != entry.size:
        raise RdbError
    return _made(entry)


def _make_sorted_set(session: Session, members: Iterable[tuple[bytes, float]]) -> Entry:
    entry = session.space.make(SORTED_SET)
    made = SortedSet(session.space.records, entry, session.space.ranks)
    for member, score in members:
        if math.isnan(score) or made.score(member) is not None:
            raise RdbError
        made.put(member, score, None)
    return _made(entry)


def _restored_stream(session: Session, reader: Reader, kind: int) -> Entry:
    entry = session.space.make(STREAM)
    stream = Stream(session.space.records, entry)
    for _ in range(reader.length()):
        master = reader.string()
        if len(master) != 16:
            raise RdbError
        for id_, words in _node_entries(master, listpack(reader.string())):
            if id_ <= stream.last or not words:
                raise RdbError
            stream.add(id_, words)
    if reader.length() != entry.size:
        raise RdbError
    last, stream.added = _id(reader), entry.size
    if last < stream.last:
        raise RdbError
    stream.last = last
    if kind >= 19:
        _id(reader)  # of the first entry
        stream.deleted, stream.added = _id(reader), reader.length()
    for _ in range(reader.length()):
        _restore_group(session, stream, reader, kind)
    return stream.store()


def _id(reader: Reader) -> bytes:
    return to_id(reader.length(), reader.length())


def _node_entries(master: bytes, elements: list[bytes]) -> Iterator[tuple[bytes, list[bytes]]]:
    """The entries of a listpack: see :func:`_node`."""
    words = iter(elements)
    first_time, first_sequence = TWO_U64.unpack(master)
    _ = _number(words), _number(words)  # of entries, and of deleted ones
    fields = _take(words, _number(words))
    _take(words, 1)
    for word in words:
        flags = int(word)
        time, sequence = first_time + _number(words), first_sequence + _number(words)
        if flags & _SAME_FIELDS:
            values = _take(words, len(fields))
            pairs = [one for pair in zip(fields, values, strict=True) for one in pair]
        else:
            pairs = _take(words, 2 * _number(words))
        _take(words, 1)
        if not flags & _DELETED:
            yield to_id(time & MAX_U64, sequence & MAX_U64), pairs


def _take(words: Iterator[bytes], count: int) -> list[bytes]:
    found: list[bytes] = []
    for _ in range(count):
        word = next(words, None)
        if word is None:
            raise RdbError
        found.append(word)
    return found


def _number(words: Iterator[bytes]) -> int:
    return int(_take(words, 1)[0])


def _restore_group(session: Session, stream: Stream, reader: Reader, kind: int) -> None:
    space = session.space
    name, last = reader.string(), _id(reader)
    if kind >= 19:
        read = wrapped(reader.length())
    else:
        read = stream.entries_up_to(last)
    if find_group(space.records, stream.entry, name) is not None:
        raise RdbError
    make_group(space, stream.entry, name, last, read)
    group = find_group(space.records, stream.entry, name)
    assert group is not None
    deliveries: dict[bytes, tuple[int, int]] = {}
    for _ in range(reader.length()):
        id_ = reader.take(16)
        deliveries[id_] = max(0, reader.integer(8)), reader.length()
    for _ in range(reader.length()):
        consumer_name, seen = reader.string(), max(0, reader.integer(8))
        if kind == 21:
            reader.integer(8)  # when it last got an entry
        if group.consumer(consumer_name) is not None:
            raise RdbError
        consumer = group.use_consumer(consumer_name, seen)
        for _ in range(reader.length()):
            id_ = reader.take(16)
            if id_ not in deliveries:
                raise RdbError
            group.deliver(id_, consumer, *deliveries.pop(id_), None)
    if deliveries:
        raise RdbError
    group.save()

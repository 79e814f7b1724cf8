"""Checks that the records of a store of ``lsmkv serve`` agree with each other.

The check walks over the store in key order.  In memory it keeps one record at a time, the versions
of all keys, and the queue of ranges that are to be swept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from lsmkv.engine.db.db import DB
from lsmkv.server.commands.bloom import BloomFilter
from lsmkv.server.consumer_group import Consumer, Group, decode_delivery, groups_of
from lsmkv.server.encoding import (
    BLOOM,
    CEILINGS,
    DATABASE,
    DOUBLE,
    ELEMENT,
    EXPIRY,
    EXPIRY_BOUND,
    FIELD_EXPIRY,
    FIELD_EXPIRY_BOUND,
    FIELD_ORDER,
    FIELD_TIME,
    FORMAT,
    FORMAT_2,
    FORMAT_KEY,
    GARBAGE,
    GARBAGE_ENDS,
    GROUP,
    HASH,
    KEY,
    KIND_NAMES,
    LIBRARY,
    LIST,
    RANKED,
    SCRIPT,
    SORTED_SET,
    STAGED,
    STREAM,
    STRING,
    TWO_U64,
    U32,
    U64,
    VERSIONED,
    Entry,
    element_prefix,
    field_order_prefix,
    field_time_prefix,
    ordered_score,
    ranked_prefix,
    successor,
)
from lsmkv.server.functions import Library
from lsmkv.server.records import Records
from lsmkv.server.resp import CommandError
from lsmkv.server.stream import Stream, is_entry
from lsmkv.server.stream_ids import id_text

_KEY_HEAD = len(KEY) + 4
_EXPIRY_HEAD = len(EXPIRY) + 8 + 4
_MARKS = (ELEMENT, RANKED, GROUP, FIELD_TIME, FIELD_ORDER)
"""The marks of all records that stand under a version."""


def check(db: DB) -> list[str]:
    """Return a sentence for each inconsistency of a store.  An empty result means that there is
    none.

    The store must not change during the check.  Each record is read about twice.
    """
    return list(_Checker(db).problems())


class _Checker:
    def __init__(self, db: DB) -> None:
        self._db = db
        self._records = Records(db)
        self._format: bytes | None = None
        self._ids: dict[int, tuple[int, int]] = {}
        """The index of each database and its stored number of keys, by the database's id."""
        self._garbage: set[bytes] = set()
        """The prefixes that are to be swept."""
        self._versions: dict[int, tuple[int, bytes]] = {}
        """The kind and the record of the key that has a version, or whose group has it."""

    def problems(self) -> Iterator[str]:
        self._format = self._db.get(FORMAT_KEY)
        if self._format not in (FORMAT, FORMAT_2):
            yield "The store does not state its format, or states an unknown one."
            return
        yield from self._check_databases()
        yield from self._check_garbage()
        yield from self._check_keys()
        yield from self._check_owners()
        yield from self._check_expiry()
        yield from self._check_field_expiry()
        yield from self._check_scripts()
        yield from self._check_libraries()

    def _scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        return self._db.iterator(start=prefix, stop=successor(prefix), fill_cache=False)

    def _ceiling(self, name: bytes) -> int:
        stored = self._db.get(CEILINGS + name)
        return 1 if stored is None else int(U64.unpack(stored)[0])

    def _check_databases(self) -> Iterator[str]:
        ceiling = self._ceiling(b"ids")
        for name, record in self._scan(DATABASE):
            index, (id_,), (size,) = name[-1], U32.unpack_from(record), U64.unpack_from(record, 4)
            if id_ in self._ids:
                yield f"Databases {self._ids[id_][0]} and {index} have the same id, {id_}."
            if id_ >= ceiling:
                yield f"Database {index} has the id {id_}, which is not below the stored ceiling."
            self._ids[id_] = (index, size)

    def _check_garbage(self) -> Iterator[str]:
        stored = self._db.get(GARBAGE_ENDS)
        first, behind = (0, 0) if stored is None else TWO_U64.unpack(stored)
        expected = first
        for name, record in self._scan(GARBAGE):
            (number,) = U64.unpack_from(name, 1)
            (length,) = U32.unpack_from(record)
            prefix, position = record[4 : 4 + length], record[4 + length :]
            self._garbage.add(prefix)
            if number != expected or number >= behind:
                yield (
                    f"The garbage queue has an entry {number}, which does not follow the one "
                    "before it."
                )
            expected = number + 1
            if position:
                if number != first:
                    yield f"The entry {number} of the garbage queue was swept before its turn."
                if next(self._db.iterator(start=prefix, stop=position), None) is not None:
                    yield f"There are records before the sweep position of {prefix!r}."
            if prefix[:1] == KEY and U32.unpack_from(prefix, 1)[0] in self._ids:
                yield f"The keys of a database in use are queued to be swept: {prefix!r}."
            if prefix[:1] == GROUP:
                self._garbage |= {ELEMENT + group[:8] for _, group in self._scan(prefix)}
        for name, _ in self._scan(STAGED):
            self._garbage |= {kind + name[len(STAGED) :] for kind in VERSIONED}
        if expected != behind:
            yield f"The garbage queue ends with {expected}, but its record says {behind}."

    def _check_scripts(self) -> Iterator[str]:
        for name, record in self._scan(SCRIPT):
            sha = hashlib.sha1(record[1:], usedforsecurity=False).hexdigest().encode()
            if name[len(SCRIPT) :] != sha or record[:1] not in (b"l", b"e"):
                yield f"The script {name!r} is stored under a name that is not its own."

    def _check_libraries(self) -> Iterator[str]:
        known = set()
        for name, record in self._scan(LIBRARY):
            if name == LIBRARY:
                continue
            try:
                library = Library.decode(record)
            except CommandError as error:
                yield f"The library {name!r} cannot be read: {error}."
                continue
            if name != LIBRARY + library.name:
                yield f"The library {name!r} is stored under a name that is not its own."
            for one in library.functions:
                if one.name.lower() in known:
                    yield f"The function {one.name!r} is in two libraries."
                known.add(one.name.lower())

    # Keys and what they hold

    def _check_keys(self) -> Iterator[str]:
        ceiling = self._ceiling(b"versions")
        counted = dict.fromkeys(self._ids, 0)
        for name, record in self._scan(KEY):
            (id_,) = U32.unpack_from(name, 1)
            entry = Entry.decode(record)
            if id_ in counted:
                counted[id_] += 1
            elif name[:_KEY_HEAD] not in self._garbage:
                yield f"{name!r} belongs to no database and is not queued to be swept."
            if entry.kind not in KIND_NAMES:
                yield f"{name!r} is of the unknown kind {entry.kind}."
                continue
            live = id_ in counted
            if live and entry.expires and self._db.get(_expiry_key(name, entry)) is None:
                yield f"{name!r} expires but is not in the expiry queue."
            if entry.version or entry.kind != STRING:
                yield from self._check_version(name, entry.kind, entry.version, ceiling)
                yield from self._check_elements(name, entry)
            if entry.kind == STREAM:
                for group in groups_of(self._records, entry):
                    yield from self._check_version(name, STREAM, group.version, ceiling)
                    yield from _check_group(name, group)
        for id_, (index, size) in self._ids.items():
            if size != counted[id_]:
                yield f"Database {index} has {counted[id_]} keys, but its record says {size}."

    def _check_version(self, name: bytes, kind: int, version: int, ceiling: int) -> Iterator[str]:
        if version in self._versions:
            yield f"{name!r} and {self._versions[version][1]!r} have the same version, {version}."
        if version >= ceiling:
            yield f"{name!r} has the version {version}, which is not below the stored ceiling."
        if {mark + U64.pack(version) for mark in _MARKS} & self._garbage:
            yield f"The elements of {name!r} are queued to be swept, but the key exists."
        self._versions[version] = (kind, name)

    def _check_elements(self, name: bytes, entry: Entry) -> Iterator[str]:
        if entry.kind == BLOOM:
            yield from self._check_pages(name, entry)
            return
        if entry.kind == STRING:
            yield from self._check_chunks(name, entry)
            return
        stream = Stream(self._records, entry) if entry.kind == STREAM else None
        prefix = element_prefix(entry)
        skip = len(prefix)
        count = 0
        for place, value in self._scan(prefix):
            element = place[skip:]
            if entry.kind == LIST and element != U64.pack(entry.head + count):
                yield (
                    f"The list {name!r} has an element {element!r} where element {count} should be."
                )
            elif stream is not None:
                yield from self._check_entry(name, stream, element, value, first=count == 0)
            elif entry.kind == SORTED_SET:
                yield from self._check_member(name, entry, element, value)
            elif entry.kind not in (HASH, LIST) and value:
                yield f"The member {element!r} of the set {name!r} has a value."
            count += 1
        if count != entry.size:
            yield f"{name!r} has {count} elements, but its record says {entry.size}."
        if count == 0 and stream is None:
            yield f"{name!r} exists but has no elements."
        if entry.kind == SORTED_SET:
            yield from self._check_order(name, entry)
        if entry.fields_expire:
            yield from self._check_field_times(name, entry)

    def _check_field_times(self, name: bytes, entry: Entry) -> Iterator[str]:
        if self._format != FORMAT_2:
            yield f"Fields of {name!r} expire, which the store's format does not have."
        ordered = [place[9:] for place, _ in self._scan(field_order_prefix(entry))]
        prefix = field_time_prefix(entry)
        times = {place[9:]: time for place, time in self._scan(prefix)}
        if sorted(time + field for field, time in times.items()) != ordered:
            yield f"The order of the times of {name!r} is not that of its fields."
        if not ordered or ordered[0][:8] != U64.pack(entry.fields_expire):
            yield f"The record of {name!r} has another earliest time than its fields."
        for field in times:
            if self._db.get(element_prefix(entry) + field) is None:
                yield f"The field {field!r} of {name!r} expires but does not exist."

    def _check_entry(
        self, name: bytes, stream: Stream, id_: bytes, record: bytes, first: bool
    ) -> Iterator[str]:
        if len(id_) != 16 or not is_entry(record):
            yield f"The stream {name!r} has an invalid entry at {id_!r}."
            return
        shown = id_text(id_).decode()
        if id_ > stream.last:
            yield f"The stream {name!r} has an entry {shown}, which is after its last id."
        if first and id_ != stream.first:
            yield f"The stream {name!r} begins with {shown}, but its record has another first id."

    def _check_member(
        self, name: bytes, entry: Entry, member: bytes, value: bytes
    ) -> Iterator[str]:
        (score,) = DOUBLE.unpack(value)
        sign = self._db.get(ranked_prefix(entry) + ordered_score(score) + member)
        if sign is None:
            yield f"The member {member!r} of {name!r} is missing from the order at its score."
        elif sign != (b"-" if score == 0 and value[0] else b""):
            yield f"The member {member!r} of {name!r} has a zero of the other sign in the order."

    def _check_order(self, name: bytes, entry: Entry) -> Iterator[str]:
        prefix = ranked_prefix(entry)
        count = 0
        for record, _ in self._scan(prefix):
            place = record[len(prefix) :]
            count += 1
            value = self._db.get(element_prefix(entry) + place[8:])
            if value is None or ordered_score(DOUBLE.unpack(value)[0]) != place[:8]:
                yield f"The order of {name!r} has an entry {place!r} that belongs to no member."
            if place < entry.low:
                yield f"The order of {name!r} has an entry {place!r} below its lower bound."
            if place >= entry.high:
                yield (
                    f"The order of {name!r} has an entry {place!r} that is not below its upper "
                    "bound."
                )
        if count != entry.size:
            yield f"The order of {name!r} has {count} members, but its record says {entry.size}."

    def _check_pages(self, name: bytes, entry: Entry) -> Iterator[str]:
        found = BloomFilter(self._records, entry)
        prefix = element_prefix(entry)
        if entry.size > found.full_capacity:
            yield f"The Bloom filter {name!r} has more items than its layers have room for."
        for place, page in self._scan(prefix):
            numbers = place[len(prefix) :]
            layer, number = U32.unpack_from(numbers)[0], U32.unpack_from(numbers, 4)[0]
            if layer >= found.layers or number >= found.layer(layer).pages:
                yield f"The Bloom filter {name!r} has a page outside its layers: {layer}, {number}."
            elif page[-1:] != bytes((found.layer(layer).probes,)):
                yield f"The Bloom filter {name!r} has a page of another layer: {layer}, {number}."

    def _check_chunks(self, name: bytes, entry: Entry) -> Iterator[str]:
        if self._format != FORMAT_2:
            yield f"The string {name!r} is in chunks, which the store's format does not have."
        prefix = element_prefix(entry)
        count = 0
        for place, chunk in self._scan(prefix):
            number = place[len(prefix) :]
            count += 1
            if len(number) != 4 or len(chunk) > entry.chunk_size:
                yield f"The string {name!r} has an invalid chunk at {number!r}."
            elif U32.unpack(number)[0] * entry.chunk_size + len(chunk) > entry.size:
                yield f"The string {name!r} has a chunk after its end, at {number!r}."
        if count != entry.chunks:
            yield f"The string {name!r} has {count} chunks, but its record says {entry.chunks}."

    def _check_owners(self) -> Iterator[str]:
        """Check that every element belongs to a key, or is queued to be swept."""
        ceiling = self._ceiling(b"versions")
        seen = b""
        owners = {RANKED: SORTED_SET, GROUP: STREAM, FIELD_TIME: HASH, FIELD_ORDER: HASH}
        for kind in _MARKS:
            for name, _ in self._scan(kind):
                prefix = name[: len(kind) + 8]
                if prefix == seen:
                    continue  # one sentence for all elements of a version
                seen = prefix
                (version,) = U64.unpack_from(prefix, 1)
                owner = self._versions.get(version)
                if prefix not in self._garbage and (
                    owner is None or owner[0] != owners.get(kind, owner[0])
                ):
                    yield f"{name!r} belongs to no key and is not queued to be swept."
                if version >= ceiling:
                    yield f"{name!r} has a version that is not below the stored ceiling."

    # The expiry queue

    def _check_expiry(self) -> Iterator[str]:
        bound = self._db.get(EXPIRY_BOUND) or EXPIRY
        for name, _ in self._scan(EXPIRY):
            if name < bound:
                yield f"{name!r} is before the stored start of the expiry queue."
            (expires,) = U64.unpack_from(name, 1)
            (id_,) = U32.unpack_from(name, 9)
            if id_ not in self._ids:
                continue  # of a flushed database: it is removed when its time comes
            record = self._db.get(KEY + U32.pack(id_) + name[_EXPIRY_HEAD:])
            if record is None or Entry.decode(record).expires != expires:
                yield f"{name!r} is in the expiry queue, but no key expires at that time."

    def _check_field_expiry(self) -> Iterator[str]:
        bound = self._db.get(FIELD_EXPIRY_BOUND) or FIELD_EXPIRY
        queued: set[bytes] = set()
        for name, _ in self._scan(FIELD_EXPIRY):
            if name < bound:
                yield f"{name!r} is before the stored start of the queue of expiring fields."
            queued.add(name)
        for name, record in self._scan(KEY):
            entry = Entry.decode(record)
            if U32.unpack_from(name, 1)[0] in self._ids and entry.fields_expire:
                place = FIELD_EXPIRY + U64.pack(entry.fields_expire) + name[len(KEY) :]
                if place not in queued:
                    yield f"Fields of {name!r} expire but it is not in their queue."
                queued.discard(place)
        for name in queued:
            if U32.unpack_from(name, 9)[0] in self._ids:
                yield f"{name!r} is in the queue of expiring fields, but none expires at that time."


def _check_group(name: bytes, group: Group) -> Iterator[str]:
    """Check that the deliveries of a group are those of its consumers."""
    of = f"the group {group.name!r} of {name!r}"
    consumers = list(group.consumers())
    if len(consumers) != group.size:
        yield f"There are {len(consumers)} consumers in {of}, but its record says {group.size}."
    held = 0
    for id_, record in group.pending.stored():
        held += 1
        delivery = decode_delivery(record)
        owner = group.consumer(delivery.consumer)
        shown = id_text(id_).decode()
        if owner is None or owner.pending.get(id_) is None:
            yield f"The delivery of {shown} in {of} is not among those of its consumer."
        if id_ < group.pending.low:
            yield f"The delivery of {shown} in {of} is below the lower bound."
    if held != group.pending.count:
        yield f"There are {held} deliveries in {of}, but its record says {group.pending.count}."
    for consumer in consumers:
        yield from _check_consumer(of, group, consumer)


def _check_consumer(of: str, group: Group, consumer: Consumer) -> Iterator[str]:
    whose = f"The consumer {consumer.name!r} in {of}"
    held = 0
    for id_, _ in consumer.pending.stored():
        held += 1
        delivery = group.delivery(id_)
        if delivery is None or delivery.consumer != consumer.name:
            yield f"{whose} has {id_text(id_).decode()}, which was not delivered to it."
        if id_ < consumer.pending.low:
            yield f"{whose} has {id_text(id_).decode()}, which is below its lower bound."
    if held != consumer.pending.count:
        yield f"{whose} has {held} deliveries, but its record says {consumer.pending.count}."


def _expiry_key(name: bytes, entry: Entry) -> bytes:
    return EXPIRY + U64.pack(entry.expires) + name[len(KEY) :]

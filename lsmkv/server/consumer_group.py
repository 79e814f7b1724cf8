"""A consumer group of a stream: its consumers, and what was delivered and not acknowledged.

Everything that a group holds is stored under its own version, so a group is removed in O(1).

Acknowledged entries stay in the store as deletions until they are compacted, and most are the
oldest.  So a list of pending ids stores a lower bound, which is moved past the deletions after
every 64 removed ids.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from lsmkv.server.encoding import ELEMENT, U32, U64, Entry, group_prefix
from lsmkv.server.keyspace import Keyspace
from lsmkv.server.numbers import wrapped
from lsmkv.server.records import Records
from lsmkv.server.stream import UNKNOWN, Stream
from lsmkv.server.stream_ids import LAST_ID, NO_ID

_GROUP = struct.Struct(">Q16sqQQI16s")
_CONSUMER = struct.Struct(">QQI16s")
_DELIVERY = struct.Struct(">Qq")
_TIGHTEN_AFTER = 64
_CONSUMERS = b"c"
"""+ name -> a consumer: when it was seen last (8), then its list of pending ids, as in a group."""
_PENDING = b"p"
"""+ id -> milliseconds of the last delivery (8), number of deliveries (8), name of the consumer."""
_OWNED = b"q"
"""+ length of a consumer's name (4) + name + id -> nothing."""


class Delivery(NamedTuple):
    """An entry that a consumer got and did not acknowledge."""

    consumer: bytes
    time: int
    """Milliseconds since 1970."""
    deliveries: int
    """As in Redis, 64 bits with a sign: XCLAIM can set it to the highest number, and count on."""


class PendingIds:
    """Ids in the store, with a value each: their number, and a bound below which there are none."""

    def __init__(
        self, records: Records, prefix: bytes, count: int = 0, removed: int = 0, low: bytes = NO_ID
    ) -> None:
        self._records = records
        self._prefix = prefix
        self.count = count
        self.removed = removed
        """Ids removed since the bound was moved."""
        self.low = low

    def get(self, id_: bytes) -> bytes | None:
        """The value of an id, or None."""
        return self._records.get(self._prefix + id_)

    def put(self, id_: bytes, value: bytes, new: bool) -> None:
        """Set the value of an id; ``new`` if it is not there."""
        self._records.put(self._prefix + id_, value)
        if new:
            if self.count == 0 or id_ < self.low:
                self.low = id_
            self.count += 1

    def remove(self, id_: bytes) -> None:
        """Remove an id, which is there."""
        self._records.delete(self._prefix + id_)
        self.count -= 1
        self.removed += 1
        if self.removed >= _TIGHTEN_AFTER and self.count:
            self.removed = 0
            for found, _ in self.walk():
                self.low = found
                break

    def walk(
        self, start: bytes = NO_ID, end: bytes = LAST_ID, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """The ids from one to another, both included, with their values."""
        start = max(start, self.low)
        if self.count and start <= end:
            yield from self._scan(start, end, reverse)

    def stored(self) -> Iterator[tuple[bytes, bytes]]:
        """The stored ids, regardless of the number and the bound."""
        return self._scan(NO_ID, LAST_ID, False)

    def _scan(self, start: bytes, end: bytes, reverse: bool) -> Iterator[tuple[bytes, bytes]]:
        prefix = self._prefix
        skip = len(prefix)
        for name, value in self._records.scan(prefix + start, prefix + end + b"\0", reverse):
            yield name[skip:], value


class Consumer:
    """A consumer of a group."""

    def __init__(self, name: bytes, seen: int, pending: PendingIds) -> None:
        self.name = name
        self.seen = seen
        """The time at which it last got or claimed an entry, in milliseconds since 1970."""
        self.pending = pending

    def encode(self) -> bytes:
        ids = self.pending
        return _CONSUMER.pack(self.seen, ids.count, ids.removed, ids.low)


class Group:
    """A view of a consumer group, which it changes in memory; :meth:`save` writes it.

    ====================  =====================================================================
    version (8)           under which its consumers and pending ids stand
    last (16)             the id of the last entry that was delivered
    read (8)              how many entries of the stream came up to that one; -1 if unknown
    consumers (8)         their number
    pending (8)           how many deliveries are not acknowledged
    removed (4)           ids removed from these since the bound was moved
    low (16)              none of these ids is below
    ====================  =====================================================================
    """

    def __init__(self, records: Records, place: bytes, record: bytes) -> None:
        self._records = records
        self._place = place
        version, self.last, self.read, self.size, count, removed, low = _GROUP.unpack(record)
        self.version: int = version
        self.prefix = ELEMENT + U64.pack(version)
        self.pending = PendingIds(records, self.prefix + _PENDING, count, removed, low)
        self._consumers: dict[bytes, Consumer] = {}
        """The consumers that were looked up."""
        self._changed: dict[bytes, Consumer] = {}
        """Those of them that are to be written."""

    @property
    def name(self) -> bytes:
        return self._place[9:]

    def save(self) -> None:
        """Write the group, and its consumers that have changed."""
        self._records.put(self._place, self.encode())
        for name, consumer in self._changed.items():
            self._records.put(self.prefix + _CONSUMERS + name, consumer.encode())
        self._changed.clear()

    def encode(self) -> bytes:
        ids = self.pending
        return _GROUP.pack(
            self.version, self.last, self.read, self.size, ids.count, ids.removed, ids.low
        )

    # Consumers

    def consumer(self, name: bytes) -> Consumer | None:
        """A consumer, or None.  A Get."""
        found = self._consumers.get(name)
        if found is None:
            record = self._records.get(self.prefix + _CONSUMERS + name)
            if record is None:
                return None
            found = self._consumers[name] = self._decode(name, record)
        return found

    def _decode(self, name: bytes, record: bytes) -> Consumer:
        seen, count, removed, low = _CONSUMER.unpack(record)
        return Consumer(name, seen, self._owned(name, count, removed, low))

    def _owned(self, name: bytes, count: int, removed: int, low: bytes) -> PendingIds:
        prefix = self.prefix + _OWNED + U32.pack(len(name)) + name
        return PendingIds(self._records, prefix, count, removed, low)

    def use_consumer(self, name: bytes, now: int) -> Consumer:
        """A consumer that is active now.  It is made if it does not exist."""
        found = self.consumer(name)
        if found is None:
            found = self._consumers[name] = Consumer(name, now, self._owned(name, 0, 0, NO_ID))
            self.size += 1
        found.seen = now
        self._changed[name] = found
        return found

    def consumers(self) -> Iterator[Consumer]:
        """All consumers, in the order of their names."""
        for name, record in self._records.under(self.prefix + _CONSUMERS):
            yield self._decode(name, record)

    def remove_consumer(self, consumer: Consumer) -> int:
        """Remove a consumer with its pending ids.  Returns how many.  O(their number)."""
        removed = 0
        for id_, _ in consumer.pending.walk():
            consumer.pending.remove(id_)
            self.pending.remove(id_)
            removed += 1
        self._records.delete(self.prefix + _CONSUMERS + consumer.name)
        self._consumers.pop(consumer.name, None)
        self._changed.pop(consumer.name, None)
        self.size -= 1
        return removed

    # Deliveries

    def delivery(self, id_: bytes) -> Delivery | None:
        """The delivery of an entry that is not acknowledged, or None.  A Get."""
        record = self.pending.get(id_)
        return None if record is None else decode_delivery(record)

    def deliver(
        self, id_: bytes, consumer: Consumer, time: int, deliveries: int, old: Delivery | None
    ) -> None:
        """Note the delivery of an entry; ``old`` is the one before, if that is pending."""
        value = _DELIVERY.pack(time, wrapped(deliveries)) + consumer.name
        self.pending.put(id_, value, old is None)
        if old is None or old.consumer != consumer.name:
            if old is not None:
                self._take_from(old, id_)
            consumer.pending.put(id_, b"", True)

    def acknowledge(self, id_: bytes, delivery: Delivery) -> None:
        """Forget a delivery."""
        self.pending.remove(id_)
        self._take_from(delivery, id_)

    def _take_from(self, delivery: Delivery, id_: bytes) -> None:
        owner = self.consumer(delivery.consumer)
        assert owner is not None, "a delivery has no consumer"
        owner.pending.remove(id_)
        self._changed[owner.name] = owner

    # How far it is

    def pass_entry(self, stream: Stream, id_: bytes) -> None:
        """Count the delivery of an entry of the stream that may be new to the group."""
        if id_ <= self.last:
            return
        if self.read != UNKNOWN and not stream.has_deletions_after(id_):
            self.read = wrapped(self.read + 1)
        elif stream.added:
            self.read = wrapped(stream.entries_up_to(id_))
        self.last = id_

    def lag(self, stream: Stream) -> int | None:
        """The number of entries that are not delivered yet; None if unknown."""
        if stream.added == 0:
            return 0
        read = self.read
        if read == UNKNOWN or stream.has_deletions_after(self.last):
            read = stream.entries_up_to(self.last)
        return None if read == UNKNOWN else wrapped(stream.added - read)


def decode_delivery(record: bytes) -> Delivery:
    """A delivery, of the value of its pending id."""
    time, deliveries = _DELIVERY.unpack_from(record)
    return Delivery(record[16:], time, deliveries)


def find_group(records: Records, entry: Entry, name: bytes) -> Group | None:
    """A group of a stream, or None.  A Get."""
    place = group_prefix(entry) + name
    record = records.get(place)
    return None if record is None else Group(records, place, record)


def make_group(space: Keyspace, entry: Entry, name: bytes, last: bytes, read: int) -> None:
    """Make a group, which must not exist."""
    record = _GROUP.pack(space.new_version(), last, read, 0, 0, 0, NO_ID)
    space.records.put(group_prefix(entry) + name, record)


def remove_group(space: Keyspace, entry: Entry, group: Group) -> None:
    """Remove a group in O(1).  What it holds is swept later."""
    space.records.delete(group_prefix(entry) + group.name)
    space.garbage.add(group.prefix)


def groups_of(records: Records, entry: Entry) -> Iterator[Group]:
    """The groups of a stream, in the order of their names."""
    prefix = group_prefix(entry)
    for name, record in records.under(prefix):
        yield Group(records, prefix + name, record)


def copy_groups(space: Keyspace, entry: Entry, copied: Entry) -> None:
    """Copy the groups of a stream, with all that they hold, to a copy of it."""
    records = space.records
    for group in groups_of(records, entry):
        old, group.version = group.prefix, space.new_version()
        records.put(group_prefix(copied) + group.name, group.encode())
        new = ELEMENT + U64.pack(group.version)
        for name, value in records.under(old):
            records.put(new + name, value)


def held_by_groups(records: Records, entry: Entry) -> list[bytes]:
    """The prefixes of what the groups of a stream hold."""
    return [group.prefix for group in groups_of(records, entry)]

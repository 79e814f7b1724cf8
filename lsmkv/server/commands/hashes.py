"""Hashes: a key's fields and their values."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import chain

from lsmkv.server import numbers
from lsmkv.server.encoding import HASH, SET, Entry, element_prefix, element_ranges, successor
from lsmkv.server.field_times import FieldTimes
from lsmkv.server.keyspace import Keyspace
from lsmkv.server.numbers import add_decimal, to_decimal, to_int
from lsmkv.server.registry import command
from lsmkv.server.resp import OK, CommandError, Pairs, Reply, syntax_error
from lsmkv.server.scanning import scan_elements
from lsmkv.server.session import Session

_MOST_PAIRS = numbers.MAX_INT // 2
_MOST_CHOSEN_FROM = 1000
"""The largest collection from which random elements are chosen uniformly."""
_MANY_REMOVED = 1024
"""Removed elements that a scan may pass over."""
_MOST_MOVED = 4096
"""A larger collection is not moved: it would hold up other commands."""
_MORE_DRAWS = 16
"""Random places that are tried beyond two for each element."""


def _entry(session: Session, key: bytes) -> Entry | None:
    return session.space.find(session.database, key, HASH)


def _items(session: Session, entry: Entry | None) -> Iterator[tuple[bytes, bytes]]:
    return iter(()) if entry is None else session.space.records.under(element_prefix(entry))


def _set_fields(
    session: Session, key: bytes, fields: list[tuple[bytes, bytes]], event: str = "hset"
) -> int:
    space = session.space
    entry, new = space.find_or_make(session.database, key, HASH)
    start, added = element_prefix(entry), 0
    for field, value in fields:
        name = start + field
        added += new_field(session, name)
        space.records.put(name, value)
    entry.size += added
    if entry.fields_expire and event == "hset":
        _forget_times(session, key, entry, [field for field, _ in fields])
        space.save(session.database, key, entry)
    elif added:
        space.save(session.database, key, entry, new)
    else:
        space.touch(session.database, key)
    session.announce("h", event, key)
    return added


def _forget_times(session: Session, key: bytes, entry: Entry, fields: list[bytes]) -> None:
    """Forget the times of fields that were set or removed, in a hash with expiring fields."""
    times = FieldTimes(session.space.records, entry)
    for field in fields:
        times.set(field, 0)
    session.space.note_field_times(session.database, key, entry)


def new_field(session: Session, name: bytes) -> bool:
    """True if an element does not exist yet.  Usually a filter says so, and no block is read."""
    return session.space.records.get(name) is None


@command("HSET", -4, "write fast", group="hash")
def hset(session: Session, args: list[bytes]) -> Reply:
    """Set fields.  Returns how many are new."""
    return _set_fields(session, args[1], _field_pairs(args, "hset"))


@command("HMSET", -4, "write fast", group="hash")
def hmset(session: Session, args: list[bytes]) -> Reply:
    """Set fields."""
    _set_fields(session, args[1], _field_pairs(args, "hmset"))
    return OK


def _field_pairs(args: list[bytes], name: str) -> list[tuple[bytes, bytes]]:
    if len(args) % 2:
        raise CommandError(f"ERR wrong number of arguments for '{name}' command")
    return list(zip(args[2::2], args[3::2], strict=True))


@command("HSETNX", 4, "write fast", group="hash")
def hsetnx(session: Session, args: list[bytes]) -> Reply:
    """Set a field if it does not exist."""
    entry = _entry(session, args[1])
    if entry is not None and not new_field(session, element_prefix(entry) + args[2]):
        return 0
    return _set_fields(session, args[1], [(args[2], args[3])])


@command("HGET", 3, "readonly fast", group="hash")
def hget(session: Session, args: list[bytes]) -> Reply:
    """Return the value of a field."""
    entry = _entry(session, args[1])
    return None if entry is None else session.space.records.get(element_prefix(entry) + args[2])


@command("HMGET", -3, "readonly fast", group="hash")
def hmget(session: Session, args: list[bytes]) -> Reply:
    """Return the values of fields."""
    entry = _entry(session, args[1])
    if entry is None:
        return [None] * (len(args) - 2)
    start = element_prefix(entry)
    return session.space.records.multi_get([start + field for field in args[2:]])


@command("HEXISTS", 3, "readonly fast", group="hash")
def hexists(session: Session, args: list[bytes]) -> Reply:
    """Return whether a field exists."""
    entry = _entry(session, args[1])
    return int(entry is not None and not new_field(session, element_prefix(entry) + args[2]))


@command("HSTRLEN", 3, "readonly fast", group="hash")
def hstrlen(session: Session, args: list[bytes]) -> Reply:
    """Return the length of a field's value."""
    return len(hget(session, args) or b"")


@command("HDEL", -3, "write fast", group="hash")
def hdel(session: Session, args: list[bytes]) -> Reply:
    """Delete fields.  Returns how many existed."""
    return remove_elements(session, args[1], _entry(session, args[1]), args[2:], "hdel")


def remove_elements(
    session: Session, key: bytes, entry: Entry | None, elements: list[bytes], event: str
) -> int:
    """Remove fields of a hash or members of a set.  Returns how many existed."""
    if entry is None:
        return 0
    space, start, removed = session.space, element_prefix(entry), 0
    for element in elements:
        name = start + element
        if space.records.get(name) is not None:
            space.records.delete(name)
            removed += 1
    if removed:
        entry.size -= removed
        entry.removed += removed
        if entry.fields_expire:
            _forget_times(session, key, entry, elements)
        if entry.removed >= _MANY_REMOVED and 0 < entry.size <= min(entry.removed, _MOST_MOVED):
            _move_elements(session, entry)
        session.announce("h" if entry.kind == HASH else "s", event, key)
        space.save(session.database, key, entry)
    return removed


def _move_elements(session: Session, entry: Entry) -> None:
    """Give the elements of an entry another version, where no scan passes over removed ones.

    At least as many were removed, so this costs O(1) for each of those.
    """
    space, before = session.space, element_ranges(entry)
    entry.version, entry.removed = space.new_version(), 0
    for old, new in zip(before, element_ranges(entry), strict=True):
        for element, value in space.records.under(old):
            space.records.put(new + element, value)
        space.garbage.add(old)


@command("HKEYS", 2, "readonly", group="hash")
def hkeys(session: Session, args: list[bytes]) -> Reply:
    """Return the fields, sorted by their bytes."""
    return [field for field, _ in _items(session, _entry(session, args[1]))]


@command("HVALS", 2, "readonly", group="hash")
def hvals(session: Session, args: list[bytes]) -> Reply:
    """Return the values, sorted by their fields."""
    return [value for _, value in _items(session, _entry(session, args[1]))]


@command("HGETALL", 2, "readonly", group="hash")
def hgetall(session: Session, args: list[bytes]) -> Reply:
    """Return the fields with their values."""
    return dict(_items(session, _entry(session, args[1])))


@command("HINCRBY", 4, "write fast", group="hash")
def hincrby(session: Session, args: list[bytes]) -> Reply:
    """Add to the number in a field."""
    change = to_int(args[3])
    old = hget(session, args)
    total = (0 if old is None else to_int(old, "ERR hash value is not an integer")) + change
    if not numbers.MIN_INT <= total <= numbers.MAX_INT:
        raise CommandError("ERR increment or decrement would overflow")
    _set_fields(session, args[1], [(args[2], b"%d" % total)], "hincrby")
    return total


@command("HINCRBYFLOAT", 4, "write fast", group="hash")
def hincrbyfloat(session: Session, args: list[bytes]) -> Reply:
    """Add a floating point number to the number in a field."""
    if to_decimal(args[3]).is_infinite():
        raise CommandError("ERR value is NaN or Infinity")
    old = hget(session, args)
    total = add_decimal(b"0" if old is None else old, args[3], "ERR hash value is not a float")
    _set_fields(session, args[1], [(args[2], total)], "hincrbyfloat")
    return total


@command("HSCAN", -3, "readonly", group="hash")
def hscan(session: Session, args: list[bytes]) -> Reply:
    """Return some fields with values, and the cursor for the next call."""
    return scan_elements(session, args, HASH, lambda field, value: [field, value])


@command("HRANDFIELD", -2, "readonly", group="hash")
def hrandfield(session: Session, args: list[bytes]) -> Reply:
    """Return random fields: distinct ones, or with repetitions if the count is negative."""
    count, in_pairs = random_count(args, b"WITHVALUES")
    entry = _entry(session, args[1])
    if entry is None:
        return None if count is None else []
    chosen = choose(session, entry, 1 if count is None else count)
    if count is None:
        return chosen[0][0]
    return Pairs(chosen) if in_pairs else [field for field, _ in chosen]


def random_count(args: list[bytes], pairs: bytes) -> tuple[int | None, bool]:
    """``key [count [pairs]]``: the number of random elements, and whether ``pairs`` is there."""
    count = None if len(args) == 2 else checked_count(args[2])
    if len(args) > 4 or (len(args) == 4 and args[3].upper() != pairs):
        raise syntax_error()
    if len(args) == 4:
        checked_count(args[2], _MOST_PAIRS)
    return count, len(args) == 4


def checked_count(text: bytes, most: int = numbers.MAX_INT) -> int:
    """A number of elements to choose."""
    count = to_int(text)
    if count < -numbers.MAX_INT:
        raise CommandError(
            "ERR value is out of range, value must between"
            f" {-numbers.MAX_INT} and {numbers.MAX_INT}"
        )
    if not -most <= count <= most:
        raise CommandError("ERR value is out of range")
    return count


def choose(session: Session, entry: Entry, count: int) -> list[tuple[bytes, bytes]]:
    """Random elements with their values: distinct ones, or with repetitions if the number is
    negative.

    In a collection of up to 1,000 elements each is equally likely.  In a larger one, random places
    in the order choose the elements, so those after large gaps are likelier.  If more than a tenth
    is asked for, all elements are read.
    """
    if count == 0:
        return []
    wanted = abs(count)
    if count > 0 and count >= entry.size:
        return list(_items(session, entry))
    if entry.size <= _MOST_CHOSEN_FROM or wanted * 10 > entry.size:
        everything = list(_items(session, entry))
        if count < 0:
            return random.choices(everything, k=wanted)
        return random.sample(everything, wanted)
    skip = len(element_prefix(entry))
    chosen = _drawn(session.space, entry, wanted, repeated=count < 0)
    return [(name[skip:], value) for name, value in chosen]


def _drawn(space: Keyspace, entry: Entry, wanted: int, repeated: bool) -> list[tuple[bytes, bytes]]:
    """Elements at random places of a collection that has more than ``wanted``.

    If nearly every place leads to the same few records, no more places are tried, and neighbors of
    the records fill up the number.  O(wanted) seeks.
    """
    records, prefix = space.records, element_prefix(entry)
    stop = successor(prefix)
    first = _first_from(space, entry, prefix, stop)[0]
    last = next(iter(records.scan(prefix, stop, reverse=True)))[0]
    shared = next(at for at in range(len(last)) if first[at : at + 1] != last[at : at + 1])
    low, high = (
        int.from_bytes(name[shared : shared + 8].ljust(8, b"\0"), "big") for name in (first, last)
    )
    found: dict[bytes, bytes] = {}
    drawn: list[tuple[bytes, bytes]] = []
    place = first
    for _ in range(wanted if repeated else 2 * wanted + _MORE_DRAWS):
        place = min(first[:shared] + random.randint(low, high).to_bytes(8, "big"), last)
        name, value = _first_from(space, entry, place, stop)
        found[name] = value
        drawn.append((name, value))
        if not repeated and len(found) == wanted:
            break
    if repeated:
        return drawn
    if len(found) == wanted:  # even an iterator that is not used costs a seek
        return list(found.items())
    for name, value in chain(records.scan(place, stop), records.scan(prefix, place)):
        if len(found) == wanted:
            break
        found[name] = value
    return list(found.items())


def _first_from(
    space: Keyspace, entry: Entry, place: bytes, stop: bytes | None
) -> tuple[bytes, bytes]:
    """The first element at a place or after it, which exists."""
    if entry.kind != SET:
        return next(iter(space.records.scan(place, stop)))
    found = next(iter(space.records.scan(space.removed_ranges.skip(entry.version, place), stop)))
    space.removed_ranges.learn(entry.version, place, found[0])
    return found

"""Keys of any kind: existence, expiry, names, scans."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from lsmkv.server import numbers
from lsmkv.server.consumer_group import copy_groups
from lsmkv.server.cursors import cursor_number
from lsmkv.server.database import Database
from lsmkv.server.encoding import (
    BLOOM,
    GROUP,
    HASH,
    KIND_NAMES,
    LIST,
    SET,
    SORTED_SET,
    STREAM,
    STRING,
    Entry,
    element_ranges,
    successor,
)
from lsmkv.server.globs import literal_prefix, matcher
from lsmkv.server.numbers import to_int
from lsmkv.server.options import Options, in_error
from lsmkv.server.registry import command, container
from lsmkv.server.resp import OK, CommandError, Reply, Simple, syntax_error
from lsmkv.server.scanning import ScanOptions, scan_options
from lsmkv.server.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterable


def _delete(session: Session, args: list[bytes]) -> Reply:
    """Delete keys.  Returns how many existed.  O(1) per key: elements are swept later."""
    deleted = 0
    for key in args[1:]:
        if session.space.clear(session.database, key):
            session.announce("g", "del", key)
            deleted += 1
    return deleted


command("DEL", -2, "write", group="generic")(_delete)
command("UNLINK", -2, "write fast", group="generic")(_delete)


def _exists(session: Session, args: list[bytes]) -> Reply:
    """Return how many of the keys exist.  A key that is given twice counts twice."""
    find, database = session.space.find, session.database
    return sum(find(database, key) is not None for key in args[1:])


command("EXISTS", -2, "readonly fast", group="generic")(_exists)
command("TOUCH", -2, "readonly fast", group="generic")(_exists)


@command("TYPE", 2, "readonly fast", group="generic")
def type_(session: Session, args: list[bytes]) -> Reply:
    """Return the kind of a key: string, hash, list, set, zset, stream, or none."""
    entry = session.space.find(session.database, args[1])
    return Simple("none" if entry is None else KIND_NAMES[entry.kind])


def _size(kind: int, session: Session, args: list[bytes]) -> Reply:
    entry = session.space.find(session.database, args[1], kind)
    return 0 if entry is None else entry.size


for _name, _kind, _group, _what in (
    ("LLEN", LIST, "list", "the length of a list.  O(1)."),
    ("HLEN", HASH, "hash", "the number of fields."),
    ("SCARD", SET, "set", "the number of members.  O(1)."),
    ("ZCARD", SORTED_SET, "sorted-set", "the number of members.  O(1)."),
    ("XLEN", STREAM, "stream", "the number of entries.  O(1)."),
    ("BF.CARD", BLOOM, "bf", "how many items were added as new."),
):
    command(_name, 2, "readonly fast", group=_group, summary=f"Return {_what}")(
        partial(_size, _kind)
    )


# Expiry


def _expire(name: str, unit: int, relative: bool) -> Callable[[Session, list[bytes]], Reply]:
    def expire(session: Session, args: list[bytes]) -> Reply:
        space, database, key = session.space, session.database, args[1]
        options = {word.upper() for word in args[3:]}
        for word in args[3:]:
            if word.upper() not in (b"NX", b"XX", b"GT", b"LT"):
                raise CommandError(f"ERR Unsupported option {in_error(word)}")
        if b"NX" in options and len(options) > 1:
            raise CommandError(
                "ERR NX and XX, GT or LT options at the same time are not compatible"
            )
        if {b"GT", b"LT"} <= options:
            raise CommandError("ERR GT and LT options at the same time are not compatible")
        number = to_int(args[2])
        at = number * unit + (space.now() if relative else 0)
        if not numbers.MIN_INT <= number * unit <= numbers.MAX_INT or at > numbers.MAX_INT:
            raise CommandError(f"ERR invalid expire time in '{name.lower()}' command")
        entry = space.find(database, key)
        if entry is None:
            return 0
        old = entry.expires or 1 << 64
        if (
            (b"NX" in options and entry.expires)
            or (b"XX" in options and not entry.expires)
            or (b"GT" in options and at <= old)
            or (b"LT" in options and at >= old)
        ):
            return 0
        if at <= space.now():
            space.remove(database, key, entry)
            session.announce("g", "del", key)
        else:
            space.set_expiry(database, key, entry, at)
            session.announce("g", "expire", key)
        return 1

    return expire


for _name, _unit, _relative, _when in (
    ("EXPIRE", 1000, True, "after some seconds"),
    ("PEXPIRE", 1, True, "after some milliseconds"),
    ("EXPIREAT", 1000, False, "at a Unix time in seconds"),
    ("PEXPIREAT", 1, False, "at a Unix time in milliseconds"),
):
    _run = _expire(_name, _unit, _relative)
    command(_name, -3, "write fast", group="generic", summary=f"Make a key expire {_when}.")(_run)


def _remaining(unit: int, relative: bool) -> Callable[[Session, list[bytes]], Reply]:
    def remaining(session: Session, args: list[bytes]) -> Reply:
        entry = session.space.find(session.database, args[1])
        if entry is None:
            return -2
        if not entry.expires:
            return -1
        left = max(0, entry.expires - session.space.now()) if relative else entry.expires
        return (left + unit // 2) // unit

    return remaining


for _name, _unit, _relative, _what in (
    ("TTL", 1000, True, "remaining life, in seconds"),
    ("PTTL", 1, True, "remaining life, in milliseconds"),
    ("EXPIRETIME", 1000, False, "expiry as Unix time, in seconds"),
    ("PEXPIRETIME", 1, False, "expiry as Unix time, in milliseconds"),
):
    _summary = f"Return a key's {_what}; -1 if it does not expire, -2 if it is not there."
    _run = _remaining(_unit, _relative)
    command(_name, 2, "readonly fast", group="generic", summary=_summary)(_run)


@command("PERSIST", 2, "write fast", group="generic")
def persist(session: Session, args: list[bytes]) -> Reply:
    """Remove a key's expiry.  Returns 1 if it had one."""
    entry = session.space.find(session.database, args[1])
    if entry is None or not entry.expires:
        return 0
    session.space.set_expiry(session.database, args[1], entry, 0)
    session.announce("g", "persist", args[1])
    return 1


# Names


def _rename(session: Session, old: bytes, new: bytes) -> None:
    space, database = session.space, session.database
    entry = space.find(database, old)
    if entry is None:
        raise CommandError("ERR no such key")
    if old != new:
        space.move(database, old, database, new, entry)
        session.announce("g", "rename_from", old)
        session.announce("g", "rename_to", new)


@command("RENAME", 3, "write", group="generic")
def rename(session: Session, args: list[bytes]) -> Reply:
    """Rename a key, replacing the key of the new name.  O(1)."""
    _rename(session, args[1], args[2])
    return OK


@command("RENAMENX", 3, "write fast", group="generic")
def renamenx(session: Session, args: list[bytes]) -> Reply:
    """Rename a key, if no key has the new name.  O(1)."""
    if session.space.find(session.database, args[1]) is None:
        raise CommandError("ERR no such key")
    if session.space.find(session.database, args[2]) is not None:
        return 0
    _rename(session, args[1], args[2])
    return 1


@command("COPY", -3, "write", group="generic")
def copy(session: Session, args: list[bytes]) -> Reply:
    """Copy a key with all its elements.  Returns 1 if it was copied.  O(elements)."""
    target, replace = session.database, False
    options = Options(args[3:])
    for word in options:
        if word == b"REPLACE":
            replace = True
        elif word == b"DB":
            target = database_at(session, options.value())
        else:
            raise syntax_error()
    space, source, new = session.space, args[1], args[2]
    if target is session.database and source == new:
        raise CommandError("ERR source and destination objects are the same")
    entry = space.find(session.database, source)
    space.counting = False
    if entry is None or (not replace and space.find(target, new) is not None):
        return 0
    made = Entry.decode(entry.encode())
    if entry.version:
        made.version, made.removed = space.new_version(), 0
        for old, copied in zip(element_ranges(entry), element_ranges(made), strict=True):
            if old[:1] != GROUP:
                for name, value in space.records.under(old):
                    space.records.put(copied + name, value)
        if entry.kind == STREAM:
            copy_groups(space, entry, made)
    space.replace(target, new, made)
    space.announce("g", "copy_to", target, new)
    return 1


@command("MOVE", 3, "write fast", group="generic")
def move(session: Session, args: list[bytes]) -> Reply:
    """Move a key to another database, if it does not exist there.  O(1)."""
    target = database_at(session, args[2])
    if target is session.database:
        raise CommandError("ERR source and destination objects are the same")
    space = session.space
    entry = space.find(session.database, args[1])
    if entry is None or space.find(target, args[1]) is not None:
        return 0
    space.move(session.database, args[1], target, args[1], entry)
    session.announce("g", "move_from", args[1])
    space.announce("g", "move_to", target, args[1])
    return 1


def database_at(session: Session, index: bytes) -> Database:
    """The database with a number."""
    number = to_int(index)
    if not 0 <= number < len(session.space.databases):
        raise CommandError("ERR DB index is out of range")
    return session.space.databases[number]


# Scans


@command("KEYS", 2, "readonly", group="generic")
def keys(session: Session, args: list[bytes]) -> Reply:
    """Return the keys that match a pattern.  O(keys with its literal prefix)."""
    matches, prefix = matcher(args[1]), literal_prefix(args[1])
    stop = successor(prefix) if prefix else None
    found = session.space.keys(session.database, prefix, stop)
    return [key for key, _ in found if matches(key)]


def _kind_filter(options: ScanOptions) -> Callable[[Entry], bool]:
    if options.kind is None:
        return lambda entry: True
    return lambda entry: KIND_NAMES[entry.kind].lower() == options.kind


@command("SCAN", -2, "readonly", group="generic")
def scan(session: Session, args: list[bytes]) -> Reply:
    """Return some keys, and the cursor for the next call, 0 at the end.  Costs O(COUNT).

    A pattern's literal prefix limits the scan.
    """
    number = cursor_number(args[1])
    options = scan_options(args[2:], kinds=True)
    space, database = session.space, session.database
    scope = database.prefix
    position = session.service.cursors.position(number, scope)
    prefix = literal_prefix(options.pattern)
    stop = successor(prefix) if prefix else None
    wanted, matches = _kind_filter(options), options.matches
    found: list[Reply] = []
    walk = space.keys(database, max(position, prefix), stop)
    for seen, (key, entry) in enumerate(walk):
        if seen == options.limit:
            return [b"%d" % session.service.cursors.make(scope, key), found]
        if matches(key) and wanted(entry):
            found.append(key)
    return [b"0", found]


@command("RANDOMKEY", 1, "readonly", group="generic")
def randomkey(session: Session, args: list[bytes]) -> Reply:
    """Return a random key.  Each of the first 100 is equally likely; after them, gaps decide."""
    space, database = session.space, session.database
    first: list[bytes] = []
    for key, _ in space.keys(database):
        first.append(key)
        if len(first) > 100:
            return random_key(space.keys(database, random.randbytes(8)), first)
    return random.choice(first) if first else None


def random_key(behind: Iterable[tuple[bytes, Entry]], first: list[bytes]) -> bytes:
    """The first key after a random place, or one of the first."""
    for key, _ in behind:
        return key
    return random.choice(first)


@command("DBSIZE", 1, "readonly fast", group="server")
def dbsize(session: Session, args: list[bytes]) -> Reply:
    """Return the number of keys.  O(1)."""
    return session.space.count(session.database)


@command("FLUSHDB", -1, "write", group="server")
def flushdb(session: Session, args: list[bytes]) -> Reply:
    """Remove all keys of the database.  O(1): they are swept later."""
    _check_flush(args)
    session.space.flush(session.database)
    return OK


@command("FLUSHALL", -1, "write", group="server")
def flushall(session: Session, args: list[bytes]) -> Reply:
    """Remove all keys of all databases.  O(1): they are swept later."""
    _check_flush(args)
    for database in session.space.databases:
        session.space.flush(database)
    return OK


def _check_flush(args: list[bytes]) -> None:
    if len(args) > 2 or (len(args) == 2 and args[1].upper() not in (b"ASYNC", b"SYNC")):
        raise syntax_error()


@command("SWAPDB", 3, "write fast", group="server")
def swapdb(session: Session, args: list[bytes]) -> Reply:
    """Exchange the keys of two databases.  O(1)."""
    to_int(args[1], "ERR invalid first DB index")
    to_int(args[2], "ERR invalid second DB index")
    one, other = database_at(session, args[1]), database_at(session, args[2])
    session.space.swap(one, other)
    return OK


# Information about a key

container("OBJECT", group="generic")


def _described(session: Session, key: bytes) -> Entry | None:
    """The entry of a key that OBJECT describes: it counts as read, and a miss is no event."""
    entry = session.space.find(session.database, key)
    session.space.note_lookup(entry is not None)
    return entry


@command("OBJECT ENCODING", 3, "readonly", group="generic", usage="<key>")
def object_encoding(session: Session, args: list[bytes]) -> Reply:
    """Return Redis' encoding for a key of this kind and size."""
    entry = _described(session, args[2])
    if entry is None:
        return None
    if entry.kind == STRING:
        try:
            to_int(entry.rest)
        except CommandError:
            return b"raw" if entry.version or len(entry.rest) > 44 else b"embstr"
        return b"int"
    if entry.kind == LIST:
        return b"quicklist"
    if entry.kind == STREAM:
        return b"stream"
    return b"skiplist" if entry.kind == SORTED_SET else b"hashtable"


@command("OBJECT REFCOUNT", 3, "readonly", group="generic", usage="<key>")
def object_refcount(session: Session, args: list[bytes]) -> Reply:
    """Return 1 for a key that exists."""
    return None if _described(session, args[2]) is None else 1


@command("OBJECT IDLETIME", 3, "readonly", group="generic", usage="<key>")
def object_idletime(session: Session, args: list[bytes]) -> Reply:
    """Return 0: no key is ever evicted, so idle time is not measured."""
    return None if _described(session, args[2]) is None else 0


@command("OBJECT FREQ", 3, "readonly", group="generic", usage="<key>")
def object_freq(session: Session, args: list[bytes]) -> Reply:
    """Return an error: there is no eviction policy that counts accesses."""
    if _described(session, args[2]) is None:
        return None
    raise CommandError(
        "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note"
        " that when switching between policies at runtime LRU and LFU data will take some time to"
        " adjust."
    )

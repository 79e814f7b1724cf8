"""Strings: SET with all its options, GET and its variants, numbers, parts of strings."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from lsmkv.server import numbers
from lsmkv.server.command import KeyUse
from lsmkv.server.encoding import STRING, Entry
from lsmkv.server.keyspace import Keyspace
from lsmkv.server.numbers import add_decimal, to_int, to_int_from
from lsmkv.server.options import Options
from lsmkv.server.registry import command
from lsmkv.server.resp import OK, CommandError, Reply, syntax_error
from lsmkv.server.session import Session
from lsmkv.server.string_value import StringValue

_LONGEST = 512 * 2**20
_UNITS = (b"EX", b"PX", b"EXAT", b"PXAT")
_TOO_LONG = "ERR string exceeds maximum allowed size (proto-max-bulk-len)"


def _expiry_time(space: Keyspace, unit: bytes, number: bytes, name: str) -> int:
    """The time that EX, PX, EXAT or PXAT and a number mean, in milliseconds since 1970."""
    error = f"ERR invalid expire time in '{name}' command"
    value = to_int_from(1, number, error, numbers.NOT_AN_INTEGER)
    if unit in (b"EX", b"EXAT"):
        value *= 1000
    if unit in (b"EX", b"PX"):
        value += space.now()
    if value > numbers.MAX_INT:
        raise CommandError(error)
    return value


class _Options(NamedTuple):
    """The options of SET and GETEX."""

    expiry: bytes
    """A unit, ``KEEPTTL``, ``PERSIST``, or nothing."""
    number: bytes
    """The number after the unit."""
    only_if: bytes
    """``NX``, ``XX``, or nothing."""
    get: bool


def _options(words: list[bytes], unlimited: bytes, setting: bool) -> _Options:
    """Read options.  Those of one kind exclude each other.  Each may be repeated: the last counts.

    ``unlimited`` is what a command takes instead of a unit.
    """
    expiry, number, only_if, get = b"", b"", b"", False
    options = Options(words)
    for word in options:
        if word in _UNITS and expiry in (b"", word):
            expiry, number = word, options.value()
        elif word == unlimited and expiry in (b"", word):
            expiry = word
        elif setting and word in (b"NX", b"XX") and only_if in (b"", word):
            only_if = word
        elif setting and word == b"GET":
            get = True
        else:
            raise syntax_error()
    return _Options(expiry, number, only_if, get)


def _set_keys(args: list[bytes]) -> list[KeyUse]:
    gets = any(word.upper() == b"GET" for word in args[3:])
    return [KeyUse(args[1], ("RW", "access", "update") if gets else ("OW", "update"))]


@command("SET", -3, "write", group="string", find_keys=_set_keys)
def set_(session: Session, args: list[bytes]) -> Reply:
    """Set a key to a value, replacing any other value."""
    space, database, key, value = session.space, session.database, args[1], args[2]
    if len(args) == 3:
        space.set_string(database, key, value)
        session.announce("$", "set", key)
        return OK
    options = _options(args[3:], b"KEEPTTL", setting=True)
    expires = 0
    if options.expiry in _UNITS:
        expires = _expiry_time(space, options.expiry, options.number, "set")
    space.counting = options.get
    old = space.string(database, key) if options.get else None
    space.counting = False
    entry = space.find(database, key)
    if options.only_if and (entry is not None) != (options.only_if == b"XX"):
        return old
    announced = expires > 0
    if options.expiry == b"KEEPTTL" and entry is not None:
        expires = entry.expires
    _set_until(session, key, value, expires, announced)
    return old if options.get else OK


def _set_until(
    session: Session, key: bytes, value: bytes, expires: int, announced: bool = True
) -> None:
    """Set a key.  If its time has passed already, it is removed immediately.

    ``announced`` says whether its time is new.
    """
    space, database = session.space, session.database
    passed = 0 < expires <= space.now()
    if passed:
        space.clear(database, key)
    else:
        space.set_string(database, key, value, expires)
    session.announce("$", "set", key)
    if expires and announced:
        session.announce("g", "expire", key)
    if passed:
        session.announce("x", "expired", key)


@command("GET", 2, "readonly fast", group="string")
def get(session: Session, args: list[bytes]) -> Reply:
    """Return the value of a key."""
    return session.space.string(session.database, args[1])


@command("MGET", -2, "readonly fast", group="string")
def mget(session: Session, args: list[bytes]) -> Reply:
    """Return the values of several keys; null for those that are not strings."""
    space, database = session.space, session.database
    found = space.records.multi_get([database.prefix + key for key in args[1:]])
    values: list[Reply] = []
    for key, record in zip(args[1:], found, strict=True):
        if record is None:
            space.miss(database, key)
            values.append(None)
        elif record[0] == STRING:
            space.hits += 1
            if space.usage is not None:
                space.usage.note(database.prefix + key)
            values.append(record[1:])
        else:
            entry = space.find(database, key)
            if entry is None or entry.kind != STRING:
                values.append(None)
            else:
                values.append(space.content(entry))
    return values


@command("MSET", -3, "write", group="string")
def mset(session: Session, args: list[bytes]) -> Reply:
    """Set several keys at once."""
    for key, value in _pairs(args, "mset"):
        session.space.set_string(session.database, key, value)
        session.announce("$", "set", key)
    return OK


@command("MSETNX", -3, "write", group="string")
def msetnx(session: Session, args: list[bytes]) -> Reply:
    """Set several keys at once, if none of them exists."""
    pairs = _pairs(args, "msetnx")
    if any(session.space.find(session.database, key) is not None for key, _ in pairs):
        return 0
    for key, value in pairs:
        session.space.set_string(session.database, key, value)
        session.announce("$", "set", key)
    return 1


def _pairs(args: list[bytes], name: str) -> list[tuple[bytes, bytes]]:
    if len(args) % 2 == 0:
        raise CommandError(f"ERR wrong number of arguments for '{name}' command")
    return list(zip(args[1::2], args[2::2], strict=True))


@command("SETNX", 3, "write fast", group="string")
def setnx(session: Session, args: list[bytes]) -> Reply:
    """Set a key if it does not exist."""
    if session.space.find(session.database, args[1]) is not None:
        return 0
    session.space.set_string(session.database, args[1], args[2])
    session.announce("$", "set", args[1])
    return 1


def _setex(name: str, unit: bytes, session: Session, args: list[bytes]) -> Reply:
    expires = _expiry_time(session.space, unit, args[2], name)
    _set_until(session, args[1], args[3], expires)
    return OK


for _name, _unit, _what in (("SETEX", b"EX", "seconds"), ("PSETEX", b"PX", "milliseconds")):
    _summary = f"Set a key that expires after some {_what}."
    _run = partial(_setex, _name.lower(), _unit)
    command(_name, 4, "write", group="string", summary=_summary)(_run)


@command("GETSET", 3, "write fast", group="string")
def getset(session: Session, args: list[bytes]) -> Reply:
    """Set a key, and return its old value."""
    old = session.space.string(session.database, args[1])
    session.space.set_string(session.database, args[1], args[2])
    session.announce("$", "set", args[1])
    return old


@command("GETDEL", 2, "write fast", group="string")
def getdel(session: Session, args: list[bytes]) -> Reply:
    """Delete a key, and return its value."""
    entry = session.space.find(session.database, args[1], STRING)
    if entry is None:
        return None
    value = session.space.content(entry)
    session.space.remove(session.database, args[1], entry)
    session.announce("g", "del", args[1])
    return value


@command("GETEX", -2, "write fast", group="string")
def getex(session: Session, args: list[bytes]) -> Reply:
    """Return the value of a key, and change its expiry."""
    options = _options(args[2:], b"PERSIST", setting=False)
    space, key = session.space, args[1]
    entry = space.find(session.database, key, STRING)
    if entry is None:
        return None
    value = space.content(entry)
    if options.expiry in _UNITS:
        expires = _expiry_time(space, options.expiry, options.number, "getex")
        if expires <= space.now():
            space.remove(session.database, key, entry)
            session.announce("g", "del", key)
        else:
            space.set_expiry(session.database, key, entry, expires)
            session.announce("g", "expire", key)
    elif options.expiry and entry.expires:
        space.set_expiry(session.database, key, entry, 0)
        session.announce("g", "persist", key)
    return value


def _overwrite(session: Session, key: bytes, at: int | None, data: bytes, event: str) -> int:
    """Overwrite a part of a string, or add to its end.  Returns its new length."""
    space, database = session.space, session.database
    entry, new = space.find_or_make(database, key, STRING)
    value = space.value(entry)
    if at is None:
        at = value.size
    if at + len(data) > _LONGEST:
        raise CommandError(_TOO_LONG)
    value.write(at, data)
    value.flush()
    space.save(database, key, entry, new)
    session.announce("$", event, key)
    return value.size


@command("APPEND", 3, "write fast", group="string")
def append(session: Session, args: list[bytes]) -> Reply:
    """Append to a string.  Returns its new length."""
    return _overwrite(session, args[1], None, args[2], "append")


def _value(session: Session, key: bytes) -> StringValue:
    """The value of a string; an empty one if the key does not exist."""
    entry = session.space.find(session.database, key, STRING)
    return session.space.value(Entry(STRING) if entry is None else entry)


@command("STRLEN", 2, "readonly fast", group="string")
def strlen(session: Session, args: list[bytes]) -> Reply:
    """Return the length of a string."""
    return _value(session, args[1]).size


def getrange(session: Session, args: list[bytes]) -> Reply:
    """Return a part of a string, both ends included; negative positions count from its end."""
    start, end = to_int(args[2]), to_int(args[3])
    value = _value(session, args[1])
    size = value.size
    if start < 0 and end < 0 and start > end:
        return b""
    start = max(start + size if start < 0 else start, 0)
    end = max(end + size if end < 0 else end, 0)
    return value.read(start, end + 1)


command("GETRANGE", 4, "readonly", group="string")(getrange)
command("SUBSTR", 4, "readonly", group="string")(getrange)


@command("SETRANGE", 4, "write", group="string")
def setrange(session: Session, args: list[bytes]) -> Reply:
    """Overwrite a part of a string, extending it if necessary.  Returns its new length."""
    offset = to_int(args[2])
    if offset < 0:
        raise CommandError("ERR offset is out of range")
    if not args[3]:
        return _value(session, args[1]).size
    return _overwrite(session, args[1], offset, args[3], "setrange")


def _increment(session: Session, key: bytes, change: int) -> int:
    entry, new = session.space.find_or_make(session.database, key, STRING)
    total = (0 if new else to_int(entry.rest)) + change  # in chunks, it has no rest
    if not numbers.MIN_INT <= total <= numbers.MAX_INT:
        raise CommandError("ERR increment or decrement would overflow")
    entry.rest = b"%d" % total
    session.space.save(session.database, key, entry, new)
    session.announce("$", "incrby", key)
    return total


@command("INCR", 2, "write fast", group="string")
def incr(session: Session, args: list[bytes]) -> Reply:
    """Add 1 to a number."""
    return _increment(session, args[1], 1)


@command("DECR", 2, "write fast", group="string")
def decr(session: Session, args: list[bytes]) -> Reply:
    """Subtract 1 from a number."""
    return _increment(session, args[1], -1)


@command("INCRBY", 3, "write fast", group="string")
def incrby(session: Session, args: list[bytes]) -> Reply:
    """Add to a number."""
    return _increment(session, args[1], to_int(args[2]))


@command("DECRBY", 3, "write fast", group="string")
def decrby(session: Session, args: list[bytes]) -> Reply:
    """Subtract from a number."""
    change = to_int(args[2])
    if change == numbers.MIN_INT:
        raise CommandError("ERR decrement would overflow")
    return _increment(session, args[1], -change)


@command("INCRBYFLOAT", 3, "write fast", group="string")
def incrbyfloat(session: Session, args: list[bytes]) -> Reply:
    """Add a floating point number to a number."""
    entry, new = session.space.find_or_make(session.database, args[1], STRING)
    total = add_decimal(b"0" if new else entry.rest, args[2])  # in chunks, it has no rest
    entry.rest = total
    session.space.save(session.database, args[1], entry, new)
    session.announce("$", "incrbyfloat", args[1])
    return total

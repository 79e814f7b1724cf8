"""``--raw``: the keys of an ordinary store as strings.

There is one database; keys have no kinds and no expiry.  The store contains only what clients put
there.  So redis-cli can read and change any store in LevelDB's files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lsmkv.server.command import Table
from lsmkv.server.commands import (
    acl,
    admin,
    clients,
    connection,
    diagnosis,
    introspection,
    pubsub,
    transactions,
)
from lsmkv.server.cursors import cursor_number
from lsmkv.server.encoding import successor
from lsmkv.server.globs import literal_prefix, matcher
from lsmkv.server.numbers import to_int
from lsmkv.server.registry import COMMANDS, Handler, command
from lsmkv.server.resp import OK, CommandError, Pairs, Reply, Simple, syntax_error
from lsmkv.server.scanning import scan_options
from lsmkv.server.session import Session

REGISTER = (acl, admin, clients, connection, diagnosis, introspection, pubsub, transactions)
"""The modules whose commands are shared."""
RAW_COMMANDS: Table = {
    name: COMMANDS[name]
    for name in (
        b"ACL AUTH BGSAVE CLIENT COMMAND CONFIG DISCARD ECHO EXEC HELLO INFO LASTSAVE LATENCY"
        b" MODULE MONITOR MULTI PING PSUBSCRIBE PUBLISH PUBSUB PUNSUBSCRIBE QUIT RESET ROLE SAVE"
        b" SHUTDOWN SLOWLOG SPUBLISH SSUBSCRIBE SUBSCRIBE SUNSUBSCRIBE TIME UNSUBSCRIBE UNWATCH"
        b" WATCH"
    ).split()
}
"""The commands for a store that is served with ``--raw``."""


def _command(
    name: str, arity: int, flags: str = "", group: str = "generic"
) -> Callable[[Handler], Handler]:
    return command(name, arity, flags, group=group, table=RAW_COMMANDS)


def _there(session: Session, key: bytes) -> bool:
    return session.space.find(session.database, key) is not None


def _put(session: Session, key: bytes, value: bytes | None) -> None:
    session.space.records.put(key, value)
    session.space.touch(session.database, key)
    if value is None:
        session.announce("g", "del", key)
    else:
        session.announce("$", "set", key)


@_command("GET", 2, "readonly fast", "string")
def get(session: Session, args: list[bytes]) -> Reply:
    """Return the value of a key."""
    entry = session.space.find(session.database, args[1])
    return None if entry is None else entry.rest


@_command("MGET", -2, "readonly fast", "string")
def mget(session: Session, args: list[bytes]) -> Reply:
    """Return the values of several keys."""
    values = session.space.records.multi_get(args[1:])
    for value in values:
        session.space.note_lookup(value is not None)
    return [*values]


@_command("STRLEN", 2, "readonly fast", "string")
def strlen(session: Session, args: list[bytes]) -> Reply:
    """Return the length of a value."""
    entry = session.space.find(session.database, args[1])
    return 0 if entry is None else len(entry.rest)


@_command("EXISTS", -2, "readonly fast")
def exists(session: Session, args: list[bytes]) -> Reply:
    """Return how many of the keys exist."""
    return sum(_there(session, key) for key in args[1:])


@_command("TYPE", 2, "readonly fast")
def type_(session: Session, args: list[bytes]) -> Reply:
    """Return string, or none."""
    return Simple("string" if _there(session, args[1]) else "none")


def _ttl(session: Session, args: list[bytes]) -> Reply:
    """Return -1 for a key that exists, since no key expires; -2 otherwise."""
    return -1 if _there(session, args[1]) else -2


_command("TTL", 2, "readonly fast")(_ttl)
_command("PTTL", 2, "readonly fast")(_ttl)


@_command("SET", -3, "write", "string")
def set_(session: Session, args: list[bytes]) -> Reply:
    """Set a key to a value.  NX and XX are the only options."""
    if len(args) > 4:
        raise syntax_error()
    if len(args) == 4:
        option = args[3].upper()
        if option not in (b"NX", b"XX"):
            raise CommandError("ERR keys of a raw store cannot expire: SET takes only NX or XX")
        if _there(session, args[1]) != (option == b"XX"):
            return None
    _put(session, args[1], args[2])
    return OK


@_command("MSET", -3, "write", "string")
def mset(session: Session, args: list[bytes]) -> Reply:
    """Set several keys at once."""
    if len(args) % 2 == 0:
        raise CommandError("ERR wrong number of arguments for 'mset' command")
    for key, value in zip(args[1::2], args[2::2], strict=True):
        _put(session, key, value)
    return OK


def _delete(session: Session, args: list[bytes]) -> Reply:
    """Delete keys.  Returns how many existed."""
    count = 0
    for key in args[1:]:
        if _there(session, key):
            _put(session, key, None)
            count += 1
    return count


_command("DEL", -2, "write")(_delete)
_command("UNLINK", -2, "write")(_delete)


def _matching(session: Session, pattern: bytes, start: bytes = b"") -> Iterator[bytes]:
    prefix = literal_prefix(pattern)
    stop = successor(prefix) if prefix else None
    for key, _ in session.space.records.scan(max(start, prefix), stop):
        yield key


@_command("KEYS", 2, "readonly")
def keys(session: Session, args: list[bytes]) -> Reply:
    """Return the keys that match a pattern.  O(keys with its literal prefix)."""
    return list(filter(matcher(args[1]), _matching(session, args[1])))


@_command("SCAN", -2, "readonly")
def scan(session: Session, args: list[bytes]) -> Reply:
    """Return some keys, and the cursor for the next call, 0 at the end.  Costs O(COUNT)."""
    options = scan_options(args[2:], kinds=True)
    matches = options.matches
    position = session.service.cursors.position(cursor_number(args[1]), b"")
    found: list[Reply] = []
    for seen, key in enumerate(_matching(session, options.pattern, position)):
        if seen == options.limit:
            return [b"%d" % session.service.cursors.make(b"", key), found]
        if matches(key) and options.kind in (None, "string"):
            found.append(key)
    return [b"0", found]


@_command("DBSIZE", 1, "readonly", "server")
def dbsize(session: Session, args: list[bytes]) -> Reply:
    """Return the number of keys.  O(keys): an ordinary store does not store the number."""
    return sum(1 for _ in session.space.records.scan(b"", None))


@_command("SELECT", 2, "fast", "connection")
def select(session: Session, args: list[bytes]) -> Reply:
    """Return OK for database 0, the only one."""
    if to_int(args[1], "ERR invalid DB index") != 0:
        raise CommandError("ERR DB index is out of range")
    return OK


@_command("LSMKV.RANGE", -3, "readonly")
def lsmkv_range(session: Session, args: list[bytes]) -> Reply:
    """Return the keys and values from START up to STOP (exclusive), in order.

    ``LSMKV.RANGE start stop [LIMIT n] [REV] [KEYS]``: an empty STOP means no end; the default LIMIT
    is 100; REV reads from the end; KEYS omits the values.  Costs O(LIMIT).
    """
    if not session.reads_all_keys(args):
        raise CommandError("NOPERM this user has no permissions to read all keys")
    limit, reverse, keys_only = 100, False, False
    words = iter(args[3:])
    for word in words:
        match word.upper():
            case b"LIMIT":
                limit = to_int(next(words, b""))
                if limit < 0:
                    raise CommandError("ERR LIMIT can't be negative")
            case b"REV":
                reverse = True
            case b"KEYS":
                keys_only = True
            case _:
                raise syntax_error()
    stop = args[2] or None
    found: list[tuple[Reply, Reply]] = []
    for key, value in session.space.records.scan(args[1], stop, reverse):
        if len(found) == limit:
            break
        found.append((key, value))
    return [key for key, _ in found] if keys_only else Pairs(found)

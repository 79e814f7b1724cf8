"""A store that the engine wrote is consistent; each kind of damage is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from lsmkv import DB, MemoryEnv
from lsmkv.server.check import check
from lsmkv.server.commands import COMMANDS
from lsmkv.server.consumer_group import find_group
from lsmkv.server.encoding import (
    CEILINGS,
    DATABASE,
    DOUBLE,
    ELEMENT,
    EXPIRY,
    EXPIRY_BOUND,
    FIELD_EXPIRY,
    FIELD_EXPIRY_BOUND,
    FIELD_TIME,
    FORMAT,
    FORMAT_KEY,
    GARBAGE,
    GARBAGE_ENDS,
    GROUP,
    KEY,
    LIBRARY,
    RANKED,
    SCRIPT,
    TWO_U64,
    U32,
    U64,
    Entry,
    element_prefix,
    field_time_prefix,
    group_prefix,
    ordered_score,
    ranked_prefix,
)
from lsmkv.server.engine import Engine
from lsmkv.server.functions import Library
from lsmkv.server.keyspace import Keyspace
from lsmkv.server.records import Records
from lsmkv.server.settings import Settings
from lsmkv.server.stream import Stream

WRITES = """
SET string value
SETRANGE long 400000 x
SETRANGE long 20000 x
SET brief value EX 100000
HSET hash a 1 b 2
HSET expiring a 1 b 2 c 3
HEXPIRE expiring 100000 FIELDS 1 a
HEXPIRE expiring 200000 FIELDS 1 b
RPUSH list a b c
SADD set a b
ZADD sorted 1 a 2 b -0.0 c
BF.ADD filter item
XADD stream 1-1 f v
XADD stream 2-1 f v
XADD stream 3-1 f v
XGROUP CREATE stream group 0
XREADGROUP GROUP group one COUNT 2 STREAMS stream >
XADD lost 1-1 f v
XGROUP CREATE lost group 0
XREADGROUP GROUP group one STREAMS lost >
DEL lost
XGROUP CREATE stream gone 0
XREADGROUP GROUP gone one STREAMS stream >
XGROUP DESTROY stream gone
SADD gone a b
DEL gone
SET moved x EX 100000
RENAME moved moved2
SELECT 1
ZADD other 1 a
XADD stream 1-1 f v
XGROUP CREATE stream group 0
XREADGROUP GROUP group one STREAMS stream >
EXPIRE other 100000
FLUSHDB
SET alone 1
"""


@pytest.fixture
def db() -> Iterator[DB]:
    with DB("/db", create_if_missing=True, env=MemoryEnv()) as db:
        engine = Engine(db, Keyspace(db), COMMANDS, Settings())
        engine.schedule = lambda callback: None
        session = engine.open_session()
        for line in WRITES.strip().splitlines():
            engine.run(session, line.encode().split())
            assert not session.take_output().startswith(b"-"), line
        engine.commit()
        yield db


def at(db: DB, name: bytes) -> bytes:
    value = db.get(name)
    assert value is not None
    return value


def key(db: DB, name: bytes) -> bytes:
    stored = at(db, DATABASE + b"\0")
    return KEY + stored[:4] + name


def entry(db: DB, name: bytes) -> Entry:
    return Entry.decode(at(db, key(db, name)))


def edit(name: bytes, **fields: object) -> Callable[[DB], None]:
    """Give the entry of a key other fields."""

    def damage(db: DB) -> None:
        changed = entry(db, name)
        for field, value in fields.items():
            setattr(changed, field, value)
        db.put(key(db, name), changed.encode())

    return damage


def element(name: bytes, field: bytes, value: bytes | None) -> Callable[[DB], None]:
    return lambda db: _set(db, element_prefix(entry(db, name)) + field, value)


def ranked(score: float, member: bytes, value: bytes | None) -> Callable[[DB], None]:
    return lambda db: _set(
        db, ranked_prefix(entry(db, b"sorted")) + ordered_score(score) + member, value
    )


FIRST, SECOND, THIRD = (TWO_U64.pack(number, 1) for number in (1, 2, 3))


def head(**fields: object) -> Callable[[DB], None]:
    """Give the stream other fields."""

    def damage(db: DB) -> None:
        stream = Stream(Records(db), entry(db, b"stream"))
        for field, value in fields.items():
            setattr(stream, field, value)
        db.put(key(db, b"stream"), stream.store().encode())

    return damage


def in_group(name: bytes, value: bytes | None) -> Callable[[DB], None]:
    def damage(db: DB) -> None:
        group = find_group(Records(db), entry(db, b"stream"), b"group")
        assert group is not None
        _set(db, group.prefix + name, value)

    return damage


def group_with(**fields: object) -> Callable[[DB], None]:
    """Give the group, or its list of pending ids, other fields."""

    def damage(db: DB) -> None:
        group = find_group(Records(db), entry(db, b"stream"), b"group")
        assert group is not None
        for field, value in fields.items():
            setattr(group if field == "size" else group.pending, field, value)
        db.put(group_prefix(entry(db, b"stream")) + b"group", group.encode())

    return damage


def _set(db: DB, name: bytes, value: bytes | None) -> None:
    if value is None:
        assert name in db
        db.delete(name)
    else:
        db.put(name, value)


def field_time(field: bytes, value: bytes | None) -> Callable[[DB], None]:
    return lambda db: _set(db, field_time_prefix(entry(db, b"expiring")) + field, value)


def without_field_queue(db: DB) -> None:
    times = entry(db, b"expiring").fields_expire
    _set(db, FIELD_EXPIRY + U64.pack(times) + key(db, b"expiring")[1:], None)


def same_version(db: DB) -> None:
    edit(b"hash", version=entry(db, b"set").version)(db)


def without_queue(db: DB) -> None:
    brief = entry(db, b"brief")
    _set(db, EXPIRY + U64.pack(brief.expires) + key(db, b"brief")[1:], None)


def swept_too_early(db: DB) -> None:
    first, behind = TWO_U64.unpack(at(db, GARBAGE_ENDS))
    prefix = element_prefix(entry(db, b"set"))
    db.put(GARBAGE + U64.pack(behind), U32.pack(len(prefix)) + prefix)
    db.put(GARBAGE_ENDS, TWO_U64.pack(first, behind + 1))


def position_too_far(db: DB) -> None:
    first, _ = TWO_U64.unpack(at(db, GARBAGE_ENDS))
    name = GARBAGE + U64.pack(first)
    _set(db, name, at(db, name) + at(db, name)[4:] + b"zz")


def no_garbage(db: DB) -> None:
    for name, _ in list(db.iterator(prefix=GARBAGE)):
        db.delete(name)
    db.delete(GARBAGE_ENDS)


def library(name: bytes, function: bytes) -> bytes:
    return Library(b"#!lua name=%b\n" % name, function + b" 0 - ").encode()


def function_twice(db: DB) -> None:
    db.put(LIBRARY + b"a", library(b"a", b"f"))
    db.put(LIBRARY + b"b", library(b"b", b"F"))


DAMAGES: dict[str, tuple[Callable[[DB], None], str]] = {
    "format": (lambda db: db.delete(FORMAT_KEY), "does not state its format"),
    "size of a database": (lambda db: db.delete(key(db, b"string")), "keys, but its record says"),
    "unknown format": (lambda db: db.put(FORMAT_KEY, b"lsmkv-serve 3"), "states an unknown one"),
    "chunks in the first format": (
        lambda db: db.put(FORMAT_KEY, FORMAT),
        "which the store's format does not have",
    ),
    "lost chunk": (element(b"long", U32.pack(1), None), "has 1 chunks, but its record says 2"),
    "chunk after the end": (element(b"long", U32.pack(30), b"x"), "a chunk after its end"),
    "size of a long string": (edit(b"long", size=400_000), "a chunk after its end"),
    "long chunk": (element(b"long", U32.pack(1), bytes(16385)), "an invalid chunk"),
    "another element": (element(b"long", b"field", b"x"), "an invalid chunk"),
    "size of a hash": (edit(b"hash", size=3), "2 elements, but its record says 3"),
    "field": (element(b"hash", b"c", b"3"), "3 elements, but its record says 2"),
    "gap of a list": (element(b"list", U64.pack((1 << 63) + 1), None), "where element 1 should be"),
    "head of a list": (edit(b"list", head=5), "where element 0 should be"),
    "member": (element(b"set", b"a", None), "1 elements, but its record says 2"),
    "value in a set": (element(b"set", b"a", b"x"), "has a value"),
    "no place": (ranked(1, b"a", None), "is missing from the order"),
    "wrong place": (ranked(5, b"a", b""), "that belongs to no member"),
    "other zero": (ranked(0, b"c", b""), "a zero of the other sign"),
    "score": (element(b"sorted", b"a", DOUBLE.pack(7)), "is missing from the order at its score"),
    "low": (edit(b"sorted", low=ordered_score(1)), "below its lower bound"),
    "high": (edit(b"sorted", high=ordered_score(2)), "not below its upper bound"),
    "version twice": (same_version, "have the same version"),
    "ceiling": (
        lambda db: db.put(CEILINGS + b"versions", U64.pack(2)),
        "not below the stored ceiling",
    ),
    "ids": (lambda db: db.put(CEILINGS + b"ids", U64.pack(2)), "not below the stored ceiling"),
    "same id": (
        lambda db: db.put(DATABASE + b"\x05", at(db, DATABASE + b"\0")),
        "Databases 0 and 5 have the same id",
    ),
    "no expiry": (without_queue, "is not in the expiry queue"),
    "stray expiry": (edit(b"brief", expires=0), "no key expires at that time"),
    "expiry bound": (lambda db: db.put(EXPIRY_BOUND, EXPIRY + b"\xff"), "before the stored start"),
    "time of a field": (field_time(b"a", U64.pack(5)), "is not that of its fields"),
    "no time of a field": (field_time(b"b", None), "is not that of its fields"),
    "expiring field": (element(b"expiring", b"a", None), "expires but does not exist"),
    "earliest time": (edit(b"expiring", fields_expire=5), "another earliest time"),
    "no queued fields": (without_field_queue, "but it is not in their queue"),
    "stray queued fields": (edit(b"expiring", fields_expire=0), "but none expires at that time"),
    "bound of fields": (
        lambda db: db.put(FIELD_EXPIRY_BOUND, FIELD_EXPIRY + b"\xff"),
        "before the stored start",
    ),
    "format of expiring fields": (
        lambda db: db.put(FORMAT_KEY, FORMAT),
        "which the store's format does not have",
    ),
    "stray time": (lambda db: db.put(FIELD_TIME + U64.pack(65_000) + b"a", b""), "to no key"),
    "stray element": (
        lambda db: db.put(ELEMENT + U64.pack(65_000) + b"a", b""),
        "belongs to no key",
    ),
    "stray place": (
        lambda db: db.put(RANKED + U64.pack(65_000) + ordered_score(1), b""),
        "belongs to no key",
    ),
    "another library": (
        lambda db: db.put(LIBRARY + b"a", library(b"b", b"f")),
        "is stored under a name that is not its own",
    ),
    "a function twice": (function_twice, "The function b'F' is in two libraries"),
    "a library": (lambda db: db.put(LIBRARY + b"a", b"\0\0\0\5"), "cannot be read"),
    "another script": (lambda db: db.put(SCRIPT + b"0" * 40, b"lreturn 1"), "not its own"),
    "stray key": (lambda db: db.put(KEY + U32.pack(999) + b"a", b"\1"), "belongs to no database"),
    "garbage ends": (
        lambda db: db.put(GARBAGE_ENDS, TWO_U64.pack(0, 9)),
        "but its record says 9",
    ),
    "garbage in use": (swept_too_early, "are queued to be swept, but the key exists"),
    "sweep position": (position_too_far, "before the sweep position"),
    "lost garbage": (no_garbage, "is not queued to be swept"),
    "kind": (lambda db: db.put(key(db, b"hash"), b"\x55" + bytes(16)), "unknown kind"),
    "page": (element(b"filter", U32.pack(7) + U32.pack(0), bytes(512)), "outside its layers"),
    "probes": (element(b"filter", U32.pack(0) + U32.pack(0), bytes(512)), "page of another layer"),
    "entry": (element(b"stream", SECOND, None), "2 elements, but its record says 3"),
    "words of an entry": (element(b"stream", FIRST, b"\0\0\0\2"), "an invalid entry"),
    "first id": (head(first=SECOND), "but its record has another first id"),
    "last id": (head(last=SECOND), "which is after its last id"),
    "delivery": (in_group(b"p" + FIRST, None), "which was not delivered to it"),
    "delivery of nobody": (
        in_group(b"p" + FIRST, bytes(16) + b"two"),
        "not among those of its consumer",
    ),
    "owned": (in_group(b"q\0\0\0\3one" + FIRST, None), "1 deliveries, but its record says 2"),
    "consumer": (in_group(b"cone", None), "0 consumers"),
    "pending": (group_with(count=3), "2 deliveries in"),
    "bound of a group": (group_with(low=SECOND), "below the lower bound"),
    "stray group": (lambda db: db.put(GROUP + U64.pack(65_000) + b"g", bytes(60)), "to no key"),
    "items": (edit(b"filter", size=10**6), "more items than"),
}


def test_what_the_engine_wrote_is_consistent(db: DB) -> None:
    assert check(db) == []


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_named(db: DB, name: str) -> None:
    damage, sentence = DAMAGES[name]
    damage(db)
    assert any(sentence in problem for problem in check(db)), check(db)

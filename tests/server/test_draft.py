"""What a long write changes is on its way before any key has it, and few changes are left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from serving import Client, an_engine
from ticks import engine_of, open_store

from lsmkv import MemoryEnv
from lsmkv.server.check import check
from lsmkv.server.draft import VERSIONS, Draft
from lsmkv.server.encoding import GROUP, STAGED, U64, VERSIONED, Entry
from lsmkv.server.engine import Engine
from lsmkv.server.session import Session

MANY = 3000
NUMBERS = [b"%05d" % number for number in range(MANY)]


@pytest.fixture
def engine() -> Iterator[Engine]:
    with an_engine() as engine:
        yield engine


def drafted(engine: Engine, *words: str | bytes) -> Draft:
    """A draft of a command, which is not applied yet."""
    space = engine.space
    version = space.take_versions(VERSIONS)
    space.keep()
    engine.commit()
    draft = Draft(space, version)
    draft.most_in_place = 2000
    session = Session(engine, 0)
    session.space, session.database = draft, draft.databases[0]
    request = [one.encode() if isinstance(one, str) else one for one in words]
    engine.table[request[0]].handler(session, request)
    draft.settle()
    return draft


def apply(engine: Engine, draft: Draft) -> None:
    assert draft.fits(engine.space)
    draft.apply(engine.space)
    draft.discard(engine.space)
    draft.close()
    engine.space.keep()
    engine.commit()
    swept(engine)


def swept(engine: Engine) -> None:
    while engine.tidy_once():
        engine.commit()
    engine.commit()
    assert check(engine.db) == []


def versioned(engine: Engine) -> int:
    """The number of records under versions."""
    return sum(name[:1] in VERSIONED for name, _ in engine.db.iterator())


def entry_of(engine: Engine, key: bytes) -> Entry:
    entry = engine.space.find(engine.space.databases[0], key)
    assert entry is not None
    return entry


def fill(engine: Engine) -> Client:
    client = Client(engine)
    engine.reads.in_loop = 100.0
    pairs = [word for number in NUMBERS for word in (number, number)]
    client(b"SADD", b"set", *NUMBERS)
    client(b"HSET", b"hash", *pairs)
    client(b"ZADD", b"sorted", *pairs)
    client(b"RPUSH", b"list", *NUMBERS)
    for number in range(MANY):
        client(f"XADD stream {number + 1}-1 field {number}")
    client("XGROUP CREATE stream group 0")
    client("XREADGROUP GROUP group consumer COUNT 5 STREAMS stream >")
    client.session.take_output()
    engine.commit()
    return client


def test_what_a_killed_server_has_drafted_is_swept() -> None:
    env = MemoryEnv()
    with open_store(env) as db:
        engine = engine_of(db)
        fill(engine)
        before = versioned(engine)
        drafted(engine, "ZUNIONSTORE", "new", "2", "sorted", "set").close()
        assert versioned(engine) == before + 2 * MANY
        assert check(engine.db) == []
    with open_store(env) as db:
        engine = engine_of(db)
        swept(engine)
        assert versioned(engine) == before
        assert list(db.iterator(prefix=STAGED)) == []
        assert Client(engine)("EXISTS new") == 0


def test_a_draft_that_is_dropped_is_swept(engine: Engine) -> None:
    fill(engine)
    before = versioned(engine)
    draft = drafted(engine, "COPY", "stream", "new")
    draft.discard(engine.space)
    draft.close()
    engine.space.keep()
    engine.commit()
    swept(engine)
    assert versioned(engine) == before
    assert Client(engine)("XPENDING stream group")[0] == 5


@pytest.mark.parametrize(
    ("line", "read", "expected"),
    [
        ("SPOP set 2900", "SCARD set", 100),
        ("ZREMRANGEBYRANK sorted 0 2899", "ZRANK sorted 02950", 50),
        ("LTRIM list 0 99", "LRANGE list -1 -1", [b"00099"]),
        ("LINSERT list BEFORE 00001 x", "LRANGE list 0 2", [b"00000", b"x", b"00001"]),
        ("LPOP list 2990", "LRANGE list 0 0", [b"02990"]),
        ("XTRIM stream MAXLEN 10", "XPENDING stream group", 5),
        ("XTRIM stream MAXLEN 1", "XLEN stream", 1),
    ],
)
def test_a_key_of_which_much_changes_is_copied(
    engine: Engine, line: str, read: str, expected: Any
) -> None:
    client = fill(engine)
    key = line.split()[1].encode()
    version, before = entry_of(engine, key).version, check(engine.db)
    ttl = client("PEXPIREAT " + key.decode() + " 2000000000000")
    draft = drafted(engine, *line.split())
    assert check(engine.db) == before == []
    assert len(draft.records.pending) < 20 < MANY
    apply(engine, draft)
    assert ttl == 1
    assert client(f"PEXPIRETIME {key.decode()}") == 2000000000000
    found = client(read)
    assert (found[0] if read.startswith("XPENDING") else found) == expected
    assert entry_of(engine, key).version != version
    if key == b"stream":
        client("XADD stream 9999-1 field value")
        (((_, entries),),) = [client("XREADGROUP GROUP group other STREAMS stream >")]
        assert entries[-1] == [b"9999-1", [b"field", b"value"]]


def test_fields_that_expire_are_copied_with_their_times(engine: Engine) -> None:
    client = fill(engine)
    client("HPEXPIREAT hash 2000000000000 FIELDS 2 02998 02999")
    apply(engine, drafted(engine, "HDEL", "hash", *NUMBERS[:2900], NUMBERS[-1]))
    client.plays(
        ("HLEN hash", 99),
        ("HPEXPIRETIME hash FIELDS 3 02997 02998 02999", [-1, 2000000000000, -2]),
    )


def test_few_changes_are_made_in_place(engine: Engine) -> None:
    client = fill(engine)
    version = entry_of(engine, b"set").version
    apply(engine, drafted(engine, "SREM", "set", *NUMBERS[:500]))
    assert entry_of(engine, b"set").version == version
    client.plays(("SCARD set", MANY - 500), ("SISMEMBER set 00499", 0))


def test_a_key_that_is_much_larger_than_its_changes_is_not_copied(engine: Engine) -> None:
    client = fill(engine)
    client(b"SADD", b"set", *[b"x%05d" % number for number in range(20_000)])
    engine.commit()
    version = entry_of(engine, b"set").version
    apply(engine, drafted(engine, "SREM", "set", *NUMBERS[:2100]))
    assert entry_of(engine, b"set").version == version
    client.plays(("SCARD set", 20_000 + MANY - 2100), ("SISMEMBER set 02099", 0))


def test_what_is_removed_as_a_whole_is_swept(engine: Engine) -> None:
    client = fill(engine)
    draft = drafted(engine, "ZREMRANGEBYRANK", "sorted", "0", "-1")
    assert len(draft.records.pending) < 20
    apply(engine, draft)
    assert client("EXISTS sorted") == 0


def test_the_ranks_that_were_learned_hold_after_it(engine: Engine) -> None:
    client = fill(engine)
    assert client("ZRANK sorted 01500") == 1500
    apply(engine, drafted(engine, "ZREM", "sorted", *NUMBERS[:700]))
    assert client("ZRANK sorted 01500") == 800


def test_a_draft_does_not_fit_a_key_that_was_changed(engine: Engine) -> None:
    client = fill(engine)
    draft = drafted(engine, "COPY", "set", "new")
    client("SET new value")
    assert not draft.fits(engine.space)
    client("DEL new")
    assert draft.fits(engine.space)
    client("FLUSHDB")
    assert not draft.fits(engine.space)
    draft.discard(engine.space)
    draft.close()


def test_a_group_is_written_with_its_stream(engine: Engine) -> None:
    fill(engine)
    groups = [name for name, _ in engine.db.iterator(prefix=GROUP)]
    draft = drafted(engine, "COPY", "stream", "new")
    assert [name for name, _ in engine.db.iterator(prefix=GROUP)] == groups
    apply(engine, draft)
    assert len(list(engine.db.iterator(prefix=GROUP))) == 2
    assert Client(engine)("XPENDING new group")[0] == 5


def test_a_version_is_not_given_out_again_after_a_kill() -> None:
    env = MemoryEnv()
    with open_store(env) as db:
        engine = engine_of(db)
        fill(engine)
        draft = drafted(engine, "COPY", "set", "new")
        draft.close()
        used = max(U64.unpack_from(name, 1)[0] for name, _ in db.iterator(prefix=b"e"))
    with open_store(env) as db:
        assert engine_of(db).space.new_version() > used

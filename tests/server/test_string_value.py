"""Strings in chunks answer every command as strings that are whole do."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from serving import Client, an_engine

from lsmkv import MemoryEnv
from lsmkv.server.check import check
from lsmkv.server.encoding import ELEMENT, FORMAT, FORMAT_2, FORMAT_KEY, STRING, Entry
from lsmkv.server.engine import Engine
from lsmkv.server.string_value import CHUNK, LONGEST_WHOLE
from lsmkv.testing import CrashState, RecordingEnv, explore

KINDS = (
    *("setrange", "setrange", "setrange", "append", "getrange", "setbit", "getbit", "bitcount"),
    *("bitpos", "bitfield", "field", "bitop", "set", "rename", "copy", "strlen", "getdel", "incr"),
    "undone",
)


def in_chunks(engine: Engine, chunk: int, longest_whole: int) -> Client:
    engine.space.chunk_size = chunk
    engine.space.longest_whole = longest_whole
    return Client(engine)


@pytest.fixture(params=[(8, 11), (CHUNK, LONGEST_WHOLE)], ids=["small", "real"])
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[Client, Client, int]]:
    """Clients of a store with strings in chunks and of one without, and the size of a chunk."""
    chunk, longest_whole = request.param
    with an_engine() as engine, an_engine() as other:
        yield in_chunks(engine, chunk, longest_whole), in_chunks(other, chunk, 1 << 40), chunk


def test_random_commands_are_answered_as_with_whole_strings(
    pair: tuple[Client, Client, int],
) -> None:
    client, whole, chunk = pair
    drawn = random.Random(64)
    values = {key: bytearray() for key in ("a", "b", "c")}
    reach = 12 * chunk

    def place() -> int:
        """A position that is often near the edge of a chunk."""
        if drawn.random() < 0.5:
            return drawn.randrange(reach)
        return max(0, drawn.randrange(reach // chunk) * chunk + drawn.choice((-1, 0, 1)))

    def data() -> bytes:
        size = drawn.choice((1, 2, drawn.randrange(1, 2 * chunk), drawn.randrange(1, 4 * chunk)))
        return drawn.choice((drawn.randbytes(size), bytes(size), b"\xff" * size))

    def numbers(*drawn_from: int) -> list[bytes]:
        return [b"%d" % (number * drawn.choice((1, 1, 1, -1))) for number in drawn_from]

    checked = 0
    for _ in range(800 if chunk < 100 else 100):
        key, other = drawn.sample(sorted(values), 2)
        value = values[key]
        kind = drawn.choice(KINDS)
        name, start, stop = key.encode(), place(), place()
        unit = drawn.choice(([], [b"BIT"], [b"BYTE"]))
        expected: object = ...
        match kind:
            case "setrange":
                words = [b"SETRANGE", name, b"%d" % start, new := data()]
                value.extend(bytes(max(0, start + len(new) - len(value))))
                value[start : start + len(new)] = new
                expected = len(value)
            case "append":
                if len(value) > reach:
                    continue
                words = [b"APPEND", name, new := data()]
                value += new
                expected = len(value)
            case "getrange":
                words = [b"GETRANGE", name, b"%d" % start, b"%d" % stop]
                expected = bytes(value[start : stop + 1])
            case "setbit":
                words = [b"SETBIT", name, b"%d" % (start * 8 + stop % 8), b"%d" % (stop & 1)]
                value.extend(bytes(max(0, start + 1 - len(value))))
                mask = 0x80 >> stop % 8
                value[start] = value[start] | mask if stop & 1 else value[start] & ~mask
            case "getbit":
                words = [b"GETBIT", name, b"%d" % (start * 8 + stop % 8)]
                byte = value[start] if start < len(value) else 0
                expected = byte >> (7 - stop % 8) & 1
            case "bitcount":
                words = [b"BITCOUNT", name, *numbers(start, stop), *unit]
            case "bitpos":
                words = [b"BITPOS", name, b"%d" % drawn.randrange(2), *numbers(start)]
                if drawn.random() < 0.7:
                    words += [*numbers(stop), *unit]
            case "bitfield" | "field":
                words = [b"BITFIELD_RO", name] if kind == "field" else [b"BITFIELD", name]
                for _ in range(drawn.randrange(1, 4)):
                    width = b"%s%d" % (drawn.choice((b"u", b"i")), drawn.randrange(1, 64))
                    at = b"%d" % (place() * 8 + drawn.randrange(8))
                    if kind == "bitfield" and drawn.random() < 0.6:
                        order = drawn.choice((b"SET", b"INCRBY"))
                        words += [b"OVERFLOW", drawn.choice((b"FAIL", b"SAT", b"WRAP"))]
                        words += [order, width, at, b"%d" % drawn.randrange(-(2**40), 2**40)]
                    else:
                        words += [b"GET", width, at]
            case "bitop":
                operation = drawn.choice((b"AND", b"OR", b"XOR"))
                words = [b"BITOP", operation, name, *drawn.choices([b"a", b"b", b"c"], k=2)]
            case "set":
                words = [b"SET", name, drawn.choice((b"17", data()))]
            case "rename" if values[key]:
                words = [b"RENAME", name, other.encode()]
            case "copy" if values[key]:
                words = [b"COPY", name, other.encode(), b"REPLACE"]
            case "strlen":
                words, expected = [b"STRLEN", name], len(value)
            case "getdel":
                words, expected = [b"GETDEL", name], bytes(value) or None
            case "incr":
                words = [drawn.choice((b"INCR", b"INCRBYFLOAT")), name, b"1"]
                words = words[:2] if words[0] == b"INCR" else words
            case "undone":
                mark = client.engine.space.mark()
                entry, new_key = client.engine.space.find_or_make(
                    client.session.database, name, STRING
                )
                changed = client.engine.space.value(entry)
                changed.write(start, data())
                changed.flush()
                client.engine.space.save(client.session.database, name, entry, new_key)
                client.engine.space.undo(mark)
                continue
            case _:
                continue
        reply = client(*words)
        assert reply == whole(*words), words
        assert expected is ... or reply == expected, words
        for one, known in values.items():
            stored = client("GET", one)
            assert stored == whole("GET", one), words
            if kind in ("setrange", "append", "setbit"):
                assert stored == (bytes(known) or None), words
            values[one] = bytearray(stored or b"")
        assert check(client.engine.db) == []
        checked += any(
            Entry.decode(one).version for _, one in client.engine.db.iterator(prefix=b"k")
        )
        if drawn.random() < 0.2:
            while client.engine.tidy_once():
                client.engine.commit()
            client.engine.commit()
    assert checked > 30


def test_a_bit_far_away_is_one_chunk() -> None:
    with an_engine() as engine:
        client = Client(engine)
        client.plays(
            ("SETBIT b 4294967295 1", 0),
            ("SETRANGE s 536870911 x", 536870912),
            ("STRLEN b", 536870912),
            ("GETBIT b 4294967295", 1),
            ("GETBIT b 4294967294", 0),
            ("GETRANGE s -3 -1", b"\0\0x"),
            ("BITCOUNT b", 1),
            ("BITPOS b 1", 4294967295),
            ("BITPOS b 0", 0),
            ("BITPOS b 0 -1 -1", 4294967288),
            ("BITFIELD b GET u8 4294967288", [1]),
            ("APPEND s y", "ERR string exceeds maximum allowed size (proto-max-bulk-len)"),
        )
        assert sum(len(value) for _, value in engine.db.iterator(prefix=ELEMENT)) == 2 * CHUNK
        assert check(engine.db) == []


def test_every_command_on_strings_takes_one_in_chunks() -> None:
    long = b"".join(b"%04d" % number for number in range(100))
    with an_engine() as engine:
        client = in_chunks(engine, 8, 11)
        for key in ("s", "s1", "s2", "s3", "s4"):
            client("SET", key, long)
        client("RPUSH", "l", "s1", "s2")
        client.plays(
            ("MGET s x l", [long, None, None]),
            ("GETEX s EX 1000", long),
            ("TTL s", 1000),
            ("SET s1 b KEEPTTL GET", long),
            ("GETSET s2 brief", long),
            ("GETDEL s3", long),
            ("SORT l BY nosort GET *", [b"b", b"brief"]),
            ("TYPE s", b"string"),
            ("OBJECT ENCODING s", b"raw"),
            ("INCR s", "ERR value is not an integer or out of range"),
            ("INCRBYFLOAT s 1", "ERR value is not a valid float"),
            ("PFADD s x", "WRONGTYPE Key is not a valid HyperLogLog string value."),
            ("LPUSH s x", "WRONGTYPE Operation against a key holding the wrong kind of value"),
            ("COPY s copied", 1),
            ("TTL copied", 1000),
            ("MOVE copied 1", 1),
            ("SWAPDB 0 1", b"OK"),
            ("GET copied", long),
            ("SWAPDB 0 1", b"OK"),
            ("SETRANGE s 0 x", 400),
            ("TTL s", 1000),
            ("PERSIST s", 1),
            (
                "EVAL \"return {#redis.call('get',KEYS[1]),redis.call('getbit',KEYS[1],9)}\" 1 s",
                [400, 0],
            ),
            ("MULTI", b"OK"),
            ("APPEND s end", b"QUEUED"),
            ("GETRANGE s -5 -1", b"QUEUED"),
            ("EXEC", [403, b"99end"]),
            ("RENAME s t", b"OK"),
            ("BITOP NOT n t", 403),
            ("BITOP XOR z n t", 403),
            ("BITCOUNT z", 403 * 8),
            ("PFADD hll a", 1),
            ("DEL t", 1),
            ("UNLINK s4", 1),
        )
        assert client("MEMORY USAGE z") > 0
        assert check(engine.db) == []
        client("FLUSHALL")
        while engine.tidy_once():
            engine.commit()
        engine.commit()
        assert check(engine.db) == []
        assert list(engine.db.iterator(prefix=ELEMENT)) == []


def test_a_hyperloglog_in_chunks_is_added_to() -> None:
    with an_engine(hll_sparse_most=0) as engine, an_engine(hll_sparse_most=0) as other:
        client, whole = in_chunks(engine, 8, 11), Client(other)
        for line in ("PFADD h a b c", "PFADD h d", "PFCOUNT h", "PFMERGE m h", "PFCOUNT m h"):
            assert client(line) == whole(line)
        assert client("GET m") == whole("GET m")
        assert check(engine.db) == []


def test_the_second_format_is_written_with_the_first_string_in_chunks() -> None:
    env = MemoryEnv()
    with an_engine(env) as engine:
        client = Client(engine)
        client("SETRANGE", "s", str(LONGEST_WHOLE - 1), "x")
        assert engine.db.get(FORMAT_KEY) == FORMAT
        client("APPEND", "s", "x")
        assert engine.db.get(FORMAT_KEY) == FORMAT_2
        engine.space.probe()
        engine.commit()
        client("DEL", "s")
        assert engine.db.get(FORMAT_KEY) == FORMAT_2
    with an_engine(env) as engine:
        assert Client(engine)("SET", "s", "x") == b"OK"


def test_a_long_string_of_the_first_format_is_read_and_changed() -> None:
    old = b"0123456789" * 100
    with an_engine() as engine:
        client = in_chunks(engine, 8, 1 << 40)
        client("SET", "s", old, "EX", "1000")
        assert engine.db.get(FORMAT_KEY) == FORMAT
        engine.space.longest_whole = 11
        client.plays(("GETRANGE s 10 12", b"012"), ("GETBIT s 3", 1), ("STRLEN s", 1000))
        assert engine.db.get(FORMAT_KEY) == FORMAT
        client.plays(("SETRANGE s 5 abc", 1000), ("TTL s", 1000))
        assert client("GET", "s") == b"01234abc89" + old[10:]
        assert engine.db.get(FORMAT_KEY) == FORMAT_2
        assert check(engine.db) == []


def test_a_failed_command_leaves_a_string_whole() -> None:
    with an_engine() as engine:
        client = in_chunks(engine, 8, 11)
        client("SET", "s", "0123456789")
        lines = (
            "MULTI",
            "APPEND s ab",
            "EVAL \"redis.call('append',KEYS[1],'x') error('e')\" 1 s",
            "EXEC",
        )
        for line in lines:
            client(line)
        assert client("GET", "s") == b"0123456789abx"
        assert check(engine.db) == []


def test_every_crash_leaves_a_string_as_before_or_after_a_command() -> None:
    commands = [
        ("SET", "s", "0123456789" * 3),
        ("SETRANGE", "s", "28", "abcdefghijklmnopqrstuvwxyz"),
        ("SETBIT", "s", "1000", "1"),
        ("RENAME", "s", "t"),
        ("SETRANGE", "t", "3", "x" * 40),
        ("COPY", "t", "s"),
        ("SET", "t", "brief"),
        ("APPEND", "t", "y" * 50),
    ]
    states: list[list[object]] = [[None, None]]
    with an_engine() as engine:
        client = in_chunks(engine, 8, 11)
        for words in commands:
            client(*words)
            states.append(client("MGET", "s", "t"))

    def workload(env: RecordingEnv) -> None:
        with an_engine(env) as engine:
            client = in_chunks(engine, 8, 11)
            for words in commands:
                client(*words)
                engine.tidy_once(1)
                engine.commit()

    def look(state: CrashState) -> None:
        with an_engine(state.env) as engine:
            assert check(engine.db) == []
            assert Client(engine)("MGET", "s", "t") in states
            while engine.tidy_once():
                engine.commit()
            engine.commit()
            assert check(engine.db) == []

    report = explore(workload, look, points=30)
    assert report.violations == [], str(report)

"""BITFIELD."""

from __future__ import annotations

import pytest
from serving import Client

NO_TYPE = (
    "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64"
    " is."
)
NO_OFFSET = "ERR bit offset is not an integer or out of range"


def test_operations_run_one_after_the_other(client: Client) -> None:
    client.plays(
        ("BITFIELD k GET u8 0", [0]),
        ("EXISTS k", 0),
        ("BITFIELD k SET u8 0 255 GET i8 0 GET u4 4 INCRBY u8 #1 10", [0, -1, 15, 10]),
        ("GET k", b"\xff\x0a"),
        ("BITFIELD k SET i5 2 -3 GET i5 2", [-1, -3]),
        ("BITFIELD_RO k GET u4 0 GET u63 100", [15, 0]),
        ("BITFIELD k", []),
        ("BITFIELD k SET i64 #1 -1 GET i64 64", [0, -1]),
        ("STRLEN k", 16),
    )


def test_overflow(client: Client) -> None:
    client.plays(
        ("BITFIELD k SET u8 0 250 INCRBY u8 0 10", [0, 4]),
        ("BITFIELD k OVERFLOW SAT INCRBY u8 0 1000 INCRBY u8 0 -1000", [255, 0]),
        ("BITFIELD k OVERFLOW FAIL INCRBY u8 0 -1 INCRBY u8 0 1", [None, 1]),
        ("BITFIELD k SET i8 8 127 INCRBY i8 8 1", [0, -128]),
        ("BITFIELD k OVERFLOW SAT INCRBY i8 8 -1 INCRBY i8 8 500", [-128, 127]),
        ("BITFIELD k OVERFLOW FAIL INCRBY i8 8 1 OVERFLOW WRAP INCRBY i8 8 1", [None, -128]),
        ("BITFIELD k SET u4 0 -1 GET u4 0", [0, 15]),
        ("BITFIELD k OVERFLOW SAT SET i4 0 100 GET i4 0", [-1, 7]),
        ("BITFIELD k SET i64 16 9223372036854775807 INCRBY i64 16 1", [0, -(2**63)]),
        ("BITFIELD k OVERFLOW SAT INCRBY i64 16 -1", [-(2**63)]),
    )


def test_failed_operations_alone_change_no_number(client: Client) -> None:
    client.plays(
        ("SET k a", b"OK"),
        ("BITFIELD k OVERFLOW FAIL SET u8 0 256", [None]),
        ("GET k", b"a"),
    )


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        ("BITFIELD k GET u64 0", NO_TYPE),
        ("BITFIELD k GET i65 0", NO_TYPE),
        ("BITFIELD k GET 8 0", NO_TYPE),
        ("BITFIELD k GET u0 0", NO_TYPE),
        ("BITFIELD k GET u8", "ERR syntax error"),
        ("BITFIELD k PUT u8 0 1", "ERR syntax error"),
        ("BITFIELD k SET u8 -1 1", NO_OFFSET),
        ("BITFIELD k SET u8 #4294967295 1", NO_OFFSET),
        ("BITFIELD k SET u8 0 x", "ERR value is not an integer or out of range"),
        ("BITFIELD k OVERFLOW NONE SET u8 0 1", "ERR Invalid OVERFLOW type specified"),
        ("BITFIELD_RO k SET u8 0 1", "ERR BITFIELD_RO only supports the GET subcommand"),
    ],
)
def test_errors(client: Client, request_: str, error: str) -> None:
    assert client(request_) == error
    assert client("EXISTS k") == 0


def test_another_kind_is_refused(client: Client) -> None:
    wrong = "WRONGTYPE Operation against a key holding the wrong kind of value"
    client.plays(("RPUSH l a", 1), ("BITFIELD l GET u8 0", wrong), ("BITFIELD l SET u8 0 1", wrong))


def test_keys_with_what_is_done_to_them(client: Client) -> None:
    reads, writes = [b"RO", b"access"], [b"RW", b"access", b"update"]
    client.plays(
        ("COMMAND GETKEYSANDFLAGS BITFIELD k OVERFLOW SAT GET u8 0", [[b"k", reads]]),
        ("COMMAND GETKEYSANDFLAGS BITFIELD k GET u8 0 SET u8 0 1", [[b"k", writes]]),
        ("COMMAND GETKEYSANDFLAGS BITFIELD k GET u8", [[b"k", writes]]),
    )

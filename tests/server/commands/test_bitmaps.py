"""Bitmaps."""

from __future__ import annotations

import pytest
from serving import Client

WRONG = "WRONGTYPE Operation against a key holding the wrong kind of value"
NO_INT = "ERR value is not an integer or out of range"
NO_OFFSET = "ERR bit offset is not an integer or out of range"
NO_BIT = "ERR bit is not an integer or out of range"


def test_single_bits(client: Client) -> None:
    client.plays(
        ("GETBIT k 7", 0),
        ("SETBIT k 7 1", 0),
        ("SETBIT k 7 1", 1),
        ("GET k", b"\x01"),
        ("GETBIT k 7", 1),
        ("GETBIT k 100", 0),
        ("SETBIT k 16 0", 0),
        ("GET k", b"\x01\0\0"),
        ("SETBIT k 7 0", 1),
        ("GET k", b"\0\0\0"),
    )


def test_a_changed_bit_keeps_the_expiry(client: Client) -> None:
    client.plays(("SET k a EX 100", b"OK"), ("SETBIT k 0 1", 0), ("TTL k", 100))


def test_an_unchanged_bit_is_no_change_for_those_who_watch(client: Client) -> None:
    client.plays(
        ("SETBIT k 3 1", 0),
        ("WATCH k", b"OK"),
        ("SETBIT k 3 1", 1),
        ("MULTI", b"OK"),
        ("PING", b"QUEUED"),
        ("EXEC", [b"PONG"]),
        ("WATCH k", b"OK"),
        ("SETBIT k 3 0", 1),
        ("MULTI", b"OK"),
        ("PING", b"QUEUED"),
        ("EXEC", None),
    )


def test_counting(client: Client) -> None:
    client.plays(
        ("SET k foobar", b"OK"),
        ("BITCOUNT k", 26),
        ("BITCOUNT k 0 0", 4),
        ("BITCOUNT k 1 1 BYTE", 6),
        ("BITCOUNT k 5 30 bit", 17),
        ("BITCOUNT k -3 -1 BIT", 1),
        ("BITCOUNT k -1 -3", 0),
        ("BITCOUNT k 10 20", 0),
        ("BITCOUNT none", 0),
    )


def test_finding(client: Client) -> None:
    client("SET", "k", b"\x00\xff\xf0")
    client("SET", "ones", b"\xff\xff")
    client.plays(
        ("BITPOS k 1", 8),
        ("BITPOS k 0 1", 20),
        ("BITPOS k 1 2 -1 BYTE", 16),
        ("BITPOS k 1 7 15 BIT", 8),
        ("BITPOS k 0 8 19 BIT", -1),
        ("BITPOS k 1 5", -1),
        ("BITPOS ones 0", 16),
        ("BITPOS ones 0 0", 16),
        ("BITPOS ones 0 0 -1", -1),
        ("BITPOS none 0", 0),
        ("BITPOS none 1", -1),
    )


def test_combining(client: Client) -> None:
    client.plays(
        ("SET a abc EX 100", b"OK"),
        ("SET b ab", b"OK"),
        ("BITOP AND to a b none", 3),
        ("GET to", b"\0\0\0"),
        ("BITOP or to a b none", 3),
        ("GET to", b"abc"),
        ("BITOP XOR to a b", 3),
        ("GET to", b"\0\0c"),
        ("BITOP NOT a b", 2),
        ("GET a", b"\x9e\x9d"),
        ("TTL a", -1),
        ("BITOP AND a none", 0),
        ("EXISTS a", 0),
        ("RPUSH list x", 1),
        ("BITOP OR list b", 2),
        ("GET list", b"ab"),
    )


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        ("SETBIT k -1 1", NO_OFFSET),
        ("SETBIT k 4294967296 1", NO_OFFSET),
        ("SETBIT k #1 1", NO_OFFSET),
        ("SETBIT k 1 2", NO_BIT),
        ("SETBIT k 1 x", NO_BIT),
        ("GETBIT k x", NO_OFFSET),
        ("GETBIT list 1", WRONG),
        ("SETBIT list 1 1", WRONG),
        ("BITCOUNT list", WRONG),
        ("BITCOUNT text 1", "ERR syntax error"),
        ("BITCOUNT text 1 x", NO_INT),
        ("BITCOUNT text 1 2 WORD", "ERR syntax error"),
        ("BITPOS k 2", "ERR The bit argument must be 1 or 0."),
        ("BITPOS text 1 x", NO_INT),
        ("BITPOS text 1 1 2 WORD", "ERR syntax error"),
        ("BITPOS text 1 1 2 BIT 3", "ERR syntax error"),
        ("BITOP NOT to a b", "ERR BITOP NOT must be called with a single source key."),
        ("BITOP NAND to a b", "ERR syntax error"),
        ("BITOP AND to list", WRONG),
    ],
)
def test_errors(client: Client, request_: str, error: str) -> None:
    client("RPUSH list x")
    client("SET text foo")
    assert client(request_) == error
    assert client("EXISTS k to") == 0

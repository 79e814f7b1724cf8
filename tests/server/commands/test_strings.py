"""Strings."""

from __future__ import annotations

import time

import pytest
from serving import Client

WRONG = "WRONGTYPE Operation against a key holding the wrong kind of value"
NO_INT = "ERR value is not an integer or out of range"


def test_set_and_its_options(client: Client) -> None:
    client.plays(
        ("SET k v", b"OK"),
        ("GET k", b"v"),
        ("SET k w NX", None),
        ("SET k w XX", b"OK"),
        ("SET new w XX", None),
        ("SET k x GET", b"w"),
        ("SET new x NX GET", None),
        ("SET new y NX GET", b"x"),
        ("SET new y XX GET", b"x"),
        ("GET new", b"y"),
        ("SET k v EX 100", b"OK"),
        ("TTL k", 100),
        ("SET k w KEEPTTL", b"OK"),
        ("TTL k", 100),
        ("SET k w", b"OK"),
        ("TTL k", -1),
        ("SET k v PX 100000", b"OK"),
        ("TTL k", 100),
        (f"SET k v EXAT {int(time.time()) + 100}", b"OK"),
        ("EXISTS k", 1),
        ("SET k v PXAT 1", b"OK"),
        ("EXISTS k", 0),
        ("RPUSH list 1", 1),
        ("SET list v GET", WRONG),
        ("SET list v", b"OK"),
        ("TYPE list", b"string"),
    )


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        ("SET k v NX XX", "ERR syntax error"),
        ("SET k v EX", "ERR syntax error"),
        ("SET k v EX 1 PX 1", "ERR syntax error"),
        ("SET k v EX 1 KEEPTTL", "ERR syntax error"),
        ("SET k v NOW", "ERR syntax error"),
        ("SET k v EX 0", "ERR invalid expire time in 'set' command"),
        ("SET k v PX 9223372036854775807", "ERR invalid expire time in 'set' command"),
        ("SET k v EX x", NO_INT),
        ("SETEX k 0 v", "ERR invalid expire time in 'setex' command"),
        ("PSETEX k -1 v", "ERR invalid expire time in 'psetex' command"),
        ("GETEX k EX x y", "ERR syntax error"),
        ("GETEX k FOO", "ERR syntax error"),
        ("MSET k", "ERR wrong number of arguments for 'mset' command"),
        ("MSET k v k", "ERR wrong number of arguments for 'mset' command"),
        ("SETRANGE k -1 x", "ERR offset is out of range"),
        (
            "SETRANGE k 536870912 x",
            "ERR string exceeds maximum allowed size (proto-max-bulk-len)",
        ),
        ("INCRBY k 1.5", NO_INT),
        ("DECRBY k -9223372036854775808", "ERR decrement would overflow"),
        ("INCRBYFLOAT k x", "ERR value is not a valid float"),
        ("GET", "ERR wrong number of arguments for 'get' command"),
    ],
)
def test_errors(client: Client, request_: str, error: str) -> None:
    assert client(request_) == error
    assert client("EXISTS k") == 0


def test_many_at_once(client: Client) -> None:
    client.plays(
        ("MSET a 1 b 2 a 3", b"OK"),
        ("MSETNX c 1 a 2", 0),
        ("MSETNX c 1 d 2", 1),
        ("SADD set x", 1),
        ("MGET a b none set d", [b"3", b"2", None, None, b"2"]),
        ("DBSIZE", 5),
    )


def test_getting_with_a_change(client: Client) -> None:
    client.plays(
        ("GETSET k 1", None),
        ("GETSET k 2", b"1"),
        ("SETNX k 3", 0),
        ("SETEX k 50 v", b"OK"),
        ("GETEX k", b"v"),
        ("TTL k", 50),
        ("GETEX k EX 70", b"v"),
        ("TTL k", 70),
        ("GETEX k PERSIST", b"v"),
        ("TTL k", -1),
        ("GETEX k PXAT 1", b"v"),
        ("GETEX k", None),
        ("SETNX k 3", 1),
        ("GETDEL k", b"3"),
        ("GETDEL k", None),
    )


def test_parts(client: Client) -> None:
    client.plays(
        ("APPEND k Hello", 5),
        ("APPEND k ' World'", 11),
        ("STRLEN k", 11),
        ("GETRANGE k 0 4", b"Hello"),
        ("GETRANGE k -5 -1", b"World"),
        ("SUBSTR k 3 100", b"lo World"),
        ("GETRANGE k 5 3", b""),
        ("GETRANGE k -1 -5", b""),
        ("GETRANGE none 0 -1", b""),
        ("SETRANGE k 6 Redis", 11),
        ("GET k", b"Hello Redis"),
        ("SETRANGE pad 3 x", 4),
        ("GET pad", b"\0\0\0x"),
        ("SETRANGE none 3 ''", 0),
        ("EXISTS none", 0),
        ("STRLEN none", 0),
    )


def test_numbers(client: Client) -> None:
    client.plays(
        ("INCR n", 1),
        ("INCRBY n 41", 42),
        ("DECR n", 41),
        ("DECRBY n -9", 50),
        ("EXPIRE n 100", 1),
        ("INCR n", 51),
        ("TTL n", 100),
        ("INCRBYFLOAT n 0.5", b"51.5"),
        ("INCR n", NO_INT),
        ("INCRBYFLOAT f 0.1", b"0.1"),
        ("INCRBYFLOAT f 0.2", b"0.3"),
        ("INCRBYFLOAT f -3e2", b"-299.7"),
        ("SET max 9223372036854775807", b"OK"),
        ("INCR max", "ERR increment or decrement would overflow"),
        ("SET text x", b"OK"),
        ("INCRBYFLOAT text 1", "ERR value is not a valid float"),
        ("SADD set x", 1),
        ("INCR set", WRONG),
        ("APPEND set x", WRONG),
        ("GET set", WRONG),
        ("GETDEL set", WRONG),
    )


def test_the_last_of_several_times_counts(client: Client) -> None:
    client.plays(
        ("SET k v EXAT 4000000000 EXAT 5000000000", b"OK"),
        ("EXPIRETIME k", 5000000000),
        ("SET k v EX x EX 100", b"OK"),
        ("TTL k", 100),
        ("SET k v KEEPTTL KEEPTTL NX NX", None),
        ("SET k v EX 1 PX 1", "ERR syntax error"),
        ("SET k v KEEPTTL EX 1", "ERR syntax error"),
        ("GETEX k PXAT 1 PXAT 6000000000000", b"v"),
        ("EXPIRETIME k", 6000000000),
        ("GETEX k PERSIST PERSIST", b"v"),
        ("TTL k", -1),
        ("GETEX k EX 1 PERSIST", "ERR syntax error"),
        ("GETEX k EX", "ERR syntax error"),
    )

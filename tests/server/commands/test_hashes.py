"""Hashes."""

from __future__ import annotations

import pytest
from serving import Client

WRONG = "WRONGTYPE Operation against a key holding the wrong kind of value"


def test_fields(client: Client) -> None:
    client.plays(
        ("HSET h f 1 g 2", 2),
        ("HSET h f 3 i 4", 1),
        ("HMSET h j 5", b"OK"),
        ("HSETNX h f 9", 0),
        ("HSETNX h k '' ", 1),
        ("HGET h f", b"3"),
        ("HGET h none", None),
        ("HGET none f", None),
        ("HMGET h f none k", [b"3", None, b""]),
        ("HMGET none f g", [None, None]),
        ("HLEN h", 5),
        ("HSTRLEN h f", 1),
        ("HSTRLEN h none", 0),
        ("HEXISTS h k", 1),
        ("HEXISTS h none", 0),
        ("HKEYS h", [b"f", b"g", b"i", b"j", b"k"]),
        ("HVALS h", [b"3", b"2", b"4", b"5", b""]),
        ("HDEL h f none g f", 2),
        ("HGETALL h", [b"i", b"4", b"j", b"5", b"k", b""]),
        ("HDEL h i j k", 3),
        ("EXISTS h", 0),
        ("HDEL h f", 0),
        ("HGETALL h", []),
        ("HLEN h", 0),
    )


def test_one_command_sees_its_own_fields(client: Client) -> None:
    assert client("HSET h f 1 f 2 f 3") == 1
    assert (client("HLEN h"), client("HGET h f")) == (1, b"3")


def test_numbers(client: Client) -> None:
    client.plays(
        ("HINCRBY h n 5", 5),
        ("HINCRBY h n -7", -2),
        ("HINCRBYFLOAT h n 0.1", b"-1.9"),
        ("HINCRBY h n 1", "ERR hash value is not an integer"),
        ("HINCRBY h n x", "ERR value is not an integer or out of range"),
        ("HSET h t x m 9223372036854775807", 2),
        ("HINCRBYFLOAT h t 1", "ERR hash value is not a float"),
        ("HINCRBYFLOAT h n x", "ERR value is not a valid float"),
        ("HINCRBY h m 1", "ERR increment or decrement would overflow"),
        ("HLEN h", 3),
    )


@pytest.mark.parametrize(
    "request_",
    ["HSET k f v", "HGET k f", "HMGET k f", "HLEN k", "HDEL k f", "HGETALL k", "HKEYS k", "HVALS k",
     "HEXISTS k f", "HSTRLEN k f", "HINCRBY k f 1", "HINCRBYFLOAT k f 1", "HSETNX k f v",
     "HSCAN k 0", "HRANDFIELD k", "HMSET k f v"],
)  # fmt: skip
def test_another_type(client: Client, request_: str) -> None:
    client("SET k v")
    assert client(request_) == WRONG
    assert client("GET k") == b"v"


def test_scan(client: Client) -> None:
    fields = {b"f%02d" % n: b"%d" % n for n in range(25)}
    client("HSET", b"h", *(word for pair in fields.items() for word in pair))
    found: dict[bytes, bytes] = {}
    cursor, steps = b"0", 0
    while steps == 0 or cursor != b"0":
        cursor, items = client("HSCAN", "h", cursor)
        found |= dict(zip(items[::2], items[1::2], strict=True))
        steps += 1
    assert (found, steps) == (fields, 3)
    client.plays(
        ("HSCAN h 0 MATCH f0[12] COUNT 100", [b"0", [b"f01", b"1", b"f02", b"2"]]),
        ("HSCAN none 0", [b"0", []]),
        ("HSCAN h 0 TYPE string", "ERR syntax error"),
        ("HSCAN h x", "ERR invalid cursor"),
    )


@pytest.mark.parametrize("size", [20, 1500])
def test_random_fields(client: Client, size: int) -> None:
    fields = {b"f%d" % n: b"%d" % n for n in range(size)}
    client("HSET", b"h", *(word for pair in fields.items() for word in pair))
    assert client("HRANDFIELD h") in fields
    for count in (1, 15, size + 5):
        chosen = client(f"HRANDFIELD h {count}")
        assert len(chosen) == len(set(chosen)) == min(count, size)
        assert set(chosen) <= set(fields)
    repeated = client(f"HRANDFIELD h -{2 * size}")
    assert len(repeated) == 2 * size
    assert len(set(repeated)) > 1
    items = client("HRANDFIELD h 3 WITHVALUES")
    assert all(fields[field] == value for field, value in zip(items[::2], items[1::2], strict=True))
    client.plays(
        ("HRANDFIELD none", None),
        ("HRANDFIELD none 3", []),
        ("HRANDFIELD h 0", []),
        ("HRANDFIELD h x", "ERR value is not an integer or out of range"),
        (
            "HRANDFIELD h -9223372036854775808",
            "ERR value is out of range, value must between -9223372036854775807 and"
            " 9223372036854775807",
        ),
        ("HRANDFIELD h 1 FOO", "ERR syntax error"),
    )


def test_wrong_numbers_of_arguments(client: Client) -> None:
    client.plays(
        ("HSET h f", "ERR wrong number of arguments for 'hset' command"),
        ("HSET h f v g", "ERR wrong number of arguments for 'hset' command"),
        ("HMSET h f v g", "ERR wrong number of arguments for 'hmset' command"),
        ("EXISTS h", 0),
    )


def test_infinity_is_added_to_no_number(client: Client) -> None:
    client.plays(
        ("SET s v", b"OK"),
        ("HINCRBYFLOAT s f inf", "ERR value is NaN or Infinity"),
        ("HINCRBYFLOAT h f -inf", "ERR value is NaN or Infinity"),
        ("HINCRBYFLOAT h f 1e5000", "ERR value is not a valid float"),
        ("EXISTS h", 0),
    )

"""Hashes."""

from __future__ import annotations

import pytest
from serving import Client
from transcripts import Section, transcript

WRONG = "WRONGTYPE Operation against a key holding the wrong kind of value"


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


@transcript("hashes.txt")
def test_the_transcript(section: Section) -> None:
    section.play()

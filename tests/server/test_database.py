"""The record of a database."""

from __future__ import annotations

from lsmkv.server.database import Database
from lsmkv.server.encoding import KEY

HEAD = bytes((0, 0, 0, 7, 0, 0, 1, 0, 0, 0, 0, 0))
TAIL = bytes((0, 0, 0, 0, 0, 0, 0, 2)) + (2**64 + 5).to_bytes(16, "big")


def test_a_database_is_what_its_record_says() -> None:
    one = Database(3)
    one.load((7, 2**40, 2, 2**64 + 5))
    assert (one.name, one.encode()) == (b"!d\x03", HEAD + TAIL)
    assert one.prefix == KEY + bytes((0, 0, 0, 7))
    other = Database(3)
    assert other.decode(one.encode())
    assert (other.counts, other.prefix) == (one.counts, one.prefix)


def test_the_record_of_an_older_release_has_no_times() -> None:
    one = Database(3)
    assert not one.decode(HEAD)
    assert one.counts == (7, 2**40, 0, 0)

"""The record of a database."""

from __future__ import annotations

from lsmkv.server.database import Database
from lsmkv.server.encoding import KEY


def test_a_database_is_what_its_record_says() -> None:
    one = Database(3)
    one.load(7, 2**40)
    assert (one.name, one.encode()) == (b"!d\x03", bytes((0, 0, 0, 7, 0, 0, 1, 0, 0, 0, 0, 0)))
    assert one.prefix == KEY + bytes((0, 0, 0, 7))
    other = Database(3)
    other.decode(one.encode())
    assert (other.id, other.size, other.prefix) == (7, 2**40, one.prefix)

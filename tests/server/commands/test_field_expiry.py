"""HEXPIRE and its family, and what becomes of fields whose time has come."""

from __future__ import annotations

import random
import time

import pytest
from serving import Client
from transcripts import Section, transcript

from lsmkv.server.check import check
from lsmkv.server.encoding import FORMAT_2, FORMAT_KEY

FAR = 100_000
"""Milliseconds in which no test ends."""


def wait(client: Client) -> None:
    """Wait until what expires in a millisecond has expired."""
    soon = client.engine.space.now() + 2
    while client.engine.space.now() < soon:
        time.sleep(0.001)


def is_sound(client: Client) -> bool:
    client.engine.commit()
    return check(client.engine.db) == []


def test_a_field_is_gone_when_its_time_has_come(client: Client) -> None:
    client("HSET h a 1 b 2 c 3")
    client(f"HPEXPIRE h {FAR} FIELDS 2 a b")
    assert is_sound(client)
    assert client("HGET h a") == b"1"
    client("HPEXPIRE h 1 FIELDS 1 a")
    wait(client)
    client.plays(("HGET h a", None), ("HLEN h", 2), ("HTTL h FIELDS 3 a b c", [-2, 100, -1]))
    assert is_sound(client)
    client("HPEXPIRE h 1 FIELDS 1 b")
    wait(client)
    client.plays(("HKEYS h", [b"c"]), ("HTTL h FIELDS 1 c", [-1]))
    assert is_sound(client)


def test_a_hash_without_fields_is_gone(client: Client) -> None:
    client("HSET h a 1 b 2")
    client("HPEXPIRE h 1 FIELDS 2 a b")
    wait(client)
    client.plays(("EXISTS h", 0), ("DBSIZE", 0))
    assert is_sound(client)


def test_the_server_removes_fields_by_itself(client: Client) -> None:
    for number in range(10):
        client(f"HSET h{number} a 1 b 2 c 3")
        client(f"HPEXPIRE h{number} 1 FIELDS 3 a b c")
    wait(client)
    while client.engine.tidy_once(limit=2):
        assert is_sound(client)
    client.plays(("DBSIZE", 0), ("KEYS *", []))
    assert is_sound(client)


def test_events(client: Client) -> None:
    client("CONFIG SET notify-keyspace-events Eghx")
    other = Client(client.engine)
    other("PSUBSCRIBE *")
    client("HSET h a 1 b 2")
    client(f"HPEXPIRE h {FAR} FIELDS 1 a")
    client("HPERSIST h FIELDS 1 a")
    client("HPEXPIRE h 0 FIELDS 1 b")
    client("HPEXPIRE h 1 FIELDS 1 a")
    wait(client)
    client("HGET h a")
    client.engine.commit()
    heard = [message[2].rpartition(b":")[2] for message in other.received()]
    names = [b"hset", b"hexpire", b"hpersist", b"hdel", b"hexpire", b"hexpired", b"del"]
    assert heard == names


@pytest.mark.parametrize(
    "change",
    [
        "RENAME h g",
        "COPY h g",
        "MOVE h 1",
        "DEL h",
        "SET h x",
        "FLUSHDB",
        "SWAPDB 0 1",
        "HDEL h a b c",
        "HSET h a 9 b 9",
        "EXPIRE h 100",
        "HPERSIST h FIELDS 2 a b",
    ],
)
def test_the_store_is_sound_after_a_change(client: Client, change: str) -> None:
    client("HSET h a 1 b 2 c 3")
    client(f"HPEXPIRE h {FAR} FIELDS 1 a")
    client(f"HPEXPIRE h {2 * FAR} FIELDS 1 b")
    client(change)
    assert is_sound(client)
    client("HPEXPIRE h 1 FIELDS 1 a")
    wait(client)
    while client.engine.tidy_once():
        pass
    assert is_sound(client)


def test_a_hash_that_is_moved_for_its_removed_fields_keeps_times(client: Client) -> None:
    client("HSET", "h", *(word for n in range(1500) for word in (str(n), "x")))
    client(f"HPEXPIRE h {FAR} FIELDS 1 1400")
    client("HDEL", "h", *map(str, range(1100)))
    assert is_sound(client)
    assert client("HTTL h FIELDS 2 1400 1401") == [100, -1]


def test_random_changes_leave_the_store_sound(client: Client) -> None:
    """Compared with a dict that knows which fields have a time."""
    choices = random.Random(0)
    expiring: dict[str, bool] = {}
    for _ in range(600):
        fields = sorted({choices.choice("abcdef") for _ in range(3)})
        there = [field for field in fields if field in expiring]
        words = ("FIELDS", str(len(fields)), *fields)
        match choices.randrange(5):
            case 0:
                client("HSET", "h", *(word for field in fields for word in (field, "1")))
                expiring |= dict.fromkeys(fields, False)
            case 1:
                client("HDEL", "h", *fields)
                expiring = {field: at for field, at in expiring.items() if field not in fields}
            case 2:
                client("HPEXPIRE", "h", str(FAR * choices.randrange(1, 4)), *words)
                expiring |= dict.fromkeys(there, True)
            case 3:
                client("HPERSIST", "h", *words)
                expiring |= dict.fromkeys(there, False)
            case 4:
                client("HPEXPIRE", "h", choices.choice("01"), *words)
                wait(client)
                expiring = {field: at for field, at in expiring.items() if field not in fields}
        times = client("HTTL h FIELDS 6 a b c d e f")
        assert {
            field: time > 0 for field, time in zip("abcdef", times, strict=True) if time != -2
        } == expiring
        assert is_sound(client)


def test_the_first_expiry_of_a_field_is_another_format(client: Client) -> None:
    """Older releases would lose the times."""
    client("HSET h a 1")
    client.engine.commit()
    assert client.engine.db.get(FORMAT_KEY) != FORMAT_2
    client("HEXPIRE h 100 FIELDS 1 a")
    client.engine.commit()
    assert client.engine.db.get(FORMAT_KEY) == FORMAT_2


@transcript("field_expiry.txt")
def test_the_transcript(section: Section) -> None:
    section.play()

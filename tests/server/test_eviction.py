"""Which keys are evicted."""

from __future__ import annotations

from typing import Any

import pytest
from serving import Client, an_engine

from lsmkv.server.check import check


def evicted(client: Client, size: int) -> None:
    """Evict keys of so many bytes."""
    engine = client.engine
    engine.eviction.owe(size)
    while engine.evict_once():
        pass
    engine.commit()
    assert check(engine.db) == []


def keys_of(client: Client) -> set[int]:
    return {int(key) for key in client("KEYS *")}


def filled(client: Client, count: int = 1000) -> None:
    for number in range(count):
        client(f"SET {number:04} {'v' * 90}")


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-lfu"])
def test_keys_that_are_used_stay(policy: str) -> None:
    with an_engine(eviction=policy) as engine:
        client = Client(engine)
        filled(client)
        for number in range(200, 400):
            client(f"GET {number:04}")
        client("MGET " + " ".join(f"{number:04}" for number in range(400, 500)))
        evicted(client, 50_000)
        left = keys_of(client)
        assert 450 <= len(left) <= 510
        assert len(left & set(range(200, 500))) >= 240
        assert engine.space.evicted == 1000 - len(left)
        assert client(f"GET {min(left):04}") is not None


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-lfu"])
def test_of_keys_that_were_all_used_the_first_go(policy: str) -> None:
    with an_engine(eviction=policy) as engine:
        client = Client(engine)
        filled(client)
        for number in range(1000):
            for _ in range(1 + number // 100):
                client(f"GET {number:04}")
        evicted(client, 50_000)
        left = keys_of(client)
        assert 450 <= len(left) <= 510
        assert len(left & set(range(500, 1000))) >= 430
        assert len(left & set(range(750, 1000))) == 250


def test_any_key() -> None:
    with an_engine(eviction="allkeys-random") as engine:
        client = Client(engine)
        filled(client)
        evicted(client, 50_000)
        left = keys_of(client)
        assert 450 <= len(left) <= 510
        for start in range(0, 1000, 200):  # all over
            assert 20 < len(left & set(range(start, start + 200))) < 180


def test_the_soonest_to_expire() -> None:
    with an_engine(eviction="volatile-ttl") as engine:
        client = Client(engine)
        filled(client, 100)
        for number in range(100):
            client(f"EXPIRE {number:04} {1000 + 7 * number % 100}")
        for _ in range(2):  # the second time it begins with the soonest again
            evicted(client, 2000)
            client("SET 9999 v EX 900")
        left = keys_of(client) - {9999}
        times = {number: 7 * number % 100 for number in range(100)}
        gone = set(range(100)) - left
        assert 30 <= len(gone) <= 40
        assert max(times[number] for number in gone) < min(times[number] for number in left)


@pytest.mark.parametrize("kind", ["lru", "lfu", "random", "ttl"])
def test_volatile_policies_leave_other_keys(kind: str) -> None:
    with an_engine(eviction=f"volatile-{kind}") as engine:
        client = Client(engine)
        filled(client, 100)
        for number in range(50):
            client(f"EXPIRE {number:04} 1000")
        evicted(client, 100_000)
        assert keys_of(client) == set(range(50, 100))
        assert engine.eviction.owed == 0  # there is nothing more


def test_large_keys_of_all_databases_and_messages() -> None:
    with an_engine(eviction="allkeys-lru", events="Ee") as engine:
        client, listener = Client(engine), Client(engine)
        listener("PSUBSCRIBE __key*__:*")
        client.plays(("RPUSH list " + "v " * 500, 500), ("SELECT 3", b"OK"), ("SET k v", b"OK"))
        evicted(client, 5000)
        assert listener.received() == [
            *(b"pmessage", b"__key*__:*", b"__keyevent@0__:evicted", b"list"),
        ]
        assert client("DBSIZE") == 1
        evicted(client, 5000)
        assert client("DBSIZE") == 0
        assert engine.space.evicted == 2


def test_a_policy_can_be_changed(client: Client) -> None:
    assert not client.engine.eviction.evicts
    client("CONFIG SET maxmemory-policy allkeys-lfu")
    assert client.engine.eviction.evicts
    assert client.engine.space.usage is not None
    client("CONFIG SET maxmemory-policy volatile-ttl")
    assert client.engine.space.usage is None
    assert "must be one of the following" in client("CONFIG SET maxmemory-policy all")


def test_a_raw_store_is_not_evicted() -> None:
    settings: dict[str, Any] = {"eviction": "allkeys-lru"}
    with an_engine(raw=True, **settings) as engine:
        assert not engine.eviction.evicts

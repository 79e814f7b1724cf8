"""How many jobs wait, and how long the oldest does."""

from __future__ import annotations

import time

import pytest
from serving import Client

from lsmkv.server.queue_depths import QueueDepths


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def depths(client: Client, *names: bytes) -> QueueDepths:
    return QueueDepths(client.engine.space, list(names))


def test_the_usual_names_are_found(client: Client) -> None:
    for request in (
        "RPUSH rq:queue:default a b", "HSET rq:queue:none f v", "RPUSH dramatiq:mail a",
        "HSET dramatiq:mail.msgs a 1", "LPUSH huey.redis.tasks a", "RPUSH other a",
        r'SADD _kombu.binding.celery "celery\x06\x16\x06\x16celery" "x\x06\x16\x06\x16slow"',
        r'SADD _kombu.binding.celery.pidbox "\x06\x16\x06\x16celery@host.celery.pidbox"',
        "LPUSH celery a b c", r'LPUSH "celery\x06\x163" a', "LPUSH celeryx a", "SELECT 2",
        "RPUSH rq:queue:default a",
    ):  # fmt: skip
        assert client(request)
    queues = depths(client)
    queues.look()
    assert [one[:3] for one in queues.figures()] == [
        (0, "celery", 3), (0, "celery:3", 1), (0, "dramatiq:mail", 1), (0, "huey.redis.tasks", 1),
        (0, "rq:queue:default", 2), (0, "slow", 0), (2, "rq:queue:default", 1),
    ]  # fmt: skip
    client("DEL rq:queue:default")
    queues.look()
    assert queues.figures()[-1][:3] == (2, "rq:queue:default", 0)


def test_names_that_are_given(client: Client) -> None:
    queues = depths(client, b"one", b"two")
    queues.look()
    assert queues.figures() == [(0, "one", 0, 0.0), (0, "two", 0, 0.0)]
    client("ZADD one 1 a 2 b")
    client("SET two x")
    client("RPUSH rq:queue:default a")
    queues.look()
    assert queues.figures() == [(0, "one", 2, 0.0), (0, "two", 0, 0.0)]


@pytest.mark.parametrize(("push", "pop"), [("LPUSH", "RPOP"), ("RPUSH", "LPOP")])
def test_the_age_is_that_of_the_oldest(
    client: Client, clock: list[float], push: str, pop: str
) -> None:
    queues = depths(client, b"q")

    def age_after(*requests: str) -> float:
        for request in requests:
            client(request)
        queues.look()
        (found,) = queues.figures()
        clock[0] += 10
        return found.age

    assert age_after(f"{push} q a b") == 0
    assert age_after(f"{push} q c") == 10
    assert age_after() == 20
    assert age_after(f"{pop} q") == 30  # b
    assert age_after(f"{pop} q") == 30  # c, which came 10 s later
    assert age_after(f"{push} q d", f"{pop} q") == 0
    assert age_after() == 10
    assert age_after(f"{pop} q", f"{push} q e") == 0  # another list
    assert age_after(f"{pop} q") == 0
    assert queues.figures()[0].jobs == 0


def test_notes_have_a_bound(client: Client, clock: list[float]) -> None:
    queues = depths(client, b"q")
    for number in range(2000):
        client(f"RPUSH q {number}")
        queues.look()
        clock[0] += 1
    (queue,) = queues._queues.values()
    assert len(queue._notes) <= 256
    assert queues.figures()[0].age == 2000
    client("LTRIM q 1000 -1")
    queues.look()
    assert 900 < queues.figures()[0].age <= 1000

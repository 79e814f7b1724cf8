"""Clients that wait for elements."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from serving import Client, an_engine

from lsmkv.server.engine import Engine


@pytest.fixture
def engine() -> Iterator[Engine]:
    with an_engine() as engine:
        yield engine
        assert not engine.space.ready
        assert len(engine.space.awaited) == 0, "somebody still waits"


def waiting(engine: Engine, *requests: str) -> list[Client]:
    """Clients that are blocked, in this order."""
    clients = [Client(engine) for _ in requests]
    for client, request in zip(clients, requests, strict=True):
        assert client(request) is None
        assert client.session.wait is not None
    return clients


def test_only_what_was_to_be_skipped_is_not_answered(engine: Engine) -> None:
    pusher, client = Client(engine), Client(engine)
    assert client("CLIENT REPLY SKIP") is None
    assert client("BLPOP a 0") is None
    pusher("RPUSH a 1")
    assert client.received() is None
    assert client.session.wait is None
    assert client("ECHO heard") == b"heard"


@pytest.mark.parametrize(
    ("request_", "push", "reply"),
    [
        ("BLPOP a b 0", "RPUSH b 1 2", [b"b", b"1"]),
        ("BRPOP a b 0", "RPUSH b 1 2", [b"b", b"2"]),
        ("BLMOVE a to LEFT RIGHT 0", "RPUSH a 1 2", b"1"),
        ("BRPOPLPUSH a to 0", "RPUSH a 1 2", b"2"),
        ("BLMPOP 0 2 a b LEFT COUNT 5", "RPUSH b 1 2", [b"b", [b"1", b"2"]]),
        ("BZPOPMIN a b 0", "ZADD b 1 x 2 y", [b"b", b"x", b"1"]),
        ("BZPOPMAX a b 0", "ZADD b 1 x 2 y", [b"b", b"y", b"2"]),
        ("BZMPOP 0 2 a b MAX COUNT 5", "ZADD b 1 x", [b"b", [[b"x", b"1"]]]),
        ("BLPOP a 0", "LMOVE full a LEFT LEFT", [b"a", b"0"]),
        ("BLPOP a 0", "RENAME full a", [b"a", b"0"]),
        ("BLPOP a 0", "COPY full a", [b"a", b"0"]),
        ("BLPOP a 0", "SORT full STORE a", [b"a", b"0"]),
        ("BZPOPMIN a 0", "ZUNIONSTORE a 1 members", [b"a", b"m", b"1"]),
        ("XREAD BLOCK 0 STREAMS a b $ 0", "XADD b 1 f v", [[b"b", [[b"1-0", [b"f", b"v"]]]]]),
        ("XREAD BLOCK 0 STREAMS a 0", "COPY stream a", [[b"a", [[b"1-0", [b"f", b"v"]]]]]),
    ],
)
def test_what_comes_is_taken_at_once(
    engine: Engine, request_: str, push: str, reply: list[Any]
) -> None:
    pusher = Client(engine)
    pusher("RPUSH full 0")
    pusher("SADD members m")
    pusher("XADD stream 1 f v")
    (client,) = waiting(engine, request_)
    assert not isinstance(pusher(push), str)
    assert client.received() == reply
    assert client.session.wait is None
    direct = Client(engine)
    pusher("DEL a b to")
    pusher("RPUSH full 0")
    pusher(push)
    assert direct(request_) == reply  # it does not wait for what is there


def test_who_came_first_is_served_first(engine: Engine) -> None:
    first, second, third = waiting(engine, "BLPOP a 0", "BRPOP b a 0", "BLPOP a 0")
    pusher = Client(engine)
    assert pusher("RPUSH a 1 2") == 2
    assert (first.received(), second.received(), third.received()) == (
        [b"a", b"1"],
        [b"a", b"2"],
        None,
    )
    assert pusher("RPUSH b 3") == 1  # the second waits no more
    assert pusher("EXISTS a b") == 1
    assert pusher("RPUSH a 4") == 1
    assert third.received() == [b"a", b"4"]


def test_moves_make_others_ready(engine: Engine) -> None:
    last, middle = waiting(engine, "BLPOP c 0", "BLMOVE b c LEFT LEFT 0")
    (first,) = waiting(engine, "BLMOVE a b LEFT LEFT 0")
    Client(engine)("RPUSH a 1")
    assert (first.received(), middle.received(), last.received()) == (b"1", b"1", [b"c", b"1"])


def test_a_transaction_is_seen_as_a_whole(engine: Engine) -> None:
    (client,) = waiting(engine, "BLPOP a 0")
    pusher = Client(engine)
    pusher.plays(
        ("MULTI", b"OK"),
        ("RPUSH a 1", b"QUEUED"),
        ("RPUSH a 2", b"QUEUED"),
        ("LPOP a", b"QUEUED"),
        ("BLPOP none 0", b"QUEUED"),
        ("EXEC", [1, 2, b"1", None]),  # in a transaction nothing blocks
    )
    assert client.received() == [b"a", b"2"]


def test_databases_are_apart(engine: Engine) -> None:
    (client,) = waiting(engine, "BLPOP a 0")
    pusher = Client(engine)
    pusher.plays(("SELECT 1", b"OK"), ("RPUSH a other", 1))
    assert client.received() is None
    pusher.plays(("MOVE a 0", 1))
    assert client.received() == [b"a", b"other"]
    (client,) = waiting(engine, "BLPOP a 0")
    pusher.plays(("RPUSH a x", 1), ("SWAPDB 0 1", b"OK"))
    assert client.received() == [b"a", b"x"]


def test_a_target_of_another_type(engine: Engine) -> None:
    (client,) = waiting(engine, "BLMOVE a to LEFT LEFT 0")
    pusher = Client(engine)
    pusher.plays(("SET to x", b"OK"), ("RPUSH a 1", 1))
    assert client.received().startswith("WRONGTYPE")
    assert pusher("LRANGE a 0 -1") == [b"1"]


def test_unblock(engine: Engine) -> None:
    one, other = waiting(engine, "BLPOP a 0", "BLMOVE a b LEFT LEFT 0")
    ids = [client.session.id for client in (one, other)]
    Client(engine).plays(
        (f"CLIENT UNBLOCK {ids[0]}", 1),
        (f"CLIENT UNBLOCK {ids[0]}", 0),
        (f"CLIENT UNBLOCK {ids[1]} ERROR", 1),
        ("CLIENT UNBLOCK 999", 0),
        ("CLIENT UNBLOCK 1 MAYBE", "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"),
        ("RPUSH a 1", 1),
        ("LLEN a", 1),
    )
    assert one.received() is None
    assert other.received() == "UNBLOCKED client unblocked via CLIENT UNBLOCK"


def test_a_client_that_is_gone_takes_nothing(engine: Engine) -> None:
    gone, there = waiting(engine, "BLPOP a b 0", "BLPOP a 0")
    assert len(engine.waits) == 2
    engine.close_session(gone.session)
    assert len(engine.waits) == 1
    Client(engine)("RPUSH a 1")
    assert gone.received() is None
    assert there.received() == [b"a", b"1"]


@pytest.mark.usefixtures("runner")
async def test_timeouts() -> None:
    with an_engine() as engine:
        requests = ("BLPOP a 0.3", "BLMOVE a b LEFT LEFT 0.15", "BZMPOP 0.01 1 a MIN")
        clients = waiting(engine, *requests)
        woken: list[int] = []
        done = asyncio.Event()

        def unblocked(number: int) -> None:
            woken.append(number)
            if len(woken) == len(clients):
                done.set()

        for number, client in enumerate(clients):
            client.session.on_unblocked = lambda number=number: unblocked(number)
        served = Client(engine)
        assert served("BLPOP c 0.01") is None
        Client(engine)("RPUSH c 1")
        await done.wait()
        assert len(engine.waits) == 0
        assert served.received() == [b"c", b"1"]  # and no second reply
        raw = [client.session.take_output() for client in clients]
        assert [woken, *raw] == [[2, 1, 0], b"*-1\r\n", b"*-1\r\n", b"*-1\r\n"]


@pytest.mark.parametrize(
    ("timeout", "error"),
    [
        ("x", "ERR timeout is not a float or out of range"),
        ("-1", "ERR timeout is negative"),
        ("1e17", "ERR timeout is negative"),
        ("inf", "ERR timeout is negative"),
        ("nan", "ERR timeout is not a float or out of range"),
    ],
)
def test_timeouts_that_are_none(engine: Engine, timeout: str, error: str) -> None:
    client = Client(engine)
    for request in ("BLPOP a {}", "BLMPOP {} 1 a LEFT", "BRPOPLPUSH a b {}", "BZPOPMIN a {}"):
        assert client(request.format(timeout)) == error
        assert client.session.wait is None


def test_keys_of_another_type_are_refused(engine: Engine) -> None:
    client = Client(engine)
    client("SET a 1")
    for request in ("BLPOP b a 0", "BZPOPMIN a 0", "BLMOVE a b LEFT LEFT 0"):
        assert client(request).startswith("WRONGTYPE")


def test_all_clients_that_read_a_stream_get_what_comes(engine: Engine) -> None:
    after = ("$ $", "0 0", "5 5")
    one, other, later = waiting(engine, *(f"XREAD BLOCK 0 STREAMS x x {ids}" for ids in after))
    Client(engine)("XADD x 1-1 f v")
    expected = [[b"x", [[b"1-1", [b"f", b"v"]]]]]
    assert (one.received(), other.received(), later.received()) == (expected, expected, None)
    Client(engine)("XADD x 6-1 f v")
    assert later.received() == [[b"x", [[b"6-1", [b"f", b"v"]]]]]


def test_each_entry_goes_to_one_consumer_of_a_group(engine: Engine) -> None:
    adder = Client(engine)
    adder("XGROUP CREATE x g $ MKSTREAM")
    adder("XGROUP CREATE x h $")
    requests = [f"XREADGROUP GROUP {group} c COUNT 1 BLOCK 0 STREAMS x >" for group in "ggh"]
    first, second, third = waiting(engine, *requests)
    adder("XADD x 1-1 f v")
    expected = [[b"x", [[b"1-1", [b"f", b"v"]]]]]
    assert (first.received(), second.received(), third.received()) == (expected, None, expected)
    adder.plays(("XPENDING x g", [1, b"1-1", b"1-1", [[b"c", b"1"]]]), ("XADD x 2-1 f v", b"2-1"))
    assert second.received() == [[b"x", [[b"2-1", [b"f", b"v"]]]]]


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        ("DEL x", "UNBLOCKED the stream key no longer exists"),
        ("SET x v", "UNBLOCKED the stream key no longer exists"),
        ("RENAME x y", "UNBLOCKED the stream key no longer exists"),
        ("FLUSHALL", "UNBLOCKED the stream key no longer exists"),
        (
            "XGROUP DESTROY x g",
            "NOGROUP the consumer group this client was blocked on no longer exists",
        ),
    ],
)
def test_a_group_that_is_removed_ends_the_wait(engine: Engine, request_: str, error: str) -> None:
    remover = Client(engine)
    remover("XGROUP CREATE x g $ MKSTREAM")
    (reader,) = waiting(engine, "XREADGROUP GROUP g c BLOCK 0 STREAMS x >")
    (plain,) = waiting(engine, "XREAD BLOCK 0 STREAMS x $")
    remover(request_)
    assert reader.received() == error
    assert plain.received() is None  # it waits for the next stream of this name
    remover("DEL x")
    remover("XADD x 1-1 f v")
    assert plain.received() == [[b"x", [[b"1-1", [b"f", b"v"]]]]]


def test_a_stream_that_only_loses_entries_wakes_nobody(engine: Engine) -> None:
    writer = Client(engine)
    writer("XADD x 1-1 f v")
    writer("XADD x 9-1 f v")
    writer("XDEL x 9-1")
    (reader,) = waiting(engine, "XREAD BLOCK 0 STREAMS x 5")
    writer.plays(("EXPIRE x 1000", 1), ("XTRIM x MAXLEN 0", 1), ("XADD x 10-1 f v", b"10-1"))
    assert reader.received() == [[b"x", [[b"10-1", [b"f", b"v"]]]]]

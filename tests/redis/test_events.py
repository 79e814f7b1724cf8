"""Keyspace notifications: the same events in the same order as in Redis 7.0."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest
from redis_pair import Difference, Pair
from redis_requests import Step, feeding_request, random_steps, waiting_request
from resp_wire import Client

COUNT = int(os.environ.get("LSMKV_REDIS_COMMANDS", "6000"))
SEED = int(os.environ.get("LSMKV_REDIS_SEED", "0"))
_A_RUN = 100


class Listeners:
    """A client of each server that has subscribed to all events."""

    def __init__(self, pair: Pair, classes: str) -> None:
        self._pair = pair
        self._sides = [pair.redis, pair.lsmkv]
        for side in self._sides:
            side.control.ask("CONFIG", "SET", "notify-keyspace-events", classes)
        self._clients = [Client(side.server.address) for side in self._sides]
        for client in self._clients:
            client.ask("PSUBSCRIBE", "__key*__:*")

    def close(self) -> None:
        for side, client in zip(self._sides, self._clients, strict=True):
            client.close()
            side.control.ask("CONFIG", "SET", "notify-keyspace-events", "")

    def heard(self) -> list[list[tuple[object, object]]]:
        """Channels and messages that have come to each."""
        found = []
        for client in self._clients:
            client.send([b"PING", b"now"])
            messages = []
            while (reply := client.receive()).parts[0].value != b"pong":
                messages.append((reply.parts[2].value, reply.parts[3].value))
            found.append(messages)
        return found

    def compare(self, what: object) -> int:
        redis, lsmkv = self.heard()
        if redis != lsmkv:
            raise Difference(f"{what}\n  Redis: {redis}\n  lsmkv: {lsmkv}")
        return len(redis)


@pytest.fixture
def listeners(pair: Pair) -> Iterator[Listeners]:
    made = Listeners(pair, "KEA")
    yield made
    made.close()


def _disagreement(pair: Pair, listeners: Listeners, steps: list[Step]) -> tuple[int, str]:
    """The number of events until the servers disagree, and how; empty if they never do."""
    pair.clear()
    listeners.heard()
    count = 0
    for client, request in steps:
        pair.run(client, request)
        try:
            count += listeners.compare(request)
        except Difference as difference:
            return count, str(difference)
    return count, ""


def _fewest(pair: Pair, listeners: Listeners, steps: list[Step]) -> list[Step]:
    size = len(steps) // 2
    while size:
        at = 0
        while at < len(steps):
            fewer = steps[:at] + steps[at + size :]
            if _disagreement(pair, listeners, fewer)[1]:
                steps = fewer
            else:
                at += size
        size //= 2
    return steps


@pytest.mark.parametrize("streams", [False, True])
def test_random_requests_cause_the_same_events(
    pair: Pair, listeners: Listeners, streams: bool
) -> None:
    events = 0
    for seed in range(SEED, SEED + max(1, COUNT // 4 // _A_RUN)):
        steps = list(random_steps(random.Random(seed), _A_RUN, streams))
        count, difference = _disagreement(pair, listeners, steps)
        events += count
        if difference:
            fewest = _fewest(pair, listeners, steps)
            shown = "\n".join(f"client {client}: {request}" for client, request in fewest)
            difference = _disagreement(pair, listeners, fewest)[1]
            pytest.fail(f"seed {seed}:\n{shown}\n{difference}", pytrace=False)
    assert events > COUNT // 16


def test_clients_that_are_served_cause_the_same_events(pair: Pair, listeners: Listeners) -> None:
    events = 0
    for seed in range(SEED, SEED + max(60, COUNT // 100)):
        choices = random.Random(seed)
        pair.clear()
        listeners.heard()
        waiting = [waiting_request(choices) for _ in range(2)]
        steps = [(0, feeding_request(choices)) for _ in range(choices.randrange(1, 6))]
        pair.run_while_waiting(waiting, steps)
        events += listeners.compare(f"seed {seed}: {waiting} {steps}")
    assert events > 60

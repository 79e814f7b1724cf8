"""Connections, messages, settings and the table of commands: as in Redis 7.0.

Random requests of three clients go to both servers, and all that comes to any client is compared;
``LSMKV_REDIS_COMMANDS`` and ``LSMKV_REDIS_SEED`` as in ``test_differential.py``.
"""

from __future__ import annotations

import os
import random

import pytest
from redis_pair import Difference
from redis_servers import Lsmkv, Redis
from redis_talk import Talk, TalkPair, fails_at, random_talk, shortest
from resp_wire import Client, Reply

from lsmkv.server.commands import COMMANDS

COUNT = int(os.environ.get("LSMKV_REDIS_COMMANDS", "6000"))
SEED = int(os.environ.get("LSMKV_REDIS_SEED", "0"))
_A_RUN = 60


def test_clients_get_the_same_replies(redis: Redis, lsmkv: Lsmkv) -> None:
    for seed in range(SEED, SEED + max(1, COUNT // 2 // _A_RUN)):
        steps = random_talk(random.Random(seed), _A_RUN)
        found = fails_at(redis, lsmkv, steps)
        if found is not None:
            fewest, difference = shortest(redis, lsmkv, steps[: found[0] + 1], found[1])
            shown = "\n".join(f"client {client}: {request}" for client, request in fewest)
            pytest.fail(f"seed {seed}:\n{shown}\n{difference}", pytrace=False)


def test_a_difference_in_what_comes_is_found(
    redis: Redis, lsmkv: Lsmkv, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison compares: a message that comes to one of them only is seen."""
    real = Talk.send

    def forgets(self: Talk, number: int, request: list[bytes]) -> None:
        if request[0] != b"PUBLISH" or self._server is redis:
            real(self, number, request)

    monkeypatch.setattr(Talk, "send", forgets)
    pair = TalkPair(redis, lsmkv)
    try:
        pair.run(0, [b"SUBSCRIBE", b"a"])
        with pytest.raises(Difference, match=r"client 0: Redis: .*message"):
            pair.run(1, [b"PUBLISH", b"a", b"hi"])
    finally:
        pair.close()


def _pairs(reply: Reply) -> dict[object, Reply]:
    parts = reply.parts
    return {key.value: value for key, value in zip(parts[::2], parts[1::2], strict=True)}


def _described(reply: Reply, offered: set[bytes]) -> dict[bytes, object]:
    """COMMAND's description of commands and subcommands, but for those that one server lacks."""
    found: dict[bytes, object] = {}
    for one in reply.parts:
        name, *others, specs, inner = one.parts
        assert isinstance(name.value, bytes)
        if name.value in offered:
            fields = [sorted(field.parts) if field.parts else field for field in others]
            places = []
            for spec in specs.parts:
                words = _pairs(spec)
                places.append([sorted(words[b"flags"].parts), words[b"begin_search"]])
                places[-1].append(words[b"find_keys"])
            found[name.value] = [*fields, places]
            found |= _described(inner, offered)
    return found


@pytest.mark.parametrize("protocol", [2, 3])
def test_commands_are_described_alike(redis: Redis, lsmkv: Lsmkv, protocol: int) -> None:
    """Arity, flags, keys, categories, hints; group and age."""
    of_others = {b"client|setinfo", b"client|no-touch"}  # later releases have them
    of_others |= {name.lower() for name in COMMANDS if COMMANDS[name].properties.since == "7.4.0"}
    offered = {
        one.full_name.encode()
        for outer in COMMANDS.values()
        if not outer.name.startswith("BF.")
        for one in (outer, *outer.subcommands.values())
    } - of_others
    answers = []
    for server in (redis, lsmkv):
        client = Client(server.address)
        client.ask("HELLO", protocol)
        answers.append((client.ask("COMMAND"), client.ask("COMMAND", "DOCS")))
        client.close()
    (of_redis, redis_docs), (of_lsmkv, lsmkv_docs) = answers
    ours, its = _described(of_lsmkv, offered), _described(of_redis, offered)
    assert set(ours) == set(its) == offered
    assert {name: one for name, one in ours.items() if one != its[name]} == {
        name: its[name] for name, one in ours.items() if one != its[name]
    }
    of_redis_docs, of_lsmkv_docs = _pairs(redis_docs), _pairs(lsmkv_docs)
    for name in offered:
        if b"|" not in name:
            for field in (b"group", b"since"):
                assert _pairs(of_lsmkv_docs[name])[field] == _pairs(of_redis_docs[name])[field]


def test_help_has_the_form_of_redis(redis: Redis, lsmkv: Lsmkv) -> None:
    clients = [Client(server.address) for server in (redis, lsmkv)]
    for name, one in COMMANDS.items():
        if one.subcommands:
            of_redis, of_lsmkv = (client.ask(name, "HELP").parts for client in clients)
            assert of_redis[0] == of_lsmkv[0]
            assert of_redis[-2] == of_lsmkv[-2]
            assert {line.mark for line in of_lsmkv} == {"+"}
    for client in clients:
        client.close()


def test_info_has_the_sections_of_redis(redis: Redis, lsmkv: Lsmkv) -> None:
    shown = []
    for server in (redis, lsmkv):
        client = Client(server.address)
        for words in ((), ("all",), ("everything",), ("cpu", "server", "cpu"), ("nosuch",)):
            text = client.ask("INFO", *words).value
            assert isinstance(text, bytes)
            lines = [line for line in text.split(b"\r\n") if line.startswith(b"# ")]
            shown.append((words, [line for line in lines if line not in _ONE_SIDED]))
        client.close()
    half = len(shown) // 2
    assert shown[:half] == shown[half:]


_ONE_SIDED = {b"# Errorstats", b"# Latencystats", b"# Lsmkv"}

"""The ids that groups read next: whatever happens meanwhile, each entry is read once, in order."""

from __future__ import annotations

import random

from serving import Client, an_engine
from ticks import FULL, Clients, engine_of, open_store

from lsmkv.testing import FaultyEnv


def read(client: Client, count: int = 1) -> list[bytes]:
    reply = client(f"XREADGROUP GROUP g c COUNT {count} STREAMS x >")
    return [] if reply is None else [id_ for id_, _ in reply[0][1]]


def test_random_reads_return_every_entry_once() -> None:
    choices = random.Random(3)
    with an_engine() as engine:
        client = Client(engine)
        client("XGROUP CREATE x g 0 MKSTREAM")
        expected: list[bytes] = []
        added = 0
        for _ in range(1500):
            match choices.randrange(4):
                case 0:
                    for _ in range(choices.randrange(60)):
                        added += 1
                        expected.append(client(f"XADD x {added}-1 f v"))
                case 1 if expected:
                    gone = choices.choice(expected[:40])
                    assert client("XDEL", "x", gone) == 1
                    expected.remove(gone)
                case _:
                    count = choices.randrange(1, 7)
                    wanted, expected = expected[:count], expected[count:]
                    assert read(client, count) == wanted


def test_an_id_that_comes_back_is_read() -> None:
    with an_engine() as engine:
        client = Client(engine)
        client("XGROUP CREATE x g 0 MKSTREAM")
        for number in (1, 5, 7):
            client(f"XADD x {number} f v")
        assert read(client) == [b"1-0"]
        client.plays(("XDEL x 7", 1), ("XSETID x 5", b"OK"))
        for number in (6, 7):
            client(f"XADD x {number} f v")
        assert [read(client) for _ in range(4)] == [[b"5-0"], [b"6-0"], [b"7-0"], []]


def test_entries_that_were_not_written_are_forgotten() -> None:
    env = FaultyEnv()
    with open_store(env) as db:
        clients = Clients(engine_of(db), 1)

        def ask(*lines: str) -> list[object]:
            return clients.tick(*((0, line) for line in lines))[0]

        reading = "XREADGROUP GROUP g c COUNT 1 STREAMS x >"
        ask("XADD x 1 f v", "XADD x 5 f v", "XGROUP CREATE x g 0")
        env.fail_at(1, FULL, sticky=True, calls={"append", "create", "reserve"})
        ask("XADD x 7 f v", reading)
        env.heal()
        ask("XADD x 6 f v", "XADD x 7 f v", "XGROUP SETID x g 1")  # as far as the read that failed
        read_ids = [ask(reading)[0][0][1][0][0] for _ in range(3)]  # type: ignore[index]
        assert read_ids == [b"5-0", b"6-0", b"7-0"]

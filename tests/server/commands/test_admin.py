"""The server's own commands."""

from __future__ import annotations

import pytest
from serving import Client, an_engine
from transcripts import Section, transcript

from lsmkv import MemoryEnv


def test_counters_are_reset(client: Client) -> None:
    client("GET k")
    assert client("CONFIG RESETSTAT") == b"OK"
    assert client("INFO stats").count(b"total_commands_processed:1\r\n") == 1


def test_the_slow_log(client: Client) -> None:
    client.plays(
        ("SLOWLOG RESET", b"OK"),
        ("CONFIG SET slowlog-log-slower-than 0", b"OK"),
        ("CLIENT SETNAME me", b"OK"),
        ("SET k v", b"OK"),
        ("CONFIG SET slowlog-log-slower-than -1", b"OK"),
        ("SLOWLOG LEN", 3),
    )
    number, _, _, request, address, name = client("SLOWLOG GET 1")[0]
    assert (number, request, address, name) == (2, [b"SET", b"k", b"v"], b"127.0.0.1:1000", b"me")
    assert len(client("SLOWLOG GET -1")) == 3
    client.plays(("SLOWLOG RESET", b"OK"), ("SLOWLOG LEN", 0))


def test_monitor(client: Client) -> None:
    other = Client(client.engine)
    assert client("MONITOR") == b"OK"
    other("SELECT 3")
    other("SET", b"k\xff", b'"\n')
    other("CONFIG GET none")  # what administers is not shown
    lines = [line.decode() for line in client.received()]
    assert [line.partition(" ")[2] for line in lines] == [
        '[3 127.0.0.1:1000] "SELECT" "3"',
        r'[3 127.0.0.1:1000] "SET" "k\xff" "\"\n"',
    ]
    client.engine.close_session(client.session)
    other("SET k v")
    assert client.received() is None


def test_others_see_no_passwords(client: Client) -> None:
    client.plays(("CONFIG SET slowlog-log-slower-than 0", b"OK"), ("MONITOR", b"OK"))
    other = Client(client.engine)
    other("CONFIG SET timeout 0 RequirePass secret")
    other("HELLO 2 auth default secret SETNAME me")
    other("AUTH secret")
    other("MULTI")
    other("AUTH default secret")
    other("EXEC")
    lines = [line.decode().partition("] ")[2] for line in client.received()]
    assert lines == [
        '"HELLO" "2" "auth" "(redacted)" "(redacted)" "SETNAME" "me"',
        '"AUTH" "(redacted)"',
        '"MULTI"',
        '"AUTH" "(redacted)" "(redacted)"',
        '"EXEC"',
    ]
    logged = client("SLOWLOG GET")
    assert len(logged) > 5
    assert b"secret" not in b" ".join(word for one in logged for word in one[3])


def test_saving(client: Client) -> None:
    before = client.engine.db.stats().log_syncs
    client.plays(
        ("SET k v", b"OK"),
        ("SAVE", b"OK"),
        ("BGSAVE", b"Background saving started"),
        ("BGREWRITEAOF", b"Background append only file rewriting started"),
        ("WAIT 1 0", 0),
        ("WAIT 1 -1", "ERR timeout is negative"),
        ("ROLE", [b"master", 0, []]),
        ("LASTSAVE", int(client.engine.started)),
    )
    assert client.engine.db.stats().log_syncs >= before + 1


def test_shutdown(client: Client) -> None:
    called: list[bool] = []
    client.engine.on_shutdown = lambda: called.append(True)
    assert client("SHUTDOWN FOO") == "ERR syntax error"
    assert not called
    assert client("SHUTDOWN NOSAVE") is None
    assert called == [True]


LEFT_OUT = """
CLUSTER CLUSTER|INFO SENTINEL MODULE|LOAD REPLICAOF MIGRATE
DEBUG LATENCY|GRAPH CLIENT|TRACKING SCRIPT|DEBUG
"""


@pytest.mark.parametrize("name", LEFT_OUT.split())
def test_what_is_left_out_is_an_error_that_names_it(client: Client, name: str) -> None:
    error = client(name.replace("|", " ") + " x")
    assert error.startswith("ERR unknown ")
    assert ": lsmkv serve has no " in error
    client("MULTI")
    client(name.replace("|", " "))
    assert client("EXEC").startswith("EXECABORT")


def test_a_replica(client: Client) -> None:
    env = MemoryEnv()
    with an_engine(env) as engine:
        writer = Client(engine)
        writer("SET k v")
        writer("ZADD z 1 a")
        writer("SET gone v PX 1")
        while writer("TTL gone") != -2:
            pass
    with an_engine(env, read_only=True) as engine:
        reader = Client(engine)
        refused = "READONLY You can't write against a read only replica."
        reader.plays(
            ("GET k", b"v"),
            ("ZRANGE z 0 -1", [b"a"]),
            ("SET k w", refused),
            ("BLPOP l 0", refused),
            ("SAVE", refused),
            ("EXISTS gone", 0),
            ("ROLE", [b"slave", b"", 0, b"connected", 0]),
            ("MULTI", b"OK"),
            ("DEL k", refused),
            ("EXEC", "EXECABORT Transaction discarded because of previous errors."),
        )
        assert not engine.space.has_changes


@pytest.mark.parametrize("names", ["", "all", "everything", "default", "server nothing"])
def test_info(client: Client, names: str) -> None:
    text = client(f"INFO {names}")
    assert text.startswith(b"# Server\r\n")
    assert (b"# Lsmkv\r\n" in text) == (names != "server nothing")


@transcript("admin.txt")
def test_the_transcript(section: Section) -> None:
    section.play()

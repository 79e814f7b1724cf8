"""The connection itself, and what is asked about commands."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from serving import Client, an_engine

from lsmkv.server.commands import COMMANDS

NO_AUTH = "NOAUTH Authentication required."
WRONG = "WRONGPASS invalid username-password pair or user is disabled."


@pytest.fixture
def stranger() -> Iterator[Client]:
    """A client that has not said the password, which is secret."""
    with an_engine(password="secret") as engine:
        yield Client(engine)


def test_ping_and_echo(client: Client) -> None:
    client.plays(
        ("PING", b"PONG"),
        ("ping hi", b"hi"),
        ("PING a b", "ERR wrong number of arguments for 'ping' command"),
        ("ECHO ''", b""),
        ("ECHO", "ERR wrong number of arguments for 'echo' command"),
        ("NONE a b", "ERR unknown command 'NONE', with args beginning with: 'a' 'b' "),
        ("AUTH x y z", "ERR syntax error"),
        ("AUTH default any", b"OK"),
    )
    seconds, microseconds = client("TIME")
    assert int(seconds) > 1_700_000_000
    assert 0 <= int(microseconds) < 10**6
    assert client("AUTH x").startswith("ERR AUTH <password> called without any password")


def test_hello(client: Client) -> None:
    shown = dict(zip(*[iter(client("HELLO"))] * 2, strict=True))
    assert (shown[b"proto"], shown[b"role"], shown[b"modules"]) == (2, b"master", [])
    shown = client("HELLO 3 SETNAME me")
    assert (shown[b"proto"], shown[b"id"]) == (3, client.session.id)
    client.plays(
        ("CLIENT GETNAME", b"me"),
        ("GET none", None),
        ("HELLO 4", "NOPROTO unsupported protocol version"),
        ("HELLO x", "ERR Protocol version is not an integer or out of range"),
        ("HELLO 2 FOO", "ERR Syntax error in HELLO option 'FOO'"),
    )
    assert client.session.resp3  # an error changes nothing
    assert isinstance(client("HELLO 2"), list)


def test_a_password(stranger: Client) -> None:
    stranger.plays(
        ("PING", NO_AUTH),
        ("GET k", NO_AUTH),
        ("CLIENT ID", NO_AUTH),
        ("CLIENT SETINFO LIB-NAME x", b"OK"),
        ("MULTI", NO_AUTH),
        ("AUTH wrong", WRONG),
        ("AUTH other secret", WRONG),
        ("HELLO 3 AUTH default wrong", WRONG),
        ("GET k", NO_AUTH),
    )
    assert stranger("HELLO 3").startswith("NOAUTH HELLO must be called with the client already")
    assert not stranger.session.resp3
    stranger.plays(
        ("AUTH secret", b"OK"), ("PING", b"PONG"), ("RESET", b"RESET"), ("PING", NO_AUTH)
    )
    assert stranger("HELLO 3 AUTH default secret")[b"proto"] == 3
    assert stranger("PING") == b"PONG"
    assert stranger("CONFIG SET requirepass ''") == b"OK"
    assert Client(stranger.engine)("PING") == b"PONG"


def test_reset(client: Client) -> None:
    client("HELLO 3 SETNAME me")
    client("SELECT 5")
    client("WATCH k")
    client("MULTI")
    client("SET k v")
    client.plays(("RESET", b"RESET"), ("EXEC", "ERR EXEC without MULTI"), ("CLIENT GETNAME", None))
    assert client("SET k v") == b"OK"
    client("SELECT 0")
    assert client("GET k") == b"v"
    assert not client.session.resp3


def test_client(client: Client) -> None:
    other = Client(client.engine)
    other("SUBSCRIBE x")
    mine, its = client.session.id, other.session.id
    client.plays(
        ("CLIENT ID", mine),
        ("CLIENT GETNAME", None),
        ("CLIENT SETNAME me", b"OK"),
        ("CLIENT SETNAME 'a b'",
         "ERR Client names cannot contain spaces, newlines or special characters."),
        ("CLIENT SETINFO LIB-NAME lib", b"OK"),
        ("CLIENT SETINFO LIB-VER 'a b'",
         "ERR lib-ver cannot contain spaces, newlines or special characters."),
        ("CLIENT SETINFO FOO x", "ERR Unrecognized option 'foo'"),
        ("CLIENT NO-EVICT ON", b"OK"),
        ("CLIENT NO-TOUCH off", b"OK"),
        ("CLIENT NO-TOUCH x", "ERR syntax error"),
        ("CLIENT LIST FOO", "ERR syntax error"),
        ("CLIENT LIST TYPE x", "ERR Unknown client type 'x'"),
        ("CLIENT LIST ID 999", b""),
        ("CLIENT UNBLOCK 999", 0),
        ("CLIENT", "ERR wrong number of arguments for 'client' command"),
    )  # fmt: skip
    lines = client("CLIENT LIST").decode().splitlines()
    shown = [dict(field.split("=", 1) for field in line.split(" ")) for line in lines]
    assert [one["id"] for one in shown] == [str(mine), str(its)]
    assert [(one["flags"], one["sub"], one["cmd"]) for one in shown] == [
        ("N", "0", "client|list"),
        ("P", "1", "subscribe"),
    ]
    assert (shown[0]["name"], shown[0]["lib-name"], shown[0]["resp"]) == ("me", "lib", "2")
    assert client(f"CLIENT LIST ID {its}").decode().startswith(f"id={its} ")
    assert client("CLIENT LIST TYPE pubsub").count(b"\n") == 1
    assert client("CLIENT INFO").startswith(b"id=%d " % mine)
    of_redis = "id addr laddr fd name age idle flags db sub psub ssub multi qbuf qbuf-free argv-mem"
    of_redis += " multi-mem rbs rbp obl oll omem tot-mem events cmd user redir resp"
    assert list(shown[0])[:28] == of_redis.split()
    assert (shown[0]["qbuf"], shown[0]["argv-mem"]) == ("26", "10")
    assert all(int(one["tot-mem"]) > 1000 for one in shown)
    client("CLIENT REPLY MAYBE")
    client("NONE")
    assert b" cmd=NULL " in Client(client.engine)(f"CLIENT LIST ID {mine}")


def test_replies_turned_off(client: Client) -> None:
    client.plays(
        ("CLIENT REPLY OFF", None),
        ("SET k v", None),
        ("CLIENT REPLY ON", b"OK"),
        ("CLIENT REPLY SKIP", None),
        ("GET k", None),
        ("GET k", b"v"),
        ("CLIENT REPLY SKIP", None),
        ("CLIENT REPLY ON", b"OK"),
        ("CLIENT REPLY SKIP", None),
        ("NONE", None),
        ("GET k", b"v"),
        ("CLIENT REPLY SKIP", None),
        ("MULTI", None),
        ("GET k", b"QUEUED"),
        ("CLIENT REPLY SKIP", b"QUEUED"),
        ("DISCARD", b"OK"),
        ("CLIENT REPLY MAYBE", "ERR syntax error"),
    )


def test_kill(client: Client) -> None:
    gone: list[int] = []
    others = []
    for number in range(4):
        other = Client(client.engine)
        other.session.address = f"10.0.0.{number}:1"
        other.session.disconnect = lambda number=number: gone.append(number)
        others.append(other)
    others[1]("SUBSCRIBE x")
    client.plays(
        ("CLIENT KILL 10.0.0.9:1", "ERR No such client"),
        ("CLIENT KILL 10.0.0.0:1", b"OK"),
        ("CLIENT KILL TYPE pubsub", 1),
        (f"CLIENT KILL ID {others[2].session.id}", 1),
        (f"CLIENT KILL ID {client.session.id}", 0),
        ("CLIENT KILL ADDR 10.0.0.3:1 USER default SKIPME no", 1),
        ("CLIENT KILL USER other", "ERR No such user 'other'"),
        ("CLIENT KILL ID 0", "ERR client-id should be greater than 0"),
        ("CLIENT KILL TYPE bad", "ERR Unknown client type 'bad'"),
        ("CLIENT KILL TYPE replica", 0),
        ("CLIENT KILL ID x", "ERR client-id should be greater than 0"),
        ("CLIENT KILL FOO x", "ERR syntax error"),
        ("CLIENT KILL ID 1 ADDR", "ERR syntax error"),
    )
    assert gone == [0, 1, 2, 3]
    assert client(f"CLIENT KILL ID {client.session.id} SKIPME no") == 1
    assert client.session.closing


@pytest.mark.parametrize(
    "name", ["CLIENT", "COMMAND", "CONFIG", "MEMORY", "MODULE", "OBJECT", "PUBSUB", "SLOWLOG"]
)
def test_help(client: Client, name: str) -> None:
    lines = client(f"{name} HELP")
    assert lines[0].decode() == f"{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"
    assert lines[-2:] == [b"HELP", b"    Print this help."]
    shown = {line.split()[0] for line in lines[1:] if not line.startswith(b" ")}
    assert shown == set(COMMANDS[name.encode()].subcommands)
    assert client(f"{name} HELP x") == (
        f"ERR wrong number of arguments for '{name.lower()}|help' command"
    )


def test_about_commands(client: Client) -> None:
    offered = len(COMMANDS)
    assert offered > 100
    client.plays(
        ("COMMAND COUNT", offered),
        ("COMMAND INFO get none config|get", [
            [b"get", 2, [b"fast", b"readonly"], 1, 1, 1, [b"@fast", b"@read", b"@string"], [],
             [[b"flags", [b"RO", b"access"],
               b"begin_search", [b"type", b"index", b"spec", [b"index", 1]],
               b"find_keys", [b"type", b"range",
                              b"spec", [b"lastkey", 0, b"keystep", 1, b"limit", 0]]]], []],
            None,
            [b"config|get", -3, [b"admin", b"loading", b"noscript", b"stale"], 0, 0, 0,
             [b"@admin", b"@dangerous", b"@slow"], [], [], []],
        ]),
        ("COMMAND GETKEYS MSET a 1 b 2", [b"a", b"b"]),
        ("COMMAND GETKEYS PING x", "ERR The command has no key arguments"),
        ("COMMAND GETKEYS NONE x", "ERR Invalid command specified"),
        ("COMMAND GETKEYS", "ERR wrong number of arguments for 'command|getkeys' command"),
        ("COMMAND GETKEYS GET", "ERR wrong number of arguments for 'command|getkeys' command"),
        ("COMMAND GETKEYS ZINTER 2 a", "ERR Invalid arguments specified for command"),
        ("COMMAND GETKEYSANDFLAGS SET a 1 GET", [[b"a", [b"RW", b"access", b"update"]]]),
        ("COMMAND GETKEYSANDFLAGS SORT a STORE b",
         [[b"a", [b"RO", b"access"]], [b"b", [b"OW", b"update"]]]),
        ("COMMAND LIST FILTERBY PATTERN client|k*", [b"client|kill"]),
        ("COMMAND LIST FILTERBY MODULE none", []),
        ("COMMAND LIST FILTERBY ACLCAT transaction",
         [b"multi", b"exec", b"discard", b"watch", b"unwatch"]),
        ("COMMAND LIST FILTERBY FOO x", "ERR syntax error"),
        ("COMMAND GETKEYS GET a b", "ERR Invalid number of arguments specified for command"),
        ("COMMAND FOO", "ERR unknown subcommand 'FOO'. Try COMMAND HELP."),
    )  # fmt: skip
    assert len(client("COMMAND")) == offered < len(client("COMMAND LIST"))
    movable = {one[0] for one in client("COMMAND") if b"movablekeys" in one[2]}
    assert {b"sort", b"sort_ro", b"zunionstore", b"lmpop"} < movable
    assert b"set" not in movable
    client("HELLO 3")
    docs = client("COMMAND DOCS")
    assert docs[b"get"][b"summary"] == b"The value of a key."
    assert docs[b"client"][b"subcommands"][b"client|id"][b"group"] == b"connection"
    assert set(client("COMMAND DOCS get none")) == {b"get"}


def test_quit(client: Client) -> None:
    assert client("QUIT") == b"OK"
    assert client.session.closing


def test_one_who_is_killed_while_blocked_takes_nothing(client: Client) -> None:
    other = Client(client.engine)
    assert other("BLPOP l 0") is None
    client.plays(
        (f"CLIENT KILL ID {other.session.id}", 1),  # the connection ends in the next tick
        ("RPUSH l a", 1),
        ("LRANGE l 0 -1", [b"a"]),
    )
    assert other.received() is None

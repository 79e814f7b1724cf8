"""CLIENT."""

from __future__ import annotations

from serving import Client
from transcripts import Section, transcript


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
        ("CLIENT NO-EVICT OFF", b"OK"),
        ("CLIENT NO-TOUCH off", b"OK"),
        ("CLIENT NO-TOUCH x", "ERR syntax error"),
        ("CLIENT LIST FOO", "ERR syntax error"),
        ("CLIENT LIST TYPE x", "ERR Unknown client type 'x'"),
        ("CLIENT LIST ID 999", b""),
        ("CLIENT UNBLOCK 999", 0),
        ("CLIENT UNBLOCK 999 x", "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"),
        ("CLIENT PAUSE 10 x", "ERR CLIENT PAUSE mode must be WRITE or ALL"),
        ("CLIENT PAUSE x write", "ERR timeout is not an integer or out of range"),
        ("CLIENT PAUSE -1", "ERR timeout is negative"),
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


def test_one_who_is_killed_while_blocked_takes_nothing(client: Client) -> None:
    other = Client(client.engine)
    assert other("BLPOP l 0") is None
    client.plays(
        (f"CLIENT KILL ID {other.session.id}", 1),  # the connection ends in the next tick
        ("RPUSH l a", 1),
        ("LRANGE l 0 -1", [b"a"]),
    )
    assert other.received() is None


@transcript("clients.txt")
def test_the_transcript(section: Section) -> None:
    section.play()

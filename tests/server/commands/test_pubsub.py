"""Messages."""

from __future__ import annotations

from serving import Client


def test_subscriptions(client: Client) -> None:
    other = Client(client.engine)
    assert client("SUBSCRIBE a b a") == (
        [b"subscribe", b"a", 1],
        [b"subscribe", b"b", 2],
        [b"subscribe", b"a", 2],
    )
    assert client("PSUBSCRIBE x*") == [b"psubscribe", b"x*", 3]
    other.plays(
        ("PUBLISH a hi", 1),
        ("PUBLISH xyz hi", 1),
        ("PUBLISH none hi", 0),
        ("PUBSUB CHANNELS", [b"a", b"b"]),
        ("PUBSUB CHANNELS [a]", [b"a"]),
        ("PUBSUB NUMSUB a none", [b"a", 1, b"none", 0]),
        ("PUBSUB NUMPAT", 1),
    )
    assert client.received() == ([b"message", b"a", b"hi"], [b"pmessage", b"x*", b"xyz", b"hi"])
    assert client("UNSUBSCRIBE a none") == ([b"unsubscribe", b"a", 2], [b"unsubscribe", b"none", 2])
    assert client("PUNSUBSCRIBE") == [b"punsubscribe", b"x*", 1]
    assert client("UNSUBSCRIBE") == [b"unsubscribe", b"b", 0]
    assert client("UNSUBSCRIBE") == [b"unsubscribe", None, 0]
    assert client("PUNSUBSCRIBE") == [b"punsubscribe", None, 0]
    assert client("GET k") is None
    assert other("PUBSUB CHANNELS") == []


def test_a_subscriber_in_resp2_does_nothing_else(client: Client) -> None:
    client("SUBSCRIBE a")
    refused = (
        "ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are"
        " allowed in this context"
    )
    client.plays(
        ("GET k", refused),
        ("PING", [b"pong", b""]),
        ("PING hi", [b"pong", b"hi"]),
        ("RESET", b"RESET"),
        ("GET k", None),
        ("PING", b"PONG"),
    )
    assert Client(client.engine)("PUBLISH a hi") == 0


def test_a_subscriber_in_resp3_may_do_anything(client: Client) -> None:
    client("HELLO 3")
    client.engine.run(client.session, [b"SUBSCRIBE", b"a"])
    assert client.session.take_output() == b">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"
    client.plays(("SET k v", b"OK"), ("PING", b"PONG"))
    assert client("PUBLISH a hi") == ([b"message", b"a", b"hi"], 1)


def test_in_transactions(client: Client) -> None:
    other = Client(client.engine)
    other("SUBSCRIBE a")
    client.plays(
        ("MULTI", b"OK"),
        ("PUBLISH a one", b"QUEUED"),
        ("SUBSCRIBE b", b"QUEUED"),
        ("EXEC", [1, [b"subscribe", b"b", 1]]),
    )
    assert other.received() == [b"message", b"a", b"one"]
    assert Client(client.engine)("PUBLISH b two") == 1
    assert client.received() == [b"message", b"b", b"two"]


def test_confirmations_come_whatever_client_reply_says(client: Client) -> None:
    client.plays(
        ("CLIENT REPLY OFF", None),
        ("SUBSCRIBE a", [b"subscribe", b"a", 1]),
        ("PING", None),
        ("UNSUBSCRIBE a", [b"unsubscribe", b"a", 0]),
        ("CLIENT REPLY ON", b"OK"),
        ("CLIENT REPLY SKIP", None),
        ("PSUBSCRIBE p*", [b"psubscribe", b"p*", 1]),
        ("PING", [b"pong", b""]),
    )


def test_one_that_was_killed_gets_no_message_and_is_not_counted(client: Client) -> None:
    other = Client(client.engine)
    other("SUBSCRIBE a")
    client.plays(
        (f"CLIENT KILL ID {other.session.id}", 1),
        ("PUBLISH a hi", 0),
        ("PUBSUB CHANNELS", []),
        (f"CLIENT LIST ID {other.session.id}", b""),
    )
    client.engine.close_session(other.session)  # as its connection does when it is gone
    assert client("PUBSUB NUMSUB a") == [b"a", 0]


def test_what_is_asked_about_messages_wrongly(client: Client) -> None:
    wrong = "ERR unknown subcommand or wrong number of arguments for 'channels'. Try PUBSUB HELP."
    client.plays(
        ("PUBSUB channels a b", wrong),
        ("PUBSUB FOO", "ERR unknown subcommand 'FOO'. Try PUBSUB HELP."),
        ("PUBSUB", "ERR wrong number of arguments for 'pubsub' command"),
        ("PUBSUB NUMPAT x", "ERR wrong number of arguments for 'pubsub|numpat' command"),
    )

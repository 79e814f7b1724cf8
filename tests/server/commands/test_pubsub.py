"""Messages."""

from __future__ import annotations

from serving import Client
from transcripts import Section, transcript


def test_a_subscriber_in_resp3_may_do_anything(client: Client) -> None:
    client("HELLO 3")
    client.engine.run(client.session, [b"SUBSCRIBE", b"a"])
    assert client.session.take_output() == b">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"
    client.plays(("SET k v", b"OK"), ("PING", b"PONG"))
    assert client("PUBLISH a hi") == ([b"message", b"a", b"hi"], 1)


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


@transcript("pubsub.txt")
def test_the_transcript(section: Section) -> None:
    section.play()

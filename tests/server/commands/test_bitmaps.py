"""Bitmaps."""

from __future__ import annotations

from serving import Client
from transcripts import Section, transcript

WRONG = "WRONGTYPE Operation against a key holding the wrong kind of value"
NO_INT = "ERR value is not an integer or out of range"
NO_OFFSET = "ERR bit offset is not an integer or out of range"
NO_BIT = "ERR bit is not an integer or out of range"


def test_a_changed_bit_keeps_the_expiry(client: Client) -> None:
    client.plays(("SET k a EX 100", b"OK"), ("SETBIT k 0 1", 0), ("TTL k", 100))


@transcript("bitmaps.txt")
def test_the_transcript(section: Section) -> None:
    section.play()

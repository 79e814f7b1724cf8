"""Strings."""

from __future__ import annotations

from transcripts import Section, transcript

WRONG = "WRONGTYPE Operation against a key holding the wrong kind of value"
NO_INT = "ERR value is not an integer or out of range"


@transcript("strings.txt")
def test_the_transcript(section: Section) -> None:
    section.play()

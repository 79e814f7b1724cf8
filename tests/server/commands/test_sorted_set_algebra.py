"""Several sorted sets."""

from __future__ import annotations

from transcripts import Section, transcript

WRONG = "WRONGTYPE Operation against a key holding the wrong kind of value"


@transcript("sorted_set_algebra.txt")
def test_the_transcript(section: Section) -> None:
    section.play()

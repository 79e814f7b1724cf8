"""SORT."""

from __future__ import annotations

from transcripts import Section, transcript


@transcript("sorting.txt")
def test_the_transcript(section: Section) -> None:
    section.play()

"""BITFIELD."""

from __future__ import annotations

from transcripts import Section, transcript

NO_TYPE = (
    "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64"
    " is."
)
NO_OFFSET = "ERR bit offset is not an integer or out of range"


@transcript("bitfields.txt")
def test_the_transcript(section: Section) -> None:
    section.play()

"""LCS."""

from __future__ import annotations

from serving import Client
from transcripts import Section, transcript


def test_more_memory_than_redis_has_for_it_is_refused(client: Client) -> None:
    client("SET", "a", "x" * 11_600)
    assert client("LCS a a") == (
        "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"
    )
    client("SET b x")
    assert client("LCS a b LEN") == 1


@transcript("subsequences.txt")
def test_the_transcript(section: Section) -> None:
    section.play()

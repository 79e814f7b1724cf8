"""Redis answers the transcripts of the tests of commands as lsmkv does.

What differs on purpose, and what Redis itself leaves open, is named in
``tests/helpers/redis_pair.py``.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from redis_pair import Pair
from transcripts import Section, Transcript

from lsmkv.server.quoting import split_words

FOLDER = Path(__file__).parents[1] / "server" / "commands" / "testdata"
CLIENTS = {"": 0, "other": 1, "third": 2}


def is_of_redis(section: Section) -> bool:
    """Whether Redis has all of the commands, and each of them is answered at once."""
    lines = [line for _, line in section.steps]
    return not section.settings and not any(
        "BF." in line or "lsmkv" in line.lower() or line.endswith("=> nothing") for line in lines
    )


PLAYED = {
    f"{path.stem}: {section}": section
    for path in sorted(FOLDER.glob("*.txt"))
    # What each server says of itself, and commands of Redis 7.4.
    if path.stem not in ("admin", "field_expiry")
    for section in Transcript(path).sections
    if is_of_redis(section)
}


@pytest.mark.parametrize("name", PLAYED)
def test_redis_answers_a_transcript_alike(pair: Pair, name: str) -> None:
    for client, request in PLAYED[name].requests():
        if request:
            pair.run(CLIENTS[client], split_words(request.encode()))


def test_most_transcripts_are_of_redis() -> None:
    assert len(PLAYED) > 50

"""SORT."""

from __future__ import annotations

import random

from serving import Client, an_engine
from transcripts import Section, transcript


@transcript("sorting.txt")
def test_the_transcript(section: Section) -> None:
    section.play()


def test_many_values_are_sorted_in_parts() -> None:
    numbers = [random.Random(1).randrange(10_000) for _ in range(25_000)]
    words = [b"%d" % number for number in numbers]
    with an_engine() as engine:
        engine.reads.in_loop = 100.0
        client = Client(engine)
        client(b"RPUSH", b"list", *words)
        assert client("SORT_RO list") == sorted(words, key=lambda one: (int(one), one))
        assert client("SORT list ALPHA DESC LIMIT 10 500") == sorted(words, reverse=True)[10:510]
        assert client("SORT absent") == []

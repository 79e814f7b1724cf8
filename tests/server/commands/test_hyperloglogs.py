"""PFADD, PFCOUNT and PFMERGE."""

from __future__ import annotations

from serving import Client
from transcripts import Section, transcript

INVALID = "WRONGTYPE Key is not a valid HyperLogLog string value."
CORRUPTED = "INVALIDOBJ Corrupted HLL object detected"


def test_a_dense_one_makes_the_result_dense(client: Client) -> None:
    client("PFADD", "many", *map(str, range(5000)))
    client("PFADD few x")
    client("PFMERGE to few many")
    assert len(client("GET to")) == len(client("GET many")) == 12_304
    assert abs(client("PFCOUNT to") - 5000) < 150


def test_when_it_becomes_dense_is_a_setting(client: Client) -> None:
    client("CONFIG SET hll-sparse-max-bytes 20")
    client("PFADD k 1 2 3")
    assert len(client("GET k")) == 12_304


def test_a_value_moves_between_servers(client: Client) -> None:
    client("PFADD", "k", *map(str, range(1000)))
    client("SET", "copy", client("GET k"))
    assert client("PFCOUNT copy") == client("PFCOUNT k")


@transcript("hyperloglogs.txt")
def test_the_transcript(section: Section) -> None:
    section.play()

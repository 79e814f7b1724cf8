"""PFADD, PFCOUNT and PFMERGE."""

from __future__ import annotations

from serving import Client

INVALID = "WRONGTYPE Key is not a valid HyperLogLog string value."
CORRUPTED = "INVALIDOBJ Corrupted HLL object detected"


def test_adding_and_counting(client: Client) -> None:
    client.plays(
        ("PFCOUNT k", 0),
        ("PFADD k", 1),
        ("PFADD k", 0),
        ("PFCOUNT k", 0),
        ("PFADD k a b c", 1),
        ("PFADD k c", 0),
        ("PFCOUNT k", 3),
        ("PFADD other c d", 1),
        ("PFCOUNT k other none", 4),
        ("TYPE k", b"string"),
    )


def test_merging(client: Client) -> None:
    client.plays(
        ("PFMERGE none", b"OK"),
        ("PFCOUNT none", 0),
        ("PFADD a 1 2 3", 1),
        ("EXPIRE a 100", 1),
        ("PFADD b 3 4", 1),
        ("PFMERGE a b nothing", b"OK"),
        ("PFCOUNT a", 4),
        ("TTL a", 100),
        ("PFMERGE to a b", b"OK"),
        ("PFCOUNT to", 4),
    )


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


def test_the_estimate_is_kept_in_the_value(client: Client) -> None:
    client("PFADD k a b")
    before = client("GET k")
    client("PFCOUNT k")
    after = client("GET k")
    assert before[15] & 0x80
    assert int.from_bytes(after[8:16], "little") == 2
    assert client("PFCOUNT k") == 2


def test_other_values_are_refused(client: Client) -> None:
    client("SET text hello")
    client("RPUSH list x")
    client("SET", "cut", b"HYLL\x01" + bytes(11) + b"\0")
    client.plays(
        ("PFADD text a", INVALID),
        ("PFCOUNT text", INVALID),
        ("PFCOUNT none text", INVALID),
        ("PFMERGE to text", INVALID),
        ("PFADD list a", "WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("PFCOUNT cut none", CORRUPTED),
        ("PFMERGE to cut", CORRUPTED),
        ("PFADD cut a", CORRUPTED),
        ("EXISTS to", 0),
    )

"""BF.*: Bloom filters."""

from __future__ import annotations

import struct

import pytest
from serving import Client
from transcripts import Section, transcript


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("x 10", "ERR bad error rate"),
        ("0 10", "ERR (0 < error rate range < 1)"),
        ("1 10", "ERR (0 < error rate range < 1)"),
        ("0.1 x", "ERR bad capacity"),
        ("0.1 0", "ERR (0 < capacity <= 1099511627776)"),
        ("0.1 10 EXPANSION x", "ERR bad expansion"),
        ("0.1 10 EXPANSION 0", "ERR expansion should be between 1 and 32768"),
        ("0.1 10 EXPANSION", "ERR syntax error"),
        ("0.1 10 FOO", "ERR syntax error"),
    ],
)
def test_what_cannot_be_reserved(client: Client, words: str, error: str) -> None:
    assert client(f"BF.RESERVE f {words}") == error
    assert client("EXISTS f") == 0


def test_layers_grow(client: Client) -> None:
    client("BF.RESERVE f 0.001 100 EXPANSION 4")
    items = [b"item %d" % number for number in range(600)]
    added = sum(client("BF.MADD", b"f", *items))
    assert added >= 590  # a false positive is not added
    assert all(client("BF.MEXISTS", b"f", *items))
    client.plays(
        ("BF.CARD f", added),
        ("BF.INFO f FILTERS", [3]),
        ("BF.INFO f CAPACITY", [100 + 400 + 1600]),
        ("BF.INFO f EXPANSION", [4]),
    )


def test_the_rate_of_false_positives(client: Client) -> None:
    client("BF.RESERVE f 0.01 2000")
    client("BF.MADD", b"f", *[b"in %d" % number for number in range(2000)])
    wrong = sum(client("BF.MEXISTS", b"f", *[b"out %d" % number for number in range(5000)]))
    assert 0 < wrong < 100  # 50 are expected at most; hashes are fixed, so the number is too


def test_too_large_a_filter(client: Client) -> None:
    client.plays(
        ("BF.RESERVE f 1e-301 10", "ERR error rate is less than 1e-300"),
        (
            "BF.RESERVE f 1e-10 1099511627776",
            "ERR the filter would be too large: use a smaller capacity or a higher error rate",
        ),
        ("EXISTS f", 0),
        ("BF.RESERVE f 1e-300 10", b"OK"),
        ("BF.ADD f x", 1),
        ("BF.RESERVE g 0.01 1 EXPANSION 32768", b"OK"),
    )
    space, database = client.engine.space, client.session.database
    entry = space.find(database, b"g")
    assert entry is not None
    entry.rest = struct.pack(">dQIIQ", 0.01, 1, 32768, 3, 32768**2)  # three layers, all full
    space.save(database, b"g", entry)
    client.plays(
        ("BF.ADD g x", "ERR the filter is full, and too large to grow"),
        ("BF.EXISTS g x", 0),
    )


@transcript("bloom.txt")
def test_the_transcript(section: Section) -> None:
    section.play()

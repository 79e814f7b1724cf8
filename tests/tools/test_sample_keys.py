"""lsmkv.tools.sample_keys: keys that are there, and misspelt ones that are not."""

from __future__ import annotations

import random

import pytest
from demos import LINES

from lsmkv.tools.sample_keys import DataSet, Misspeller, lines_as_keys, unicode_names


def misspeller(data: DataSet, seed: int) -> Misspeller:
    expected = data.expected
    return Misspeller(list(expected), expected.__contains__, random.Random(seed))


def test_every_unicode_name_is_a_key() -> None:
    data = unicode_names()
    assert len(data.records) > 137_000
    assert data.expected[b"SNOWMAN"] == "☃".encode()
    assert data.duplicates == 0
    assert 3.5e6 < data.size < 5e6


def test_more_names_are_more_keys() -> None:
    plain = len(unicode_names().records)
    more = unicode_names(plain + 1)
    assert len(more.expected) == 2 * plain + 1
    assert more.expected[b"SNOWMAN #2"] == "☃".encode()
    assert b"SPACE #3" in more.expected


def test_lines_are_keys() -> None:
    data = lines_as_keys([b"b\n", b"\n", b"a\r\n", b"b"], "file")
    assert data.records == [(b"b", b"1"), (b"a", b"3"), (b"b", b"4")]
    assert data.expected == {b"a": b"3", b"b": b"4"}
    assert (data.duplicates, data.blank_lines) == (1, 1)
    with pytest.raises(ValueError, match="file: no keys"):
        lines_as_keys([b"\n"], "file")


@pytest.mark.parametrize(
    "lines",
    [
        LINES,
        [b"a"],
        [b"%d" % n for n in range(10)],  # every change of one digit gives another key
        [b"%03d" % n for n in range(1000)],
        [bytes([n]) for n in range(256) if n not in b"\r\n"],
        ["ключ".encode(), "замок".encode()],
        [b"\xff\xfe", b"\xff\xff\xff"],
    ],
)
def test_misspelt_keys_are_absent(lines: list[bytes]) -> None:
    data = lines_as_keys(lines, "file")
    absent = misspeller(data, 1).absent_keys(500)
    assert len(absent) == 500
    assert not set(absent) & set(data.expected)


def test_misspelt_keys_resemble_the_keys_and_lie_among_them() -> None:
    data = lines_as_keys(LINES, "file")
    absent = misspeller(data, 1).absent_keys(500)
    assert all(min(data.expected) < key < max(data.expected) for key in absent)
    lengths = {len(key) for key in data.expected}
    assert all(len(key) in lengths for key in absent)
    assert absent == misspeller(data, 1).absent_keys(500)
    assert absent != misspeller(data, 2).absent_keys(500)

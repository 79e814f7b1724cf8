"""An ``Explanation`` tells its steps in one outline, as text and as HTML."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

import pytest
from explained import HOSTILE, explained, in_table

from lsmkv.engine.util.outline import as_text
from lsmkv.engine.util.text import escape, quoted


def test_the_text_of_a_key_that_a_filter_rules_out() -> None:
    explanation = explained(b"bee", b"ant", b"emu", compression=None)
    assert str(explanation) == (
        "get 'bee': not there\n"
        "  memtable: does not know the key\n"
        "  level 2, 000006.ldb: a filter says no: no block is searched\n"
        "    range: 'ant' .. 'emu', 201 B\n"
        "    index: the block up to the separator 'f'\n"
        "    filter per block, leveldb.BuiltinBloomFilter2, 9 bytes: no\n"
        "      bits probed: 52=1, 3=0\n"
        "    block at 0: not searched, read by the identity check\n"
        "  searched: 0 data blocks\n"
        "  without filters: 1 data block, 51 bytes; filters save 1\n"
        "  opening: 4 reads of metadata, 1 identity check read"
    )
    tones = [line.tone for line in explanation.outline()]
    assert tones[:3] == ["plain", "plain", "saved"]
    assert tones[-3:] == ["plain", "saved", "plain"]


def test_the_text_of_a_key_that_is_found() -> None:
    explanation = explained(b"ant", b"ant", b"emu", compression=None)
    assert str(explanation).startswith("get 'ant': found, 5 bytes in 000006.ldb, write 1\n")
    assert str(explanation).endswith(
        "    filter per block, leveldb.BuiltinBloomFilter2, 9 bytes: maybe\n"
        "      bits probed: 55=1, 52=1, 49=1, 46=1, 43=1, 40=1\n"
        "    block at 0: read by the identity check, 46 bytes plain\n"
        "  write 1: puts and deletes are numbered from 1 on; the highest number of a key answers\n"
        "  searched: 1 data block; none from the file\n"
        "  without filters: 1 data block, 51 bytes\n"
        "  opening: 4 reads of metadata, 1 identity check read"
    )
    assert explanation.outline()[2].tone == explanation.outline()[-3].tone == "read"


def test_a_key_in_the_row_cache() -> None:
    with in_table(b"ant", b"emu") as db:
        for _ in range(50):
            assert db.get(b"ant") == b"value"
        explanation = db.explain(b"ant")
    assert explanation.at_hand
    (line,) = [line for line in explanation.outline() if "row cache" in line.text]
    assert line.tone == "saved"


def test_plain_data_is_whole() -> None:
    plain = json.loads(json.dumps(explained(b"bee", b"ant", b"emu", compression=None).to_dict()))
    (table,) = plain["tables"]
    assert (table["smallest"], table["largest"], table["index_key"]) == ("ant", "emu", "f")
    (step,) = table["filters"]
    assert (step["positions"], step["values"], step["may_match"]) == ([52, 3], [True, False], False)
    assert table["block"] is None
    assert table["wasted"] is False
    assert table["spared"] == {
        "offset": 0,
        "size": 46,
        "cached": False,
        "bytes_read": 0,
        "compression": "none",
        "plain_size": 46,
        "by_identity_check": True,
    }
    assert (table["metadata_reads"], table["identity_check_reads"]) == (4, 1)
    assert (plain["blocks_searched"], plain["blocks_wasted"]) == (0, 0)


class Reader(HTMLParser):
    """Collects the text of a page, and checks that its elements are nested."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.lines: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.lines.append("  " * (self.open.count("ul") - 1) + data)


@pytest.mark.parametrize("key", [b"bee", b"ant", b"zebra", b"<script>&amp;", b"\x1b[2J\xff", b""])
def test_the_html_has_the_lines_of_the_text(key: bytes) -> None:
    explanation = explained(key, b"", b"ant", b"<script>&amp;", b"\xff")
    reader = Reader()
    reader.feed(explanation._repr_html_())
    reader.close()
    assert reader.open == []
    assert reader.seen == {"ul", "li", "span"}
    assert "\n".join(reader.lines) == str(explanation) == as_text(explanation.outline())


@pytest.mark.parametrize("key", HOSTILE, ids=range(len(HOSTILE)))
def test_long_keys_are_cut(key: bytes) -> None:
    explanation = explained(key, key, key + b"x")
    assert explanation.found
    text = str(explanation)
    assert text.startswith(f"get {quoted(key)}: found")
    assert f"... ({len(key):,} bytes)" in text
    assert max(map(len, text.splitlines())) < 250
    assert all(line.isprintable() for line in text.splitlines())
    assert len(explanation._repr_html_()) < 5000
    assert explanation.to_dict()["key"] == escape(key)  # programs get all of it


def test_the_number_of_a_write_is_explained() -> None:
    text = str(explained(b"ant", b"ant", b"emu"))
    assert (
        "\n  write 1: puts and deletes are numbered from 1 on; the highest number of a key" in text
    )
    assert "are numbered" not in str(explained(b"bee", b"ant", b"emu"))

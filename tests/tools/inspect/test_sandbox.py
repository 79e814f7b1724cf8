from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from stores import put_numbered

from lsmkv.tools.inspect.sandbox import LONGEST, Scratch


@pytest.fixture
def scratch() -> Iterator[Scratch]:
    with contextlib.closing(Scratch()) as scratch:
        yield scratch


def last(scratch: Scratch) -> dict[str, Any]:
    moment: dict[str, Any] = scratch.moments()["moments"][-1]
    return moment


def test_a_put_is_in_the_log_and_in_the_memtable(scratch: Scratch) -> None:
    scratch.put(b"ant", b"six legs")
    scratch.put(b"bee", b"wings")
    moment = last(scratch)
    meanings = [piece["meaning"] for piece in moment["log"]["new"]]
    assert "key 'bee'" in meanings
    assert "value 'wings'" in meanings
    assert "key 'ant'" not in meanings  # the step before added it
    assert [one["key"]["text"] for one in moment["memtable"]["shown"]] == ["ant", "bee"]
    assert moment["tables"] == 0
    assert moment["written"]["user"] > 0


def test_a_deletion_is_an_entry(scratch: Scratch) -> None:
    scratch.put(b"ant", b"six legs")
    scratch.delete(b"ant")
    shown = last(scratch)["memtable"]["shown"]
    assert [(one["sequence"], one["value"] is None) for one in shown] == [(2, True), (1, False)]


def test_a_flush_empties_memtable_and_log(scratch: Scratch) -> None:
    scratch.put(b"ant", b"six legs")
    scratch.flush()
    moment = last(scratch)
    assert moment["tables"] == 1
    assert moment["memtable"]["entries"] == 0
    assert moment["log"]["size"] == 0
    assert moment["written"]["flushed"] > 0
    assert moment["levels"][2]["files"] == 1
    assert "It skips levels 0 and 1" in moment["why"]


def test_a_table_of_level_0_or_of_a_compaction_needs_no_reason(scratch: Scratch) -> None:
    for _ in range(3):
        scratch.put(b"ant", b"six legs")
        scratch.flush()
    assert last(scratch)["levels"][0]["files"] == 1
    assert last(scratch)["why"] == ""
    scratch.compact()
    assert last(scratch)["why"] == ""


def test_many_puts_flush_and_compact(scratch: Scratch) -> None:
    for _ in range(8):
        scratch.fill(40)
    filled = last(scratch)
    assert filled["written"]["compacted"] > 0
    assert filled["levels"][0]["files"] < 4
    scratch.compact()
    compacted = last(scratch)
    used = [level["level"] for level in compacted["levels"] if level["files"]]
    assert len(used) == 1


def test_it_starts_again(scratch: Scratch) -> None:
    scratch.fill(500)
    scratch.reset()
    moments = scratch.moments()["moments"]
    assert len(moments) == 1
    assert moments[0]["tables"] == 0
    assert moments[0]["memtable"]["entries"] == 0


def test_long_keys_are_refused(scratch: Scratch) -> None:
    with pytest.raises(ValueError, match="at most 1,024 bytes"):
        scratch.put(b"k" * (LONGEST + 1), b"")
    with pytest.raises(ValueError, match="at most 1,024 bytes"):
        scratch.put(b"k", b"v" * (LONGEST + 1))


def test_moments_are_bounded(scratch: Scratch) -> None:
    put_numbered(scratch, b"%d", range(230), b"")
    assert len(scratch.moments()["moments"]) == 200


def test_the_words_show_a_key_that_is_a_space_or_nothing(scratch: Scratch) -> None:
    for key, words in ((b" ", "put \\x20, 1 byte"), (b"", "put (empty), 1 byte")):
        scratch.put(key, b"v")
        assert scratch.moments()["moments"][-1]["words"] == words

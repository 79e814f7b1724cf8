"""The steps of a lookup, in words."""

from __future__ import annotations

from typing import Any

from explained import explained, in_table

UNFILTERED: dict[str, Any] = {"bloom_filter_bits": 0, "compression": None}


def test_a_block_that_lacks_the_key() -> None:
    with in_table(b"ant", b"emu", **UNFILTERED, lru_cache_size=0) as db:
        explanation = db.explain(b"bee")
        assert explanation.blocks_wasted == 1
        assert "  level 2, 000006.ldb: not in the block\n" in str(explanation)
        assert "block at 0: read (wasted), 51 bytes, 46 bytes plain" in str(explanation)
        assert "searched: 1 data block, 1 wasted; 1 from the file, 51 bytes" in str(explanation)
        wasted = [line.text for line in explanation.outline() if line.tone == "wasted"]
        assert [text.split(":")[0] for text in wasted] == [
            "level 2, 000006.ldb",
            "block at 0",
            "searched",
        ]
    with in_table(b"ant", b"emu", **UNFILTERED) as db:
        text = "block at 0: read by the identity check (wasted), 46 bytes plain"
        assert text in str(db.explain(b"bee"))
        assert "searched: 1 data block, 1 wasted; none from the file" in str(db.explain(b"bee"))
        db.get(b"bee")
        assert "from the cache (wasted), 46 bytes plain" in str(db.explain(b"bee"))
        assert "searched: 1 data block, 1 wasted; none from the file" in str(db.explain(b"bee"))


def test_a_spared_block_that_is_in_the_cache() -> None:
    with in_table(b"ant", b"emu", compression=None) as db:
        db.get(b"ant")
        assert "block at 0: not searched, it is in the cache" in str(db.explain(b"bee"))


def test_a_spared_block_that_is_read_when_the_table_is_opened() -> None:
    text = str(explained(b"bee", b"ant", b"emu", compression=None))
    assert "block at 0: not searched, read by the identity check" in text
    text = str(explained(b"bee", b"ant", b"emu", compression=None, lru_cache_size=0))
    assert "block at 0: not searched, 51 bytes saved" in text
    assert text.endswith("\n  opening: 4 reads of metadata, 1 identity check read")


def test_a_table_that_is_not_asked_is_quiet() -> None:
    with in_table(b"ant", b"emu") as db:
        db.put(b"ant", b"newer")
        explanation = db.explain(b"ant")
    lines = explanation.outline()
    assert [line.tone for line in lines[2:4]] == ["quiet", "quiet"]
    assert "not asked: the answer is known" in lines[2].text
    assert lines[4].text.startswith("hidden: 5 bytes in 000006.ldb")


def test_a_separator_is_not_called_a_key() -> None:
    """The index of keys 'ant' and 'emu' ends at 'f', which no one has put."""
    (line,) = [
        line.text for line in explained(b"bee", b"ant", b"emu").outline() if "'f'" in line.text
    ]
    assert line == "index: the block up to the separator 'f'"

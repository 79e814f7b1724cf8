from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest
from inspected import HOSTILE, WORDS
from stores import put_numbered

import lsmkv
from lsmkv.tools.inspect.api import Api
from lsmkv.tools.inspect.lookup import lookup_steps
from lsmkv.tools.text import escape


def test_the_steps_agree_with_explain_for_100_keys(api: Api, made_store: Path) -> None:
    rng = random.Random(3)
    keys = rng.sample(WORDS, 50) + [b"word %05d x" % rng.randrange(4000) for _ in range(50)]
    saved = wasted = 0
    with lsmkv.DB(made_store, read_only=True) as db:
        for key in keys:
            explanation, got = db.explain(key), api.answer("get", {"key": escape(key)})
            assert got["found"] == explanation.found == (db.get(key) is not None)
            last = got["steps"][-1]
            assert (last["with"], last["without"]) == (
                explanation.blocks_searched,
                explanation.blocks_without_filters,
            )
            assert got["totals"]["bytes_without"] == explanation.bytes_without_filters
            steps = [step["table"] for step in got["steps"] if step["kind"] in ("index", "table")]
            assert steps == [table.name for table in explanation.tables]
            tones = [step["tone"] for step in got["steps"]]
            assert (
                tones.count("saved")
                == explanation.blocks_without_filters - explanation.blocks_searched
            )
            saved += tones.count("saved")
            wasted += tones.count("wasted")
    assert saved > 50
    assert wasted < saved


def test_counts_never_fall(api: Api) -> None:
    steps = api.answer("get", {"key": escape(WORDS[7])})["steps"]
    for name in ("with", "without"):
        counts = [step[name] for step in steps]
        assert counts == sorted(counts)


def test_a_newer_write_is_seen_in_the_memtable(api: Api) -> None:
    got = api.answer("get", {"key": escape(WORDS[1])})
    newest = got["chosen"]["sequence"]
    assert got["steps"][0]["detail"] == f"it has the key: 10 bytes, write {newest:,}"
    assert got["chosen"]["where"] == "memtable"
    assert got["hidden"]
    assert {table["asked"] for table in got["tables"]} == {False}


@pytest.mark.parametrize("key", HOSTILE)
def test_hostile_keys_are_found(api: Api, key: bytes) -> None:
    for query in ({"key": escape(key)}, {"hex": key.hex()}):
        got = api.answer("get", query)
        assert got["found"]
        assert got["key"]["text"].isprintable()
        assert len(got["key"]["text"]) < 500


def test_without_filters_nothing_is_saved(tmp_path: Path) -> None:
    path = str(tmp_path / "db")
    with lsmkv.DB(path, create_if_missing=True, bloom_filter_bits=0) as db:
        for key in (b"ant", b"cow"):
            db.put(key, b"v")
        db.flush()
        got = lookup_steps(db.explain(b"bee"))
    assert [step["kind"] for step in got["steps"]] == ["memtable", "index", "block", "answer"]
    assert got["steps"][2]["tone"] == "wasted"
    assert got["steps"][3]["detail"] == "1 data block searched, as many as without filters"


def test_without_filters_it_is_said_what_they_would_save(tmp_path: Path) -> None:
    path = str(tmp_path / "db")
    with lsmkv.DB(path, create_if_missing=True, bloom_filter_bits=0) as db:
        for start in range(3):  # three tables that overlap, the oldest on level 2
            put_numbered(db, b"%08d", range(start, 3000, 3), b"value")
            db.flush()
    with contextlib.closing(Api(path)) as api:
        absent = api.answer("get", {"key": "00001000x"})
        oldest = api.answer("get", {"key": "00000999"})
        newest = api.answer("get", {"key": "00001001"})
    assert absent["totals"]["searched"] == 3
    assert "3 tables asked have no filter" in absent["saving"]
    assert (
        "would save 3 of these 3 block reads, for about 3.7 KiB (3,000 entries)"
        in (absent["saving"])
    )
    assert "would save 2 of these 3 block reads" in oldest["saving"]
    assert "None would help here" in newest["saving"]


def test_with_filters_nothing_is_said_of_what_they_would_save(api: Api) -> None:
    assert api.answer("get", {"key": "word 00003 is not there"})["saving"] == ""


def test_wrong_questions(api: Api) -> None:
    with pytest.raises(ValueError, match="no key is given"):
        api.answer("get", {})
    with pytest.raises(ValueError, match="no such escape"):
        api.answer("get", {"key": "\\q"})
    with pytest.raises(ValueError, match="not hexadecimal"):
        api.answer("get", {"hex": "xyz"})
    with pytest.raises(ValueError, match="more than"):
        api.answer("get", {"hex": "00" * 70_000})


def test_a_store_that_cannot_be_opened_says_why(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with lsmkv.DB(path, create_if_missing=True) as db:
        db.put(b"k", b"v")
        db.flush()
    next(path.glob("*.ldb")).unlink()
    with (
        contextlib.closing(Api(str(path))) as api,
        pytest.raises((lsmkv.CorruptionError, lsmkv.IOError)),
    ):
        api.answer("get", {"key": "k"})

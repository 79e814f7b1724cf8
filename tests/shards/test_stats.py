"""The counters of a reader of shards."""

from __future__ import annotations

from pathlib import Path

from small_sets import PAIRS, requests

import lsmkv
import lsmkv.bulk
import lsmkv.shards


def test_what_a_reader_asks_for(url: Path) -> None:
    with lsmkv.shards.open(url, lru_cache_size=0) as s:
        assert requests(s) == 2  # the listing, and the version
        s.warm()
        assert requests(s) == 2 + 4
        before = requests(s)
        absent = [b"%06d" % n for n in range(1, 12_000, 2)]
        assert s.multi_get(absent) == [None] * len(absent)
        assert requests(s) - before < 0.02 * len(absent)
        before = requests(s)
        found = list(PAIRS)[::100]
        for key in found:
            assert s.get(key) == PAIRS[key]
        assert requests(s) - before <= len(found)
    with lsmkv.shards.open(url, version=1) as s:
        assert requests(s) == 1


def test_a_cache_on_disk_saves_all_requests_for_blocks(url: Path, tmp_path: Path) -> None:
    keys = list(PAIRS)[::37]
    with lsmkv.shards.open(url, version=1, cache_dir=tmp_path / "cache") as s:
        s.multi_get(keys)
    with lsmkv.shards.open(url, version=1, cache_dir=tmp_path / "cache") as s:
        assert s.multi_get(keys) == [PAIRS[key] for key in keys]
        stats = s.stats()
        assert stats.requests.total.requests == 1  # the version
        assert stats.cache is not None
        assert stats.cache.misses == 0


def test_the_text_and_the_plain_data_have_the_figures(url: Path, tmp_path: Path) -> None:
    with lsmkv.shards.open(url, cache_dir=tmp_path / "cache") as s:
        assert (s.get(b"000000"), s.get(b"000001")) == (PAIRS[b"000000"], None)
        stats = s.stats()
    plain = stats.to_dict()
    assert (plain["pairs"], plain["shards"], plain["shards_open"]) == (6000, 4, 1)
    assert (plain["gets"], plain["gets_found"]) == (2, 1)
    assert plain["requests"]["list"]["requests"] == 1
    assert plain["cache"] == stats.cache._asdict()
    lines = str(stats).splitlines()
    assert lines[0].startswith("version        1: 6,000 pairs, ")
    assert lines[2] == "gets           2: 1 found"
    assert lines[-1].startswith("cache on disk  ")

"""The shards of a version, each opened when it is first asked for."""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import pytest
from small_sets import PAIRS, build, requests

import lsmkv
import lsmkv.bulk
import lsmkv.shards
from lsmkv.shards.remote.objects.local import LocalObjects


def test_only_the_shard_that_is_needed_is_opened(shards: lsmkv.shards.Shards) -> None:
    assert shards.stats().shards_open == 0
    shards.get(b"000000")
    assert shards.stats().shards_open == 1
    list(shards.iterator(start=b"011000"))
    assert shards.stats().shards_open == 2


def test_shards_that_both_versions_have_stay_open(tmp_path: Path) -> None:
    build(tmp_path)
    with lsmkv.shards.open(tmp_path) as s:
        s.warm()
        first = s.document
        from lsmkv.shards.building.publish import publish
        from lsmkv.shards.remote.objects.open import open_objects

        with open_objects(tmp_path) as objects:
            publish(objects, first._replace(shards=first.shards[:2]))
        before = requests(s)
        assert s.refresh()
        assert s.stats().shards_open == 2
        assert requests(s) - before == 2
        gc.collect()
        assert s.get(b"011998") is None
        assert s.get(b"000002") == PAIRS[b"000002"]


def test_many_keys_open_their_shards_at_once(url: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    get_range = LocalObjects.get_range
    together = threading.Barrier(4)

    def meet(self: LocalObjects, name: str, offset: int, length: int) -> bytes:
        if name.endswith("/META"):
            together.wait(60)
        return get_range(self, name, offset, length)

    monkeypatch.setattr(LocalObjects, "get_range", meet)
    keys = list(PAIRS)[::500]
    with lsmkv.shards.open(url) as s:
        assert s.multi_get(keys) == [PAIRS[key] for key in keys]

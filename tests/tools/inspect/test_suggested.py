from __future__ import annotations

import contextlib
import time
from pathlib import Path

import pytest
from inspected import damage, one_table, opened

import lsmkv
from lsmkv.engine.indexeddb import IndexedDBComparator
from lsmkv.tools.inspect.api import Api
from lsmkv.tools.inspect.suggested import suggested
from lsmkv.tools.text import unescape


def test_each_key_is_of_its_kind(api: Api, made_store: Path) -> None:
    found = suggested(api.source, 60)
    assert [len(keys) for keys in found.values()] == [2, 2, 1, 4]
    with lsmkv.DB(made_store, read_only=True) as db:
        for kind, keys in found.items():
            for one in keys:
                key = unescape(one["text"].encode())
                explained = db.explain(key)
                assert explained.found == (kind == "present") == (db.get(key) is not None)
                if kind == "present":
                    continue
                errs = [table for table in explained.tables if table.wasted]
                assert bool(errs) == (kind == "wrong")
                assert all(table.filters for table in errs)
                assert explained.blocks_without_filters > 0
    assert found == suggested(api.source, 60)
    assert api.answer("get/suggest", {}).keys() == found.keys()


def test_without_filters_none_errs(tmp_path: Path) -> None:
    keys = [b"%05d" % (7 * number) for number in range(2000)]
    with opened(one_table(tmp_path / "db", keys, bloom_filter_bits=0)) as (api, _):
        found = suggested(api.source, 60)
    assert found["wrong"] == []
    assert len(found["present"]) == 3


def test_the_time_is_bounded(api: Api) -> None:
    begun = time.monotonic()
    found = suggested(api.source, 0)
    assert time.monotonic() - begun < 5
    assert sum(map(len, found.values())) <= 3


@pytest.mark.parametrize("keys", [[], [b""], [b"a"], [b"\xff\x00"], [b"k" * 5000]])
def test_stores_with_few_keys(tmp_path: Path, keys: list[bytes]) -> None:
    store = tmp_path / "db"
    with lsmkv.DB(store, create_if_missing=True) as db:
        for key in keys:
            db.put(key, b"v")
    with contextlib.closing(Api(str(store))) as api:
        found = suggested(api.source)
        assert [one["bytes"] for one in found["present"]] == [len(k) for k in keys if len(k) < 40]
    if keys:
        with lsmkv.DB(store) as db:
            db.flush()
        with contextlib.closing(Api(str(store))) as api:
            assert len(suggested(api.source)["present"]) == (len(keys[0]) < 40)


def test_keys_with_a_meaning_are_not_made_up(tmp_path: Path) -> None:
    key = bytes.fromhex("00010101 03 000000000000f03f")
    with opened(one_table(tmp_path / "db", [key], comparator=IndexedDBComparator())) as (api, _):
        found = suggested(api.source)
    assert [len(keys) for keys in found.values()] == [0, 0, 0, 1]


def test_damage_is_stepped_over(tmp_path: Path) -> None:
    store = one_table(tmp_path / "db", [b"%05d" % number for number in range(3000)])
    damage(next(store.glob("*.ldb")), 10)
    with opened(store) as (api, _):
        assert suggested(api.source)["present"]

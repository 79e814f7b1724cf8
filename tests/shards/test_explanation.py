"""What EXPLAIN says of a Get in a shard set."""

from __future__ import annotations

import lsmkv
import lsmkv.bulk
import lsmkv.shards
from lsmkv.shards.explanation import ShardExplanation


def test_an_explanation_counts_requests(shards: lsmkv.shards.Shards) -> None:
    explained = shards.explain(b"000001")
    assert (
        explained.found,
        explained.shard,
        explained.requests,
        explained.requests_without_filters,
    ) == (
        False,
        0,
        0,
        1,
    )
    assert "1 request saved" in str(explained)
    explained = shards.explain(b"011998")
    assert (explained.found, explained.shard, explained.requests, explained.requests_saved) == (
        True,
        3,
        1,
        0,
    )
    shards.get(b"011998")
    assert shards.explain(b"011998").requests == 0
    assert explained.to_dict()["steps"]["chosen"] is not None


def test_a_set_without_shards_asks_for_nothing() -> None:
    explained = ShardExplanation(b"k\n", 7, -1, "", None)
    assert (explained.found, explained.requests, explained.requests_saved) == (False, 0, 0)
    assert str(explained) == "get 'k\\n': not found: version 7 has no shards"
    assert (explained.to_dict()["key"], explained.to_dict()["steps"]) == ("k\\n", None)

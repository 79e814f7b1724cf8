"""lsmkv.engine.db.tree.key_list: positions and writes, against a dict."""

from __future__ import annotations

import random

import pytest

from lsmkv.engine.db.tree.key_list import KeyList
from lsmkv.engine.format.key_order import Position


@pytest.mark.parametrize("seed", range(20))
def test_any_writes_against_a_dict(seed: int) -> None:
    rng = random.Random(seed)
    model = {b"%02d" % number: b"0" for number in range(0, 60, rng.choice([1, 2, 7]))}
    listed = KeyList(sorted(model), model)
    for turn in range(150):
        key = b"%02d" % rng.randrange(60)
        model[key] = b"%d" % turn
        for _ in range(rng.choice([1, 2])):  # twice, if the first call was interrupted
            listed.write(key, model[key])
        keys = sorted(model)
        assert listed.keys == keys
        assert listed.tagged == [model[each] for each in keys]
        count = rng.randrange(1, 9)
        for after in (False, True):
            before = sum(each < key or (after and each == key) for each in keys)
            edge = Position(key, after)
            assert listed.span_beyond(edge, count, False) == (
                before,
                min(len(keys), before + count),
            )
            assert listed.span_beyond(edge, count, True) == (max(0, before - count), before)
    assert listed.span_beyond(None, 3, False) == (0, 3)
    assert listed.span_beyond(None, 3, True) == (len(model) - 3, len(model))

"""lsmkv.engine.db.tree.key_list: positions, marks and writes, against a dict."""

from __future__ import annotations

import random

import pytest

from lsmkv.engine.db.tree.key_list import KeyList
from lsmkv.engine.format.key_order import Position


@pytest.mark.parametrize("seed", range(20))
def test_any_writes_and_marks_against_a_dict(seed: int) -> None:
    rng = random.Random(seed)
    model = {b"%02d" % number: False for number in range(0, 60, rng.choice([1, 2, 7]))}
    listed = KeyList(sorted(model))
    for _ in range(150):
        key = b"%02d" % rng.randrange(60)
        if rng.random() < 0.3:
            listed.write(key)
            model[key] = False
        elif key in model:
            listed.mark(listed.index_at(Position(key, after=False), False))
            model[key] = True
        keys = sorted(model)
        assert listed.keys == keys
        assert listed.marks(0, len(keys)) == bytes(model[each] for each in keys)
        for after in (False, True):
            at = listed.index_at(Position(key, after), rng.random() < 0.5)
            assert at == sum(each < key or (after and each == key) for each in keys)
        left = [at for at, each in enumerate(keys) if not model[each]]
        at = rng.randrange(len(keys) + 1)
        assert listed.first_left(at) == min((one for one in left if one >= at), default=len(keys))
        assert listed.end_of_left(at) == max((one + 1 for one in left if one < at), default=0)
    assert (listed.index_at(None, False), listed.index_at(None, True)) == (0, len(model))

"""lsmkv.engine.db.handles.scannable: ``iterator`` of stores, snapshots and parts, by its
keywords.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lsmkv import DB
from lsmkv.engine.db.handles.scannable import Scannable

PAIRS = [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")]
MAKERS: list[Callable[[DB], Any]] = [
    lambda db: db.prefixed_db(b"p:"),
    lambda db: db.prefixed_db(b"p:").snapshot(),
    lambda db: db.prefixed_db(b"p").prefixed_db(b":"),
]


@pytest.fixture(params=range(len(MAKERS) + 2))
def scannable(request: pytest.FixtureRequest) -> Iterator[Scannable]:
    """A store, a snapshot, or a part, with the same pairs."""
    with DB(":memory:") as db:
        whole = request.param >= len(MAKERS)
        for key, value in PAIRS:
            db.put(key if whole else b"p:" + key, value)
        if request.param == len(MAKERS):
            yield db
        else:
            yield db.snapshot() if whole else MAKERS[request.param](db)


def test_a_loop_is_over_everything(scannable: Scannable) -> None:
    assert list(scannable) == list(scannable.iterator()) == PAIRS


def test_keywords_choose_the_range_and_the_halves(scannable: Scannable) -> None:
    assert list(scannable.iterator(start=b"b", include_value=False)) == [b"b", b"c"]
    assert list(scannable.iterator(stop=b"b", include_key=False)) == [b"1"]
    assert list(scannable.iterator(limit=2, reverse=True)) == PAIRS[:0:-1]
    assert list(scannable.iterator(include_key=False, include_value=False)) == [None] * 3
    with pytest.raises(TypeError):
        scannable.iterator(begin=b"a")  # type: ignore[call-overload]


def test_a_class_that_makes_no_iterators_says_so() -> None:
    with pytest.raises(NotImplementedError):
        iter(Scannable())

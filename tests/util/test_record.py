"""lsmkv.util.record: frozen dataclasses are copied and pickled by their fields."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass

import pytest

from lsmkv.util.record import Record


@dataclass(frozen=True)
class Point(Record):
    x: int
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("negative")


def test_a_copy_is_made_by_the_classs_own_init() -> None:
    point = Point(1, ("a",))
    assert point.__reduce__() == (Point, (1, ("a",)))
    for made in (copy.copy(point), copy.deepcopy(point)):
        assert (type(made), made) == (Point, point)


def test_a_pickled_object_is_checked_as_a_new_one_is() -> None:
    point = Point(1, ())
    object.__setattr__(point, "x", -1)
    with pytest.raises(ValueError, match="negative"):
        copy.copy(point)


def test_the_kind_that_users_get_is_pickled() -> None:
    from lsmkv.db.handles.steps import KeyVersion

    version = KeyVersion("memtable", 7, False, 3)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(version, protocol)) == version

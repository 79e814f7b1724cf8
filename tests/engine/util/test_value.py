"""lsmkv.engine.util.value: settings are equal if their types and arguments are."""

from __future__ import annotations

from typing import Any

from lsmkv import FixedPrefix
from lsmkv.engine.util.value import Value


class Length(Value):
    def __init__(self, length: int) -> None:
        self._length = length

    def _arguments(self) -> tuple[Any, ...]:
        return (self._length,)


class OtherLength(Length):
    pass


def test_values_are_equal_if_their_types_and_arguments_are() -> None:
    assert Length(3) == Length(3)
    assert hash(Length(3)) == hash(Length(3))
    assert Length(3) != Length(4)
    assert Length(3) != OtherLength(3)
    assert Length(3) != 3
    assert FixedPrefix(3) == FixedPrefix(3) != FixedPrefix(4)


def test_attributes_that_a_subclass_adds_are_compared() -> None:
    one, other = OtherLength(3), OtherLength(3)
    one.unit = "bytes"  # type: ignore[attr-defined]
    assert one != other


def test_a_value_is_shown_with_its_arguments() -> None:
    assert repr(Length(3)) == "Length(3)"

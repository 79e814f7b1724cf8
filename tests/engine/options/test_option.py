"""lsmkv.engine.options.option: sizes and their bounds."""

from __future__ import annotations

import pytest

from lsmkv.engine.options import OPTIONS
from lsmkv.engine.options.option import GIB, KIB, MIB, Size
from lsmkv.engine.options.shown import option_meanings

SIZES = {name: option for name, option in OPTIONS.items() if isinstance(option, Size)}


@pytest.mark.parametrize("name", sorted(SIZES))
def test_sizes_are_held_to_their_bounds(name: str) -> None:
    size = SIZES[name]
    assert size.checked(name, None) == size.default
    assert size.checked(name, 0) == size.least
    assert size.checked(name, 1 << 60) == (size.most or 1 << 60)
    for wrong, error in ((True, TypeError), ("1", TypeError), (-1, ValueError)):
        with pytest.raises(error, match=name):
            size.checked(name, wrong)


def amount(number: int) -> str:
    for unit, size in (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if number % size == 0:
            return f"{number // size} {unit}"
    return f"{number:,}"


@pytest.mark.parametrize("name", sorted(SIZES))
def test_the_bounds_of_sizes_are_in_their_meaning(name: str) -> None:
    size, meaning = SIZES[name], " ".join(option_meanings()[name].split())
    if size.most is not None:
        assert f"{amount(size.most)}." in meaning
    if size.least > 1:
        assert f" {amount(size.least)} " in meaning

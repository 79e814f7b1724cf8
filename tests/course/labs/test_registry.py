"""Labs are found by number and by name."""

from __future__ import annotations

import pytest
from commands import lsm

from lsmkv.course.labs.registry import CAPSTONE, LABS, find


def test_labs_are_found() -> None:
    for lab in LABS:
        assert find(str(lab.number)) is find(lab.slug) is lab
    with pytest.raises(ValueError, match=r"there is no lab 99: the labs are .*4 \(bloom\)"):
        find("99")


def test_the_capstone_has_a_text_alone() -> None:
    assert CAPSTONE.text().startswith("# Lab 13: Your store\n")
    assert len(CAPSTONE.hints()) == 3
    assert CAPSTONE not in LABS
    assert lsm("course", "show", "13").out.startswith("# Lab 13: Your store\n")

"""Labs are found by number and by name."""

from __future__ import annotations

import pytest

from lsmkv.course.labs.registry import LABS, find


def test_labs_are_found() -> None:
    for lab in LABS:
        assert find(str(lab.number)) is find(lab.slug) is lab
    with pytest.raises(ValueError, match=r"there is no lab 99: the labs are .*4 \(bloom\)"):
        find("99")

"""The sample store of a student's folder, and the filter lab on it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from commands import lsm
from labs import reference

import lsmkv
from lsmkv.course.labs.registry import find
from lsmkv.course.sample import NAMES, make_sample


def test_it_has_names_in_several_tables(tmp_path: Path) -> None:
    with lsmkv.DB(make_sample(str(tmp_path)), read_only=True) as db:
        assert sum(1 for _ in db.iterator()) == NAMES
        assert db.get(b"SPACE") == b" "
        assert sum(level.files for level in db.stats().levels) == 4


def test_the_filter_lab_needs_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lsm("course", "new", ".")
    shutil.copy(reference(find("bloom")), ".")
    done = lsm("filter-lab", "sample", "--settings", "none own:10", "--policy", "lab4_bloom.py")
    assert (done.status, done.err) == (0, "")
    assert "own:10" in done.out

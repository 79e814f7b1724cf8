"""Whose data a folder has, and what was done with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsmkv.course.labs.registry import find
from lsmkv.course.owned import find_own, look_at, own_work
from lsmkv.course.predict.registry import task_of, write_for
from lsmkv.course.seeds import Owner, seed_of, write_owner

BLOOM = find("bloom")


def test_the_nearest_folder_is_taken(tmp_path: Path) -> None:
    assert find_own(str(tmp_path)) is None
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    write_for(str(below), "ann")
    found = find_own(str(tmp_path))
    assert found is not None
    assert (found.folder, found.owner.student, found.seed) == (str(below), "ann", seed_of("ann"))
    (tmp_path / "student.json").write_text("?")
    with pytest.raises(ValueError, match=r"student\.json"):
        find_own(str(tmp_path))


def test_points(tmp_path: Path) -> None:
    write_for(str(tmp_path), "ann")
    right = [one.answer for one in task_of(BLOOM, seed_of("ann")).questions]
    write_owner(str(tmp_path), Owner("ann", seed_of("ann"), {"4": [right[0], "1"]}))
    own = find_own(str(tmp_path))
    assert own is not None
    done = own_work(own, BLOOM)
    assert (done.asked, done.right, done.is_found, done.points, done.maximum) == (2, 1, False, 1, 4)
    assert own_work(own, find("keys")).predictions == []


def test_the_name_of_the_folder_may_have_more(tmp_path: Path) -> None:
    names = ("Ann Lee_123_assignsubmission_file_", "bob", "ann lee")
    for name in names:
        (tmp_path / name).mkdir()
        write_for(str(tmp_path / name), "Ann-Lee" if name != "bob" else "cem")
    owns = {name: own for name in names if (own := find_own(str(tmp_path / name))) is not None}
    said = look_at(owns, [BLOOM])
    assert said["bob"] == ["the data are those of 'cem'"]
    assert said["ann lee"] == [f"the data are also those of {names[0]}"]
    assert look_at({"bob": owns["bob"]}, [BLOOM]) == {"bob": []}

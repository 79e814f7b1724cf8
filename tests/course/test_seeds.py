"""A student's seed, and the file that says whose folder it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lsmkv.course.seeds import FILE, Owner, mark_of, read_owner, seed_of, write_owner


def test_no_two_of_a_large_class_have_the_same_mark() -> None:
    assert len({mark_of(seed_of(f"student {n}")) for n in range(1000)}) == 1000


def test_the_file_is_read_back(tmp_path: Path) -> None:
    owner = Owner("Zoë", seed_of("Zoë"), {"4": ["14 24", "9"]})
    assert read_owner(str(tmp_path)) is None
    write_owner(str(tmp_path), owner)
    assert read_owner(str(tmp_path)) == owner
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_another_seed_is_noticed(tmp_path: Path) -> None:
    write_owner(str(tmp_path), Owner("ann", seed_of("bob")))
    found = read_owner(str(tmp_path))
    assert found is not None
    assert not found.is_intact


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"student": "a", "seed": 7, "predictions": {}}'])
def test_a_damaged_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(ValueError, match="is not what 'lsmkv course new --student' wrote"):
        read_owner(str(tmp_path))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs and links")
@pytest.mark.parametrize("kind", ["fifo", "link", "deep"])
def test_a_strange_file_is_refused(tmp_path: Path, kind: str) -> None:
    write_owner(str(tmp_path), Owner("ann", seed_of("ann")))
    os.rename(tmp_path / FILE, tmp_path / "other")
    if kind == "fifo":
        os.mkfifo(tmp_path / FILE)
    elif kind == "link":
        (tmp_path / FILE).symlink_to(tmp_path / "other")
    else:
        (tmp_path / FILE).write_text("[" * 100_000)
    with pytest.raises(ValueError, match="is not what 'lsmkv course new --student' wrote"):
        read_owner(str(tmp_path))

"""Lab 13: names of Unicode, a kill, another reader, and what filters saved."""

from __future__ import annotations

from pathlib import Path

import pytest
from course_stores import folder_of_references, running

from lsmkv.course.store import capstone as module
from lsmkv.course.store.capstone import capstone, some_names
from lsmkv.course.store.parts import PARTS


def test_names_are_spaced_evenly_among_all() -> None:
    names = some_names(1000)
    assert len(names) == 1000
    assert names["SPACE"] == " "
    assert any(name.startswith("CJK UNIFIED") for name in names)


def test_all_parts_pass_it(tmp_path: Path) -> None:
    printed: list[str] = []
    with running(folder_of_references(tmp_path / "labs")) as session:
        assert capstone(session, 400, printed.append)
        assert session.failures == []
    assert printed[0] == "Lab 13: your store, with 400 names of Unicode"
    assert [line.split()[0] for line in printed[1:-1]] == ["passed"] * 5
    assert "killed after 200 names, and 0 are missing" in printed[1]
    assert "they saved " in printed[3]
    assert f"Parts: {len(PARTS)} of {len(PARTS)} are yours." == printed[-1]


@pytest.mark.parametrize("has_leveldb", [True, False])
def test_with_some_parts_it_works_and_is_not_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_leveldb: bool
) -> None:
    who = "LevelDB reads 200 names of 200"
    if not has_leveldb:
        monkeypatch.setattr(module, "plyvel", None)
        who = "lsmkv's reader, since plyvel is not installed, reads 200 names of 200"
    elif module.plyvel is None:
        pytest.skip("plyvel is not installed")
    printed: list[str] = []
    with running(folder_of_references(tmp_path / "labs"), ["filters"]) as session:
        assert not capstone(session, 200, printed.append)
    assert printed[5] == f"  passed  another reader: {who}"
    assert printed[6] == f"Parts: 1 of {len(PARTS)} are yours."

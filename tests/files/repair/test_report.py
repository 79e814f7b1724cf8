"""lsmkv.repair.report: how bad the state of a file and of a directory is."""

from __future__ import annotations

from pathlib import Path

import lsmkv
from lsmkv import files
from lsmkv.engine.db.tree.manifest import Manifest
from lsmkv.engine.format.keys import pack
from lsmkv.files.repair.damaged_table import Hole
from lsmkv.files.repair.report import (
    DAMAGED,
    REMARKABLE,
    SOUND,
    FileSurvey,
    LogSurvey,
    ManifestSurvey,
    Survey,
    TableSurvey,
)
from lsmkv.files.repair.survey import survey_db


def test_a_problem_counts_as_damage_where_the_file_is_needed() -> None:
    for needed, without, with_problem in (
        (True, SOUND, DAMAGED),
        (False, REMARKABLE, REMARKABLE),
    ):
        file = FileSurvey("000003.log", 100, needed)
        assert file.severity == without
        file.note(7, 3, "bad checksum")
        assert file.severity == with_problem
        assert [(one.offset, one.size) for one in file.problems] == [(7, 3)]


def test_a_remark_is_no_damage() -> None:
    file = FileSurvey("000003.log", 100, True)
    file.remarks.append("ends early")
    assert file.severity == REMARKABLE


def test_a_table_is_needed_where_a_version_names_it() -> None:
    assert TableSurvey("000005.ldb", 5, 100, 2).severity == SOUND
    unnamed = TableSurvey("000005.ldb", 5, 100, -1)
    assert not unnamed.needed
    unnamed.note(0, 10, "bad checksum")
    assert not unnamed.intact
    assert unnamed.severity == REMARKABLE


def test_a_directory_is_as_bad_as_its_worst_file() -> None:
    survey = Survey("db")
    assert survey.severity == SOUND
    survey.logs.append(LogSurvey("000003.log", 3, 100, True))
    survey.tables.append(TableSurvey("000005.ldb", 5, 100, -1))
    assert survey.severity == REMARKABLE
    survey.logs[0].note(0, 10, "bad checksum")
    assert survey.severity == DAMAGED
    assert [file.name for file in survey.files] == ["CURRENT", "000003.log", "000005.ldb"]


def test_levels_are_known_where_a_manifest_is_whole() -> None:
    survey = Survey("db")
    assert not survey.levels_known
    survey.manifest = ManifestSurvey(
        "MANIFEST-000004", 4, 100, True, Manifest("db/MANIFEST-000004")
    )
    assert not survey.levels_known
    survey.manifest.whole = True
    assert survey.levels_known


def test_the_levels_of_a_manifest_are_those_that_its_file_has(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with lsmkv.DB(path, create_if_missing=True) as db:
        for name in (b"ant", b"bee"):
            db.put(name, b"six")
            db.flush()
    found = survey_db(path).manifest
    assert found is not None
    with files.Manifest(path / found.name) as manifest:
        version = manifest.version()
    assert [set(level) for level in found.levels()] == [set(level) for level in version.levels]
    assert sum(map(len, version.levels)) == 2
    assert found.comparator == version.comparator == "leveldb.BytewiseComparator"


def test_a_hole_tells_the_user_keys_of_its_bounds() -> None:
    lower, upper = pack(b"a", 9, 1), pack(b"c", 3, 0)
    assert Hole(0, 10, "bad", lower, upper, []).user_range == (b"a", b"c")
    assert Hole(0, 10, "bad", None, None, []).user_range == (None, None)

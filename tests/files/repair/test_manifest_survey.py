"""Which MANIFEST a survey takes for the one in force, and MANIFESTs that state nonsense."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from stores import put_numbered

import lsmkv
from lsmkv import DB
from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.format.filenames import manifest_name
from lsmkv.engine.format.keys import pack
from lsmkv.engine.format.log import LogWriter
from lsmkv.engine.format.version_edit import FileMetaData, VersionEdit
from lsmkv.files.repair.report import REMARKABLE
from lsmkv.files.repair.survey import survey_db

SMALL: dict[str, Any] = {"block_size": 256, "compression": None, "seek_compaction": False}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with a table on level 1."""
    path = tmp_path / "db"
    with DB(path, create_if_missing=True, **SMALL) as db:
        put_numbered(db, b"key%02d", range(30), b"value")
        db.compact_range()
    return path


def test_manifests_are_ordered_by_number(store: Path) -> None:
    (manifest,) = store.glob("MANIFEST-*")
    edit = VersionEdit()
    edit.comparator = "leveldb.BytewiseComparator"
    edit.log_number, edit.next_file_number, edit.last_sequence = 0, 999_999, 1
    write_manifest(store, 999_998, edit)
    manifest.rename(store / "MANIFEST-1000000")
    (store / "CURRENT").unlink()
    found = survey_db(store, **SMALL)
    assert found.manifest is not None
    assert found.manifest.name == "MANIFEST-1000000"


def write_manifest(path: Path, number: int, edit: VersionEdit) -> None:
    with (
        LocalEnv().open_directory(str(path)) as directory,
        directory.create(manifest_name(number)) as file,
    ):
        LogWriter(file).add_record(edit.encode())


def hostile_edits() -> dict[str, VersionEdit]:
    edits: dict[str, VersionEdit] = {}

    def new(name: str) -> VersionEdit:
        edit = edits[name] = VersionEdit()
        edit.comparator = "leveldb.BytewiseComparator"
        edit.log_number, edit.prev_log_number = 0, 0
        edit.next_file_number, edit.last_sequence = 50, 500
        return edit

    def table(number: int, first: bytes = b"a", last: bytes = b"z", size: int = 9) -> FileMetaData:
        return FileMetaData(number, size, pack(first, 9, 1), pack(last, 9, 1))

    edit = new("overlap")
    edit.add_file(1, table(40))
    edit.add_file(1, table(41))
    edit = new("twice")
    edit.add_file(1, table(40))
    edit.add_file(2, table(40))
    new("backwards").add_file(1, table(40, b"z", b"a"))
    new("size").add_file(1, table(5, size=2**64 - 1))
    new("number").add_file(1, table(2**64 - 1))
    new("highest number").add_file(1, table(2**63 - 1))
    new("next file").next_file_number = 2**64 - 1
    new("last next file").next_file_number = 2**63 - 1
    new("sequence").last_sequence = 2**64 - 1
    new("last sequence").last_sequence = 2**56 - 1
    new("log").log_number = 2**64 - 1
    new("last log").log_number = 2**63 - 1
    new("nothing")
    edit = new("incomplete")
    edit.log_number = edit.next_file_number = edit.last_sequence = None
    return edits


@pytest.mark.parametrize("name", hostile_edits())
def test_hostile_manifests(store: Path, name: str) -> None:
    """Valid checksums and invalid contents raise only lsmkv's errors; the repair can be opened."""
    (manifest,) = store.glob("MANIFEST-*")
    manifest.unlink()
    write_manifest(store, 60, hostile_edits()[name])
    (store / "CURRENT").write_bytes(b"MANIFEST-000060\n")
    found = survey_db(store, **SMALL)
    assert found.files
    new = store.parent / "new"
    try:
        lsmkv.repair_db(store, into=new, **SMALL)
    except lsmkv.CorruptionError as error:
        assert "exhausted" in str(error)  # noqa: PT017
        assert not new.exists()
        return
    assert survey_db(new, **SMALL).severity <= REMARKABLE
    with DB(new, **SMALL) as db:
        db.check()

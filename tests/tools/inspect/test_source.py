from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from inspected import damage, levelled_store
from stores import contents, fill

import lsmkv
from lsmkv.format.filenames import FileType
from lsmkv.tools.inspect.plain import NotThereError
from lsmkv.tools.inspect.source import Source


def test_it_follows_a_live_writer(tmp_path: Path) -> None:
    path = str(tmp_path / "db")
    with (
        lsmkv.DB(path, create_if_missing=True) as writer,
        contextlib.closing(Source(path)) as source,
    ):
        assert source.db().get(b"k") is None
        writer.put(b"k", b"v")
        assert source.db().get(b"k") is None  # the MANIFEST has not moved
        assert source.db(newest=True).get(b"k") == b"v"
        writer.put(b"l", b"w")
        writer.flush()
        assert source.db().get(b"l") == b"w"
        assert source.db() is source.db()


def test_nothing_is_written(tmp_path: Path) -> None:
    path = levelled_store(tmp_path / "db")
    before = contents(str(path))
    with contextlib.closing(Source(str(path))) as source:
        source.db()
        source.start_check()
        assert source.finish_check().survey is not None
    assert contents(str(path)) == before


def test_a_store_that_cannot_be_opened_keeps_its_error(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with lsmkv.DB(path, create_if_missing=True) as db:
        fill(db)
        db.flush()
    manifest = next(path.glob("MANIFEST-*"))
    damage(manifest, 20)
    with contextlib.closing(Source(str(path))) as source:
        for _ in range(2):
            with pytest.raises(lsmkv.CorruptionError):
                source.db()
        assert source.manifest_name() == manifest.name
        (path / "CURRENT").write_bytes(b"../../etc/passwd\n")
        assert source.manifest_name() == manifest.name


@pytest.mark.parametrize(
    "name", ["../secret", "CURRENT", "/etc/passwd", "000001.log", "MANIFEST-000004", "", "x.ldb"]
)
def test_no_other_file_is_opened(made_store: Path, name: str) -> None:
    with contextlib.closing(Source(str(made_store))) as source, pytest.raises(NotThereError):
        source.open_file(name, FileType.TABLE)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    path = levelled_store(tmp_path / "db")
    os.symlink("/etc/passwd", path / "999999.ldb")
    with contextlib.closing(Source(str(path))) as source, pytest.raises(OSError, match="999999"):
        source.open_file("999999.ldb", FileType.TABLE)


def test_old_tables_have_their_old_name(tmp_path: Path) -> None:
    path = levelled_store(tmp_path / "db")
    table = sorted(path.glob("*.ldb"))[0]
    table.rename(table.with_suffix(".sst"))
    with contextlib.closing(Source(str(path))) as source:
        name_of = source.table_namer()
        assert name_of(int(table.stem)) == f"{table.stem}.sst"
        assert name_of(999) == "000999.ldb"


def test_closing_ends_a_check(made_store: Path) -> None:
    source = Source(str(made_store))
    source.start_check()
    source.close()
    assert not source.check.running


def test_a_directory_without_a_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(lsmkv.NotFoundError):
        Source(str(tmp_path))

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import pytest
from inspected import damage
from stores import contents, fill

import lsmkv
from lsmkv.indexeddb import IndexedDBComparator
from lsmkv.tools.inspect.plain import NotThereError
from lsmkv.tools.inspect.source import Source


def test_it_follows_a_live_writer(tmp_path: Path) -> None:
    path = str(tmp_path / "db")
    with (
        lsmkv.DB(path, create_if_missing=True) as writer,
        contextlib.closing(Source(path)) as source,
    ):
        assert source.db().get(b"k") is None
        for value in (b"v", b"w"):  # the second one changes neither a name nor the size of a file
            writer.put(b"k", value)
            assert source.db().get(b"k") == value
        writer.put(b"l", b"w")
        writer.flush()
        assert source.db().get(b"l") == b"w"
        assert source.db() is source.db()


def test_a_change_is_counted(tmp_path: Path) -> None:
    path = str(tmp_path / "db")
    with (
        lsmkv.DB(path, create_if_missing=True) as writer,
        contextlib.closing(Source(path)) as source,
    ):
        changes = [source.standing().change]
        for step in (lambda: writer.put(b"k", b"v"), lambda: writer.put(b"k", b"w"), writer.flush):
            step()
            changes.append(source.standing().change)
            assert source.standing().change == changes[-1]
        assert changes == sorted(set(changes))
        assert not source.standing().replaced


def test_a_table_has_its_level_as_long_as_it_is_in_the_store(path: Path) -> None:
    with contextlib.closing(Source(str(path))) as source:
        table = source.db().tables()[0]
        assert source.level_of(table.name) == table.level
        with lsmkv.DB(path) as writer:
            writer.put(b"word 00000", b"new")
            writer.compact_range()
        assert source.level_of(table.name) is None


GONE = {
    "deleted": (False, "was deleted, or renamed"),
    "made again": (True, "another store is there now"),
    "replaced": (False, "there is no store now"),
    "destroyed": (False, "was deleted, or renamed"),
    "emptied": (False, "was destroyed."),
    "emptied, and made again": (True, "was destroyed, and another was made"),
}


def take_away(path: Path, how: str) -> None:
    if how == "destroyed":
        lsmkv.destroy_db(path)
    elif how.startswith("emptied"):
        for one in path.iterdir():
            one.unlink()
    else:
        shutil.rmtree(path)
    if how == "replaced":
        path.mkdir()
    if how.endswith("made again"):
        with lsmkv.DB(path, create_if_missing=True) as db:
            db.put(b"k", b"another store")


@pytest.mark.parametrize("how", GONE)
def test_a_store_that_is_not_there_any_more_is_not_shown(path: Path, how: str) -> None:
    with contextlib.closing(Source(str(path))) as source:
        assert source.standing().replaced == ""
        take_away(path, how)
        another, words = GONE[how]
        for _ in range(2):
            with pytest.raises(lsmkv.DirectoryReplacedError):
                source.db()
            with pytest.raises(lsmkv.DirectoryReplacedError):
                source.require()
        standing = source.standing()
        assert words in standing.replaced
        assert str(path) in standing.replaced
        assert standing.another is another


def test_a_store_that_goes_before_the_first_question_is_not_shown(path: Path) -> None:
    with contextlib.closing(Source(str(path))) as source:
        take_away(path, "made again")
        with pytest.raises(lsmkv.DirectoryReplacedError):
            source.db()


def test_a_check_of_a_directory_that_is_replaced_meanwhile_finds_nothing(path: Path) -> None:
    with contextlib.closing(Source(str(path))) as source:
        source.db()
        take_away(path, "made again")
        source.start_check()
        check = source.finish_check()
    assert check.survey is None
    assert check.error == "the directory was replaced during the check"


def test_nothing_is_written(path: Path) -> None:
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
        before = source.standing().change
        assert source.standing().change == before
        assert source.manifest_name() == manifest.name
        (path / "CURRENT").write_bytes(b"../../etc/passwd\n")
        (path / "MANIFEST-000001").write_bytes(b"an older one")
        assert source.manifest_name() == manifest.name


@pytest.mark.parametrize(
    "name", ["../secret", "CURRENT", "/etc/passwd", "000001.log", "MANIFEST-000004", "", "x.ldb"]
)
def test_no_other_file_is_opened(made_store: Path, name: str) -> None:
    with contextlib.closing(Source(str(made_store))) as source, pytest.raises(NotThereError):
        source.open_table(name)


def test_a_link_is_not_followed(path: Path) -> None:
    os.symlink("/etc/passwd", path / "999999.ldb")
    with contextlib.closing(Source(str(path))) as source, pytest.raises(OSError, match="999999"):
        source.open_table("999999.ldb")


def test_old_tables_have_their_old_name(path: Path) -> None:
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


def test_a_check_is_ended_and_begins_again(made_store: Path) -> None:
    seen: list[tuple[int, int]] = []

    def end(done: int, total: int, _: str) -> None:
        seen.append((done, total))
        source.end_check()

    with contextlib.closing(Source(str(made_store))) as source:
        source.start_check(end)
        ended = source.finish_check()
        assert (ended.survey, ended.error) == (None, "the check was ended")
        assert len(seen) == 1
        source.start_check()
        assert source.finish_check().survey is not None


def test_the_key_order_of_a_store_that_cannot_be_opened_is_known(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with lsmkv.DB(path, create_if_missing=True, comparator=IndexedDBComparator()) as db:
        db.put(b"\x00\x01\x01\x01\x01\x01\x00a", b"v")
    (path / "CURRENT").unlink()
    with contextlib.closing(Source(str(path))) as source:
        with pytest.raises(lsmkv.Error):
            source.db()
        assert source.check.survey is None
        assert source.comparator == "idb_cmp1"


def test_a_directory_without_a_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(lsmkv.NotFoundError):
        Source(str(tmp_path))


@pytest.mark.parametrize("content", [None, b"", b"MANIFEST-000001\n", b"nonsense"])
def test_the_newest_manifest_stands_for_a_current_that_names_none(
    path: Path, content: bytes | None
) -> None:
    with contextlib.closing(Source(str(path))) as source:
        named = source.manifest_name()
        number = int(named.removeprefix("MANIFEST-"))
        for other in (number - 1, 10**6):
            shutil.copy(path / named, path / f"MANIFEST-{other:06}")
        assert source.manifest_name() == named
        (path / "CURRENT").unlink()
        if content is not None:
            (path / "CURRENT").write_bytes(content)
        assert source.manifest_name() == "MANIFEST-1000000"

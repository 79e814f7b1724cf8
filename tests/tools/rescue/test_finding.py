"""Stores are found by the names of their files, and zips are unpacked safely."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from commands import lsm
from damaged_folders import make_store, zipped
from stores import pairs_in

from lsmkv.tools.rescue.finding import Found, search, unpack


def found_in(path: Path) -> dict[str, Found]:
    return {found.place: found for found in search(str(path), lambda _: None).found}


def only(path: Path) -> Found:
    (found,) = search(str(path), lambda _: None).found
    return found


STORES = {
    "complete": ["CURRENT", "MANIFEST-000004", "000003.log", "LOCK"],
    "CURRENT alone": ["CURRENT"],
    "a table alone": ["000005.ldb"],
    "an old table": ["000005.sst"],
    "a log alone": ["000003.log"],
    "a MANIFEST alone": ["MANIFEST-000004"],
    "many digits": ["1234567.ldb"],
}
OTHERS = {
    "LOCK alone": ["LOCK"],
    "words": ["notes.txt", "report.log", "12.log"],
    "a profile": ["Preferences", "LOG"],
}


@pytest.mark.parametrize("names", STORES.values(), ids=STORES)
def test_a_directory_with_a_file_of_a_store_is_one(tmp_path: Path, names: list[str]) -> None:
    inner = tmp_path / "two words" / "inner"
    inner.mkdir(parents=True)
    for name in names:
        (inner / name).touch()
    assert list(found_in(tmp_path)) == ["two words/inner"]
    assert only(inner).path == str(inner)
    assert only(inner / names[0]).path == str(inner)  # a file of the store, for want of its folder
    archive = zipped(tmp_path, tmp_path.with_suffix(".zip"))
    assert list(found_in(archive)) == ["two words/inner"]


@pytest.mark.parametrize("names", OTHERS.values(), ids=OTHERS)
def test_other_directories_are_none(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).touch()
    assert found_in(tmp_path) == {}


def test_the_logs_in_lost_are_no_store_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "s" / "lost").mkdir(parents=True)
    (tmp_path / "s" / "CURRENT").touch()
    (tmp_path / "s" / "lost" / "000003.log").touch()
    assert list(found_in(tmp_path)) == ["s"]
    assert list(found_in(zipped(tmp_path, tmp_path.with_suffix(".zip")))) == ["s"]


def test_links_to_directories_are_not_followed(tmp_path: Path) -> None:
    make_store(tmp_path / "s")
    (tmp_path / "again").symlink_to(tmp_path)
    assert list(found_in(tmp_path)) == ["s"]


def test_a_broken_zip_in_a_folder_is_named(tmp_path: Path) -> None:
    make_store(tmp_path / "s")
    (tmp_path / "w.mcworld").write_bytes(b"PK\3\4 cut")
    done = lsm("rescue", tmp_path)
    assert done.status == 0
    assert f"not searched: {tmp_path / 'w.mcworld'}" in done.err


# Unpacking

HOSTILE = [
    "../000009.ldb",
    "s/../../000009.ldb",
    "/000009.ldb",
    "s//000009.ldb",
    "s\\..\\..\\000009.ldb",
    "C:/000009.ldb",
    "s/./000009.ldb",
    "s/lost/../000009.ldb",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_no_member_leaves_the_working_copy(tmp_path: Path, name: str) -> None:
    truth = make_store(tmp_path / "made" / "s", damaged=True)
    archive = zipped(tmp_path / "made", tmp_path / "w.zip")
    shutil.rmtree(tmp_path / "made")
    with zipfile.ZipFile(archive, "a") as file:
        member = zipfile.ZipInfo("placeholder")
        member.filename = name
        file.writestr(member, b"hostile")
    before = sorted(os.listdir(tmp_path.parent))
    assert lsm("rescue", archive).status == 0
    assert sorted(os.listdir(tmp_path)) == ["w.rescued", "w.zip"]
    assert sorted(os.listdir(tmp_path.parent)) == before
    assert not any(b"hostile" in file.read_bytes() for file in tmp_path.rglob("*.ldb"))
    assert pairs_in(tmp_path / "w.rescued" / "s") == truth


def test_a_link_in_a_zip_is_left_out(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    with zipfile.ZipFile(tmp_path / "w.zip", "w") as file:
        file.writestr("s/CURRENT", "MANIFEST-000004\n")
        member = zipfile.ZipInfo("s/000005.ldb")
        member.external_attr = (stat.S_IFLNK | 0o777) << 16
        file.writestr(member, str(secret))
    found = only(tmp_path / "w.zip")
    unpack(found, str(tmp_path / "out"), lambda _done, _total: None)
    assert os.listdir(tmp_path / "out") == ["CURRENT"]


def test_only_files_of_the_store_are_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "w.zip", "w") as file:
        for name in ("CURRENT", "000005.ldb", "notes.txt", "x/y.ldb", "lost/000003.log", "lost/a"):
            file.writestr(f"s/{name}", "")
    unpack(only(tmp_path / "w.zip"), str(tmp_path / "out"), lambda _done, _total: None)
    found = sorted(str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*.*"))
    assert found == ["000005.ldb", "lost/000003.log"]


def test_a_bomb_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "w.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("s/000005.ldb", bytes(4 << 20))
    assert archive.stat().st_size < 1 << 16
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 20))
    with pytest.raises(OSError, match="does not fit") as caught:
        unpack(only(archive), str(tmp_path / "out"), lambda _done, _total: None)
    assert caught.value.errno == errno.ENOSPC
    done = lsm("rescue", archive)
    assert (done.status, done.out) == (2, "")
    assert "the disk is full: --into NEW takes another one" in done.err
    shutil.rmtree(tmp_path / "out")
    assert os.listdir(tmp_path) == ["w.zip"]


def test_a_bomb_that_states_a_small_size_ends_there(tmp_path: Path) -> None:
    archive = tmp_path / "w.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("s/000005.ldb", bytes(4 << 20))
    stated = (4 << 20).to_bytes(4, "little")
    archive.write_bytes(archive.read_bytes().replace(stated, (1000).to_bytes(4, "little")))
    remarks = unpack(only(archive), str(tmp_path / "out"), lambda _done, _total: None)
    assert (tmp_path / "out" / "000005.ldb").stat().st_size <= 1000
    assert len(remarks) == 1


def test_a_damaged_member_is_unpacked_as_far_as_it_can_be_read(tmp_path: Path) -> None:
    archive = tmp_path / "w.zip"
    with zipfile.ZipFile(archive, "w") as file:  # stored
        file.writestr("s/000005.ldb", b"x" * 5000)
    data = bytearray(archive.read_bytes())
    data[2000] ^= 1
    archive.write_bytes(data)
    remarks = unpack(only(archive), str(tmp_path / "out"), lambda _done, _total: None)
    assert "000005.ldb is damaged in the zip" in remarks[0]

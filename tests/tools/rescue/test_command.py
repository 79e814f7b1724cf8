"""``lsmkv rescue``: from a folder or a zip to a sound store in its place."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from commands import ctrl_c_at_progress, fails, lsm, on_terminal
from damaged_folders import all_bytes, make_foreign, make_store, make_world, zipped
from stores import pairs_in

import lsmkv
from lsmkv.indexeddb import IndexedDBComparator
from lsmkv.tools.rescue import command


def put_back(*commands: str) -> None:
    for line in commands:
        line = line.replace("python -m", f"{shlex.quote(sys.executable)} -m")
        subprocess.run(line, shell=True, check=True)


PLACES = [
    "store",
    "two words/ключ ü",
    "Local Storage/leveldb",
    "a/b/c/d/https_example.org_0.indexeddb.leveldb",
]


@pytest.mark.parametrize("place", PLACES)
def test_a_store_below_a_folder(tmp_path: Path, place: str) -> None:
    folder = tmp_path / "the folder"
    truth = make_store(folder / place)
    before = all_bytes(folder)
    done = lsm("rescue", folder)
    assert (done.status, done.err) == (0, "")
    new = tmp_path / "the folder.rescued"
    assert pairs_in(new / place) == truth
    assert all_bytes(folder) == before
    assert sorted(os.listdir(tmp_path)) == ["the folder", "the folder.rescued"]
    assert str(new / place) in done.out
    assert "Nothing in it was changed." in done.out
    assert lsm("verify", new / place).status == 0


def test_the_commands_put_it_back(tmp_path: Path) -> None:
    folder = tmp_path / "it's a folder"
    places = ["Local Storage/leveldb", "Session Storage"]
    truth = [make_store(folder / place) for place in places]
    found = json.loads(lsm("rescue", folder, "--json").out)
    for store in found["stores"]:
        put_back(*store["put_back"])
    assert [pairs_in(folder / place) for place in places] == truth
    assert (folder / "Local Storage" / "leveldb.damaged").is_dir()


def test_the_shown_commands_can_be_pasted(tmp_path: Path) -> None:
    folder = tmp_path / ("a long name " * 6)
    truth = make_store(folder / "Local Storage" / "leveldb")
    lines = lsm("rescue", folder).out.splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("     mv"))
    last = next(at for at, line in enumerate(lines) if line.startswith("  3. "))
    put_back("\n".join(lines[first:last]))
    assert pairs_in(folder / "Local Storage" / "leveldb") == truth


@pytest.mark.parametrize("extension", ["zip", "mcworld"])
@pytest.mark.parametrize("in_folder", [False, True])
def test_a_world_in_a_zip(tmp_path: Path, extension: str, in_folder: bool) -> None:
    truth = make_world(tmp_path / "made")
    home = tmp_path / "home"
    home.mkdir()
    world = zipped(tmp_path / "made", home / f"my world.{extension}")
    shutil.rmtree(tmp_path / "made")
    before = all_bytes(home)
    found = json.loads(lsm("rescue", home if in_folder else world, "--json").out)
    assert all_bytes(home) == before or not in_folder
    (store,) = found["stores"]
    assert store["owner"] == "the world 'My World' of Minecraft's Bedrock edition"
    assert (store["path"], store["in_zip"]) == (str(world), "db")
    with lsmkv.DB(store["made"], read_only=True) as db:
        assert dict(db) == truth
        assert db.stats().compression == "zlib-raw"
    put_back(*store["put_back"])
    with zipfile.ZipFile(home / f"my world.new.{extension}") as archive:
        assert {"level.dat", "levelname.txt", "db/CURRENT"} <= set(archive.namelist())
        archive.extractall(tmp_path / "again")
    assert pairs_in(tmp_path / "again" / "db") == truth


def test_what_is_sound_is_named_and_nothing_is_made_of_it(tmp_path: Path) -> None:
    make_store(tmp_path / "store", damaged=False)
    done = lsm("rescue", tmp_path / "store")
    assert (done.status, done.err) == (0, "")
    assert "It is sound: all of it was checked, and 300 entries can be read." in done.out
    assert "How to put the result back" not in done.out
    assert os.listdir(tmp_path) == ["store"]


def test_another_engine_is_named_and_the_others_are_rescued(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    make_foreign(folder / "rocks")
    truth = make_store(folder / "store")
    done = lsm("rescue", folder)
    assert done.status == 2
    assert "RocksDB, another engine" in done.out
    assert pairs_in(tmp_path / "folder.rescued" / "store") == truth
    assert os.listdir(tmp_path / "folder.rescued") == ["store"]
    done = lsm("rescue", folder / "rocks")
    assert done.status == 2
    assert "use the tools of RocksDB" in done.out


def test_a_running_program_is_named(tmp_path: Path) -> None:
    make_store(tmp_path / "store", damaged=False)
    with lsmkv.DB(tmp_path / "store"):
        done = lsm("rescue", tmp_path / "store")
    assert done.status == 2
    assert "in use" in done.out
    assert os.listdir(tmp_path) == ["store"]


def test_an_indexeddb_without_a_manifest(tmp_path: Path) -> None:
    place = tmp_path / "IndexedDB" / "https_example.org_0.indexeddb.leveldb"
    place.parent.mkdir()
    start = b"\0\1\1\1\3" + bytes(6)  # then the two highest bytes of a double
    keys = [start + bytes([16 * (n % 16), 0x40 + n // 16]) for n in range(200)]
    with lsmkv.DB(place, create_if_missing=True, comparator=IndexedDBComparator()) as db:
        for key in keys:
            db.put(key, b"record")
        db.compact_range()
    next(place.glob("MANIFEST-*")).unlink()
    (store,) = json.loads(lsm("rescue", tmp_path / "IndexedDB", "--json").out)["stores"]
    assert store["comparator"] == "idb_cmp1"
    assert store["owner"].startswith("IndexedDB of https://example.org")
    assert list(pairs_in(Path(store["made"]))) == keys


def test_into_and_a_way(tmp_path: Path) -> None:
    make_store(tmp_path / "store")
    new = tmp_path / "new"
    found = json.loads(
        lsm("rescue", tmp_path / "store", "--into", new, "--way", "by-sequence", "--json").out
    )
    assert found["into"] == str(new)
    (store,) = found["stores"]
    assert (store["recommended"], store["made_by"], store["made"]) == (
        "by-level",
        "by-sequence",
        str(new),
    )
    assert len(pairs_in(new)) == 300


def test_targets_that_are_refused(tmp_path: Path) -> None:
    make_store(tmp_path / "store")
    (tmp_path / "store" / "lost").mkdir()
    before = sorted(os.listdir(tmp_path / "store"))
    for inside in ("new", "lost/new"):
        into = tmp_path / "store" / inside
        fails(lsm("rescue", tmp_path / "store", "--into", into), "in the folder")
    fails(lsm("rescue", tmp_path / "store", "--into", tmp_path), "exists")
    fails(lsm("rescue", tmp_path / "store", "--into", tmp_path / "no" / "new"), "no")
    assert sorted(os.listdir(tmp_path / "store")) == before
    assert os.listdir(tmp_path) == ["store"]


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("precious")
    fails(lsm("rescue", tmp_path / "empty"), "no store is there")
    fails(lsm("rescue", tmp_path / "text"), "neither a folder nor a zip")
    fails(lsm("rescue", tmp_path / "none"), "none", "No such file")


def test_a_second_rescue_takes_another_name(tmp_path: Path) -> None:
    make_store(tmp_path / "store")
    for _ in range(2):
        assert lsm("rescue", tmp_path / "store").status == 0
    assert sorted(os.listdir(tmp_path)) == ["store", "store.rescued", "store.rescued-2"]


def test_beside_a_read_only_folder_the_current_directory_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, here = tmp_path / "disk", tmp_path / "here"
    truth = make_store(disk / "store")
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != str(disk))
    for file in (disk / "store").iterdir():
        file.chmod(stat.S_IRUSR)
    (disk / "store").chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert lsm("rescue", disk / "store").status == 0
    finally:
        (disk / "store").chmod(stat.S_IRWXU)
    assert pairs_in(here / "store.rescued") == truth
    assert os.listdir(disk) == ["store"]


def test_ctrl_c_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_store(tmp_path / "store")
    before = all_bytes(tmp_path)
    with ctrl_c_at_progress(monkeypatch, command):
        done = lsm("rescue", tmp_path / "store")
    assert (done.status, done.out, done.err) == (130, "", "lsmkv: interrupted\n")
    assert all_bytes(tmp_path) == before
    assert os.listdir(tmp_path) == ["store"]


@pytest.mark.parametrize("columns", [80, 120])
def test_the_text_fits_the_terminal(tmp_path: Path, columns: int) -> None:
    make_store(tmp_path / "Local Storage" / "leveldb")
    status, shown = on_terminal("rescue", tmp_path, "--into", f"{tmp_path}.new", columns=columns)
    assert status == 0
    others = [line for line in shown.splitlines() if str(tmp_path) not in line]
    assert len(others) > 15
    assert max(map(len, others)) <= columns

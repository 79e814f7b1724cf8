"""Messages of commands that meet damage end in the command that leads on."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest
from commands import fails, lsm
from stores import flip, log_of, put_numbered

import lsmkv
from lsmkv.errors import CorruptionError, IOError
from lsmkv.tools.next_step import command_line, next_step, stores_below

READERS: dict[str, list[str]] = {
    "get": ["k0001"],
    "scan": [],
    "keys": [],
    "count": [],
    "export": [],
    "explain": ["k0001"],
    "checkpoint": ["copy"],
    "put": ["k", "v"],
    "delete": ["k"],
    "compact": [],
}


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A store, in a folder with a space in its name, without the table that its MANIFEST names."""
    path = tmp_path / "Local Storage" / "leveldb"
    path.parent.mkdir()
    with lsmkv.DB(path, create_if_missing=True) as db:
        put_numbered(db, b"k%04d", range(100), b"value")
        db.flush()
    (table,) = path.glob("*.ldb")
    table.unlink()
    return path


@pytest.mark.parametrize("command", READERS)
def test_every_command_names_the_command_that_rescues_the_store(
    broken: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (broken / "CURRENT").unlink()
    flip(log_of(broken), 0) if log_of(broken).stat().st_size else log_of(broken).write_bytes(b"x")
    done = lsm(command, "Local Storage/leveldb", *READERS[command])
    fails(done, "CURRENT is missing", "; next: lsmkv rescue 'Local Storage/leveldb'\n")


@pytest.mark.parametrize("command", ["scan", "count", "approximate-sizes", "stats"])
def test_so_does_one_that_meets_a_damaged_table(broken: Path, command: str) -> None:
    done = lsm(command, broken)
    fails(done, ".ldb: the table is missing; next: lsmkv rescue '", "leveldb'\n")


def test_a_damaged_block_is_met_while_reading(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with lsmkv.DB(store, create_if_missing=True, block_size=512) as db:
        put_numbered(db, b"k%04d", range(200), b"value" * 10)
        db.flush()
    (table,) = store.glob("*.ldb")
    flip(table, 1500)
    done = lsm("count", store)
    assert done.status == 2
    assert done.err.endswith(f"; next: lsmkv rescue {store}\n")


def test_a_folder_of_stores_is_answered_with_the_store(broken: Path) -> None:
    fails(lsm("get", broken.parent, "k"), f"no database here; there is one in {broken}\n")
    shutil.copytree(broken, broken.parent / "other")
    fails(lsm("get", broken.parent, "k"), f"{broken} and 1 more\n")
    assert stores_below(str(broken.parents[1])) == [str(broken), str(broken.parent / "other")]


def test_a_store_that_only_has_a_manifest_is_one_to_rescue(broken: Path) -> None:
    for path in broken.iterdir():
        if path.is_file() and not path.name.startswith("MANIFEST"):
            path.unlink()
    fails(lsm("get", broken, "k"), "no database here; next: lsmkv rescue '")


def test_nothing_is_named_where_nothing_is_to_be_rescued(tmp_path: Path) -> None:
    assert lsm("get", tmp_path / "none", "k").err.endswith(": no database here\n")
    assert lsm("get", tmp_path, "k").err.endswith(": no database here\n")
    other = CorruptionError("bad", str(tmp_path / "data.raw"), 0)
    assert next_step(other, str(tmp_path), "import_") == ""
    assert next_step(CorruptionError("bad"), None, "get") == ""


def test_the_rescue_does_not_name_itself(broken: Path) -> None:
    damage = CorruptionError("bad", str(broken / "000005.ldb"), 0)
    assert next_step(damage, None, "get") == f"; next: lsmkv rescue '{broken}'"
    assert next_step(damage, None, "rescue") == ""
    kept = CorruptionError("bad", str(broken / "lost" / "000005.log"), 0)
    assert next_step(kept, None, "get") == f"; next: lsmkv rescue '{broken}'"


def test_a_bad_sector_is_damage_and_other_errors_are_none(broken: Path) -> None:
    path = str(broken / "000005.ldb")
    assert "lsmkv rescue" in next_step(IOError(errno.EIO, "Input/output error", path), None, "get")
    assert next_step(IOError(errno.EACCES, "Permission denied", path), None, "get") == ""


def test_a_damaged_shard_is_found_by_verify(url: Path, tmp_path: Path) -> None:
    copied = tmp_path / "set"
    shutil.copytree(url, copied)
    for meta in copied.rglob("META"):
        flip(meta, 40)
    done = lsm("scan", copied)
    fails(done, "META", f"; next: lsmkv verify {copied}\n")
    assert lsm("scan", f"file://{copied}").err.endswith(f"; next: lsmkv verify file://{copied}\n")


@pytest.mark.parametrize(
    ("system", "path", "typed"),
    [
        ("posix", "my store", "lsmkv rescue 'my store'"),
        ("posix", "~/my store", "lsmkv rescue ~/'my store'"),
        ("posix", "~", "lsmkv rescue '~'"),
        ("nt", "C:\\my store", 'lsmkv rescue "C:\\my store"'),
        ("nt", "C:\\store", "lsmkv rescue C:\\store"),
    ],
)
def test_a_path_is_quoted_for_the_shell(
    monkeypatch: pytest.MonkeyPatch, system: str, path: str, typed: str
) -> None:
    monkeypatch.setattr("lsmkv.tools.next_step.os.name", system)
    assert command_line("lsmkv", "rescue", path) == typed

"""``lsmkv checkpoint``, ``compact``, ``destroy`` and ``approximate-sizes``."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from commands import Done, ctrl_c_at_progress, fails, lsm
from started import into, on_a_terminal
from stores import pairs_in, put_numbered

import lsmkv
from lsmkv.tools import maintenance

TINY: dict[str, Any] = {"write_buffer_size": 4096, "max_file_size": 4096, "compression": None}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store whose tables lie on several levels, with much that is overwritten."""
    path = tmp_path / "store"
    with lsmkv.DB(path, create_if_missing=True, **TINY) as db:
        for turn in range(5):
            put_numbered(db, b"%03d", range(200), b"%d" % turn * 50)
    return path


# checkpoint


def test_checkpoint(store: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    done = lsm("checkpoint", store, new)
    tables = len(list(new.glob("*.ldb")))
    assert tables > 1
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(f"{new}: {tables} tables, ")
    assert done.out.endswith(" KiB, linked\n")
    assert pairs_in(new) == pairs_in(store)
    assert lsm("diff", store, new, "-q").status == 0
    with lsmkv.DB(new) as db:
        db.put(b"new", b"")
    assert b"new" not in pairs_in(store)


def test_checkpoint_as_json(store: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    figures = json.loads(lsm("checkpoint", store, new, "--json").out)
    tables = list(new.glob("*.ldb"))
    assert figures == {
        "path": str(store),
        "checkpoint": str(new),
        "tables": len(tables),
        "tables_linked": len(tables),
        "bytes": sum(table.stat().st_size for table in tables),
    }


def test_checkpoint_says_how_many_tables_were_copied(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Copied(lsmkv.DB):
        """Makes a checkpoint as on a file system that refuses one of the links."""

        def checkpoint(self, path: Any, *, progress: Any = None) -> None:
            super().checkpoint(path, progress=progress)
            table = next(Path(path).glob("*.ldb"))
            table_bytes = table.read_bytes()
            table.unlink()
            table.write_bytes(table_bytes)

    monkeypatch.setattr(maintenance, "open_to_write", Copied)
    done = lsm("checkpoint", store, tmp_path / "other")
    linked = len(list((tmp_path / "other").glob("*.ldb"))) - 1
    assert f"{linked} linked, 1 copied" in done.out


def test_checkpoint_refuses_an_existing_path(store: Path, tmp_path: Path) -> None:
    before = sorted(os.listdir(store))
    for new in (store, tmp_path / "file", tmp_path / "link"):
        if new.name == "file":
            new.write_bytes(b"precious")
        elif new.name == "link":
            new.symlink_to("nowhere")
        fails(lsm("checkpoint", store, new), f"{new}: File exists")
    assert (tmp_path / "file").read_bytes() == b"precious"
    assert sorted(os.listdir(store)) == before  # it was not even opened
    fails(lsm("checkpoint", store, tmp_path / "no" / "new"), "No such file or directory")


# compact


def test_compact(store: Path) -> None:
    before = pairs_in(store)
    done = lsm("compact", store)
    assert (done.status, done.err) == (0, "")
    first, second = done.out.splitlines()
    assert first.startswith("before: ")
    assert second.startswith("after: ")
    assert pairs_in(store) == before
    with lsmkv.DB(store, read_only=True) as db:
        assert sum(level.files > 0 for level in db.stats().levels) == 1


def test_compact_as_json(store: Path) -> None:
    figures = json.loads(lsm("compact", store, "--json").out)
    assert figures["path"] == str(store)
    assert figures["before"]["bytes"] > figures["after"]["bytes"] > 0
    with lsmkv.DB(store, read_only=True) as db:
        tables = db.tables()
    after = {"tables": len(tables), "bytes": sum(table.size for table in tables)}
    assert figures["after"] == after
    assert figures["seconds"] >= 0


@pytest.mark.parametrize("options", [["--start", "050"], ["--start", "303530", "--hex"]])
def test_compact_a_range(store: Path, options: list[str]) -> None:
    with lsmkv.DB(store, **TINY) as db:
        db.compact_range()
        deepest = max(table.level for table in db.tables())
        for number in (1, 50, 199):
            db.put(b"%03d" % number, b"new")
            db.flush()
        moved = {table.smallest for table in db.tables() if table.level < deepest}
        assert moved == {b"001", b"050", b"199"}
    stop = ["--stop", "303530" if "--hex" in options else "050"]
    assert lsm("compact", store, *options, *stop).status == 0
    with lsmkv.DB(store, read_only=True) as db:
        left = {table.smallest for table in db.tables() if table.level < deepest}
    assert b"050" not in left
    assert b"199" in left


@pytest.mark.parametrize(
    ("options", "filters", "prefixes"),
    [
        (["--filter", "bloom64"], [("table", "lsmkv.Bloom64")], False),
        (["--filter", "fuse", "--prefix", ":"], [("table", "lsmkv.BinaryFuse8")], True),
        (
            ["--filter", "bloom:12", "--filter-layout", "both"],
            [
                *(
                    ("table", "leveldb.BuiltinBloomFilter2"),
                    ("block", "leveldb.BuiltinBloomFilter2"),
                ),
            ],
            False,
        ),
        (["--filter", "auto:10"], [("block", "leveldb.BuiltinBloomFilter2")], False),
        (["--filter", "bloom64:16,12,10"], [("table", "lsmkv.Bloom64")], False),
        (["--filter", "bloom", "--prefix", "3"], [("block", "leveldb.BuiltinBloomFilter2")], True),
        (["--filter", "none"], [], False),
    ],
)
def test_compact_rewrites_filters(
    store: Path, options: list[str], filters: list[tuple[str, str]], prefixes: bool
) -> None:
    before = pairs_in(store)
    done = lsm("compact", store, *options)
    assert done.status == 0, done.err
    assert done.out.startswith("before: ")
    sizes = json.loads(lsm("compact", store, *options, "--json").out)
    assert (sizes["after"]["filter_bytes"] > 0) == bool(filters)
    assert done.out.endswith("of it filters of keys\n")
    with lsmkv.DB(store, prefix_extractor=b":" if ":" in options else 3) as db:
        assert dict(db) == before
        opened: Any = db._store
        tables = [
            opened.tables.find(file) for files in opened.versions.current.levels for file in files
        ]
        assert tables
        for table in tables:
            assert [(one.layout, one.policy.name) for one in table.filters.readers] == filters
            assert (table.prefix_filter is not None) == prefixes


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--filter", "ribbon"], "a filter is 'bloom', 'bloom64', 'fuse' or 'none'"),
        (["--filter", "bloom64:x"], "'bloom64:x'"),
        (["--filter", "fuse:auto:10"], "bloom_filter_bits"),
        (["--filter", "fuse", "--filter-layout", "block"], "whole tables"),
        (["--filter", "fuse", "--start", "a"], "without --start"),
        (["--filter-layout", "both"], "--filter-layout and --prefix require --filter"),
        (["--filter", "bloom", "--filter-layout", "page"], "'block', 'table' or 'both'"),
        (["--filter", "fuse", "--prefix", "0"], "at least 1 byte"),
        (["--prefix", "3"], "--prefix require --filter"),
    ],
)
def test_filters_that_are_refused(store: Path, options: list[str], words: str) -> None:
    fails(lsm("compact", store, *options), words)


def test_progress_of_a_compaction(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int, str]] = []

    @contextmanager
    def listening(description: str, unit: str) -> Iterator[Any]:
        yield SimpleNamespace(report=lambda *step: seen.append(step))

    monkeypatch.setattr(maintenance, "progress", listening)
    assert lsm("compact", store).status == 0
    assert seen
    assert all(done <= total for done, total, _ in seen)
    assert seen[-1][0] == seen[-1][1]


def test_ctrl_c_cancels_a_compaction(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = pairs_in(store)
    with ctrl_c_at_progress(monkeypatch, maintenance):
        done = lsm("compact", store)
    assert (done.status, done.out) == (130, "")
    assert done.err == (
        "lsmkv: cancelled: the levels compacted so far stay compacted, the rest is unchanged\n"
    )
    assert pairs_in(store) == before


def test_progress_of_a_compaction_on_a_terminal(store: Path) -> None:
    compact = on_a_terminal("stderr", "compact", store)
    assert compact.status == 0
    assert compact.out.startswith(b"before: ")
    assert b"Compacting" in compact.terminal


# destroy


def test_destroy(store: Path) -> None:
    files = {path.name: path.stat().st_size for path in store.iterdir()}
    figures = json.loads(lsm("destroy", store, "--yes", "--json").out)
    assert figures["removed"] == sorted(files)
    assert figures == {
        "path": str(store),
        "removed": sorted(files),
        "left": [],
        "bytes": sum(files.values()),
        "directory_removed": True,
    }
    assert not store.exists()


def test_destroy_leaves_foreign_files_and_names_them(store: Path) -> None:
    (store / "notes\n.txt").write_bytes(b"precious")
    (store / "lost").mkdir()
    (store / "lost" / "000003.log").write_bytes(b"set aside")
    (store / "lost" / "mine").write_bytes(b"precious")
    files = sum(len(names) for _, _, names in os.walk(store))
    done = lsm("destroy", store, "--yes")
    assert (done.status, done.err) == (0, "")
    first, *rest = done.out.splitlines()
    assert first.startswith(f"removed {files - 2} files, ")
    assert rest == ["left lost/mine", "left notes\\n.txt"]
    assert sorted(os.listdir(store)) == ["lost", "notes\n.txt"]
    assert os.listdir(store / "lost") == ["mine"]


def test_destroy_without_a_terminal_needs_yes(store: Path) -> None:
    before = sorted(os.listdir(store))
    fails(lsm("destroy", store), "--yes")
    assert sorted(os.listdir(store)) == before


@pytest.mark.parametrize(("answer", "status"), [(b"y\n", 0), (b"n\n", 1), (b"\n", 1)])
def test_destroy_asks_on_a_terminal(store: Path, answer: bytes, status: int) -> None:
    destroy = on_a_terminal("stdin", "destroy", store, stdin=answer)
    assert destroy.status == status
    assert f"Destroy the database in {store}".encode() in destroy.err
    assert store.exists() == (status != 0)
    assert destroy.out.startswith(b"removed " if status == 0 else b"")
    assert (b"nothing was removed" in destroy.err) == (status != 0)


def test_destroy_refuses_a_directory_without_a_store(tmp_path: Path) -> None:
    for name, files in (
        ("empty", []),
        ("logs", ["1.log", "000002.log", "LOG", "LOCK", "CURRENT"]),
        ("notes", ["notes.txt"]),
    ):
        (tmp_path / name).mkdir()
        for file in files:
            (tmp_path / name / file).write_bytes(b"precious")
        fails(lsm("destroy", tmp_path / name, "--yes"), f"{tmp_path / name}: no database here")
        assert sorted(os.listdir(tmp_path / name)) == sorted(files)
    fails(lsm("destroy", tmp_path / "none", "--yes"), "none: No such file or directory")
    fails(lsm("destroy", tmp_path / "notes" / "notes.txt", "--yes"), "Not a directory")


def test_destroy_refuses_another_engine_s_database(store: Path) -> None:
    (manifest,) = store.glob("MANIFEST-*")
    content = manifest.read_bytes()
    manifest.write_bytes(b"another engine's")
    (store / "IDENTITY").write_bytes(b"")
    before = sorted(os.listdir(store))
    fails(lsm("destroy", store, "--yes"), "RocksDB")
    assert sorted(os.listdir(store)) == before
    manifest.write_bytes(content)  # LevelDB's MANIFEST counts for more than a file named IDENTITY
    assert lsm("destroy", store, "--yes").out.splitlines()[1:] == ["left IDENTITY"]


def test_destroy_accepts_a_damaged_store(store: Path) -> None:
    (store / "CURRENT").unlink()
    assert lsm("destroy", store, "--yes").status == 0
    assert not store.exists()


def test_destroy_refuses_a_store_in_use(store: Path) -> None:
    with lsmkv.DB(store) as db:
        fails(lsm("destroy", store, "--yes"), "in use")
        assert db.get(b"000") is not None
    assert len(pairs_in(store)) == 200


def test_destroy_refuses_a_store_whose_writer_removes_files(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file disappears between the listing of the directory and its lstat."""
    lstat = os.lstat

    def racing(path: str) -> os.stat_result:
        if path.endswith("LOG"):
            os.rename(path, path + ".moved")
        return lstat(path)

    with lsmkv.DB(store):
        monkeypatch.setattr(maintenance.os, "lstat", racing)
        fails(lsm("destroy", store, "--yes"), "in use")


# approximate-sizes


def test_approximate_sizes(store: Path) -> None:
    with lsmkv.DB(store, **TINY) as db:
        db.compact_range()
    with lsmkv.DB(store, read_only=True) as db:
        sizes = db.approximate_sizes((b"000", b"100"), (b"100", b"\xff"))
        total = sum(table.size for table in db.tables())
    assert all(size > 0 for size in sizes)
    before = sorted(os.listdir(store))
    done = lsm("approximate-sizes", store, "000", "100", "100", os.fsdecode(b"\xff"))
    assert done == Done(0, f"{sizes[0]}\t000\t100\n{sizes[1]}\t100\t\\xff\n", "")
    done = lsm("approximate-sizes", store, "303030", "313030", "--hex")
    assert done == Done(0, f"{sizes[0]}\t303030\t313030\n", "")
    assert lsm("approximate-sizes", store) == Done(0, f"{total}\t000\t199\n", "")
    done = lsm("approximate-sizes", store, "000", os.fsdecode(b"\xff"), "--json")
    assert json.loads(done.out) == {
        "path": str(store),
        "bytes": total,
        "ranges": [{"bytes": sum(sizes), "start": "000", "stop_base64": "/w=="}],
    }
    assert sorted(os.listdir(store)) == before


def test_approximate_sizes_requires_pairs(store: Path) -> None:
    fails(lsm("approximate-sizes", store, "a", "b", "c"), "pairs", "3 keys")


def test_approximate_sizes_of_an_empty_store(tmp_path: Path) -> None:
    lsmkv.DB(tmp_path / "db", create_if_missing=True).close()
    assert lsm("approximate-sizes", tmp_path / "db") == Done(0, "", "")
    done = lsm("approximate-sizes", tmp_path / "db", "--json")
    assert json.loads(done.out)["ranges"] == []


# All commands


@pytest.mark.parametrize(
    "command",
    ["checkpoint", "compact", "destroy", "approximate-sizes", "diff", "export", "import"],
)
def test_every_command_has_help(command: str) -> None:
    done = lsm(command, "--help")
    assert done.status == 0
    assert command in done.out
    assert "JSON" in done.out
    assert f" {command} " in lsm("--help").out


@pytest.mark.parametrize(
    "command",
    [["checkpoint", "DIR", "NEW"], ["compact", "DIR"], ["approximate-sizes", "DIR"]],
)
def test_nothing_creates_a_store_by_accident(command: list[str], tmp_path: Path) -> None:
    command = [str(tmp_path / word) if word.isupper() else word for word in command]
    fails(lsm(*command), "DIR: no database here")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("command", ["approximate-sizes", "diff", "export"])
def test_a_full_disk_behind_stdout(store: Path, tmp_path: Path, command: str) -> None:
    other = tmp_path / "other"
    lsmkv.DB(other, create_if_missing=True).close()
    arguments = [command, store, *([other] if command == "diff" else [])]
    status, err = into("/dev/full", *arguments)
    assert status == 2
    assert err.splitlines()[-1] == b"lsmkv: No space left on device"


def test_checkpoint_and_verify_while_another_process_has_the_store_open(
    store: Path, tmp_path: Path
) -> None:
    new = tmp_path / "new"
    with lsmkv.DB(store) as writer:
        writer.put(b"in the log", b"1")
        assert lsm("checkpoint", store, new).status == 0
        assert pairs_in(new) == dict(writer)
        assert lsm("verify", store).status in (0, 1)


def test_a_table_that_another_process_removes_does_not_fail_a_checkpoint(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the listing of the directory and the look at the table."""
    real = os.lstat
    missing: list[str] = []

    def lstat(path: str) -> os.stat_result:
        if path.endswith(".ldb") and not missing:
            missing.append(path)
            raise FileNotFoundError(2, "No such file or directory", path)
        return real(path)

    monkeypatch.setattr(maintenance.os, "lstat", lstat)
    assert lsm("checkpoint", store, tmp_path / "new").status == 0
    assert len(missing) == 1

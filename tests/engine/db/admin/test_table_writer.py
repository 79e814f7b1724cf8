"""TableWriter writes a table that is complete under its name, or absent."""

from __future__ import annotations

import errno
import gc
import os
import pathlib
import random
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from stores import names, some

import lsmkv
from lsmkv import DB, TableWriter
from lsmkv.engine.counters import ReadCounters
from lsmkv.engine.env.base import Env
from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.engine.format.filenames import manifest_name, set_current, table_name
from lsmkv.engine.format.keys import pack
from lsmkv.engine.format.log import LogWriter
from lsmkv.engine.format.version_edit import FileMetaData, VersionEdit
from lsmkv.engine.options import make_options
from lsmkv.engine.table.inspection import check
from lsmkv.engine.table.reader import Table
from lsmkv.engine.util.comparator import BYTEWISE, Comparator
from lsmkv.testing.durable import NameModel, Tails
from lsmkv.testing.faulty import FaultyEnv

State = dict[bytes, bytes]


def write_table(path: str | os.PathLike[str], entries: State, **options: Any) -> None:
    with TableWriter(path, **options) as table:
        for key, value in entries.items():
            table.add(key, value)


def read_table(env: Env, path: str, order: Comparator = BYTEWISE) -> list[tuple[bytes, bytes]]:
    """The entries of the file, after a check of all of it."""
    options = make_options(comparator=order, bloom_filter_bits=0)
    with env.open_directory(os.path.dirname(path)) as directory:
        table = Table(options, directory.open(os.path.basename(path)))
    if table.num_blocks:
        check(table)
    counters = ReadCounters()
    found = [
        (user_key + tagged[:8], tagged[8:])
        for entries in table.entries(counters, 0, 1)
        for user_key, tagged in entries
    ]
    table.close()
    return found


def test_entries_have_sequence_0() -> None:
    env = MemoryEnv()
    entries = {b"": b"empty key", **some(0, 500), b"\xff\xff": b""}
    with TableWriter("/t.ldb", env=env, block_size=256) as table:
        for number, (key, value) in enumerate(entries.items()):
            assert table.num_entries == number
            table.add(key, value)
        assert not table.closed
        assert table.file_size > 0
    assert table.closed
    assert table.num_entries == 502
    assert read_table(env, "/t.ldb") == [(pack(k, 0, 1), v) for k, v in entries.items()]
    with env.open_directory("/") as directory:
        assert directory.size("t.ldb") == table.file_size
    assert names(env) == ["t.ldb"]


def test_every_bytes_like_type() -> None:
    env = MemoryEnv()
    with TableWriter("/t.ldb", env=env) as table:
        table.add(bytearray(b"a"), memoryview(b"1"))
        with pytest.raises(TypeError, match="key must be bytes, not str"):
            table.add("b", b"2")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="value must be bytes, not int"):
            table.add(b"b", 2)  # type: ignore[arg-type]
        table.add(b"b", b"2")
    assert read_table(env, "/t.ldb") == [(pack(b"a", 0, 1), b"1"), (pack(b"b", 0, 1), b"2")]


@pytest.mark.parametrize("bad", [b"", b"a", b"b"])
def test_a_key_that_does_not_ascend_is_refused_and_leaves_no_trace(bad: bytes) -> None:
    env = MemoryEnv()
    with TableWriter("/t.ldb", env=env) as table:
        table.add(b"a", b"1")
        table.add(b"b", b"2")
        with pytest.raises(ValueError, match="ascend") as caught:
            table.add(bad, b"3")
        assert repr(bad) in str(caught.value)
        assert repr(b"b") in str(caught.value)
        assert table.num_entries == 2
        table.add(b"c", b"4")
    assert [value for _, value in read_table(env, "/t.ldb")] == [b"1", b"2", b"4"]


def by_length(a: bytes, b: bytes) -> int:
    return (len(a), a) > (len(b), b) or -1 if a != b else 0


def test_other_orders() -> None:
    env = MemoryEnv()
    backwards = lsmkv.ReverseBytewiseComparator()
    with TableWriter("/r.ldb", env=env, comparator=backwards) as table:
        table.add(b"b", b"")
        with pytest.raises(ValueError, match="ascend"):
            table.add(b"c", b"")
        table.add(b"a", b"")
    assert [key for key, _ in read_table(env, "/r.ldb", backwards)] == [
        pack(b"b", 0, 1),
        pack(b"a", 0, 1),
    ]
    with TableWriter("/l.ldb", env=env, comparator=by_length, comparator_name="by length") as table:
        table.add(b"b", b"")
        table.add(b"aa", b"")
        with pytest.raises(ValueError, match="ascend"):
            table.add(b"c", b"")
    assert len(read_table(env, "/l.ldb", backwards)) == 2


def test_a_key_that_the_comparator_rejects_is_refused() -> None:
    def numbers(a: bytes, b: bytes) -> int:
        return int(a) - int(b)

    env = MemoryEnv()
    with TableWriter("/t.ldb", env=env, comparator=numbers, comparator_name="numbers") as table:
        with pytest.raises(ValueError, match="invalid literal"):
            table.add(b"one", b"")
        table.add(b"1", b"")
        table.add(b"10", b"")
    assert table.num_entries == 2


def test_an_empty_table_may_be_ingested() -> None:
    env = MemoryEnv()
    with TableWriter("/t.ldb", env=env):
        pass
    assert read_table(env, "/t.ldb") == []


def test_options_shape_the_file() -> None:
    env = MemoryEnv()
    entries = some(0, 1000)
    shapes: dict[str, dict[str, Any]] = {
        "snappy": {},
        "none": {"compression": "none"},
        "filters": {"bloom_filter_bits": 40, "filter_layout": "both"},
        "no filter": {"bloom_filter_bits": 0},
        "small blocks": {"block_size": 128, "block_restart_interval": 1},
    }
    sizes = {}
    for name, options in shapes.items():
        write_table(f"/{name}", entries, env=env, **options)
        assert len(read_table(env, f"/{name}")) == 1000
        with env.open_directory("/") as directory:
            sizes[name] = directory.size(name)
    assert sizes["no filter"] < sizes["snappy"] < min(sizes["none"], sizes["filters"])
    assert sizes["small blocks"] > sizes["snappy"]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"compression": "gzip"}, ValueError),
        ({"block_size": "4096"}, TypeError),
        ({"filter_layout": "none"}, ValueError),
        ({"comparator": by_length}, ValueError),
        ({"env": "/"}, TypeError),
        ({"write_buffer_size": 1}, TypeError),
        ({"max_file_size": 1}, TypeError),
    ],
)
def test_wrong_options(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        TableWriter("/t.ldb", **{"env": MemoryEnv(), **options})


@pytest.mark.parametrize("path", ["", "/", "/directory/", "/."])
def test_paths_that_name_no_file(path: str) -> None:
    with pytest.raises(ValueError, match=r"path of a file|file name"):
        TableWriter(path, env=MemoryEnv())


# Under its name whole, or not at all


def test_the_file_gets_its_name_when_it_is_finished() -> None:
    env = MemoryEnv()
    table = TableWriter("/t.ldb", env=env)
    table.add(b"a", b"1")
    (partial,) = names(env)
    assert partial.startswith("t.ldb.partial-")
    table.finish()
    assert names(env) == ["t.ldb"]
    table.close()
    assert names(env) == ["t.ldb"]


def test_close_without_finish_leaves_no_file() -> None:
    env = MemoryEnv()
    table = TableWriter("/t.ldb", env=env)
    table.add(b"a", b"1")
    table.close()
    table.close()
    assert names(env) == []
    with pytest.raises(lsmkv.ClosedError):
        table.add(b"b", b"2")
    with pytest.raises(lsmkv.ClosedError):
        table.finish()


def test_a_with_block_that_raises_leaves_no_file() -> None:
    env = MemoryEnv()
    with pytest.raises(ZeroDivisionError), TableWriter("/t.ldb", env=env) as table:
        table.add(b"a", b"%d" % (1 // 0))
    assert names(env) == []
    with TableWriter("/t.ldb", env=env) as table:
        table.close()  # given up in between
    assert names(env) == []
    with TableWriter("/t.ldb", env=env) as table:
        table.finish()
    assert names(env) == ["t.ldb"]
    with pytest.raises(lsmkv.ClosedError):
        table.finish()


def test_a_table_that_is_not_closed_warns_and_leaves_no_file() -> None:
    env = MemoryEnv()
    table = TableWriter("/t.ldb", env=env)
    gone = weakref.ref(table)
    with pytest.warns(  # noqa: PT031 - it is forgotten here
        ResourceWarning, match=r"unfinished <lsmkv.TableWriter '/t.ldb'>"
    ):
        del table
        gc.collect()
    assert gone() is None
    assert names(env) == []


def test_an_existing_file_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.ldb"
    path.write_bytes(b"mine")
    with pytest.raises(lsmkv.IOError) as caught:
        TableWriter(path)
    assert caught.value.errno == errno.EEXIST
    path.unlink()
    path.symlink_to("nowhere")
    with pytest.raises(lsmkv.IOError):
        TableWriter(path)
    path.unlink()
    table = TableWriter(path)
    table.add(b"a", b"1")
    path.write_bytes(b"mine")
    with pytest.raises(lsmkv.IOError) as caught:
        table.finish()
    assert caught.value.errno == errno.EEXIST
    assert caught.value.filename == str(path)
    assert table.closed
    assert path.read_bytes() == b"mine"
    assert os.listdir(tmp_path) == ["t.ldb"]


def test_a_table_in_a_directory_on_disk(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_table("here.ldb", some(0, 10))
    write_table(tmp_path / "there.ldb", some(0, 10))
    assert (tmp_path / "here.ldb").read_bytes() == (tmp_path / "there.ldb").read_bytes()
    with pytest.raises(lsmkv.IOError) as caught:
        TableWriter(tmp_path / "no such directory" / "t.ldb")
    assert caught.value.errno == errno.ENOENT


def test_a_partial_file_of_a_dead_process_is_skipped() -> None:
    env = MemoryEnv()
    table = TableWriter("/t.ldb", env=env)
    (partial,) = names(env)
    table.close()
    stem, _, number = partial.rpartition("-")
    with env.open_directory("/") as directory:
        for later in range(1, 4):
            directory.create(f"{stem}-{int(number) + later}").close()
    write_table("/t.ldb", some(0, 10), env=env)
    assert len(read_table(env, "/t.ldb")) == 10


LARGE = {b"%04d" % n: bytes(300) for n in range(2000)}  # more than is written at once


def sweep(judge: Callable[[FaultyEnv, int, bool], None], sticky: bool) -> int:
    """Write a table with each call failing in turn; the number of calls."""
    n = 0
    while True:
        n += 1
        env = FaultyEnv()
        env.fail_at(n, OSError(errno.ENOSPC, "full"), sticky=sticky, short=n % 2 == 0)
        try:
            write_table("/t.ldb", LARGE, env=env, compression="none")
            done = True
        except lsmkv.IOError as error:
            assert error.errno == errno.ENOSPC  # noqa: PT017
            done = False
        assert done == (env.failures == 0)
        env.heal()
        judge(env, n, done)
        if done:
            return n


def test_each_call_failed_in_turn() -> None:
    def judge(env: FaultyEnv, n: int, done: bool) -> None:
        assert names(env) == (["t.ldb"] if done else [])
        if not done:
            write_table("/t.ldb", some(0, 3), env=env)
            assert len(read_table(env, "/t.ldb")) == 3

    assert sweep(judge, sticky=False) > 10


def test_power_cuts_at_every_call() -> None:
    def judge(env: FaultyEnv, n: int, done: bool) -> None:
        for model in NameModel:
            cut = env.power_cut(model, random.Random(n), tails=list(Tails)[n % 4])
            for disk in (cut, env.kill()):
                there = "t.ldb" in names(disk)
                assert there or not done
                if there:
                    assert len(read_table(disk, "/t.ldb")) == len(LARGE)

    assert sweep(judge, sticky=True) > 10


def test_after_an_error_in_the_middle_it_can_only_be_closed() -> None:
    env = FaultyEnv()
    table = TableWriter("/t.ldb", env=env, compression="none")
    env.fail_at(1, calls={"append"})
    with pytest.raises(lsmkv.IOError):  # noqa: PT012 - some add, the one that writes
        for key, value in LARGE.items():
            table.add(key, value)
    for call in (lambda: table.add(b"z", b""), table.finish):
        with pytest.raises(lsmkv.Error, match="incomplete entry"):
            call()
    table.close()
    assert names(env) == []


# LevelDB reads it


def hand_made(directory: pathlib.Path, table: pathlib.Path, entries: State) -> None:
    """A store made of this one table."""
    env = lsmkv.LocalEnv()
    directory.mkdir()
    os.link(table, directory / table_name(5))
    keys = sorted(entries)
    edit = VersionEdit()
    edit.comparator = "leveldb.BytewiseComparator"
    edit.log_number = 0
    edit.prev_log_number = 0
    edit.next_file_number = 10
    edit.last_sequence = 0
    file = FileMetaData(5, table.stat().st_size, pack(keys[0], 0, 1), pack(keys[-1], 0, 1))
    edit.add_file(3, file)
    with env.open_directory(str(directory)) as folder:
        with folder.create(manifest_name(7)) as manifest:
            LogWriter(manifest).add_record(edit.encode())
        set_current(folder, 7)


@pytest.mark.parametrize("options", [{}, {"compression": None, "filter_layout": "both"}])
def test_leveldb_reads_the_file_as_it_is(tmp_path: pathlib.Path, options: dict[str, Any]) -> None:
    plyvel = pytest.importorskip("plyvel")
    entries = {b"": b"", **some(0, 5000)}
    write_table(tmp_path / "t.ldb", entries, **options)
    hand_made(tmp_path / "db", tmp_path / "t.ldb", entries)
    with plyvel.DB(str(tmp_path / "db"), bloom_filter_bits=10, paranoid_checks=True) as theirs:
        assert dict(theirs.iterator(verify_checksums=True)) == entries
        assert all(theirs.get(key) == entries[key] for key in list(entries)[::50])
        assert theirs.get(b"key0000x") is None
        theirs.put(b"key0001", b"newer")
        theirs.delete(b"key0002")
        theirs.compact_range()
        entries[b"key0001"] = b"newer"
        del entries[b"key0002"]
        assert dict(theirs) == entries
    with DB(tmp_path / "db") as ours:
        assert dict(ours) == entries
        ours.check()

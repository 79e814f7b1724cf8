"""``lsmkv export`` and ``import``: streams, exit status, and files on disk."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from commands import lsm_bytes as lsm
from exported import CONTENT, Records, fails, make
from others import Other
from started import into_a_closed_pipe, on_a_terminal

import lsmkv
from lsmkv.files.exchange import json_line, write_raw
from lsmkv.shared.system.local import SHARES
from lsmkv.tools import exchange


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return make(tmp_path / "store", CONTENT)


def records(path: Path) -> Records:
    with lsmkv.DB(path, read_only=True) as db:
        return list(db)


# Round trip


@pytest.mark.parametrize("options", [[], ["--format", "raw"], ["--hex"]])
def test_import_restores_what_export_wrote(store: Path, tmp_path: Path, options: list[str]) -> None:
    through_a_pipe = lsm("export", store, *options)
    assert through_a_pipe.status == 0
    assert through_a_pipe.err.startswith("lsmkv: 5 records exported in ")
    file = tmp_path / "file"
    done = lsm("export", store, "-o", file, *options)
    assert (done.status, done.out) == (0, b"")
    assert file.read_bytes() == through_a_pipe.out
    for name, source, stdin in (("b", file, b""), ("c", "-", through_a_pipe.out)):
        done = lsm("import", tmp_path / name, source, "--create", stdin=stdin)
        assert (done.status, done.out) == (0, b"")
        assert done.err.startswith("lsmkv: 5 records imported in ")
        assert records(tmp_path / name) == CONTENT


def test_json_lines_use_base64_only_for_bytes_that_are_not_utf8(store: Path) -> None:
    lines = lsm("export", store).out.splitlines()
    assert json.loads(lines[2]) == {"key": "a", "value": "line\nline\r\n"}
    assert json.loads(lines[3]) == {"key": "ключ", "value": "значение"}
    assert json.loads(lines[4]).keys() == {"key_base64", "value_base64"}
    assert lsm("export", store, "--hex").out.splitlines()[2].startswith(b'{"key_hex": "61"')


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        (["--start", "a"], CONTENT[2:]),
        (["--start", "00", "--stop", "ff", "--hex"], CONTENT[1:4]),
        (["--prefix", "к"], CONTENT[3:4]),
        (["--prefix", "nothing"], []),
    ],
)
def test_export_of_a_range(store: Path, options: list[str], keys: Records) -> None:
    is_hex = "--hex" in options
    expected = b"".join(json_line(key, value, is_hex) for key, value in keys)
    assert lsm("export", store, *options).out == expected
    raw = lsm("export", store, "--format", "raw", *options).out
    assert raw == b"".join(write_raw(keys))
    fails(lsm("export", store, "--prefix", "a", "--stop", "b"), "--prefix", "--stop")


def test_figures_as_json(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    figures = json.loads(lsm("export", store, "-o", file, "--json", "--format", "raw").out)
    assert figures == {
        "path": str(store),
        "file": str(file),
        "format": "raw",
        "records": 5,
        "bytes": file.stat().st_size,
    }
    fails(lsm("export", store, "--json"), "--json", "--output")
    figures = json.loads(lsm("import", tmp_path / "new", file, "--create", "--json").out)
    assert figures == {
        "path": str(tmp_path / "new"),
        "file": str(file),
        "format": "raw",
        "records": 5,
        "skipped": 0,
    }


def test_export_beside_a_writer_reads_its_log_and_writes_nothing(store: Path) -> None:
    with lsmkv.DB(store) as writer:
        writer.put(b"in the log", b"")
        before = sorted(os.listdir(store))
        out = lsm("export", store).out
        assert b'"in the log"' in out
        assert sorted(os.listdir(store)) == before


def test_a_store_with_another_comparator(tmp_path: Path) -> None:
    order = lsmkv.ReverseBytewiseComparator()
    with lsmkv.DB(tmp_path / "a", create_if_missing=True, comparator=order) as db:
        db.put(b"a", b"1")
        db.put(b"b", b"2")
    out = lsm("export", tmp_path / "a").out
    assert [json.loads(line)["key"] for line in out.splitlines()] == ["b", "a"]
    assert lsm("import", tmp_path / "a", "-", stdin=json_line(b"c", b"3")).status == 0
    with lsmkv.DB(tmp_path / "a", comparator=order) as db:
        assert [key for key, _ in db] == [b"c", b"b", b"a"]


# The output file of an export


def test_the_raw_format_is_not_written_to_a_terminal(store: Path) -> None:
    done = on_a_terminal("stdout", "export", store, "--format", "raw")
    assert (done.status, done.terminal) == (2, b"")
    assert b"not for a terminal" in done.err


def test_export_into_a_closed_pipe_exits_like_sigpipe(tmp_path: Path) -> None:
    make(tmp_path / "db", [(b"%05d" % number, bytes(100)) for number in range(5000)])
    status, line = into_a_closed_pipe("export", tmp_path / "db")
    assert status == 128 + signal.SIGPIPE
    assert line.startswith(b'{"key": "00000"')


def test_progress_of_an_export_counts_bytes_of_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lsmkv.DB(tmp_path / "db", create_if_missing=True) as db:
        for number in range(20_000):
            db.put(b"%05d" % number, b"%d" % number)
        db.flush()
    seen: list[Any] = []

    @contextmanager
    def listening(description: str, unit: str, total: int | None) -> Iterator[Any]:
        assert unit == "byte"
        seen.append(total)
        yield SimpleNamespace(advance=seen.append)

    monkeypatch.setattr(exchange, "progress", listening)
    assert lsm("export", tmp_path / "db").status == 0
    total, *steps = seen
    assert len(steps) == 4
    assert all(step > 0 for step in steps)
    assert sum(steps) == total


# Import


def test_a_bad_line_is_named_and_the_records_before_it_are_put(store: Path) -> None:
    lines = b"".join(json_line(b"%04d" % number, b"new") for number in range(1500))
    done = lsm("import", store, "-", stdin=lines + b'\n{"key": "x"}\n' + json_line(b"y", b""))
    assert done.status == 2
    message, error = done.err.splitlines()
    assert message.startswith("lsmkv: 1,500 records imported in ")
    assert error == "lsmkv: line 1502: the value is missing"
    found = dict(records(store))
    assert found[b"1499"] == b"new"
    assert not found.keys() & {b"x", b"y"}


def test_a_truncated_raw_file_is_detected(store: Path) -> None:
    content = b"".join(write_raw([(b"%04d" % number, bytes(1000)) for number in range(100)]))
    done = lsm("import", store, "-", stdin=content[:-1])
    assert done.status == 2
    message, error = done.err.splitlines()
    assert message.startswith("lsmkv: 100 records imported in ")
    assert "ends before its end marker" in error
    assert "after record 100" in error


def test_a_file_that_is_bad_from_the_start_creates_no_store(tmp_path: Path) -> None:
    new = tmp_path / "new"
    fails(lsm("import", new, "-", "--create", stdin=b"nonsense"), "line 1: not JSON")
    fails(lsm("import", new, "-", "--create", stdin=b"lsmkv-raw 1\n\x00"), "at offset 12")
    fails(lsm("import", new, "-", "--create", stdin=b"lsmkv-raw 2\n"), "line 1: not JSON")
    fails(lsm("import", new, tmp_path / "none", "--create"), "none: No such file")
    assert not new.exists()
    fails(lsm("import", new, "-", stdin=b""), "no database here", "--create")
    assert not new.exists()


def test_import_refuses_a_file_in_another_format(store: Path) -> None:
    raw, lines = b"".join(write_raw(CONTENT)), json_line(b"k", b"v")
    for content, right, wrong in ((raw, "raw", "json"), (lines, "json", "raw")):
        assert lsm("import", store, "-", "--format", right, stdin=content).status == 0
        fails(lsm("import", store, "-", "--format", wrong, stdin=content), "format")
    fails(lsm("import", store, "-", "--format", "raw", stdin=b""), "lsmkv-raw 1")
    assert lsm("import", store, "-", stdin=b"").err.startswith("lsmkv: 0 records imported")


def test_import_with_each_conflict_policy(tmp_path: Path) -> None:
    new = [(b"a", b"new"), (b"b", b"new"), (b"b", b"newer"), (b"c", b"new"), (b"d", b"new")]
    content = b"".join(json_line(*record) for record in new)
    expected = {
        "overwrite": ({b"a": b"new", b"b": b"newer", b"c": b"new", b"d": b"new"}, 0, "5 records"),
        "skip": ({b"a": b"new", b"b": b"new", b"c": b"old", b"d": b"new"}, 0, "3 records"),
        "error": ({b"a": b"new", b"b": b"new", b"c": b"old"}, 2, "2 records"),
    }
    for policy, (found, status, message) in expected.items():
        path = make(tmp_path / policy, [(b"c", b"old")])
        done = lsm("import", path, "-", "--on-conflict", policy, stdin=content)
        assert done.status == status
        assert done.err.startswith(f"lsmkv: {message} imported in ")
        assert dict(records(path)) == found
        if policy == "skip":
            assert ", 2 skipped" in done.err
    assert done.err.splitlines()[-1] == "lsmkv: record 3: the key b is there already"


def test_skipped_records_are_counted_over_many_batches(tmp_path: Path) -> None:
    path = make(tmp_path / "db", [(b"%04d" % number, b"old") for number in range(0, 3000, 2)])
    lines = b"".join(json_line(b"%04d" % number, b"new") for number in range(3000))
    done = lsm("import", path, "-", "--on-conflict", "skip", "--json", stdin=lines)
    figures = json.loads(done.out)
    assert (figures["records"], figures["skipped"]) == (1500, 1500)
    assert {value for key, value in records(path) if int(key) % 2 == 0} == {b"old"}


@pytest.mark.skipif(not SHARES, reason="stores are shared on Linux and macOS")
def test_imports_into_a_shared_store_put_each_key_once(tmp_path: Path) -> None:
    """Four at once, of the same keys: what one has put, no other replaces."""
    with ExitStack() as ending:
        path = tmp_path / "db"
        others = [Other(path, create_if_missing=True) for _ in range(4)]
        for number, one in enumerate(others):
            ending.callback(one.kill)
            one("from lsmkv.tools.exchange import Conflict, Imported, put_records")
            one(f"records = [(b'%04d' % n, b'{number}') for n in range(4000)]")
        for one in others:
            one.ask(
                "put_records(db, records, Conflict.SKIP, done := Imported(), lambda n: None)"
                " or (done.records, done.skipped)"
            )
        counted = [one.answer() for one in others]
        values = others[0]("[value for key, value in db]")
        assert [values.count(b"%d" % number) for number in range(4)] == [put for put, _ in counted]
        assert [put + skipped for put, skipped in counted] == [4000] * 4
        refused = others[1](
            "put_records(db, records, Conflict.ERROR, Imported(), lambda n: None)",
        )
        assert refused == "ValueError: record 1: the key 0000 is there already"


def test_import_into_a_store_in_use(store: Path) -> None:
    with lsmkv.DB(store):
        fails(lsm("import", store, "-", stdin=b""), "in use")

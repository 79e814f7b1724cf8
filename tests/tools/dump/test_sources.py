"""The files that are dumped: their order, their names, and what is refused."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

from byte_files import BytesFile
from dumped import (
    LOG,
    MANIFEST,
    TABLE,
    TABLE_TEXT,
    Done,
    batch_record,
    dump,
    encode_put,
    lines,
    make_log,
    make_table,
    objects,
)

from lsmkv.engine.format.keys import pack
from lsmkv.engine.format.log import BLOCK_SIZE
from lsmkv.tools.dump.records import Record
from lsmkv.tools.dump.sources import Wanted, dump_file


def test_a_directory_is_dumped_file_by_file_in_order(store: Path) -> None:
    status, printed, err = dump(store)
    headings = [line for line in printed if line.startswith("=== ")]
    assert headings == [
        "=== CURRENT: the MANIFEST in force, 16 bytes",
        f"=== MANIFEST-000002: MANIFEST, {len(MANIFEST)} bytes",
        f"=== 000007.ldb: table, {len(TABLE)} bytes",
        f"=== 000009.log: write-ahead log, {len(LOG)} bytes",
        f"=== 000010.sst: table, {(store / '000010.sst').stat().st_size} bytes",
    ]
    at = printed.index(headings[2]) + 1
    assert printed[at : at + len(lines(TABLE_TEXT))] == lines(TABLE_TEXT)
    assert (status, err) == (0, "")


def test_manifests_come_before_logs_and_tables_of_any_number(store: Path) -> None:
    for name in ("MANIFEST-000100", "MANIFEST-20"):
        (store / name).write_bytes(MANIFEST)
    names = [one["file"] for one in objects(store) if one["record"] == "heading"]
    assert names[:4] == ["CURRENT", "MANIFEST-000002", "MANIFEST-20", "MANIFEST-000100"]
    assert names[4:] == ["000007.ldb", "000009.log", "000010.sst"]


def test_a_file_is_known_by_the_ending_of_its_name(store: Path) -> None:
    for name, copy in (("000009.log", "saved.log"), ("MANIFEST-000002", "MANIFEST-old")):
        (store / copy).write_bytes((store / name).read_bytes())
        assert dump(store / copy) == dump(store / name)


def fails(done: Done, *words: str) -> None:
    status, printed, err = done
    assert (status, printed, err.count("\n")) == (2, [], 1)
    for word in words:
        assert word in err


def test_paths_without_a_file_of_a_store_are_errors(tmp_path: Path, store: Path) -> None:
    fails(dump(tmp_path / "none.log"), "none.log: No such file or directory")
    fails(dump(tmp_path / "nowhere"), "nowhere: No such file or directory")
    fails(dump(tmp_path / "none" / "1.log"), "none/1.log: No such file or directory")
    fails(dump(tmp_path), "no database here")
    reason = "notes.txt: not the name of a store's file"
    fails(dump(store / "notes.txt"), reason, "*.ldb", "MANIFEST-*")
    fails(dump(store / "LOCK"), "not the name of a store's file")
    assert sorted(tmp_path.iterdir()) == [store]


def test_a_rocksdb_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "1.sst"
    path.write_bytes(bytes(60) + bytes.fromhex("f7cff485b741e288"))
    fails(dump(path), "1.sst is a RocksDB table")
    status, printed, err = dump(tmp_path)
    assert printed[-1] == f"!!! unreadable: {path} is a RocksDB table"
    assert status == 2
    assert "1 unreadable file" in err
    (tmp_path / "IDENTITY").write_bytes(b"")
    fails(dump(tmp_path), "is a RocksDB database")


def test_links_and_fifos_are_refused(store: Path) -> None:
    (store / "000020.log").symlink_to(store / "000009.log")
    os.mkfifo(store / "000021.ldb")
    fails(dump(store / "000020.log"), "000020.log", "symbolic link")
    fails(dump(store / "000021.ldb"), "000021.ldb", "not a regular file")
    (store / "000000.ldb").mkdir()
    status, printed, err = dump(store)
    assert [line for line in printed if line.startswith("!!!")] == [
        "!!! unreadable: a directory where a file is expected",
        printed[-3],
        "!!! unreadable: not a regular file",
    ]
    assert "symbolic link" in printed[-3]
    assert lines(TABLE_TEXT)[1] in printed  # and the rest is there
    assert (status, err) == (2, f"lsmkv: {store}: 3 unreadable files\n")


def test_a_directory_without_current(store: Path) -> None:
    (store / "CURRENT").unlink()
    status, printed, err = dump(store)
    assert printed[:2] == [
        "=== CURRENT: the MANIFEST in force, 0 bytes",
        "!!! damage: CURRENT is missing",
    ]
    assert lines(TABLE_TEXT)[1] in printed
    step = f"next: lsmkv rescue {store}"
    assert (status, err) == (2, f"lsmkv: {store}: 1 damaged place; {step}\n")


def test_a_current_that_names_a_missing_manifest(store: Path) -> None:
    (store / "CURRENT").write_bytes(b"MANIFEST-000077\n")
    for options in ([], ["--annotate"]):
        status, printed, _ = dump(store, *options)
        assert "!!! offset 0; damage: MANIFEST-000077 is missing" in printed
        assert status == 2
    (store / "CURRENT").write_bytes(b"../MANIFEST-2\n")
    status, printed, _ = dump(store / "CURRENT")
    assert printed == [r"!!! offset 0; damage: it does not name a MANIFEST: b'../MANIFEST-2\n'"]
    assert status == 2
    (store / "CURRENT").write_bytes(b"MANIFEST-000002")
    assert dump(store / "CURRENT")[0] == 2


def test_large_files_are_read_in_small_parts() -> None:
    rng = random.Random(1)
    log = BytesFile(
        make_log([batch_record(n, 1, encode_put(b"k", bytes(1000))) for n in range(2000)])
    )
    entries = [(pack(b"%06d" % n, n + 1, 1), rng.randbytes(100)) for n in range(8000)]
    table = BytesFile(make_table(entries, compression=1))
    for file, name, most in ((log, "1.log", BLOCK_SIZE), (table, "1.ldb", 30_000)):
        assert file.size > 20 * most
        for annotate in (False, True):
            stream: Iterator[Record] = dump_file(file, name, Wanted(annotate))
            assert sum(1 for _ in stream) > 4000
            assert max(length for _, length in file.reads) <= most

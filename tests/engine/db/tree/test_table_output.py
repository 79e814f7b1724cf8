"""lsmkv.engine.db.tree.table_output: one table, durable once it is finished, or not there at
all.
"""

from __future__ import annotations

import os

import pytest
from tables import Bench, add, value

from lsmkv.engine.db.tree.table_output import TableOutput, remove_table, write_entries
from lsmkv.engine.env.base import WritableFile
from lsmkv.engine.format.keys import KIND_VALUE, pack


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_table_and_what_is_known_of_it(bench: Bench) -> None:
    output = TableOutput(bench.directory, 7, bench.options)
    assert output.number == 7
    assert output.size == 0
    entries = [value(b"k%03d" % number, 5, b"v" * 50) for number in range(100)]
    sizes = []
    for entry in entries:
        add(output, entry)
        sizes.append(output.size)
    assert sizes == sorted(sizes)
    assert sizes[-1] > 1000
    file = output.finish()
    assert file.number == 7
    assert file.size == bench.directory.size("000007.ldb") == output.size
    assert file.smallest == pack(b"k000", 5, KIND_VALUE)
    assert file.largest == pack(b"k099", 5, KIND_VALUE)
    assert bench.entries(file) == entries


def test_finish_makes_the_content_durable(bench: Bench) -> None:
    output = TableOutput(bench.directory, 7, bench.options)
    add(output, value(b"k", 1, b"v"))
    bench.directory.sync()
    output.finish()
    assert bench.env.history[-2:] == ["append", "sync"]
    with bench.env.power_cut().open_directory("db") as survived:
        assert survived.size("000007.ldb") == bench.directory.size("000007.ldb")


def test_the_disk_begins_with_a_table_every_half_mebibyte(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(WritableFile, "begin_sync", lambda file: sizes.append(file.size()))
    for number in range(1300):
        bench.memtable.add(number + 1, [(b"%06d" % number, os.urandom(1000))], -1)
    file = bench.flush()
    assert file is not None
    assert file.size > 1_300_000
    # After each chunk of entries as it is due, and less what the builder has in hand.
    assert len(sizes) == 2
    assert sizes[0] > 400_000
    assert 500_000 < sizes[1] - sizes[0] < 700_000
    begun = sizes.copy()
    sizes.clear()
    keys: list[bytes] = []
    tagged: list[bytes] = []
    for some_keys, some_tagged in bench.memtable.columns():
        keys += some_keys
        tagged += some_tagged
    assert write_entries([(keys, tagged)], bench.directory, 8, bench.options).size == file.size
    assert sizes == begun


def test_abandon_removes_the_file(bench: Bench) -> None:
    output = TableOutput(bench.directory, 7, bench.options)
    add(output, value(b"k", 1, b"v"))
    output.abandon()
    assert bench.directory.names() == []
    remove_table(bench.directory, 7)  # no error: it is gone


def test_a_table_that_cannot_be_removed_is_left_for_the_next_open(bench: Bench) -> None:
    output = TableOutput(bench.directory, 7, bench.options)
    bench.env.fail_at(1, calls=["remove"])
    output.abandon()
    assert bench.directory.names() == ["000007.ldb"]


def test_a_number_that_is_taken_is_refused(bench: Bench) -> None:
    TableOutput(bench.directory, 7, bench.options)
    with pytest.raises(FileExistsError):
        TableOutput(bench.directory, 7, bench.options)

"""lsmkv.engine.db.tree.version_set: the order of durability, final failures, and leases."""

from __future__ import annotations

import errno
import gc
import random
from functools import partial

import pytest
from stores import contents, files, settle
from threads import run_threads

from lsmkv import DB
from lsmkv.engine.counters import NUM_LEVELS
from lsmkv.engine.db.tree.manifest import Manifest, read_manifest
from lsmkv.engine.db.tree.version_set import VersionSet
from lsmkv.engine.env.base import Directory
from lsmkv.engine.format.filenames import FileType, manifest_name, read_current
from lsmkv.engine.format.keys import InternalKeyComparator, pack
from lsmkv.engine.format.version_edit import FileMetaData, VersionEdit
from lsmkv.engine.options import Options
from lsmkv.engine.util.comparator import BYTEWISE
from lsmkv.errors import CorruptionError
from lsmkv.errors import IOError as LsmkvIOError
from lsmkv.testing.durable import NameModel, Tails
from lsmkv.testing.faulty import FaultyEnv

ORDER = InternalKeyComparator(BYTEWISE)
NEW_MANIFEST = [
    "create", "append", "append", "sync",  # MANIFEST: the current version, and the edit
    "dir_sync",
    "create", "append", "sync",  # CURRENT under a temporary name
    "rename",
    "dir_sync",
]  # fmt: skip


class Bench:
    def __init__(self, env: FaultyEnv | None = None) -> None:
        self.env = env or FaultyEnv()
        self.directory: Directory = self.env.open_directory("db", create=True)
        self.versions = VersionSet(self.directory, Options(), ORDER)

    def commit(self, edit: VersionEdit) -> list[str]:
        """Commit, and return the calls that it took."""
        before = self.env.calls
        self.versions.log_and_apply(edit)
        return self.env.history[before:]

    def read(self) -> Manifest:
        return read_state(self.env)


def read_state(env: FaultyEnv) -> Manifest:
    """The state that the next open would find."""
    with env.open_directory("db") as directory:
        manifest = read_manifest(directory, read_current(directory))
    assert manifest.tail is None or manifest.tail.torn
    manifest.check(ORDER)
    manifest.version(ORDER)
    return manifest


def file(number: int) -> FileMetaData:
    """A table that overlaps no other."""
    return FileMetaData(
        number, 1000 + number, pack(b"%06d" % number, 9, 1), pack(b"%06dz" % number, 9, 1)
    )


def adding(*numbers: int, level: int = 1) -> VersionEdit:
    edit = VersionEdit()
    for number in numbers:
        edit.add_file(level, file(number))
    return edit


def removing(*numbers: int, level: int = 1) -> VersionEdit:
    edit = VersionEdit()
    for number in numbers:
        edit.delete_file(level, number)
    return edit


@pytest.fixture
def bench() -> Bench:
    return Bench()


# A commit


def test_a_new_set_is_empty(bench: Bench) -> None:
    versions = bench.versions
    assert versions.current.numbers == frozenset()
    assert (versions.last_sequence, versions.log_number, versions.prev_log_number) == (0, 0, 0)
    assert versions.compact_pointers == [None] * NUM_LEVELS
    assert versions.live_numbers() == set()
    assert versions.failure is None
    assert bench.directory.names() == []


def test_the_manifest_is_durable_before_current_names_it(bench: Bench) -> None:
    assert bench.commit(adding(10)) == NEW_MANIFEST
    assert bench.versions.manifest_number == 2
    assert read_current(bench.directory) == manifest_name(2)
    assert sorted(bench.directory.names()) == ["CURRENT", "MANIFEST-000002"]


def test_each_further_edit_is_appended_and_synced(bench: Bench) -> None:
    bench.commit(adding(10))
    for number in (11, 12, 13):
        assert bench.commit(adding(number)) == ["append", "sync"]
    assert bench.versions.current.numbers == {10, 11, 12, 13}
    for env in (bench.env.power_cut(), bench.env.kill()):
        assert set(read_state(env).levels[1]) == {10, 11, 12, 13}


def test_content_of_the_manifest(bench: Bench) -> None:
    versions = bench.versions
    versions.last_sequence = 77
    edit = adding(10, 11)
    edit.log_number = 5
    edit.compact_pointers.append((1, pack(b"p", 3, 1)))
    versions.mark_file_number_used(20)
    bench.commit(edit)
    manifest = bench.read()
    assert manifest.comparator == "leveldb.BytewiseComparator"
    assert (manifest.log_number, manifest.prev_log_number) == (5, 0)
    assert manifest.last_sequence == 77
    assert manifest.next_file_number == 22  # 21 is the MANIFEST itself
    assert manifest.compact_pointers == {1: pack(b"p", 3, 1)}
    assert versions.log_number == 5
    assert versions.compact_pointers[1] == pack(b"p", 3, 1)
    versions.last_sequence = 99
    bench.commit(removing(10))
    manifest = bench.read()
    assert (manifest.log_number, manifest.last_sequence) == (5, 99)  # each edit states them again
    assert list(manifest.levels[1]) == [11]


def test_a_new_manifest_begins_with_the_current_version(bench: Bench) -> None:
    first = adding(10, 11)
    first.add_file(0, file(12))
    first.compact_pointers.append((2, pack(b"q", 3, 1)))
    bench.commit(first)
    old = bench.versions
    again = VersionSet(bench.directory, Options(), ORDER)  # as a reopening does
    again.mark_file_number_used(29)
    again.compact_pointers = list(old.compact_pointers)
    again.install(old.current)
    again.log_and_apply(adding(20))
    assert read_current(bench.directory) == manifest_name(30)
    manifest = bench.read()
    assert [sorted(files) for files in manifest.levels[:2]] == [[12], [10, 11, 20]]
    assert manifest.levels[1][10] == file(10)
    assert manifest.compact_pointers == {2: pack(b"q", 3, 1)}
    assert manifest.next_file_number == 31


def test_install_writes_nothing_to_the_manifest(bench: Bench) -> None:
    version = bench.versions.current.apply(adding(10))
    calls = bench.env.calls
    bench.versions.install(version)
    assert bench.versions.current is version
    assert bench.env.calls == calls
    assert bench.versions.live_numbers() == {10}


def test_an_edit_that_breaks_the_levels_is_not_written(bench: Bench) -> None:
    bench.commit(adding(10))
    before = bench.env.calls
    with pytest.raises(CorruptionError, match="listed twice"):
        bench.versions.log_and_apply(adding(10))
    assert bench.env.calls == before
    assert bench.versions.current.numbers == {10}
    assert bench.commit(adding(11)) == ["append", "sync"]
    assert set(bench.read().levels[1]) == {10, 11}


# Numbers


def test_numbers_are_used_once(bench: Bench) -> None:
    versions = bench.versions
    assert [versions.new_file_number() for _ in range(3)] == [2, 3, 4]
    versions.mark_file_number_used(10)
    versions.mark_file_number_used(7)
    assert versions.new_file_number() == 11
    taken: list[list[int]] = [[] for _ in range(4)]

    def take(into: list[int]) -> None:
        into += [versions.new_file_number() for _ in range(2000)]

    assert run_threads(*[partial(take, into) for into in taken]) == []
    numbers = [number for into in taken for number in into]
    assert sorted(numbers) == list(range(12, 8012))


# Failures


def test_a_failed_write_of_the_manifest_is_final() -> None:
    """Whichever call fails, no edit is applied or written, then or later."""
    for n in range(1, len(NEW_MANIFEST) + 1):
        bench = Bench()
        bench.env.fail_at(n, OSError(errno.ENOSPC, "no room"))
        with pytest.raises(LsmkvIOError) as caught:
            bench.versions.log_and_apply(adding(10))
        check_failed(bench, caught.value, set())
    for n in (1, 2):
        for short in (False, True):
            bench = Bench()
            bench.commit(adding(10))
            bench.env.fail_at(n, OSError(errno.ENOSPC, "no room"), short=short)
            with pytest.raises(LsmkvIOError) as caught:
                bench.versions.log_and_apply(adding(11))
            check_failed(bench, caught.value, {10})
            assert 10 in bench.read().levels[1]


def check_failed(bench: Bench, error: LsmkvIOError, numbers: set[int]) -> None:
    versions = bench.versions
    assert error.errno == errno.ENOSPC
    assert error.filename.startswith("db")
    assert versions.failure is not None
    assert versions.current.numbers == numbers
    bench.env.heal()
    calls = bench.env.calls
    for _ in range(2):
        with pytest.raises(LsmkvIOError) as again:
            versions.log_and_apply(adding(12))
        assert again.value.errno == errno.ENOSPC
    assert bench.env.calls == calls
    assert versions.current.numbers == numbers
    versions.close()


def test_an_interrupted_commit_is_brought_to_its_end() -> None:
    """By the next call with the same edit, in a new MANIFEST: the old one may hold it or not."""

    class Interrupted(FaultyEnv):
        def _strike(self, call: str, path: str) -> None:
            super()._strike(call, path)
            if call == "sync" and self.armed:
                raise KeyboardInterrupt

        armed = False

    env = Interrupted()
    bench = Bench(env)
    bench.commit(adding(10))
    env.armed = True
    before = bench.versions.manifest_number
    edit = adding(11)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            bench.versions.log_and_apply(edit)
        assert bench.versions.current.numbers == {10}
        assert bench.versions.unsettled
    env.armed = False
    for _ in range(2):
        bench.versions.log_and_apply(edit)
        assert bench.versions.current.numbers == {10, 11}
    assert not bench.versions.unsettled
    assert bench.versions.manifest_number > before
    bench.commit(adding(12))
    assert {10, 11, 12} <= set(bench.read().levels[1])


@pytest.mark.parametrize("names", list(NameModel))
@pytest.mark.parametrize("tails", [Tails.LOST, Tails.TORN])
def test_a_power_cut_at_any_call_leaves_a_committed_state(names: NameModel, tails: Tails) -> None:
    """It is never older than the last acknowledged one."""
    n = 0
    failed = True
    while failed:
        n += 1
        bench = Bench()
        bench.commit(adding(1))
        bench.env.fail_at(n, sticky=True)
        acknowledged = 1
        steps = [adding(2), removing(1), adding(3)]
        states = [{1}, {1, 2}, {2}, {2, 3}, {2, 3, 4}]
        for step in steps:
            try:
                bench.versions.log_and_apply(step)
            except LsmkvIOError:
                break
            acknowledged += 1
        else:  # a new MANIFEST instead of the old one
            again = VersionSet(bench.directory, Options(), ORDER)
            again.mark_file_number_used(49)
            again.install(bench.versions.current)
            try:
                again.log_and_apply(adding(4))
                acknowledged += 1
            except LsmkvIOError:
                pass
        failed = bench.env.failures > 0
        for seed in range(5):
            survived = read_state(bench.env.power_cut(names, random.Random(seed), tails=tails))
            assert set(survived.levels[1]) in states[acknowledged - 1 : acknowledged + 1]
    assert n == 3 * 2 + len(NEW_MANIFEST) + 1
    assert acknowledged == 5


# A MANIFEST that has grown large


def test_a_manifest_that_has_grown_is_replaced(bench: Bench) -> None:
    """It has more than 1 MiB, and more than four times the bytes it began with."""
    bench.commit(adding(10))
    long_key = pack(b"k" * 300_000, 5, 1)
    numbers = []
    for step in range(12):
        edit = adding(100 + step)
        edit.compact_pointers.append((1, long_key))
        calls = bench.commit(edit)
        assert calls in (["append", "sync"], NEW_MANIFEST)
        numbers.append(bench.versions.manifest_number)
        assert read_current(bench.directory) == manifest_name(numbers[-1])
        assert set(bench.read().levels[1]) == bench.versions.current.numbers
    # 4 x 300 kB are over 1 MiB; the second one begins with 300 kB, and may grow to 1.2 MB.
    assert numbers == [2] * 4 + [numbers[4]] * 4 + [numbers[8]] * 4
    assert len(set(numbers)) == 3
    with bench.env.power_cut().open_directory("db") as directory:
        assert read_current(directory) == manifest_name(numbers[-1])


def test_a_failure_while_the_manifest_is_replaced_is_final() -> None:
    for n in range(1, len(NEW_MANIFEST) + 1):
        bench = Bench()
        bench.commit(adding(10))
        edit = VersionEdit()
        edit.compact_pointers.append((1, pack(b"k" * 1_100_000, 5, 1)))
        bench.commit(edit)
        bench.env.fail_at(n, OSError(errno.ENOSPC, "no room"))
        with pytest.raises(LsmkvIOError) as caught:
            bench.versions.log_and_apply(adding(11))
        check_failed(bench, caught.value, {10})
        assert set(bench.read().levels[1]) - {11} == {10}


# Leases


def test_files_of_a_held_version_are_live(bench: Bench) -> None:
    versions = bench.versions
    bench.commit(adding(10, 11))
    held = versions.current
    bench.commit(removing(10))
    middle = versions.current
    bench.commit(adding(12))
    bench.commit(removing(11))
    assert versions.current.numbers == {12}
    assert versions.live_numbers() == {10, 11, 12}
    del held
    gc.collect()
    assert versions.live_numbers() == {11, 12}
    del middle
    gc.collect()
    assert versions.live_numbers() == {12}


def test_files_of_the_current_version_are_live(bench: Bench) -> None:
    bench.commit(adding(10))
    gc.collect()
    assert bench.versions.live_numbers() == {10}
    assert bench.versions.live_numbers() == {10}


def test_a_version_that_was_not_installed_keeps_no_files(bench: Bench) -> None:
    version = bench.versions.current.apply(adding(10))
    assert version.numbers == {10}
    assert bench.versions.live_numbers() == set()


def test_leases_do_not_pile_up(bench: Bench) -> None:
    for number in range(100, 400):
        bench.commit(adding(number))
        bench.commit(removing(number))
        assert bench.versions.live_numbers() <= {number}
    gc.collect()
    assert bench.versions.live_numbers() == set()


# Closing


def test_close(bench: Bench) -> None:
    bench.commit(adding(10))
    bench.versions.close()
    bench.versions.close()
    assert set(bench.read().levels[1]) == {10}


def test_many_edits_begin_a_new_manifest(path: str) -> None:
    with DB(path, create_if_missing=True) as db:
        big = b"k" * 50_000  # twice in every edit: as smallest and as largest key
        for n in range(100):
            db.put(big, b"%d" % n)
            db.flush()
        db.compact_range()
        settle(db)
        (name,) = files(path, FileType.MANIFEST)
        assert len(contents(path)[name]) < 4_000_000
    with DB(path) as db:
        assert dict(db) == {big: b"99"}

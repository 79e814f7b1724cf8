"""Files that contradict the order of a store are left out, and an old MANIFEST is noticed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from live_copies import STORE, Files
from stores import pairs_in, put_numbered
from stores_in_memory import Store, env_of, foreign, name_of, newest, repaired, tables, without

import lsmkv
from lsmkv import DB
from lsmkv.engine.db.tree.manifest import Manifest
from lsmkv.engine.format.version_edit import FileMetaData, VersionEdit
from lsmkv.files.repair.ordering import Ordering, sequences_without_files
from lsmkv.files.repair.report import LogSurvey, ManifestSurvey, Survey, TableSurvey
from lsmkv.repair import survey_db


@pytest.fixture
def store() -> Iterator[Store]:
    """A store with a table of 100 keys, and 30 other writes in its log."""
    made = Store()
    made.fill(range(100), b"table")
    made.db.flush()
    made.fill(range(30), b"log")
    with made.db:
        yield made


def with_manifest(now: Files, before: Files) -> Files:
    """The files of a store, with an older MANIFEST."""
    old = name_of(before, "MANIFEST")
    return without(now, name_of(now, "MANIFEST")) | {old: before[old]}


@pytest.mark.parametrize("writes", [20, 120])
def test_a_log_whose_sequences_are_those_of_older_writes_is_left_out(
    store: Store, writes: int
) -> None:
    found, plan = repaired(store.files() | {"000099.log": foreign(".log", range(writes))})
    assert found == dict(store.db)
    (other,) = [log for log in plan.survey.logs if log.number == 99]
    assert not other.needed
    assert f"not this store's: {writes} writes" in other.remarks[-1]


def test_a_log_of_another_store_in_the_place_of_the_store_s_is_left_out(store: Store) -> None:
    files = store.files()
    log = name_of(files, ".log")
    found, plan = repaired(files | {log: foreign(".log", range(20))})
    assert found == {b"%03d" % number: b"table" for number in range(100)}
    assert not plan.logs


def test_a_log_after_writes_that_an_old_manifest_does_not_know_is_kept_alone_or_left_out(
    store: Store,
) -> None:
    before = store.files()
    store.db.flush()
    store.db.put(b"last", b"1")
    now = store.files()
    old = with_manifest(now, before)
    found, plan = repaired(old)
    assert found == {b"%03d" % number: b"table" for number in range(100)}
    assert plan.stale == 1
    assert "later writes are in files that it does not name" in str(plan)
    assert "1 table that it does not name: left out (--merge-all uses every table)" in str(plan)
    env = env_of(old)
    lsmkv.repair_db(STORE, into="/all", env=env, merge_all=True)
    assert pairs_in("/all", env=env, read_only=False) == dict(store.db)


def test_a_table_that_is_newer_than_manifest_and_logs_shows_that_records_are_missing(
    store: Store,
) -> None:
    before = store.files()
    store.db.flush()
    plan = lsmkv.plan_repair(STORE, env=env_of(with_manifest(store.files(), before)))
    assert plan.needed
    assert plan.survey.unnamed


def test_a_manifest_whose_end_is_torn_and_that_does_not_know_a_newer_table_is_not_relied_on(
    store: Store,
) -> None:
    store.db.flush()
    store.db.put(b"last", b"1")
    now = store.files()
    name = name_of(now, "MANIFEST")
    found, plan = repaired(now | {name: now[name][:-5]})
    assert found == dict(store.db)
    assert not plan.by_levels
    assert "records are missing at its end" in str(plan)


def test_a_table_that_a_crash_left_and_whose_writes_are_in_the_log_shows_nothing(
    store: Store,
) -> None:
    before = store.files()
    store.db.flush()
    made = newest(store.files())
    found, plan = repaired(before | {made: store.files()[made]})
    assert not plan.needed
    assert found == dict(store.db)


@pytest.mark.parametrize(("level", "size", "first"), [(0, 100, 21), (1, 100, 0), (0, 99, 0)])
def test_a_table_is_newer_than_those_before_it_on_level_0_that_are_as_stated(
    level: int, size: int, first: int
) -> None:
    """A new MANIFEST does not say of which log a table was made."""
    bounds = b"a" + bytes(8), b"b" + bytes(8)
    edit = VersionEdit()
    edit.comparator = "leveldb.BytewiseComparator"
    for number in (5, 7):
        edit.add_file(level, FileMetaData(number, 100, *bounds))
    survey = Survey("store")
    survey.manifest = ManifestSurvey("MANIFEST-000002", 2, 100, True, Manifest("store"))
    survey.manifest._lineage.note(edit)
    older = TableSurvey("000005.ldb", 5, size, level)
    (older.smallest, older.largest), older.last_sequence = bounds, 20
    survey.tables.append(older)
    assert Ordering(survey).first_of_table(7) == first


def test_a_missing_table_is_newer_than_the_logs_before_its_own(store: Store) -> None:
    store.db.flush()
    files = store.files()
    with DB(STORE, env=(env := env_of(files))):
        pass
    with env.open_directory(STORE) as directory:
        missing = max(name for name in directory.names() if name.endswith(".ldb"))
        directory.remove(missing)
    ordering = Ordering(survey_db(STORE, env=env))
    assert ordering.first_of_table(int(missing.removesuffix(".ldb"))) == 101
    plan = lsmkv.repair_db(STORE, into="/new", env=env)
    assert plan.stale == 0
    assert pairs_in("/new", env=env, read_only=False) == {
        b"%03d" % number: b"table" for number in range(100)
    }


def test_sequences_that_no_file_has_are_named_if_there_is_no_manifest(store: Store) -> None:
    store.db.flush()
    store.db.put(b"last", b"1")
    store.db.flush()
    files = store.files()
    _, plan = repaired(without(files, "CURRENT", name_of(files, "MANIFEST"), tables(files)[1]))
    assert plan.unaccounted == [(101, 130)]
    assert "writes 101 to 130 are in no file: they were replaced, or they are lost" in str(plan)
    assert plan.to_dict()["unaccounted"] == [(101, 130)]
    assert repaired(files)[1].unaccounted == []


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ([(1, 10), (11, 20)], []),
        ([(11, 20)], [(1, 10)]),
        ([(1, 20), (5, 10), (25, 30)], [(21, 24)]),
    ],
)
def test_ranges_of_sequences_are_joined(
    ranges: list[tuple[int, int]], expected: list[tuple[int, int]]
) -> None:
    logs = []
    for number, (first, last) in enumerate(ranges):
        log = LogSurvey(f"{number}.log", number, 10, True)
        log.first_sequence, log.last_sequence = first, last
        logs.append(log)
    assert sequences_without_files(Survey("store"), logs) == expected


def test_a_log_that_does_not_follow_the_one_before_it_is_set_aside(store: Store) -> None:
    """It may be another store's, or the writes between them are lost."""
    other = Store()
    other.fill(range(500), b"foreign")
    other.db.flush()
    put_numbered(other.db, b"foreign%03d", range(300), b"foreign")
    files = other.files()
    other.db.close()
    found, plan = repaired(store.files() | {"000099.log": files[name_of(files, ".log")]})
    assert found == dict(store.db)
    assert plan.stale == 300
    assert plan.better_kept

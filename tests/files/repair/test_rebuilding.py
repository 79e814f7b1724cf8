"""Missing tables are made again from the files from which they were made, and from nothing else."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from live_copies import ORDERS, STORE, LiveRun, judge, record
from stores import pairs_in
from stores_in_memory import Store, env_of, foreign, newest, only, repaired, without

import lsmkv
from lsmkv import DB
from lsmkv.engine.db.tree.manifest import Manifest
from lsmkv.engine.format.version_edit import FileMetaData, VersionEdit
from lsmkv.files.repair.plan import LEAVE_OUT, REBUILD
from lsmkv.files.repair.rebuilding import Ancestry
from lsmkv.files.repair.report import LogSurvey, ManifestSurvey, Survey


@pytest.fixture
def store() -> Iterator[Store]:
    """A store of 100 keys in its log, three of them written twice, and one deleted."""
    made = Store()
    made.fill(range(100), b"first")
    made.fill(range(3), b"second")
    made.db.delete(b"050")
    with made.db:
        yield made


def test_a_table_is_made_of_the_log_that_was_flushed(store: Store) -> None:
    before = store.files()
    store.db.flush()
    found, plan = repaired(without(store.files(), ".ldb", ".log") | without(before, "4", "T"))
    assert found == dict(store.db)
    assert [table.action for table in plan.tables] == [REBUILD]
    assert (plan.lost_bytes, plan.stale) == (0, 0)
    assert "rebuild: from 000003.log" in str(plan)


def test_a_table_is_made_of_the_tables_that_were_compacted(store: Store) -> None:
    store.db.flush()
    store.db.put(b"007", b"third")
    store.db.delete(b"008")
    store.db.flush()
    before = store.files()
    store.db.compact_range()
    found, plan = repaired(without(store.files(), ".ldb") | only(before, ".ldb"))
    assert found == dict(store.db)
    assert REBUILD in [table.action for table in plan.tables]
    assert plan.lost_bytes == 0


def test_a_table_is_made_of_the_logs_of_tables_that_are_missing_too(store: Store) -> None:
    first = store.files()
    store.db.flush()
    store.db.put(b"007", b"third")
    second = store.files()
    store.db.flush()
    store.db.compact_range()
    logs = only(first, ".log")
    logs |= only(second, ".log")
    found, plan = repaired(without(store.files(), ".ldb") | logs)
    assert found == dict(store.db)
    assert plan.lost_bytes == 0


def test_a_log_that_was_cut_is_used_and_sets_nothing_aside_if_the_newest_writes_are_lost(
    store: Store,
) -> None:
    store.db.flush()
    store.fill(range(50), b"third")
    cut = store.files()
    store.db.put(b"001", b"fourth")
    store.db.flush()
    now = store.files()
    kept = dict(store.db) | {b"001": b"third"}
    found, plan = repaired(without(now, newest(now), ".log") | only(cut, ".log"))
    assert found == kept
    assert plan.stale == 0
    assert plan.lost_bytes > 0
    assert "which lack some of writes 155 to 155" in str(plan)


@pytest.mark.parametrize("newer", [1, 300])
def test_what_a_log_that_was_cut_may_have_replaced_is_set_aside_if_more_is_newer(
    store: Store, newer: int
) -> None:
    store.db.flush()
    store.db.put(b"000", b"third")
    store.db.put(b"099", b"third")
    cut = store.files()
    before = dict(store.db)
    store.db.put(b"001", b"fourth")
    store.db.flush()
    later = {b"zzz%03d" % number: b"newest" for number in range(newer)}
    for key, value in later.items():
        store.db.put(key, value)
    now = store.files()
    logs = only(cut, ".log")
    found, plan = repaired(without(now, newest(now)) | logs)
    if newer == 1:
        assert found == before  # it is the store as it was before what is lost
        assert plan.stale == 1
    else:
        # The MANIFEST states the newest version of a table's first key.
        assert found == {b"000": b"third", **later}
        assert plan.stale == 101


def test_a_key_that_was_deleted_after_the_table_was_made_does_not_come_back(store: Store) -> None:
    store.db.flush()
    store.db.put(b"000", b"third")
    store.db.put(b"099", b"third")
    store.db.flush()
    before = only(store.files(), ".ldb")
    store.db.compact_range()
    for number in range(100):
        store.db.delete(b"%03d" % number)
    store.db.put(b"500", b"last")
    store.db.compact_range()
    now = store.files()
    assert dict(store.db) == {b"500": b"last"}
    found, _ = repaired(now | before)
    assert found == {b"500": b"last"}
    missing = without(now, newest(now)) | before
    assert repaired(missing)[0] == {}


def test_a_table_that_was_ingested_is_not_in_a_log(store: Store) -> None:
    before = store.files()
    then = dict(store.db)
    with lsmkv.TableWriter("/table.ldb", env=store.env) as table:
        table.add(b"000", b"ingested")
        table.add(b"200", b"ingested")
    store.db.ingest(["/table.ldb"])
    store.db.put(b"zzz", b"newest")
    now = store.files()
    logs = only(before, ".log")
    found, plan = repaired(logs | without(now, newest(now)))
    assert [one.action for one in plan.tables if one.survey.name == newest(now)] == [LEAVE_OUT]
    assert found == then  # as it was before, since everything in the range may have been replaced
    assert plan.lost_bytes > 0


def test_a_file_of_another_size_is_no_input(store: Store) -> None:
    store.db.flush()
    store.db.put(b"007", b"third")
    store.db.flush()
    tables = only(store.files(), ".ldb")
    store.db.compact_range()
    tables[min(tables)] = foreign(".ldb", (0, 99))
    found, plan = repaired(without(store.files(), ".ldb") | tables)
    assert b"foreign" not in found.values()
    assert plan.stale > 0 or LEAVE_OUT in [table.action for table in plan.tables]


def test_tables_that_an_older_manifest_does_not_name_are_used_only_to_merge_all(
    store: Store,
) -> None:
    store.db.flush()
    store.db.put(b"007", b"third")
    store.db.flush()
    before = only(store.files(), "MANIFEST")
    store.db.compact_range()
    copied = store.files() | before
    found, plan = repaired(copied)
    assert found == {}
    assert len(plan.survey.unnamed) == 1
    assert "1 table that it does not name: left out" in str(plan)
    env = env_of(copied)
    kept = lsmkv.repair_db(STORE, into="/new", env=env, merge_all=True)
    assert pairs_in("/new", env=env, read_only=False) == dict(store.db)
    assert not kept.by_levels
    assert lsmkv.repair.survey_db(STORE, env=env).severity == 2


def test_merging_all_uses_logs_whose_writes_are_in_tables(store: Store) -> None:
    logs = only(store.files(), ".log")
    store.db.flush()
    store.db.compact_range()
    env = env_of(without(store.files(), ".ldb", ".log") | logs)
    kept = lsmkv.repair_db(STORE, into="/new", env=env, merge_all=True)
    assert [log.operations for log in kept.logs] == [104]
    assert pairs_in("/new", env=env, read_only=False) == dict(store.db)


def busy(db: DB, write: Callable[[bytes, bytes | None], None]) -> None:
    """Overwrite and delete keys, through flushes and compactions."""
    for turn in range(3):
        for number in range(30):
            write(b"key%03d" % number, b"%d" % turn + bytes(40))
        for number in range(turn, 30, 5):
            write(b"key%03d" % number, None)
        db.flush()
        write(b"zz%d" % turn, b"tail")
    db.compact_range()
    for number in range(0, 30, 2):
        write(b"key%03d" % number, b"late" + bytes(40))
    db.flush()
    db.compact_range()
    write(b"end", b"1")


@pytest.fixture(scope="module")
def run() -> LiveRun:
    """A recorded run: the files after each change of the disk."""
    return record(busy)


@pytest.mark.parametrize("step", [21, pytest.param(5, marks=pytest.mark.long)])
@pytest.mark.parametrize("order", ORDERS)
def test_a_copy_of_a_live_store_has_no_old_value_and_no_deleted_key(
    run: LiveRun, order: str, step: int
) -> None:
    offset = random.Random(order).randrange(step)
    steps = range(offset, len(run.steps), step)
    judged = right = 0
    for copy in run.copies(order, steps, steps):
        env = copy.env()
        lsmkv.repair_db(STORE, into="/new", env=env)
        with DB("/new", env=env) as db:
            outcome = judge(run, copy, dict(db))
        assert (outcome.old, outcome.ghosts) == (0, 0), copy.label
        judged += 1
        right += outcome.right
    assert judged > 10
    assert right > 5 * judged


def log(number: int, first: int, last: int) -> LogSurvey:
    made = LogSurvey(f"{number:06}.log", number, 100, False)
    made.batches, made.first_sequence, made.last_sequence = 1, first, last
    return made


@pytest.mark.parametrize(
    ("logs", "used", "missing"),
    [
        ([log(3, 1, 10), log(5, 11, 20)], [3, 5], None),
        ([log(3, 1, 10), log(5, 11, 19), log(9, 20, 30)], [3, 5], None),
        ([log(3, 1, 10), log(5, 11, 19), log(9, 21, 30)], [3, 5], (20, 20)),
        ([log(3, 1, 10), log(5, 12, 20), log(9, 21, 30)], [3], (11, 20)),
        ([log(5, 11, 20), log(9, 21, 30)], [], (0, 20)),
        ([], [], (0, 20)),
    ],
)
def test_logs_of_a_flush_are_used_as_far_as_no_write_is_missing(
    logs: list[LogSurvey], used: list[int], missing: tuple[int, int] | None
) -> None:
    survey = Survey("store")
    survey.manifest = ManifestSurvey("MANIFEST-000002", 2, 100, True, Manifest("store"))
    survey.logs = logs
    first, flush = VersionEdit(), VersionEdit()
    first.log_number, flush.log_number, flush.last_sequence = 3, 9, 20
    flush.add_file(0, FileMetaData(7, 100, b"a" + bytes(8), b"b" + bytes(8)))
    for edit in (first, flush):
        survey.manifest._lineage.note(edit)
    found = Ancestry(survey).sources_of(7)
    assert [*found.logs] == used
    assert found.complete == (missing is None)
    if missing is not None:
        assert (found.first_missing, found.last_missing) == missing


def test_older_writes_that_no_file_has_set_nothing_aside(store: Store) -> None:
    """Of a compaction's three inputs, the log of the second is there."""
    store.db.flush()
    store.db.put(b"007", b"third")
    store.db.delete(b"008")
    logs = only(store.files(), ".log")
    store.db.flush()
    store.db.put(b"009", b"fourth")
    store.db.flush()
    store.db.compact_range()
    found, plan = repaired(without(store.files(), ".ldb", ".log") | logs)
    assert found == {b"007": b"third"}
    assert plan.stale == 0
    assert "which lack some of writes 0 to 104, 107 to 107" in str(plan)

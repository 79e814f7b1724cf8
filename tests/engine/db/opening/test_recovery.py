"""lsmkv.engine.db.opening.recovery: opening after a kill, a power cut, a failed call, and damage.

The judge is always the same: a workload of numbered batches, and the state after each.  What a
store holds must be one of these states: no batch torn, none missing before one that is there, and
none missing that was promised to stay.
"""

from __future__ import annotations

import errno
import logging
import os
import pathlib
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from crashed_stores import (
    TORN,
    content,
    damage,
    directory_of,
    everything,
    fresh,
    logs_of,
    lost,
    made,
    names_of,
    record,
    record_ends,
    remove,
    replace,
    with_tables,
)
from numbered import PATH, TINY, Progress, State, Workload, batch_of, judge, run
from states import Case, Drawing, StatesError, states
from trees import key_of, key_text, words_text

import lsmkv
from lsmkv import DB, WriteBatch
from lsmkv.engine.format.filenames import FileType, parse_filename
from lsmkv.engine.format.log import BLOCK_SIZE, frame
from lsmkv.files.repair.survey import survey_db
from lsmkv.testing.durable import NameModel, Tails
from lsmkv.testing.faulty import FaultyEnv

pytestmark = [
    pytest.mark.usefixtures("quiet"),
    pytest.mark.filterwarnings("ignore::lsmkv.RecoveryWarning"),
]


# Kills and power cuts: see tests/stress/crash_study.py, too


def dead_process(env: FaultyEnv) -> None:
    """The process that held the store is killed, and no further write becomes durable."""
    with env.open_directory(PATH) as directory:
        directory._inner._folder.locked.clear()  # type: ignore[attr-defined]


@pytest.mark.parametrize("reuse_logs", [False, True])
def test_power_cuts_after_a_killed_process(reuse_logs: bool) -> None:
    """Writes of a killed process are not durable yet, and the next process must not assume so."""
    first = Workload(steps=6, seed=11)  # less than a memtable, so that its log is continued
    first.steps = [("write" if operations else "", operations) for _, operations in first.steps]
    second = Workload(steps=16, seed=12, before=first)
    n = 0
    while True:
        n += 1
        env = FaultyEnv()
        killed = DB(PATH, create_if_missing=True, env=env)
        for kind, operations in first.steps:
            if kind:
                killed.write(batch_of(operations))
        try:
            dead_process(env)
            env.fail_at(n, sticky=True)
            progress = Progress(len(first.states) - 1, synced=0)
            try:
                run(env, second, progress, reuse_logs=reuse_logs)
            except lsmkv.IOError:
                pass
            struck = env.failures
            for seed, names in enumerate(NameModel):
                cut = env.power_cut(names, random.Random(n), tails=list(Tails)[(n + seed) % 4])
                judge(cut, second, progress.synced, progress.begun)
        finally:
            env.heal()
            killed.close()
        if struck == 0:
            assert ("append_to" in env.history) == reuse_logs
            break
    assert n > 60


# A store with nothing to recover


def settled(env: FaultyEnv) -> None:
    """A store whose writes are all in a table, closed."""
    with DB(PATH, create_if_missing=True, env=env) as db:
        db.put(b"old", b"1")
        db.flush()


def test_a_settled_store_is_opened_as_it_is() -> None:
    env = FaultyEnv()
    settled(env)
    before = everything(env)
    start = len(env.history)
    with DB(PATH, env=env) as db:
        assert env.history[start:].count("dir_sync") == 1
        assert "sync" not in env.history[start:]
        assert db.get(b"old") == b"1"
    assert everything(env) == before
    with DB(PATH, env=env) as db:
        db.put(b"new", b"2")
        (log,) = names_of(env, FileType.LOG)
        assert log in before  # it is gone on with
        killed = env.kill()
        cut = env.power_cut()
        db.flush()  # which begins a new MANIFEST, and removes the old one
    (manifest,) = names_of(env, FileType.MANIFEST)
    assert manifest not in before
    for other, expected in ((env, True), (killed, True), (cut, False)):
        with DB(PATH, env=other, paranoid_checks=True) as db:
            assert dict(db) == {b"old": b"1"} | ({b"new": b"2"} if expected else {})


@pytest.mark.parametrize(
    "name", ["000099.log", "000099.ldb", "MANIFEST-000099", "000099.dbtmp", "STATS.json"]
)
def test_a_store_with_a_file_too_many_is_not_settled(name: str) -> None:
    env = FaultyEnv()
    settled(env)
    (before,) = names_of(env, FileType.MANIFEST)
    replace(env, name, b"")
    with DB(PATH, env=env) as db:
        assert db.get(b"old") == b"1"
    assert name not in everything(env)
    (manifest,) = names_of(env, FileType.MANIFEST)
    assert manifest != before


def test_a_log_becomes_a_table_with_two_syncs_of_the_directory() -> None:
    """One for the names of table, log and MANIFEST, and one for that of CURRENT."""
    env, expected = made()
    start = len(env.history)
    with DB(PATH, env=env) as db:
        calls = env.history[start:]
        assert dict(db) == expected.states[-1]
    assert calls.count("dir_sync") == 2
    assert calls.count("sync") == 3  # the table, the MANIFEST, and what becomes CURRENT
    # LOG, the log, the MANIFEST and the table
    assert calls[: calls.index("dir_sync")].count("create") == 4


@pytest.mark.parametrize(
    ("call", "n"),
    [("create", 2), ("create", 3), ("create", 4), *((call, 1) for call in ("sync", "dir_sync"))],
)
def test_an_opening_that_fails_leaves_nothing_that_it_made(call: str, n: int) -> None:
    env, expected = made()
    before = {name for name in everything(env) if not name.startswith("LOG")}
    env.fail_at(n, calls={call})
    with pytest.raises(lsmkv.IOError):
        DB(PATH, env=env)
    assert env.failures == 1
    assert {name for name in everything(env) if not name.startswith("LOG")} == before
    assert opened(env) == expected.states[-1]


def test_the_names_of_a_settled_store_are_durable_before_it_is_written_to() -> None:
    """LevelDB does not sync the name of a log."""
    env = FaultyEnv()
    settled(env)
    (log,) = names_of(env, FileType.LOG)
    with directory_of(env) as directory:
        directory.rename(log, "aside")
        directory.sync()
        directory.rename("aside", log)  # a name that a power cut takes away
    with DB(PATH, env=env) as db:
        db.put(b"new", b"2", sync=True)
        with DB(PATH, env=env.power_cut()) as again:
            assert dict(again) == {b"old": b"1", b"new": b"2"}


# Failing calls: see tests/stress/fault_study.py, too


@pytest.mark.parametrize("call", ["sync", "dir_sync"])
def test_a_failed_sync_is_reported_and_final(call: str) -> None:
    workload = Workload(steps=40, seed=4)
    n = 0
    while True:
        n += 1
        env = FaultyEnv()
        env.fail_at(n, calls={call})
        progress = Progress()
        failure = None
        try:
            run(env, workload, progress)
        except lsmkv.IOError as error:
            failure = error
        if env.failures == 0:
            assert failure is None
            break
        assert failure is not None
        assert failure.errno == errno.EIO
        for names in NameModel:
            cut = env.power_cut(names, random.Random(n))
            judge(cut, workload, progress.synced, progress.begun)
    assert n > 10


def test_no_write_is_acknowledged_after_a_failed_sync() -> None:
    env = FaultyEnv()
    db = DB(PATH, create_if_missing=True, env=env)
    db.put(b"a", b"1", sync=True)
    db.put(b"b", b"1")
    env.fail_at(1, calls={"sync"})
    with pytest.raises(lsmkv.IOError):
        db.put(b"c", b"1", sync=True)
    for call in (
        lambda: db.put(b"d", b"1"),
        lambda: db.put(b"d", b"1", sync=True),
        db.sync,
        db.flush,
    ):
        with pytest.raises(lsmkv.IOError, match="reopen the store"):
            call()
    assert dict(db) == {b"a": b"1", b"b": b"1"}
    with pytest.raises(lsmkv.IOError):
        db.close()
    assert db.closed
    with DB(PATH, env=env.power_cut()) as again:
        assert dict(again) == {b"a": b"1"}
    with DB(PATH, env=env) as again:  # with the failed write or without, but none after it
        assert dict(again) in (
            {b"a": b"1", b"b": b"1"},
            {b"a": b"1", b"b": b"1", b"c": b"1"},
        )
        again.put(b"e", b"1")


@pytest.mark.parametrize("when", ["write", "close"])
def test_a_log_whose_sync_failed_is_not_reused(when: str) -> None:
    """Its content may never become durable, even if a later sync of it succeeds."""
    env = FaultyEnv()
    db = DB(PATH, create_if_missing=True, env=env, reuse_logs=True)
    db.put(b"a", b"1", sync=True)
    db.put(b"b", b"1")
    env.fail_at(1, calls={"sync"})
    if when == "write":
        with pytest.raises(lsmkv.IOError):
            db.sync()
    with pytest.raises(lsmkv.IOError):
        db.close()
    with DB(PATH, env=env, reuse_logs=True) as again:
        again.put(b"c", b"1", sync=True)
        with DB(PATH, env=env.power_cut()) as cut:
            assert dict(cut) == {b"a": b"1", b"b": b"1", b"c": b"1"}


@pytest.mark.parametrize("short", [False, True])
def test_a_failed_write_leaves_nothing_in_the_log(short: bool) -> None:
    """On a full disk the log is cut back, and it is continued when there is room again."""
    env = FaultyEnv()
    with DB(PATH, create_if_missing=True, env=env) as db:
        db.put(b"a", b"1")
        for n in range(3):
            env.fail_at(1, OSError(errno.ENOSPC, "full"), short=short, calls={"append"})
            with pytest.raises(lsmkv.IOError, match="full") as caught:
                db.put(b"b%d" % n, b"x" * 100, sync=True)
            assert caught.value.errno == errno.ENOSPC
            assert db.get(b"b%d" % n) is None
            db.put(b"c%d" % n, b"1")
        expected = {b"a": b"1", b"c0": b"1", b"c1": b"1", b"c2": b"1"}
        assert dict(db) == expected
    with DB(PATH, env=env, paranoid_checks=True) as db:
        assert dict(db) == expected


def test_a_log_that_cannot_be_cut_back_is_poisoned() -> None:
    env = FaultyEnv()
    db = DB(PATH, create_if_missing=True, env=env)
    db.put(b"a", b"1")
    env.fail_at(1, short=True, sticky=True, calls={"append", "truncate", "file_size"})
    with pytest.raises(lsmkv.IOError):
        db.put(b"b", b"x" * 100)
    env.heal()
    with pytest.raises(lsmkv.IOError, match="reopen the store"):
        db.put(b"c", b"1")
    assert db.get(b"a") == b"1"
    try:
        db.close()
    except lsmkv.IOError:
        pass
    with DB(PATH, env=env) as db:
        assert dict(db) == {b"a": b"1"}
        db.put(b"c", b"1")


# Stores of known content


def refused(env: FaultyEnv, match: str, **options: Any) -> lsmkv.CorruptionError:
    """Opening fails, and changes no file."""
    before = everything(env)
    with pytest.raises(lsmkv.CorruptionError, match=match) as caught:
        DB(PATH, env=env, **options)
    assert everything(env) == before
    assert caught.value.path is not None
    return caught.value


def opened(env: FaultyEnv, **options: Any) -> State:
    with DB(PATH, env=env, **options) as db:
        db.check()
        return dict(db)


# The newest log's tail


@pytest.mark.parametrize("paranoid", [False, True])
def test_a_torn_record_at_every_byte_of_the_tail(paranoid: bool) -> None:
    base, workload = made(16)
    (name,) = names_of(base, FileType.LOG)
    data = content(base, name)
    ends = record_ends(data)
    assert len(ends) == 16
    for cut in range(len(data) + 1):
        env = base.kill()
        replace(env, name, data[:cut])
        whole = sum(end <= cut for end in ends)
        found = opened(env, paranoid_checks=paranoid, reuse_logs=cut % 2 == 0)
        assert found == workload.states[whole]
        assert opened(env, paranoid_checks=True) == found
        assert lost(env) == {}


def test_a_log_with_a_torn_record_is_not_reused() -> None:
    base, workload = made(5)
    (name,) = names_of(base, FileType.LOG)
    data = content(base, name)
    replace(base, name, data[:-3])
    with DB(PATH, env=base, reuse_logs=True) as db:
        db.put(b"after", b"1")
        assert names_of(base, FileType.LOG) != [name]
    assert opened(base) == {**workload.states[4], b"after": b"1"}


def test_a_tail_of_zeros() -> None:
    """Some file systems leave zeros of an append after a power cut."""
    base, workload = made(5)
    (name,) = names_of(base, FileType.LOG)
    data = content(base, name)
    for zeros in (1, 6, 7, 8, 100, BLOCK_SIZE, 3 * BLOCK_SIZE):
        env = base.kill()
        replace(env, name, data + bytes(zeros))
        assert opened(env, paranoid_checks=True) == workload.states[5]
        assert lost(env) == {}


def halves(record: bytes, at: int) -> Iterator[bytes]:
    """What a killed process may leave of a record that begins at ``at``: a beginning, or all but
    one, since the C library copies the first bytes last."""
    borders = [BLOCK_SIZE * n - at for n in range(1 + (at + len(record)) // BLOCK_SIZE)]
    for cut in range(1, len(record)):
        if min(abs(cut - border) for border in (0, *borders)) < 8 or cut % 9901 == 12:
            yield record[:cut] + bytes(len(record) - cut)
    for late in (7, 11, 64):
        yield bytes(late) + record[late:]
        yield bytes(late) + record[late : len(record) // 2] + bytes(len(record) - len(record) // 2)


@pytest.mark.parametrize("size", [20, 2 * BLOCK_SIZE])
@pytest.mark.parametrize("start", [60, BLOCK_SIZE - 7, BLOCK_SIZE - 20])
def test_half_a_copy_into_a_mapped_log_is_no_damage(
    start: int, size: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Everything that reads a log takes it for the end, and no reader gives a warning of it."""
    filler = WriteBatch()
    filler.put(b"first", bytes(start - len(framed(1, b"first", b"")) - (2 if start > 200 else 0)))
    whole = frame(filler.encode(1), 0)
    assert len(whole) == start
    record = frame(batch_of([(b"second", b"v" * size)]).encode(2), start)
    base = fresh()
    for half in halves(record, start):
        data = whole + half
        env = base.kill()
        logs_of(env, [data + bytes(-len(data) % BLOCK_SIZE + BLOCK_SIZE)])
        caplog.clear()
        for paranoid in (True, False):
            with DB(PATH, env=env, read_only=True, paranoid_checks=paranoid) as view:
                assert list(view.iterator(include_value=False)) == [b"first"]
                view.refresh()
                assert list(view.iterator(include_value=False)) == [b"first"]
        assert [one for one in caplog.records if one.levelno >= logging.WARNING] == []
        found = survey_db(PATH, env=env)
        assert [file.problems for file in found.files] == [[] for _ in found.files]
        assert not lsmkv.plan_repair(PATH, env=env).needed
        for paranoid in (True, False):
            assert list(opened(env.kill(), paranoid_checks=paranoid)) == [b"first"]
        assert list(opened(env)) == [b"first"]
        assert lost(env) == {}


def framed(sequence: int, key: bytes, value: bytes) -> bytes:
    return frame(batch_of([(key, value)]).encode(sequence), 0)


# Damage inside a log


def test_damage_inside_the_newest_log_keeps_the_prefix(caplog: pytest.LogCaptureFixture) -> None:
    base, workload = made(12)
    (name,) = names_of(base, FileType.LOG)
    data = content(base, name)
    ends = record_ends(data)
    for at in range(len(data)):
        env = base.kill()
        damaged = damage(data, at, 1 << at % 8)
        replace(env, name, damaged)
        whole = sum(end <= at for end in ends)
        if whole < 11:
            error = refused(env, ".", paranoid_checks=True)
            assert str(error.path).endswith(name)
            assert error.offset == (ends[whole - 1] if whole else 0)
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger="lsmkv"):
            found = opened(env, paranoid_checks=whole == 11)
        assert found == workload.states[whole]
        assert any(name in record.getMessage() for record in caplog.records)
        if whole < 11:
            assert lost(env) == {name: damaged}
        assert opened(env, paranoid_checks=True) == found


def test_damage_in_a_log_of_many_blocks() -> None:
    """Records in fragments, and a hole of whole blocks."""
    env = FaultyEnv()
    values = [bytes([n]) * 20_000 for n in range(12)]
    db = DB(PATH, create_if_missing=True, env=env)
    for n, value in enumerate(values):
        db.put(b"%02d" % n, value)
    base = env.kill()
    db.close()
    (name,) = names_of(base, FileType.LOG)
    data = content(base, name)
    for at in (100, 25_000, 32_770, 40_000, 100_000, 131_072, 170_000):
        for size in (1, 10, BLOCK_SIZE, 50_000):
            cut = base.kill()
            hole = data[:at] + random.Random(at).randbytes(size) + data[at + size :]
            replace(cut, name, hole)
            whole = at // 20_030
            assert opened(cut) == {b"%02d" % n: values[n] for n in range(whole)}
            assert lost(cut) == {name: hole}
            assert opened(cut) == {b"%02d" % n: values[n] for n in range(whole)}


def numbered(*values: int) -> State:
    return {b"%03d" % value: b"v%d" % value for value in values}


# Logs in text


def log_of(text: str) -> bytes:
    """The bytes of a log: ``#2:banana,cherry torn#4:x bad#5:fig``."""
    log = b""
    for word in text.split():
        found = re.fullmatch(r"(torn|bad)?#(\d+):(\S+)", word)
        if found is None:
            raise StatesError(f"not a record: {word}")
        batch = batch_of([(key.encode(), b"v" + key.encode()) for key in found[3].split(",")])
        record = frame(batch.encode(int(found[2])), 0)
        log += record[:-3] if found[1] == "torn" else record
        if found[1] == "bad":
            log = damage(log, len(log) - 3)
    return log


def answer(drawing: Drawing, words: list[str]) -> str:
    """Of the logs that are drawn, behind the empty one of a new store."""
    env = fresh()
    logs = [log_of(text) for _, text in drawing]
    names = logs_of(env, logs)
    match words:
        case ["open", *paranoid]:
            before = everything(env)
            try:
                found = opened(env, paranoid_checks=bool(paranoid))
            except lsmkv.CorruptionError:
                assert everything(env) == before
                raise
            assert found == {key: b"v" + key for key in found}
            assert opened(env) == found
            aside = [number for number, name in enumerate(names, 1) if name in lost(env)]
            assert lost(env) == {names[number - 1]: logs[number - 1] for number in aside}
            with DB(PATH, env=env) as db:
                db.put(b"more", b"1")
            assert opened(env, paranoid_checks=True) == {**found, b"more": b"1"}
            kept = words_text(map(key_text, found))
            return f"{kept}, aside {words_text(aside)}" if aside else kept
        case ["put", key, value]:
            with DB(PATH, env=env) as db, db.snapshot():
                db.put(key_of(key), value.encode())
                text = f"{key}={(db.get(key_of(key)) or b'').decode()}"
            pairs = [f"{key_text(name)}={data.decode()}" for name, data in opened(env).items()]
            return f"{text}, reopened: {words_text(pairs)}"
    raise NotImplementedError


@states("recovery.txt")
def test_states(case: Case) -> None:
    case.check(answer, draws="log")


# MANIFEST, CURRENT, tables


def test_a_missing_current() -> None:
    env, _ = with_tables()
    remove(env, "CURRENT")
    for create in (False, True):
        error = refused(env, "CURRENT is missing", create_if_missing=create)
        assert str(error.path).endswith("CURRENT")
    env, _ = made(3)
    remove(env, "CURRENT")
    refused(env, "CURRENT is missing", create_if_missing=True)


@pytest.mark.parametrize(
    "text",
    [
        "", "\n", "MANIFEST-000004", "MANIFEST-000004\n\n", "MANIFEST-000004 \n", "MANIFEST-\n",
        "MANIFEST-4x\n", "MANIFEST--4\n", "MANIFEST-+4\n", "MANIFEST-0x4\n", "manifest-000004\n",
        "MANIFEST-\N{DEVANAGARI DIGIT FOUR}\n", "MANIFEST-\N{SUPERSCRIPT TWO}\n",
        "../MANIFEST-000004\n", "/etc/passwd\n", "sub/MANIFEST-000004\n", "./MANIFEST-000004\n",
        "MANIFEST-000004\0\n", "000003.log\n", "MANIFEST-000004\r\n", "CURRENT\n",
        "MANIFEST-" + "4" * 5000 + "\n",
    ],
)  # fmt: skip
def test_malformed_content_of_current(text: str) -> None:
    env, _ = with_tables()
    replace(env, "CURRENT", text.encode())
    error = refused(env, "CURRENT")
    assert str(error.path).endswith("CURRENT")


def test_a_torn_record_at_the_end_of_a_manifest() -> None:
    """It is a commit that was under way, and was not acknowledged."""
    base, expected = with_tables()
    (name,) = names_of(base, FileType.MANIFEST)
    for tail in (b"\x01", b"\0" * 40, frame(b"\x04\x01", 0)[:-1], frame(b"\x04\x01" * 9, 0)[:-9]):
        env = base.kill()
        replace(env, name, content(base, name) + tail)
        assert opened(env) == expected
        assert opened(env) == expected


def test_a_torn_manifest_record_and_a_missing_table() -> None:
    """A missing table shows that the bad record had been committed: it is damage."""
    base, _ = with_tables()
    (name,) = names_of(base, FileType.MANIFEST)
    replace(base, name, content(base, name) + b"torn")
    remove(base, names_of(base, FileType.TABLE)[0])
    refused(base, "missing or not of")


def test_a_missing_or_swapped_table() -> None:
    base, _ = with_tables()
    tables = names_of(base, FileType.TABLE)
    for table in tables:
        env = base.kill()
        remove(env, table)
        with DB(PATH, env=env) as db, pytest.raises(lsmkv.CorruptionError) as caught:
            db.check()
        assert str(caught.value.path).endswith(table)
        assert "missing" in str(caught.value)
        for data in (b"", content(base, table)[:-1], content(base, table) + b"\0"):
            env = base.kill()
            replace(env, table, data)
            with DB(PATH, env=env) as db, pytest.raises(lsmkv.CorruptionError) as caught:
                db.check()
            assert str(caught.value.path).endswith(table)
            assert "bytes" in str(caught.value)


def test_a_missing_log(caplog: pytest.LogCaptureFixture) -> None:
    env, _ = with_tables()
    (name,) = names_of(env, FileType.LOG)
    remove(env, name)
    with caplog.at_level(logging.WARNING, logger="lsmkv"):
        assert opened(env) == {b"%02d" % key: b"2" for key in range(20)}
    assert f"{name} is missing" in caplog.text


def test_another_comparator() -> None:
    env, expected = with_tables()
    before = everything(env)
    with pytest.raises(lsmkv.ComparatorMismatchError) as caught:
        DB(PATH, env=env, comparator=lambda a, b: (a > b) - (a < b), comparator_name="my.own")
    assert "my.own" in str(caught.value)
    assert "leveldb.BytewiseComparator" in str(caught.value)
    assert everything(env) == before
    assert opened(env) == expected


def test_another_engines_database() -> None:
    env, _ = with_tables()
    (name,) = names_of(env, FileType.MANIFEST)
    replace(env, "IDENTITY", b"5c0a")
    replace(env, name, frame(b"\xc8\x01\x00", 0))
    with pytest.raises(lsmkv.ForeignFormatError, match="RocksDB"):
        DB(PATH, env=env)


# Recovery itself


def test_an_error_while_recovering_is_raised() -> None:
    """It is not taken for the end of a log, and the next open finds every write."""
    base, expected = with_tables()
    (name,) = names_of(base, FileType.LOG)
    replace(base, name, content(base, name) + record(100, 1)[:9])
    calls = {"names", "size", "open", "read", "lock", "open_directory", "sync", "dir_sync"}
    for code in (errno.EIO, errno.ENOMEM, errno.EACCES):  # EMFILE may be overcome
        n = 0
        while True:
            n += 1
            env = base.kill()
            remove(env, "LOG")
            env.fail_at(n, OSError(code, os.strerror(code)), calls=calls)
            failure = None
            try:
                DB(PATH, env=env).close()
            except lsmkv.IOError as error:
                failure = error
            if env.failures == 0:
                break
            assert failure is not None
            assert failure.errno == code
            assert opened(env) == expected
        assert n > 10


def with_all_damage() -> tuple[FaultyEnv, State, dict[str, bytes]]:
    """A store with tables, several logs, a torn record, and a gap."""
    env, state = with_tables()
    (first,) = names_of(env, FileType.LOG)
    at = 61  # three times twenty puts went into tables, the 61st is in the log
    number = int(first.split(".")[0])
    second, third = f"{number + 4:06d}.log", f"{number + 6:06d}.log"
    replace(env, second, record(at + 1, 1, 2) + TORN + record(at + 3, 3) + TORN + record(at + 9, 9))
    replace(env, third, record(at + 20, 20))
    replace(env, "000777.ldb", b"an orphan")
    aside = {name: content(env, name) for name in (second, third)}
    return env, {**state, **numbered(1, 2, 3)}, aside


def test_recovery_is_killed_at_every_call_and_run_again() -> None:
    base, expected, aside = with_all_damage()
    whole = base.kill()
    assert opened(whole, **TINY) == expected
    assert lost(whole) == aside
    n = 0
    while True:
        n += 1
        env = base.kill()
        env.fail_at(n, sticky=True, short=n % 2 == 0)
        try:
            DB(PATH, env=env, **TINY).close()
        except lsmkv.IOError:
            pass
        if env.failures == 0:
            break
        images = [env.kill()]
        images += [env.power_cut(names, random.Random(n), tails=Tails.TORN) for names in NameModel]
        for image in images:
            assert opened(image, **TINY) == expected
            # An earlier attempt may have left its own new log, which is empty.
            assert {name: data for name, data in lost(image).items() if data} == aside
    assert n > 40


def test_obsolete_files_are_removed_only_after_the_commit() -> None:
    base, expected, _ = with_all_damage()
    remove(base, "LOG")
    env = base.kill()
    env.fail_at(1, calls={"rename"})  # the one of CURRENT, which commits
    with pytest.raises(lsmkv.IOError):
        DB(PATH, env=env)
    assert env.failures == 1
    assert everything(base).items() <= everything(env).items()
    assert opened(env) == expected
    assert "000777.ldb" not in names_of(env, FileType.TABLE)


def test_numbers_in_the_directory_are_never_used_again() -> None:
    env, expected = with_tables()
    taken = ["000900.ldb", "MANIFEST-000910", "000905.dbtmp", "000907.sst"]
    for name in taken:
        replace(env, name, b"orphan")
    with DB(PATH, env=env) as db:
        assert dict(db) == expected
        assert set(taken).isdisjoint(everything(env))
        for kind in (FileType.LOG, FileType.MANIFEST):
            (name,) = names_of(env, kind)
            parsed = parse_filename(name)
            assert parsed is not None
            assert parsed[0] > 910
        db.put(b"k", b"v")
        db.flush()
        assert sum(name > "000910" for name in names_of(env, FileType.TABLE)) == 2
    assert opened(env) == {**expected, b"k": b"v"}


@pytest.mark.parametrize("number", [2**63 - 1, 2**63 - 2])
def test_the_last_file_number(number: int) -> None:
    """A file of the largest number: no later file could be parsed."""
    env, expected = with_tables()
    name = f"{number:06d}.ldb"
    replace(env, name, b"orphan")
    before = everything(env)
    with pytest.raises(lsmkv.Error, match="exhausted"):
        DB(PATH, env=env)
    assert everything(env) == before
    remove(env, name)
    assert opened(env) == expected


def test_a_log_larger_than_the_write_buffer() -> None:
    env = FaultyEnv()
    expected = {b"%03d" % n: b"v" * 50 for n in range(30)}
    with DB(PATH, create_if_missing=True, env=env) as db:
        for key, value in expected.items():
            db.put(key, value)
    with DB(PATH, env=env, write_buffer_size=1024) as db:
        assert db.get_property("leveldb.num-files-at-level0") == "3"
        assert dict(db) == expected
        db.check()


def test_versions_of_a_key_replayed_into_several_tables() -> None:
    """The newest version of a key wins, in whichever table it is."""
    env = FaultyEnv()
    with DB(PATH, create_if_missing=True, env=env) as db:
        for n in range(60):
            db.put(b"k", b"%d" % n * 20)
            db.put(b"%d" % n, b"v" * 30)
            if n % 7 == 0:
                db.delete(b"%d" % n)
        expected = dict(db)
    with DB(PATH, env=env, write_buffer_size=1024) as db:
        assert dict(db) == expected
        for key, value in expected.items():
            assert db.get(key) == value
        db.compact_range()
        assert dict(db) == expected


FOREIGN = [
    "notes.txt", "000001.ldb.bak", "x000001.ldb", "000001.LDB", "MANIFEST-", "MANIFEST-abc",
    "MANIFEST-000001.old", "LOG.older", "CURRENT.bak", "000001.dbtmp.x", "-000001.log", ".log",
    "\u0661\u0662\u0663\u0664\u0665\u0666.ldb", "99999999999999999999999999.ldb",
]  # fmt: skip


def test_a_log_name_with_other_digits_is_ignored(tmp_path: pathlib.Path) -> None:
    with DB(tmp_path / "db", create_if_missing=True) as db:
        db.put(b"k", b"v")
    (tmp_path / "db" / "8.log").write_bytes(b"not what the engine writes")
    with DB(tmp_path / "db", read_only=True) as db:
        assert dict(db) == {b"k": b"v"}
    with DB(tmp_path / "db") as db:
        assert dict(db) == {b"k": b"v"}


def test_foreign_files_are_never_touched(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "db"
    DB(path, create_if_missing=True).close()
    for name in FOREIGN:
        (path / name).write_bytes(b"mine")
    (path / "sub").mkdir()
    (path / "sub" / "000001.ldb").write_bytes(b"mine")
    (path / "lost").mkdir()
    (path / "lost" / "mine.txt").write_bytes(b"mine")
    for _ in range(2):
        with DB(path, **TINY) as db:
            for n in range(100):
                db.put(b"%d" % n, b"v" * 50)
            db.compact_range()
    lsmkv.destroy_db(path)
    for name in FOREIGN:
        assert (path / name).read_bytes() == b"mine"
    assert (path / "sub" / "000001.ldb").read_bytes() == b"mine"
    assert (path / "lost" / "mine.txt").read_bytes() == b"mine"
    assert sorted(os.listdir(path)) == sorted([*FOREIGN, "sub", "lost"])


@pytest.mark.parametrize("name", ["CURRENT", "MANIFEST", "log", "table"])
def test_symbolic_links_are_refused(tmp_path: pathlib.Path, name: str) -> None:
    path = tmp_path / "db"
    with DB(path, create_if_missing=True) as db:
        db.put(b"a", b"1")
        db.flush()
        db.put(b"b", b"1")
    pattern = {"MANIFEST": "MANIFEST-*", "log": "*.log", "table": "*.ldb"}.get(name, name)
    (file,) = path.glob(pattern)
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    before = (tmp_path / "elsewhere").read_bytes()

    def use() -> None:
        with DB(path) as db:
            db.get(b"a")

    with pytest.raises(lsmkv.IOError, match="symbolic link") as caught:
        use()
    assert str(caught.value.filename) == str(file)
    assert (tmp_path / "elsewhere").read_bytes() == before


def attempt(call: Callable[[], object]) -> str:
    try:
        call()
    except lsmkv.Error as error:
        return type(error).__name__
    return ""


def test_a_fifo_in_place_of_a_file(tmp_path: pathlib.Path) -> None:
    """It is refused at once, without a wait for a writer."""
    path = tmp_path / "db"
    with DB(path, create_if_missing=True) as db:
        db.put(b"a", b"1")
    for pattern in ("CURRENT", "MANIFEST-*", "*.log"):
        (file,) = path.glob(pattern)
        file.rename(tmp_path / "aside")
        os.mkfifo(file)
        assert attempt(lambda: DB(path)) == "IOError"
        file.unlink()
        (tmp_path / "aside").rename(file)
    with DB(path) as db:
        assert db.get(b"a") == b"1"


def test_zeros_where_writes_may_have_been_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    base, workload = made(40)
    (name,) = names_of(base, FileType.LOG)
    data = content(base, name)
    ends = record_ends(data)
    after = [data[: ends[19]] + bytes(len(data) - ends[19]), data + bytes(6)]
    for changed, steps in zip(after, (20, 40), strict=True):
        env = base.kill()
        replace(env, name, changed)
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger="lsmkv"):
            assert opened(env, paranoid_checks=True) == workload.states[steps]
        assert (f"{name}: zeros from {ends[19]} to the end" in caplog.text) == (steps == 20)
        assert lost(env) == {}


def test_zeros_at_the_end_of_a_log_are_nothing_if_the_next_one_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    base, workload = made(5)
    (name,) = names_of(base, FileType.LOG)
    data = content(base, name)
    ends = record_ends(data)
    replace(base, name, data[: ends[3]] + bytes(5000))
    replace(base, "000099.log", data[ends[3] : ends[4]])
    with caplog.at_level(logging.WARNING, logger="lsmkv"):
        assert opened(base, paranoid_checks=True) == workload.states[5]
    assert "zeros" not in caplog.text

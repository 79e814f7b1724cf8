"""A store that several processes have open: everything that users of ``SharedDB`` rely on."""

from __future__ import annotations

import gc
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from others import Other, new
from processes import run_python

import lsmkv
from lsmkv import DB, SharedDB

Start = Callable[..., Other]


# Reading and writing


def test_what_one_process_writes_all_others_read(path: Path, other: Start) -> None:
    with new(path) as db:
        first, second = other(), other()
        db.put(b"a", b"1")
        assert first("db.get(b'a')") == b"1"
        first("db.put(b'b', b'2')")
        assert db.get(b"b") == b"2" == second("db.get(b'b')")
        second("db.delete(b'a')")
        assert db.get(b"a") is None is first("db.get(b'a')")
        assert first("dict(db)") == {b"b": b"2"} == dict(db)


def test_a_batch_is_whole_in_every_process(path: Path, other: Start) -> None:
    with new(path) as db:
        first = other()
        code = (
            "with db.write_batch(sync=True) as batch: batch.put(b'x', b'1'); batch.put(b'y', b'1')"
        )
        first(code)
        assert db.multi_get([b"x", b"y"]) == [b"1", b"1"]


def test_roles(path: Path, other: Start) -> None:
    with new(path) as db:
        first = other()
        assert db.role == "owner"
        assert db.owner == os.getpid()
        assert db.members == [first.pid]
        assert repr(db) == f"<lsmkv.SharedDB {str(path)!r} (owner)>"
        assert first("db.role") == "member"
        assert first("db.owner") == os.getpid()
        assert first("repr(db)").endswith(f"(member of process {os.getpid()})>")
    assert repr(db).endswith("(closed)>")


def test_snapshots_and_iterators_keep_their_moment(path: Path, other: Start) -> None:
    with new(path, write_buffer_size=65536) as db:
        for n in range(100):
            db.put(b"%03d" % n, b"old")
        first = other()
        first("snapshot = db.snapshot(); iterator = db.iterator(); raw = db.raw_iterator()")
        for _ in range(3):
            for n in range(100):
                db.put(b"%03d" % n, b"new" * 300)
            db.compact_range()
        assert first("{value for _, value in iterator}") == {b"old"}
        assert first("snapshot.get(b'050')") == b"old"
        assert first("db.get(b'050')") == b"new" * 300
        first("raw.seek_to_last()")
        assert first("raw.value()") == b"old"


def test_tables_that_a_member_reads_stay(path: Path, other: Start) -> None:
    with new(path) as db:
        for n in range(1000):
            db.put(b"%04d" % n, b"old")
        db.flush()
        first = other()
        first("iterator = db.iterator(); next(iterator)")
        before = {table.name for table in db.tables()}
        for n in range(1000):
            db.put(b"%04d" % n, b"new")
        db.compact_range()
        assert not before & {table.name for table in db.tables()}
        assert before <= set(os.listdir(path))
        assert first("sum(value == b'old' for _, value in iterator)") == 999
        first("del iterator; import gc; gc.collect(); db.get(b'x'); db.tables()")
        db.put(b"x", b"y")
        db.flush()
        db.compact_range()
        assert not before & set(os.listdir(path))


def test_methods_that_run_at_the_owner(path: Path, other: Start, tmp_path: Path) -> None:
    with new(path) as db:
        first = other()
        first("db.put(b'k', b'v'); db.flush()")
        first("db.flush()")
        assert [table.smallest for table in db.tables()] == [b"k"]
        assert first("[table.smallest for table in db.tables()]") == [b"k"]
        first("told = []; db.compact_range(b'a', b'z', progress=lambda *step: told.append(step))")
        assert first("told[-1][2]") == "done"
        first("db.sync(); db.rewrite_tables()")
        first("db.put(b'k', b'v')")
        first(f"db.checkpoint({str(tmp_path / 'copy')!r})")
        with DB(tmp_path / "copy") as copy:
            assert dict(copy) == {b"k": b"v"}
        failed = first(f"db.checkpoint({str(tmp_path / 'copy')!r})")
        assert failed.startswith("IOError: [Errno 17]")
        with lsmkv.TableWriter(tmp_path / "bulk.ldb") as table:
            table.add(b"bulk", b"1")
        first(f"db.ingest([{str(tmp_path / 'bulk.ldb')!r}])")
        assert first("db.get(b'bulk')") == b"1" == db.get(b"bulk")
        assert first("db.verify()") == []


def test_a_checkpoint_of_a_member_holds_what_has_happened(
    path: Path, other: Start, tmp_path: Path
) -> None:
    """While the owner writes, flushes and compacts; and once it was killed."""
    owner = other(create_if_missing=True, write_buffer_size=65536)
    with new(path) as db:
        for turn in range(4):
            owner.ask(f"[db.put(b'%d-%03d' % ({turn}, n), bytes(500)) for n in range(300)] and 0")
            db.put(b"mine", b"%d" % turn)
            db.checkpoint(tmp_path / f"copy{turn}")
            owner.answer()
            with DB(tmp_path / f"copy{turn}", paranoid_checks=True) as copy:
                assert copy.get(b"mine") == b"%d" % turn
                keys = list(copy.iterator(start=b"0", stop=b"9", include_value=False))
            assert (
                keys == list(db.iterator(start=b"0", stop=b"9", include_value=False))[: len(keys)]
            )
            assert len(keys) >= 300 * turn
        owner.kill()
        db.checkpoint(tmp_path / "last")
        with DB(tmp_path / "last") as copy:
            assert dict(copy) == dict(db)


def test_progress_that_raises_ends_the_call(path: Path, other: Start) -> None:
    with new(path) as db:
        first = other()
        first("db.put(b'k', b'v')")
        assert first("db.compact_range(progress=lambda *step: 1 / 0)").startswith(
            "ZeroDivisionError"
        )
        assert first("db.put(b'l', b'w')") is None
        assert db.get(b"l") == b"w"


# Opening


def test_a_store_that_is_not_shared_is_in_use(path: Path, other: Start) -> None:
    with DB(path, create_if_missing=True):
        assert "the database is in use" in other().opened


def test_the_lock_error_says_that_the_store_is_shared(path: Path) -> None:
    with new(path), pytest.raises(lsmkv.LockedError, match=r"shared by .* lsmkv\.SharedDB"):
        DB(path)


def test_no_other_writer_takes_a_store_whose_members_are_idle(path: Path, other: Start) -> None:
    owner = other(create_if_missing=True)
    with new(path) as db:
        db.put(b"k", b"v")
        owner.kill()
        for open_it in (lambda: DB(path), lambda: lsmkv.destroy_db(path)):
            with pytest.raises(lsmkv.LockedError, match=r"shared by other processes.*SharedDB"):
                open_it()
        with DB(path, read_only=True) as reader:
            assert reader.get(b"k") == b"v"
        assert db.get(b"k") == b"v"
    with DB(path) as plain:
        assert plain.get(b"k") == b"v"


def test_no_other_writer_takes_a_store_of_which_it_cannot_know_whether_it_is_shared(
    path: Path,
) -> None:
    with DB(path, create_if_missing=True) as plain:
        plain.put(b"k", b"v")
    (path / "SHARED").symlink_to(path / "elsewhere")
    for open_it in (lambda: DB(path), lambda: lsmkv.destroy_db(path)):
        with pytest.raises(lsmkv.IOError, match=r"SHARED"):
            open_it()
    (path / "SHARED").unlink()
    with DB(path) as plain:
        assert plain.get(b"k") == b"v"


def test_a_store_of_another_order(path: Path, other: Start) -> None:
    order = lsmkv.ReverseBytewiseComparator()
    with DB(path, create_if_missing=True, comparator=order) as plain:
        plain.put(b"a", b"1")
        plain.put(b"b", b"2")
    with lsmkv.SharedDB(path) as db:
        first = other()
        assert first("[key for key, _ in db]") == [b"b", b"a"] == [key for key, _ in db]
        first("db.put(b'c', b'3')")
        assert next(iter(db)) == (b"c", b"3")


def test_readers_that_know_nothing_of_it(path: Path) -> None:
    with new(path) as db:
        db.put(b"k", b"v")
        with DB(path, read_only=True) as reader:
            assert reader.get(b"k") == b"v"


def test_two_handles_of_one_process(path: Path) -> None:
    with new(path) as db, new(path) as again:
        again.put(b"k", b"v")
        assert db.get(b"k") == b"v"
        assert (db.role, again.role) == ("owner", "member")


def test_options_that_no_shared_store_has(path: Path) -> None:
    with pytest.raises(ValueError, match="no option env"):
        new(path, env=lsmkv.MemoryEnv())
    with pytest.raises(ValueError, match="no option read_only"):
        new(path, read_only=True)
    with pytest.raises(ValueError, match="in memory"):
        SharedDB(":memory:")
    for patience in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="patience"):
            new(path, patience=patience)
    with pytest.raises(TypeError, match=r"patience must be a number|float or None object expected"):
        new(path, patience="long")
    with pytest.raises(lsmkv.NotFoundError):
        SharedDB(path)


def test_members_agree_with_their_owner_on_names(path: Path, other: Start) -> None:
    with new(path):
        refused = other(comparator=None, bloom_filter_bits=0)
        assert "shared with the filter policy" in refused.opened
        with pytest.raises(lsmkv.ComparatorMismatchError) as error:
            new(path, comparator=lsmkv.ReverseBytewiseComparator())
        assert error.value.stored == "leveldb.BytewiseComparator"
        assert error.value.given == "leveldb.ReverseBytewiseComparator"
        with new(path, comparator=lsmkv.BytewiseComparator(), lru_cache_size=0) as member:
            assert member.role == "member"
        prefixes = lsmkv.FixedPrefix(4)
        with pytest.raises(lsmkv.Error, match="shared with the prefix extractor 'none', not"):
            new(path, prefix_extractor=prefixes)
    with new(path, prefix_extractor=prefixes), new(path, prefix_extractor=prefixes) as member:
        member.put(b"key", b"v")
        with pytest.raises(lsmkv.Error, match="not 'none'"):
            new(path)
        with pytest.raises(lsmkv.Error, match="shared with the prefix extractor"):
            new(path, prefix_extractor=lsmkv.FixedPrefix(5))


def test_nothing_is_left_when_the_last_one_closes(path: Path, other: Start) -> None:
    with new(path):
        first = other()
        assert "SHARED" in os.listdir(path)
        first("db.close()")
    assert "SHARED" not in os.listdir(path)


def test_the_directory_can_be_copied_after_a_kill(path: Path, other: Start, tmp_path: Path) -> None:
    owner = other(create_if_missing=True)
    owner("db.put(b'k', b'v')")
    owner.kill()
    shutil.copytree(path, tmp_path / "copy")
    with new(tmp_path / "copy") as copy:
        assert copy.get(b"k") == b"v"
    lsmkv.destroy_db(path)
    assert not path.exists()


def test_no_descriptor_is_left(path: Path, other: Start) -> None:
    def descriptors() -> int:
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    before = descriptors()
    for _ in range(3):
        with new(path) as db:
            db.put(b"k", b"v")
    owner = other()
    between = descriptors()
    for _ in range(3):
        with new(path) as db:
            assert db.get(b"k") == b"v"
            db.put(b"k", b"v")
    assert descriptors() == between
    owner.kill()
    gc.collect()
    assert before <= between


# The end


def test_an_owner_that_nobody_refers_to_is_closed(path: Path, other: Start) -> None:
    handles = [new(path)]
    first = other()
    with pytest.warns(ResourceWarning, match="unclosed"):
        handles.clear()
    gc.collect()
    first("db.put(b'k', b'v')")
    assert first("db.role") == "owner"


def test_the_end_of_a_program_hands_over(path: Path, other: Start) -> None:
    run_python(
        "-c",
        "import sys, lsmkv\n"
        "db = lsmkv.SharedDB(sys.argv[1], create_if_missing=True)\n"
        "db.put(b'k', b'v')\n",
        str(path),
    )
    with new(path) as db:
        assert db.get(b"k") == b"v"


def test_tables_of_before_a_takeover_are_removed_in_the_end(path: Path, other: Start) -> None:
    owner = other(create_if_missing=True)
    with new(path) as db:
        for n in range(3):
            db.put(b"k", b"%d" % n)
            db.flush()
        before = {table.name for table in db.tables()}
        owner.kill()
        for n in range(3):
            db.put(b"k", b"%d" % n)
            db.flush()
        db.compact_range()
        db.put(b"k", b"last")
        db.flush()
        db.compact_range()
        assert db.role == "owner"
        assert not before & set(os.listdir(path))


# Changes


def test_waiting_for_a_change(path: Path, other: Start) -> None:
    with new(path) as db:
        first = other()
        last = first("db.wait_for_change(0, timeout=0.01)")
        assert last == 0
        first.ask("db.wait_for_change(0)")
        db.put(b"k", b"v")
        assert first.answer() == 1
        assert first("db.wait_for_change(0)") == 1

        def put() -> None:
            first("db.put(b'l', b'w')")

        thread = threading.Thread(target=put)
        thread.start()
        assert db.wait_for_change(1) == 2
        thread.join()


def test_a_member_that_is_closed_waits_no_longer(path: Path, other: Start) -> None:
    other(create_if_missing=True)
    db = new(path)
    threading.Timer(0.1, db.close).start()
    with pytest.raises(lsmkv.ClosedError):
        db.wait_for_change(0)


def test_patience_is_for_owners_that_do_not_answer(path: Path, other: Start) -> None:
    """This one does, when its time has come."""
    other(create_if_missing=True)
    with new(path, patience=0.5) as db:
        assert db.wait_for_change(0, timeout=1.0) == 0
        db.put(b"k", b"v")
        db.compact_range(progress=lambda *_: time.sleep(0.7))


def test_waits_leave_nothing_behind() -> None:
    with DB(":memory:") as db:
        for _ in range(3):
            db.wait_for_change(0, timeout=0.01)
        sharing = db._opened.store.sharing
        assert sharing is not None
        assert sharing._tickets == []


@pytest.mark.parametrize("is_open", [True, False])
def test_a_snapshot_of_a_member_that_learns_of_the_next_owner_by_it(
    path: Path, is_open: bool
) -> None:
    first = new(path)
    with SharedDB(path) as member:
        first.put(b"k", b"1")
        assert member.get(b"k") == b"1"
        first.close()
        with SharedDB(path) as other:
            other.put(b"k", b"2")
            other.put(b"l", b"2")
            if not is_open:
                other.close()
            with member.snapshot() as snapshot:
                for _ in range(2):
                    assert snapshot.sequence == 3
                    assert dict(snapshot) == {b"k": b"2", b"l": b"2"}
                    assert snapshot.get(b"k") == b"2"
                    member.put(b"k", b"3")
                    member.compact_range()


# Ranges


def filled(db: DB) -> None:
    """Tables in the range from b"2" to b"7", and one with keys of both sides."""
    for low, high in ((0, 10), (2, 7)):
        for n in range(low, high):
            db.put(b"%d" % n, b"v%d" % low)
        db.flush()


@pytest.mark.parametrize("by_member", [False, True])
def test_a_range_that_goes_in_every_process(path: Path, other: Start, by_member: bool) -> None:
    with new(path) as db:
        filled(db)
        first = other()
        first("snapshot = db.snapshot(); iterator = db.iterator(); t = db.transaction()")
        first("t.get(b'3'); t.put(b'x', b'')")
        first("follower = db.batches()")
        own, whole = db.transaction(), dict(db)
        list(own.iterator(start=b"6", stop=b"9"))
        own.put(b"x", b"")
        with db.snapshot() as before:
            if by_member:
                first("db.delete_range(b'2', b'7')")
            else:
                db.delete_range(b"2", b"7")
            left = {key: value for key, value in whole.items() if not b"2" <= key < b"7"}
            assert dict(db) == left == first("dict(db)")
            assert dict(before) == whole == first("dict(snapshot)") == first("dict(iterator)")
        assert first("t.commit()").startswith("ConflictError")
        with pytest.raises(lsmkv.ConflictError):
            own.commit()
        assert first("next(follower)[1] and next(follower)").startswith("SequenceTooOldError")
        first("db.update(b'3', lambda value: b'none' if value is None else b'some')")
        assert db.get(b"3") == b"none"
        first("db.prefixed_db(b'3').delete_range(None, None)")
        assert db.get(b"3") is None
        assert first("db.delete_range(b'1', 1)").startswith("TypeError")


@pytest.mark.skipif(lsmkv.COMPILED, reason="the owner's function is replaced")
def test_an_owner_that_is_lost_in_the_middle_of_a_range_deletion(path: Path, other: Start) -> None:
    """Whether the call goes on is unknown, and it is not made a second time."""
    owner = other(create_if_missing=True)
    with new(path) as db:
        filled(db)
        owner(
            "import os; from lsmkv.engine.db.admin import maintenance;"
            " maintenance.delete_range = lambda *arguments: os._exit(1)"
        )
        with pytest.raises(lsmkv.OutcomeUnknownError, match="in the middle of delete_range"):
            db.delete_range(b"2", b"7")
        assert len(dict(db)) == 10
        db.delete_range(b"2", b"7")
        assert len(dict(db)) == 5


def test_the_owner_s_process_cuts_tables_at_flush_prefix(path: Path) -> None:
    with SharedDB(path, create_if_missing=True, owner="process", flush_prefix="v") as db:
        for group in (1, 2):
            db.put(b"v%05d0" % group, b"")
        db.put(b"h", b"")
        db.flush()
        assert [table.smallest for table in db.tables()] == [b"h", b"v000010"]

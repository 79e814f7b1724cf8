"""Owners that hand a store over: to newer releases, to other options, and on request."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from others import Other
from owner_processes import ended, ends, new
from releases import made_release
from waiting import wait_until

import lsmkv
from lsmkv import SharedDB
from lsmkv.engine.env.local import LocalEnv
from lsmkv.shared.handover import LastCalls, Succession, rank_of
from lsmkv.shared.owner_process import OnlyOwner
from lsmkv.shared.system.local import place_of
from lsmkv.shared.system.release import RELEASE
from lsmkv.shared.visiting import owner_status
from lsmkv.testing import simulate

Start = Callable[..., Other]


@pytest.fixture(autouse=True)
def no_process_is_left(path: Path) -> Iterator[None]:
    with ended(path):
        yield


WORK = """
import threading
import traceback

over = threading.Event()
failed = []
counts = [0, 0]

def work(at):
    own, n = b"%d %d" % (db._pid, at), 0
    while not over.is_set():
        try:
            n += 1
            db.update(b"n", lambda old: b"%d" % (int(old or 0) + 1))
            counts[at] += 1
            db.put(own, b"%d" % n)
            assert db.get(own) == b"%d" % n
            db.run(lambda now: now.put(b"m", now.get(b"n")))
            if n % 8 == 0:
                db.compact_range()
        except BaseException:
            failed.append(traceback.format_exc())

threads = [threading.Thread(target=work, args=(at,)) for at in range(2)]
for thread in threads:
    thread.start()
"""
END = """
over.set()
for thread in threads:
    thread.join()
db.close()
"""


def deploy(path: Path, other: Start, releases: Path, numbers: list[str], kind: str | None) -> None:
    """One release after the other, each with an option of its own, while all write."""
    count = 0
    before: Other | None = None
    for at, number in enumerate(numbers):
        begins = made_release(releases, number)
        size = 65536 + at
        now = other(before=begins, owner=kind, create_if_missing=True, write_buffer_size=size)
        assert now.opened == "open"
        now(WORK)
        wait_until(lambda: now("min(counts)") > 2)  # noqa: B023 - called in this turn
        for one in (now, before):
            assert one is None or one("failed") == []
        status = owner_status(path)
        assert status is not None
        assert (status.release, status.only_owns) == (number, kind == "process")
        if before is not None:
            before(END)
            assert before("failed") == []
            count += before("sum(counts)")
        before = now
    assert before is not None
    before("over.set()")
    wait_until(lambda: not before("[one for one in threads if one.is_alive()]"))
    assert before("failed") == []
    count += before("sum(counts)")
    assert before("int(db.get(b'n'))") == count
    owner = before("db.owner")
    with SharedDB(path, owner=kind, handover=True, write_buffer_size=size) as db:  # type: ignore[arg-type]
        assert db.owner == owner  # which has these options


NUMBERS = ["0.9.9", "0.10.0", *(f"1.{n}.0" for n in range(18))]


@pytest.mark.parametrize("kind", ["process", None])
@pytest.mark.skipif(lsmkv.COMPILED, reason="a compiled package is not copied")
def test_three_releases_follow_each_other(
    path: Path, other: Start, tmp_path: Path, kind: str | None
) -> None:
    deploy(path, other, tmp_path / "releases", NUMBERS[:3], kind)


@pytest.mark.parametrize("kind", ["process", None])
@pytest.mark.skipif(lsmkv.COMPILED, reason="a compiled package is not copied")
def test_twenty_releases_follow_each_other(
    path: Path, other: Start, tmp_path: Path, kind: str | None
) -> None:
    deploy(path, other, tmp_path / "releases", NUMBERS, kind)


@pytest.mark.skipif(lsmkv.COMPILED, reason="a compiled package is not copied")
def test_an_older_release_neither_asks_nor_is_first(
    path: Path, other: Start, tmp_path: Path
) -> None:
    older = made_release(tmp_path / "releases", "0.0.9")
    with new(path) as db:
        owner = db.owner
        first = other(before=older, owner="process", handover=True, write_buffer_size=1 << 17)
        assert first("db.owner") == owner
        os.kill(owner, 9)
        first.ask("db.put(b'k', b'v')")  # it lets this process be first
        db.put(b"l", b"w")
        assert first.answer() is None
        status = owner_status(path)
        assert status is not None
        assert (status.pid, status.release) == (db.owner, RELEASE)
        assert status.members == sorted((os.getpid(), first.pid))


@pytest.mark.skipif(lsmkv.COMPILED, reason="a compiled package is not copied")
def test_a_member_of_a_newer_release_is_first_when_an_owner_closes(
    path: Path, other: Start, tmp_path: Path
) -> None:
    """One that does not hand over."""
    older = made_release(tmp_path / "releases", "0.0.9")
    owner = other(before=older, create_if_missing=True)
    owner("batches = db.batches()")
    first = other(before=older)
    with SharedDB(path) as db:
        assert owner("db.role") == "owner"
        owner("db.close()")
        first.ask("db.put(b'k', b'v')")
        db.put(b"l", b"w")
        assert first.answer() is None
        assert (db.role, first("db.role")) == ("owner", "member")


@pytest.mark.skipif(lsmkv.COMPILED, reason="a compiled package is not copied")
def test_an_older_release_owns_if_no_newer_one_wants_to(
    path: Path, other: Start, tmp_path: Path
) -> None:
    older = made_release(tmp_path / "releases", "0.0.9")
    with new(path) as db:
        first = other(before=older, owner="process")
        os.kill(db.owner, 9)
        assert first("db.put(b'k', b'v')") is None
        status = owner_status(path)
        assert status is not None
        assert status.release == "0.0.9"
        assert db.get(b"k") == b"v"  # it joins, and takes the store over
        status = owner_status(path)
        assert status is not None
        assert (status.pid, status.release) == (db.owner, RELEASE)


def test_other_options_are_handed_over_to_if_asked_for(path: Path) -> None:
    with new(path, write_buffer_size=1 << 17) as first:
        owner = first.owner
        first.put(b"k", b"v")
        with pytest.warns(RuntimeWarning, match="write_buffer_size is 131072, not 262144"):
            second = new(path, write_buffer_size=1 << 18)
        with second:
            assert second.owner == owner
        with new(path, write_buffer_size=1 << 17, handover=True) as second:
            assert second.owner == owner
        iterator = first.iterator()
        with new(path, write_buffer_size=1 << 18, handover=True) as second:
            assert ends(owner)
            assert second.owner not in (owner, os.getpid())
            first.put(b"l", b"w")
            assert first.owner == second.owner
            assert second.get(b"l") == b"w"
        assert list(iterator) == [(b"k", b"v")]


def test_a_process_that_may_own_takes_over_if_asked_for(path: Path) -> None:
    with new(path) as first:
        with SharedDB(path, handover=True, paranoid_checks=True) as second:
            assert second.role == "owner"
            first.put(b"k", b"v")
            assert (first.role, first.owner) == ("member", os.getpid())
        first.put(b"l", b"w")
        owner = first.owner
        with pytest.warns(RuntimeWarning, match="write_buffer_size"):
            second = SharedDB(path, handover=True, may_own=False, write_buffer_size=1 << 20)
        with second:
            assert second.owner == owner != os.getpid()


def test_a_transaction_that_began_before_conflicts(path: Path) -> None:
    with new(path) as db:
        transaction = db.transaction()
        transaction.put(b"k", b"v")
        new(path, handover=True, write_buffer_size=1 << 18).close()
        with pytest.raises(lsmkv.ConflictError):
            transaction.commit()
        db.run(lambda again: again.put(b"k", b"v"))
        assert db.get(b"k") == b"v"


class Slow(OnlyOwner):
    """An owner whose ingests wait in their middle."""

    begun = threading.Event()
    go_on = threading.Event()

    def _ingest(self, *arguments: Any) -> None:
        self.begun.set()
        self.go_on.wait()
        super()._ingest(*arguments)


def test_calls_made_once_are_waited_for_also_one_inside_another() -> None:
    calls = LastCalls()
    assert calls.begin()
    waiting = threading.Thread(target=calls.wait)
    waiting.start()
    wait_until(lambda: calls._leaving)
    assert calls.begin()  # in the middle of the first one
    calls.end()
    waiting.join(0.1)
    assert waiting.is_alive()
    calls.end()
    waiting.join()
    assert not calls.begin()
    calls.end()
    calls.stay()
    assert calls.begin()


@pytest.fixture
def threads() -> Iterator[Callable[..., list[Any]]]:
    """Runs functions in threads, which are waited for; what each returned or raised."""
    running: list[threading.Thread] = []

    def begin(function: Callable[[], object]) -> list[Any]:
        results: list[Any] = []

        def run() -> None:
            try:
                results.append(function())
            except Exception as error:
                results.append(error)

        running.append(threading.Thread(target=run))
        running[-1].start()
        return results

    yield begin
    Slow.go_on.set()
    for one in running:
        one.join()


def test_a_running_ingest_ends_before_the_handover(
    path: Path, tmp_path: Path, threads: Callable[..., list[Any]]
) -> None:
    for name in ("a", "b"):
        with lsmkv.TableWriter(tmp_path / name) as table:
            table.add(name.encode(), b"1")
    owner = Slow(path, create_if_missing=True)
    one, other = new(path), new(path)
    one.put(b"k", b"v")
    first = threads(lambda: one.ingest([tmp_path / "a"]))
    Slow.begun.wait()
    next_owner = threads(lambda: new(path, handover=True, write_buffer_size=1 << 18))
    wait_until(lambda: owner._last_calls._leaving)
    second = threads(lambda: other.ingest([tmp_path / "b"]))  # the next owner does it
    other.put(b"l", b"w")
    assert not owner.closed
    assert first == second == next_owner == []
    Slow.go_on.set()
    wait_until(lambda: first and second and next_owner)
    assert first == second == [None]
    assert owner.closed
    assert dict(one) == {b"a": b"1", b"b": b"1", b"k": b"v", b"l": b"w"}
    for db in (next_owner[0], one, other, owner):
        db.close()


@pytest.mark.parametrize("starts", ["process", None])
def test_a_member_lets_a_process_own_that_has_claimed_the_store(
    path: Path, other: Start, threads: Callable[..., list[Any]], starts: Any
) -> None:
    with new(path) as first, SharedDB(path, owner=starts) as db:
        owner = first.owner
        with LocalEnv().open_directory(str(path)) as directory:
            file = place_of(directory).shared_file("SHARED", False)
            file.claim(rank_of(RELEASE))
            os.kill(owner, 9)
            assert ends(owner)
            done = threads(lambda: db.put(b"k", b"v"))
            assert threading.Event().wait(0.3) is False
            assert done == []
            assert owner_status(path) is None
            file.close()
        wait_until(lambda: done)
        assert done == [None]
        first.put(b"l", b"w")


def test_releases_are_compared_as_numbers() -> None:
    texts = ["", "0.9.9", "0.10.0", "0.10.1", "1.0.0", "1.0.1", "1.10.0", "10.0.0", "5000.1.1"]
    ranks = [rank_of(text) for text in texts]
    assert ranks == sorted(set(ranks))
    assert rank_of("1.2") == rank_of("1.2.0") == rank_of("1.2.0rc1") == rank_of("1.2.0.post1")
    assert rank_of("none") == rank_of("") == 0
    assert ranks[-1] < 1 << 30


@pytest.mark.skipif(lsmkv.COMPILED, reason="compiled classes take no doubles")
@pytest.mark.parametrize(
    ("revision", "release", "only_owns", "handover", "asked"),
    [
        (1, "", True, True, False),
        (2, "0.0.1", True, False, True),
        (2, RELEASE, True, False, False),
        (2, RELEASE, True, True, True),
        (2, "5000.0.0", True, True, False),
    ],
)
def test_who_is_asked(
    revision: int, release: str, only_owns: bool, handover: bool, asked: bool
) -> None:
    """Once; and an owner of a release that does not know the question is not asked."""
    calls: list[object] = []

    def ask(make: Callable[[int], bytes], left: float = 0.0) -> tuple[int, bytes]:
        calls.append(make(1))
        return 12, b'{"result": true}'

    joined: Any = SimpleNamespace(
        revision=revision, release=release, owner_does_more=not only_owns, epoch=7
    )
    joined.ask_in_section = ask
    file: Any = SimpleNamespace(
        claim=calls.append, end_claim=calls.append, be_candidate=lambda rank: None
    )
    succession = Succession({}, handover)
    assert succession.takes_over(joined, file, True) is asked
    assert (len(calls) > 0) is asked
    succession.end()
    joined.epoch = 8
    assert succession.takes_over(joined, file, True) is (asked and release != RELEASE)


def test_no_last_call_begins_once_the_owner_leaves() -> None:
    calls = LastCalls()
    assert calls.begin()
    calls.end()
    calls.wait()
    assert not calls.begin()
    calls.end()


_KILLED = """
from lsmkv import DB, SharedDB, OutcomeUnknownError
from lsmkv.shared.owner_process import OnlyOwner

OWNER = SharedDB or OnlyOwner

def own(process, kept, run):
    db = kept["owner"] = OWNER("/db", env=process.env, create_if_missing=True)
    kept["open"] = True
    while not db.closed and kept["writing"]:
        run.sleep(0.001)
        if OWNER is SharedDB:
            db.update(b"n", lambda old: b"%d" % (int(old or 0) + 1))
            kept["count"] += 1
            assert int(db.get(b"n")) >= kept["count"] - 1
    db.close()

def write(process, kept, run, number, joined):
    while "open" not in kept:
        run.sleep(0.001)
    with SharedDB("/db", env=process.env) as db:
        joined.append(number)
        while not kept["over"]:
            run.sleep(0.001)  # time passes only while all wait
            own = b"%d" % number
            for _ in range(3):
                db.update(b"n", lambda old: b"%d" % (int(old or 0) + 1))
                kept["count"] += 1
                db.put(own, b"%d" % kept["count"])
                assert int(db.get(own)) <= kept["count"]
        assert int(db.get(b"n")) >= kept["count"]
    kept["writing"].remove(number)

def ask(process, kept, run, joined):
    while len(joined) < 2:
        run.sleep(0.001)
    with SharedDB("/db", env=process.env, handover=True, write_buffer_size=1 << 17) as db:
        kept["asked"] = db.role
        db.update(b"n", lambda old: b"%d" % (int(old or 0) + 1))
        kept["count"] += 1

def watch(kept, run, asker, joined):
    while "asked" not in kept and not asker.killed:
        run.sleep(0.001)
    kept["over"] = True

def program(run):
    kept, joined = run.kept, []
    kept.update(count=0, over=False, writing=[1, 2])
    owner, asker = run.process("owner"), run.process("asker")
    writers = [run.process("one"), run.process("two")]
    owner.start(own, owner, kept, run)
    for number, process in enumerate(writers):
        process.start(write, process, kept, run, number + 1, joined)
    asker.start(ask, asker, kept, run, joined)
    run.start(watch, kept, run, asker, joined)
    victim = run.seed % 3
    if victim < 2:
        while len(joined) < 2:
            run.sleep(0.001)
        (owner, asker)[victim].kill_after(1 + SPREAD * (run.seed // 3) + run.rng.randint(0, SPREAD))
    run.join()
    if victim == 2:
        assert kept["asked"] == "owner", kept["asked"]
        assert kept["owner"].closed
    with DB("/db", env=run.env) as db:
        assert int(db.get(b"n")) in (kept["count"], kept["count"] + (victim < 2))
        db.check()
"""


KINDS = ["SharedDB", "OnlyOwner"]


def killed(kind: str, spread: int, runs: int) -> None:
    program = _KILLED.replace("SharedDB or OnlyOwner", kind).replace("SPREAD", str(spread))
    report = simulate(program, seed=0, runs=runs, most_steps=1_000_000)
    assert report.failure is None, str(report)


@pytest.mark.parametrize("kind", KINDS)
def test_kills_in_the_middle_of_a_handover(kind: str) -> None:
    """Of the owner or of the one that asks, spread over their steps: nobody waits for ever, and no
    write is lost."""
    killed(kind, 30, 15)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_kills_at_each_step_of_a_handover(kind: str) -> None:
    """Each by ``make test-each-step``."""
    killed(kind, *((2, 450) if "LSMKV_EACH_STEP" in os.environ else (7, 130)))


def test_an_owner_that_uses_the_store_goes_on_as_a_member(path: Path, tmp_path: Path) -> None:
    with SharedDB(path, create_if_missing=True, write_buffer_size=65536) as db:
        for n in range(2000):
            db.put(b"%04d" % n, bytes(100))
        iterator, snapshot, transaction = db.iterator(), db.snapshot(), db.transaction()
        assert next(iterator)[0] == b"0000"
        transaction.put(b"k", b"v")
        with SharedDB(path, handover=True, write_buffer_size=1 << 20) as second:
            assert second.role == "owner"
            for n in range(2000):
                second.delete(b"%04d" % n)
            second.compact_range()
            assert list(db) == []
            assert db.role == "member"
            assert len(list(snapshot)) == 2000
            assert snapshot.get(b"0007") == bytes(100)
            assert len(list(iterator)) == 1999
            with pytest.raises(lsmkv.ConflictError):
                transaction.commit()
            db.put(b"k", b"v", sync=True)
            db.flush()
            db.compact_range()
            db.checkpoint(tmp_path / "copy")
            assert dict(second) == {b"k": b"v"}
            db.check()
        db.put(b"l", b"w")
        assert (db.role, dict(db)) == ("owner", {b"k": b"v", b"l": b"w"})
        snapshot.close()


def test_an_owner_that_holds_a_lease_with_a_name_stays(path: Path) -> None:
    with SharedDB(path, create_if_missing=True) as db:
        lease = db._hold(b"name")
        assert lease is not None
        with pytest.warns(RuntimeWarning, match="write_buffer_size"):
            second = SharedDB(path, handover=True, write_buffer_size=1 << 20)
        with second:
            assert (db.role, second.role, lease.held) == ("owner", "member", True)
            lease.release()
            with SharedDB(path, handover=True, write_buffer_size=1 << 20) as third:
                assert third.role == "owner"
                assert second.owner == db.owner == os.getpid()
                db.put(b"k", b"v")
                assert db.role == "member"


def test_a_lease_that_is_taken_while_the_handover_waits(
    path: Path, threads: Callable[..., list[Any]]
) -> None:
    with SharedDB(path, create_if_missing=True) as db:
        calls = db._last_calls
        assert calls.begin()
        second = threads(lambda: SharedDB(path, handover=True, lru_cache_size=0, block_size=8192))
        wait_until(lambda: calls._leaving)
        lease = db._hold(b"name")
        calls.end()
        wait_until(lambda: second)
        assert isinstance(second[0], RuntimeWarning)  # it has joined: the owner stays
        assert lease is not None
        assert (db.role, lease.held) == ("owner", True)
        lease.release()
        db.checkpoint(path.parent / "copy")  # which is begun again


def test_a_handover_that_fails_leaves_the_owner_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SharedDB(path, create_if_missing=True) as db:

        def fail(_: object) -> None:
            raise OSError(errno.EMFILE, "no descriptor is free")

        monkeypatch.setattr(db, "_retire", fail)
        with pytest.warns(RuntimeWarning, match="write_buffer_size"):
            SharedDB(path, handover=True, write_buffer_size=1 << 20).close()
        assert db.role == "owner"
        db.checkpoint(path.parent / "copy")


def test_a_former_owner_holds_a_members_part_of_the_lock(path: Path, other: Start) -> None:
    with SharedDB(path, create_if_missing=True) as db:
        second = other(handover=True, write_buffer_size=1 << 20)
        assert second("db.role") == "owner"
        second.kill()
        with pytest.raises(lsmkv.LockedError, match="shared by other processes"):
            lsmkv.DB(path)
        db.put(b"k", b"v")
        assert db.role == "owner"


def test_an_idle_owner_that_has_handed_over_closes(path: Path) -> None:
    first = SharedDB(path, create_if_missing=True)
    first.put(b"k", b"v")
    second = SharedDB(path, handover=True, write_buffer_size=1 << 20)
    first.close()
    assert first.closed
    second.put(b"l", b"w")
    assert second.role == "owner"
    second.close()
    assert "SHARED" not in os.listdir(path)
    with pytest.raises(lsmkv.ClosedError):
        first.get(b"k")

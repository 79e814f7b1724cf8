"""lsmkv.shared.counting: what members count, their owner publishes."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from observing import published
from others import Other, new

from lsmkv import SharedDB
from lsmkv.engine.counters import LOOKUP_COUNTERS, Counters
from lsmkv.engine.db.observe.process_words import LAYOUT, PLACES, WORDS, WRITES
from lsmkv.engine.env import descriptors
from lsmkv.shared.counting import GETS, Counting, MemberCounts
from lsmkv.shared.frames import HEADER, HELLO, PROTOCOL, READY, json_frame
from lsmkv.shared.system import shared_page
from lsmkv.shared.system.local import PAGES, place_of
from lsmkv.shared.system.system import LOCAL

Start = Callable[..., Other]
JSON_LAYOUT = json.loads(json.dumps(LAYOUT))


def gets(path: Path) -> dict[str, int]:
    """The Gets of each role, as published last."""
    found: dict[str, int] = {}
    for one in published(path).processes:
        found[one.role] = found.get(one.role, 0) + one.counters["gets"]
    return found


def test_gets_of_members_are_published(path: Path, other: Start) -> None:
    with new(path, publish_stats=True) as db:
        db.put(b"k", b"v")
        member = other()
        member(f"[db.get(b'k') for _ in range({3 * GETS + 100})]")
        found = published(path, lambda one: one.stats.gets >= 3 * GETS)
        assert found.stats.gets == 3 * GETS  # the last 100 have not been copied yet
        assert found.stats.gets_found == found.stats.gets
        assert [(one.pid, one.role) for one in found.processes] == [
            *((os.getpid(), "owner"), (member.pid, "member"), (0, "gone")),
        ]
        assert found.processes[1].counters["gets"] == 3 * GETS
        assert found.epoch == 1
        db.get(b"k")
        published(path, lambda one: one.processes[0].counters["gets"] == 1)
        member("db.close()")
        found = published(path, lambda one: one.processes[-1].counters["gets"])
        assert found.stats.gets == 3 * GETS + 101
        assert len(found.processes) == 2


def test_a_write_and_an_iterator_pass_on_what_was_read(path: Path, other: Start) -> None:
    with new(path, publish_stats=True):
        member = other()
        for reads, passes_on in ((10, "db.put(b'k', b'v')"), (25, "list(db)")):
            member(f"[db.get(b'k') for _ in range({reads} - db.stats().gets)]")
            while gets(path).get("member") != reads:
                member(passes_on)


def test_blocks_that_members_read_count_in_their_levels(path: Path, other: Start) -> None:
    with new(path, publish_stats=True, compression=None) as db:
        for number in range(2000):
            db.put(b"%06d" % number, bytes(100))
        db.compact_range()
        (level,) = [one.level for one in db.stats().levels if one.files]
        member = other()
        member("[db.get(b'%06d' % n) for n in range(1999)]; db.close()")
        found = published(path, lambda one: one.processes[-1].counters["gets"] == 1999)
        own = db.stats()
        counted = found.processes[-1].counters
        assert counted["blocks_read"] > 10
        assert found.stats.levels[level].blocks_read == counted["blocks_read"]
        assert own.levels[level].blocks_read == 0  # the handle's own
        assert found.stats.levels[level].tables_asked == counted["tables_asked"] > 0


def test_what_a_killed_member_has_counted_stays(path: Path, other: Start) -> None:
    with new(path, publish_stats=True):
        member = other()
        member(f"[db.get(b'k') for _ in range({2 * GETS + 1})], db.put(b'k', b'v')")
        before = published(path, lambda one: one.stats.gets >= 2 * GETS)
        member.kill()
        found = published(path, lambda one: len(one.processes) == 2)
        assert found.stats.gets == found.processes[1].counters["gets"] >= before.stats.gets
        assert found.processes[1].writes.count == 1


def test_a_write_of_a_member_counts_its_wait_for_the_owner(path: Path, other: Start) -> None:
    owner = other(create_if_missing=True, publish_stats=True)
    with SharedDB(path) as member:
        member.put(b"k", b"v")
        owner.stop()
        began = time.monotonic()
        thread = threading.Thread(target=member.put, args=(b"k", b"w"))
        thread.start()
        time.sleep(0.3)
        waited = time.monotonic() - began
        owner.go_on()
        thread.join()
        with member.transaction() as transaction:
            transaction.put(b"n", b"1")
        found = published(path, lambda one: one.processes[1].writes.count == 3)
        assert found.processes[1].writes.percentile(100) >= (waited - 0.1) * 1e9
        assert found.processes[1].writes.total >= (waited - 0.1) * 1e9


def test_members_hand_their_counts_to_the_next_owner(path: Path, other: Start) -> None:
    first = other(create_if_missing=True, publish_stats=True)
    member = other(publish_stats=True)
    third = other(publish_stats=True)
    for one in (member, third):
        one(f"[db.get(b'k') for _ in range({2 * GETS + 1})]")
    published(path, lambda one: one.stats.gets == 4 * GETS)
    first.kill()
    member("db.put(b'k', b'v')")
    assert member("db.role") == "owner"
    third(f"[db.get(b'k') for _ in range({GETS + 1})]")
    found = published(path, lambda one: one.stats.gets >= GETS and one.epoch == 2)
    assert found.stats.gets == GETS  # all of them begin at 0
    by_pid = {one.pid: one for one in found.processes}
    assert by_pid[member.pid].role == "owner"
    assert by_pid[third.pid].role == "member"
    for one in (member, third):
        assert by_pid[one.pid].without_owner.count == 1
        assert by_pid[one.pid].without_owner.total > 0
    assert by_pid[member.pid].writes.count == 1  # which waited for it


def test_where_nobody_publishes_nothing_is_handed_over(path: Path) -> None:
    with new(path), SharedDB(path) as member:
        counting = member._entrance.counting
        member.put(b"k", b"v")
        for _ in range(GETS):
            member.get(b"k")
        counting.copy()
        assert not counting.is_read
        assert not any(counting.words)


def test_a_member_of_an_older_release_hands_over_nothing(path: Path) -> None:
    with new(path, publish_stats=True) as db, SharedDB(path):
        with LOCAL.env.open_directory(str(path)) as directory:
            shared = place_of(directory).shared_file("SHARED", False)
        head = shared.read_head()
        assert head is not None
        socket = LOCAL.sockets.connect(LOCAL.sockets.address_of(head.token, head.epoch), None)
        hello = {"protocol": PROTOCOL, "names": db._entrance._names}
        socket.sendall(json_frame(HELLO, 0, hello), 0)
        _, fd = LOCAL.sockets.receive_with(socket, 65536)
        socket.sendall(json_frame(READY, 1, {"descriptor": fd}), 0)
        assert len(socket.recv(65536)) == HEADER.size + 8
        assert len(db.members) == 1
        socket.close()
        os.close(fd)
        shared.close()


def test_a_forked_child_counts_in_memory_of_its_own(path: Path, other: Start) -> None:
    owner = other(create_if_missing=True, publish_stats=True)
    with SharedDB(path) as db:
        for _ in range(GETS + 1):
            db.get(b"k")
        child = os.fork()
        if child == 0:
            for _ in range(2 * GETS + 1):
                db.get(b"k")
            db.close()
            os._exit(0)
        os.waitpid(child, 0)
        found = published(path, lambda one: one.processes[-1].counters["gets"] == 2 * GETS + 1)
        assert found.processes[1].pid == os.getpid()
        assert found.processes[1].counters["gets"] == GETS
        assert found.processes[0].pid == owner.pid


# The owner's half


class Half:
    """A member's memory, and the owner that reads it."""

    def __init__(self, counts: MemberCounts, slot: int, pid: int, layout: object = JSON_LAYOUT):
        self.counting = Counting(LOCAL)
        memory, fd = self.counting.hand_over()
        counts.add(slot, pid, os.dup(fd), layout)
        os.close(fd)
        self.counting.begin(memory)
        self.counters = Counters()
        self.counting.follow(self.counters)

    def get(self, times: int) -> None:
        self.counters.gets += times
        self.counting.copy()


@pytest.fixture
def counts() -> MemberCounts:
    made = MemberCounts(LOCAL)
    made.wanted = True
    return made


def rows(counts: MemberCounts) -> list[tuple[int, str, int]]:
    return [(pid, role, words[0]) for pid, role, words in counts.rows()]


def test_handles_of_one_process_count_together_and_what_went_is_kept(counts: MemberCounts) -> None:
    owner = (os.getpid(), "owner", 0)
    assert rows(counts) == [owner, (0, "gone", 0)]
    one, two, three = Half(counts, 1, 50), Half(counts, 2, 50), Half(counts, 3, 40)
    one.get(1)
    two.get(20)
    three.get(300)
    assert rows(counts) == [owner, (40, "member", 300), (50, "member", 21), (0, "gone", 0)]
    counts.end(1)
    two.get(4)
    assert rows(counts) == [owner, (40, "member", 300), (50, "member", 25), (0, "gone", 0)]
    counts.end(2)
    counts.end(2)
    assert rows(counts) == [owner, (40, "member", 300), (0, "gone", 25)]
    counts.end(3)
    assert rows(counts) == [owner, (0, "gone", 325)]


def test_more_than_256_processes_are_counted_and_not_all_shown(counts: MemberCounts) -> None:
    for number in range(300):
        Half(counts, number, 1000 + number).get(1)
    found = rows(counts)
    assert len(found) == 1 + 256 + 1 + 1
    assert (0, "member", 44) in found
    assert sum(gets for _, _, gets in found) == 300


def test_what_another_release_counts_is_found_by_its_name(counts: MemberCounts) -> None:
    Half(counts, 1, 50, [["new", 1], ["gets_found", 1], ["gets", 2]]).get(9)
    _, words = counts.rows()[1][1:]
    assert LOOKUP_COUNTERS[:2] == ["gets", "gets_found"]
    assert words == [0] * WORDS  # its second word is 0, and its "gets" are not one number
    half = Half(counts, 2, 60, [["gets_found", 1]])
    half.get(9)
    _, words = counts.rows()[2][1:]
    assert words[PLACES["gets_found"][0]] == sum(words) == 9


@pytest.mark.parametrize(
    "layout",
    [
        *(None, 7, "gets", {}, [7], ["gets"], [["gets"]], [[1, 1]], [["gets", "1"]]),
        *([["gets", 0]], [["gets", -1]], [["gets", 1 << 17]], [["gets", 1 << 16]]),
        [["gets", 1.0]],
    ],
)
def test_what_says_nothing_of_its_words_is_left_alone(counts: MemberCounts, layout: object) -> None:
    before = len(os.listdir("/dev/fd"))
    Half(counts, 1, 50, layout)
    assert rows(counts) == [(os.getpid(), "owner", 0), (0, "gone", 0)]
    assert len(os.listdir("/dev/fd")) == before


@pytest.mark.skipif(PAGES is not shared_page, reason="there are no seals here")
def test_memory_that_could_be_cut_is_not_mapped(counts: MemberCounts, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(8 * WORDS))
    counts.add(1, 50, os.open(tmp_path / "file", os.O_RDWR), JSON_LAYOUT)
    counts.add(2, 50, os.open("/dev/null", os.O_RDWR), JSON_LAYOUT)
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("test", os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, 8 * WORDS)
        counts.add(3, 50, fd, JSON_LAYOUT)
    assert len(rows(counts)) == 2


def test_the_second_half_of_an_owner_s_descriptors_is_for_connections(
    counts: MemberCounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = SimpleNamespace(RLIMIT_NOFILE=0, RLIM_INFINITY=-1, getrlimit=lambda _: (4, 4))
    monkeypatch.setattr(descriptors, "resource", limit)
    Half(counts, 1, 50)
    assert len(rows(counts)) == 2


def test_a_call_within_a_copy_copies_nothing(counts: MemberCounts) -> None:
    half = Half(counts, 1, 50)
    half.counting._copying.acquire()
    half.get(7)
    assert rows(counts)[1] == (50, "member", 0)
    half.counting._copying.release()
    half.counting.copy()
    assert rows(counts)[1] == (50, "member", 7)


def test_writes_are_counted_at_once(counts: MemberCounts) -> None:
    half = Half(counts, 1, 50)
    half.counting.wrote(half.counting.now())
    words = counts.rows()[1][2]
    assert sum(words[WRITES + 1 : PLACES["writes"][1]]) == 1
    assert 0 < words[WRITES] < 60e9


def test_a_call_that_goes_on_in_a_forked_child_counts_nothing(counts: MemberCounts) -> None:
    """One that was interrupted by the fork, in a signal handler say."""
    half = Half(counts, 1, 50)
    child = os.fork()
    if child == 0:
        half.counting.wrote(half.counting.now())
        half.get(5)
        os._exit(0)
    os.waitpid(child, 0)
    assert not any(counts.rows()[1][2])

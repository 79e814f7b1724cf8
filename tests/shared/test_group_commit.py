"""How the owner commits what its members send, and when it tells them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from others import new

from lsmkv import CorruptionError, SharedDB
from lsmkv.engine.format.batch import Operation, encode_batch
from lsmkv.shared.frames import DONE, HEADER, NUMBER
from lsmkv.shared.group_commit import GroupCommit, MemberConnection, MemberWrite
from lsmkv.shared.system.shared_page import SEQUENCE


class Socket:
    """Notes what is sent, and how far the store was then."""

    def __init__(self, db: SharedDB, room: int = 1000) -> None:
        self._db = db
        self._room = room
        self.answers: list[tuple[int, int]] = []
        """The request and the sequence of each."""
        self.moments: list[tuple[int, int]] = []
        """The sequence of the page and that of the memtable, at each answer."""

    def send(self, content: bytes, flags: int) -> int:
        if self._room == 0:
            raise BlockingIOError
        _, kind, request = HEADER.unpack_from(content)
        assert kind == DONE
        self.answers.append((request, NUMBER.unpack_from(content, HEADER.size)[0]))
        part: Any = self._db._part
        shown = part.publishing.page.words[SEQUENCE]
        self.moments.append((shown, part.opened.store.versions.last_sequence))
        return min(self._room, len(content))


class Group:
    """A group commit in the process of an owner, and what it says of requests that fail."""

    def __init__(self, db: SharedDB) -> None:
        part: Any = db._part
        self.refused: list[tuple[int, str]] = []
        self.ended: list[Any] = []
        opened = part.opened
        self.commit = GroupCommit(
            opened.writer,
            part.publishing,
            opened.store.info_log,
            opened.store.counters,
            lambda _, request, error: self.refused.append((request, str(error))),
            self.ended.append,
        )

    def add(self, socket: Any, request: int, operations: list[Operation]) -> None:
        data = b"before" + encode_batch(0, operations) + b"after"
        end = len(data) - len(b"after")
        write = MemberWrite(
            MemberConnection(socket, request, 1), request, False, data, len(b"before"), end
        )
        self.commit.add(write)


@pytest.fixture
def db(path: Path) -> Iterator[SharedDB]:
    with new(path) as opened:
        yield opened


@pytest.fixture
def group(db: SharedDB) -> Group:
    return Group(db)


def test_members_are_answered_when_their_writes_have_happened(db: SharedDB, group: Group) -> None:
    """The page says so by then; the memtable of the owner follows."""
    socket = Socket(db)
    db.put(b"own", b"1")
    group.add(socket, 7, [(b"a", b"1"), (b"b", b"2")])
    group.add(socket, 9, [(b"a", None)])
    group.commit.commit_all()
    assert socket.answers == [(7, 4), (9, 4)]
    assert socket.moments == [(4, 1), (4, 1)]
    assert dict(db) == {b"own": b"1", b"b": b"2"}
    assert db.sequence == 4
    group.commit.commit_all()
    assert len(socket.answers) == 2
    assert db.stats().writes == 3


def test_an_owner_that_asks_for_the_last_sequence_waits_for_its_memtable(
    db: SharedDB, group: Group
) -> None:
    """A member has its answer by then, and may have told this process of it."""
    found: list[int] = []

    class Telling(Socket):
        def send(self, content: bytes, flags: int) -> int:
            reader.start()
            reader.join(0.2)  # without a wait it has an answer by then
            return super().send(content, flags)

    def read() -> None:
        found.append(db.sequence)
        found.extend(batch.last_sequence for batch in db.batches(0))

    reader = threading.Thread(target=read)
    group.add(Telling(db), 7, [(b"a", b"1")])
    group.commit.commit_all()
    reader.join()
    assert found == [1, 1]


def test_a_malformed_batch_is_found_before_it_is_written(db: SharedDB) -> None:
    record = encode_batch(0, [(b"k", b"v")])
    member = MemberConnection(Socket(db), 1, 1)
    with pytest.raises(CorruptionError):
        MemberWrite(member, 1, False, record + b"\1", 0, len(record) + 1)


def test_a_member_that_takes_no_answer_is_disconnected(db: SharedDB, group: Group) -> None:
    full, slow, well = Socket(db, room=0), Socket(db, room=3), Socket(db)
    for request, socket in enumerate((full, slow, well), 1):
        group.add(socket, request, [(b"%d" % request, b"")])
    group.commit.commit_all()
    assert group.ended == [full, slow]
    assert well.answers == [(3, 3)]
    assert [key for key, _ in db] == [b"1", b"2", b"3"]


def test_what_cannot_be_written_is_refused_alone(path: Path) -> None:
    class Picky:
        """Bytes in their order; one key is none of them."""

        name = "tests.Picky"

        def compare(self, a: bytes, b: bytes) -> int:
            if b"no key" in (a, b):
                raise ValueError("not a key")
            return (a > b) - (a < b)

    with new(path, comparator=Picky(), bloom_filter_bits=0) as db:
        group, socket = Group(db), Socket(db)
        group.add(socket, 1, [(b"a", b"1")])
        group.add(socket, 2, [(b"no key", b"1")])
        group.add(socket, 3, [(b"c", b"1")])
        group.commit.commit_all()
        assert group.refused == [(2, "not a key")]
        assert [request for request, _ in socket.answers] == [1, 3]
        assert [key for key, _ in db] == [b"a", b"c"]


def test_large_batches_are_committed_apart(db: SharedDB, group: Group) -> None:
    socket = Socket(db)
    for request in range(3):
        group.add(socket, request, [(b"%d" % request, bytes(600_000))])
    group.commit.commit_all()
    assert socket.answers == [(0, 1), (1, 2), (2, 3)]

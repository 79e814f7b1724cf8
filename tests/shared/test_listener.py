"""The owner's half of the connections: what it does with members that do not behave."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from member_wire import connected, greeted, received
from others import new

from lsmkv import SharedDB
from lsmkv.engine.format.batch import encode_batch
from lsmkv.shared.frames import (
    CALL,
    COMMIT,
    DONE,
    END,
    FAILED,
    HEADER,
    HELLO,
    LEAVING,
    NUMBERS,
    PROTOCOL,
    READY,
    WAIT,
    WRITE,
    frame,
    json_frame,
)
from lsmkv.testing import simulate

_FLUSH = json_frame(CALL, 1, {"method": "flush", "arguments": {}})
_WRITE = frame(WRITE, 1, b"\0" + encode_batch(0, [(b"k", b"v")]))
_WAIT = frame(WAIT, 1, NUMBERS.pack(0, 10_000))
_HTTP = b"GET / HTTP/1.1\r\n\r\n"


@pytest.fixture
def db(path: Path) -> Iterator[SharedDB]:
    with new(path) as opened:
        yield opened


def test_another_protocol_is_refused(db: SharedDB) -> None:
    with connected(db) as member:
        member.sendall(json_frame(HELLO, 0, {"protocol": PROTOCOL + 1, "names": {}}))
        kind, _, content = received(member)
        assert kind == FAILED
        assert "speaks protocol" in json.loads(content)["text"]


@pytest.mark.parametrize(
    "message",
    [
        _HTTP,
        HEADER.pack(1 << 31, HELLO, 1),
        frame(99, 1),
        frame(DONE, 1),
        frame(HELLO, 1, b"no JSON"),
        frame(WRITE, 1, b"\0" + b"no batch"),
        frame(COMMIT, 1, b"short"),
        frame(END, 1, b"odd"),
        json_frame(READY, 1, {}),
    ],
)
def test_wrong_bytes_end_the_connection_and_nothing_else(db: SharedDB, message: bytes) -> None:
    with greeted(db) as good, greeted(db) as bad:
        bad.sendall(message)
        kind, _, _ = received(bad)
        assert kind == FAILED
        assert bad.recv(1) == b""
        good.sendall(frame(WRITE, 5, b"\0" + encode_batch(0, [(b"k", b"v")])))
        assert received(good)[:2] == (DONE, 5)
    assert db.get(b"k") == b"v"


@pytest.mark.parametrize(
    "message",
    [_FLUSH, _WRITE, HEADER.pack(1 << 31, WRITE, 1), json_frame(READY, 1, {"descriptor": 0})],
    ids=["call", "write", "the beginning of a large write", "ready"],
)
def test_a_request_before_the_greeting(db: SharedDB, message: bytes) -> None:
    """It would be of a process that speaks another protocol, or has another order of keys."""
    with connected(db) as member:
        member.sendall(message)
        assert received(member)[0] == FAILED
        assert member.recv(1) == b""
    assert db.get(b"k") is None


@pytest.mark.parametrize("first", [_FLUSH, _WRITE, _WAIT], ids=["call", "write", "wait"])
@pytest.mark.parametrize("second", [_FLUSH, _WRITE, _HTTP], ids=["call", "write", "nonsense"])
def test_a_request_before_the_answer_to_the_last_one(
    db: SharedDB, first: bytes, second: bytes
) -> None:
    with greeted(db) as good, greeted(db) as bad:
        bad.sendall(first + second + first)
        rest = b""
        try:
            while some := bad.recv(1 << 16):
                rest += some
        except ConnectionResetError:
            pass  # the owner has not read everything
        kinds = []
        while rest:
            size, kind, _ = HEADER.unpack_from(rest)
            kinds.append(kind)
            rest = rest[HEADER.size + size :]
        assert kinds[-1] == FAILED
        assert len(kinds) <= 2
        good.sendall(_WRITE)
        assert received(good)[0] == DONE
        assert len(db.members) == 1


@pytest.mark.parametrize("milliseconds", [(1 << 64) - 1, 1 << 32])
def test_a_wait_for_longer_than_anybody_lives(db: SharedDB, milliseconds: int) -> None:
    with greeted(db) as patient, greeted(db) as good:
        patient.sendall(frame(WAIT, 3, NUMBERS.pack(0, milliseconds)))
        time.sleep(0.05)
        good.sendall(_WRITE)
        assert received(good)[0] == DONE
        assert received(patient)[0] == DONE


def test_a_frame_may_come_byte_by_byte(db: SharedDB) -> None:
    with greeted(db) as member:
        for byte in frame(WRITE, 5, b"\1" + encode_batch(0, [(b"k", b"v")])):
            member.sendall(bytes([byte]))
        assert received(member)[:2] == (DONE, 5)


def test_no_member_may_call_what_is_not_for_members(db: SharedDB) -> None:
    with greeted(db) as member:
        for method in ("close", "put", "__init__", "_close"):
            member.sendall(json_frame(CALL, 2, {"method": method, "arguments": {}}))
            kind, _, content = received(member)
            assert kind == FAILED
            assert "a member cannot call" in json.loads(content)["text"]


def test_a_member_that_never_reads_holds_up_nobody(db: SharedDB) -> None:
    with greeted(db) as silent, greeted(db) as good:
        silent.setblocking(False)
        batch = frame(WRITE, 5, b"\0" + encode_batch(0, [(b"k", b"v")]))
        try:
            while True:
                silent.send(batch)
                if len(db.members) == 0:
                    break
        except (BlockingIOError, ConnectionError):
            pass
        good.sendall(batch)
        assert received(good)[:2] == (DONE, 5)


def test_many_connections(db: SharedDB) -> None:
    members = [greeted(db) for _ in range(200)]
    for at, member in enumerate(members):
        member.sendall(frame(WRITE, at, b"\0" + encode_batch(0, [(b"%d" % at, b"v")])))
    for at, member in enumerate(members):
        assert received(member)[:2] == (DONE, at)
        member.close()
    assert len(list(db)) == 200
    while db.members:
        time.sleep(0.001)


def test_what_came_in_at_once_is_one_write_of_the_log(db: SharedDB) -> None:
    """While a slow call of the owner's thread goes on, others queue up."""
    members = [greeted(db) for _ in range(20)]
    before = db.stats().log_writes
    with db._store.lock.writers.guard:  # type: ignore[union-attr]
        for at, member in enumerate(members):
            member.sendall(frame(WRITE, at, b"\0" + encode_batch(0, [(b"%d" % at, b"v")])))
        time.sleep(0.1)
    for at, member in enumerate(members):
        assert received(member)[:2] == (DONE, at)
        member.close()
    assert db.stats().log_writes - before <= 3


def test_a_wait_ends_in_time(db: SharedDB) -> None:
    with greeted(db) as member:
        member.sendall(frame(WAIT, 3, NUMBERS.pack(0, 20)))
        kind, request, content = received(member)
        assert (kind, request, struct.unpack("<Q", content)) == (DONE, 3, (0,))


def test_a_waiting_member_that_leaves_is_forgotten(db: SharedDB) -> None:
    with greeted(db) as member:
        member.sendall(frame(WAIT, 3, NUMBERS.pack(0, 60_000)))
        time.sleep(0.05)
    db.put(b"k", b"v")
    assert db.get(b"k") == b"v"


def test_closing_ends_all_connections(path: Path) -> None:
    with new(path) as db:
        member: Any = greeted(db)
    assert member.recv(1) in (b"", bytes([LEAVING]))
    member.close()


def test_writes_happen_in_the_order_in_which_they_came(db: SharedDB) -> None:
    """Whether they are synced or not."""
    with greeted(db) as first, greeted(db) as second:  # what is hung up is not begun
        with db._store.lock.writers.guard:  # type: ignore[union-attr]
            first.sendall(frame(WRITE, 1, b"\0" + encode_batch(0, [(b"x", b"0")])))
            time.sleep(0.05)  # the owner's thread waits with it
            first.sendall(frame(WRITE, 2, b"\1" + encode_batch(0, [(b"k", b"early")])))
            second.sendall(frame(WRITE, 3, b"\0" + encode_batch(0, [(b"k", b"late")])))
        while db.get(b"k") is None:
            time.sleep(0.001)
        time.sleep(0.05)
        assert db.get(b"k") == b"late"


_LATE = """
from lsmkv import SharedDB
from lsmkv.shared.listener import Listener
from lsmkv.engine.util.threads import pause

def slow(self, turn=Listener._turn):
    turn(self)
    if any(member.busy for member in self._members.values()):
        pause(1.0)

Listener._turn = slow

def own(process, kept, run):
    kept["db"] = db = SharedDB("/db", env=process.env, create_if_missing=True)
    kept["open"] = True
    while "joined" not in kept:
        run.sleep(0.001)
    run.sleep(0.5)
    db.close()

def ask(process, kept, run):
    while "open" not in kept:
        run.sleep(0.001)
    with SharedDB("/db", env=process.env) as db:
        kept["joined"] = True
        db.sync()
        db.put(b"k", b"v")
        assert db.get(b"k") == b"v"

def program(run):
    one, two = run.process("one"), run.process("two")
    one.start(own, one, run.kept, run)
    two.start(ask, two, run.kept, run)
    run.join()
"""
"""The owner closes the store when its call is over and the listener does not know that yet."""


def test_a_connection_is_closed_whose_call_has_just_ended() -> None:
    report = simulate(_LATE, seed=0)
    assert report.failure is None, str(report)

"""The messages between the processes of a shared store, and bytes that are none."""

from __future__ import annotations

import errno

import pytest

import lsmkv
from lsmkv.engine.db.read.scan import Bounds
from lsmkv.engine.format.key_order import Position
from lsmkv.errors import CorruptionError, NestedCallError
from lsmkv.shared.frames import (
    BEGIN,
    CALL,
    COMMIT,
    DONE,
    FAILED,
    GREETING,
    HEADER,
    HELLO,
    LARGEST_FRAME,
    LEAVING,
    PROGRESS,
    READY,
    RESULT,
    WRITE,
    CommitRequest,
    check_answer,
    check_request,
    commit_frame,
    decoded,
    error_frame,
    error_in,
    frame,
    json_frame,
)


def content_of(message: bytes) -> bytes:
    return message[HEADER.size :]


def test_a_frame_states_its_length_kind_and_request() -> None:
    message = frame(DONE, 7, b"content")
    assert HEADER.unpack_from(message) == (7, DONE, 7)
    assert content_of(message) == b"content"
    assert decoded(content_of(json_frame(CALL, 1, {"method": "flush"}))) == {"method": "flush"}


@pytest.mark.parametrize(
    ("size", "kind"),
    [(0, 0), (0, DONE), (0, 99), (65537, HELLO), (40_000, BEGIN), (1 << 25, CALL)],
)
def test_what_no_member_sends_is_refused(size: int, kind: int) -> None:
    with pytest.raises(CorruptionError, match="a message of kind"):
        check_request(size, kind, True)


@pytest.mark.parametrize("kind", [WRITE, COMMIT, CALL])
def test_before_the_greeting_a_member_may_ask_for_nothing(kind: int) -> None:
    with pytest.raises(CorruptionError, match="before the greeting"):
        check_request(4, kind, False)
    check_request(4, HELLO, False)
    check_request(4, READY, False)


@pytest.mark.parametrize(
    ("size", "kind"),
    [(0, 0), (0, WRITE), (0, 99), (9, DONE), (7, DONE), (1, LEAVING), (1 << 25, RESULT),
     (1 << 21, FAILED), (1 << 17, PROGRESS), (5000, GREETING)],
)  # fmt: skip
def test_what_no_owner_sends_is_refused(size: int, kind: int) -> None:
    with pytest.raises(CorruptionError, match="a message of kind"):
        check_answer(size, kind)


def test_large_batches_are_no_damage() -> None:
    check_request(LARGEST_FRAME, WRITE, True)
    check_request(LARGEST_FRAME, COMMIT, True)


@pytest.mark.parametrize("content", [b"", b"[]", b"7", b"\xff", b"{", b"[" * 100_000])
def test_json_of_another_kind(content: bytes) -> None:
    with pytest.raises(CorruptionError, match="not a JSON object"):
        decoded(content)


@pytest.mark.parametrize(
    "error",
    [
        lsmkv.ConflictError("b'k' was written"),
        lsmkv.Error("anything"),
        lsmkv.ReadOnlyError("no"),
        NestedCallError("not here"),
        lsmkv.DeadlockError([(7, "Lock 'a'"), (8, "transact")]),
        ValueError("a bad value"),
        TypeError("a bad type"),
    ],
)
def test_errors_arrive_as_they_were_raised(error: Exception) -> None:
    arrived = error_in(content_of(error_frame(3, error)))
    assert type(arrived) is type(error)
    assert str(arrived) == str(error)


def test_errors_of_the_system_and_of_damage() -> None:
    arrived = error_in(content_of(error_frame(3, OSError(errno.ENOSPC, "no room", "store/1.log"))))
    assert isinstance(arrived, lsmkv.IOError)
    assert (arrived.errno, arrived.strerror, arrived.filename) == (
        errno.ENOSPC,
        "no room",
        "store/1.log",
    )
    for refused in (OSError(errno.EACCES, "refused", "store"), TimeoutError("no answer")):
        arrived = error_in(content_of(error_frame(3, refused)))
        assert isinstance(arrived, lsmkv.IOError)
        assert isinstance(arrived, type(refused))
    damage = error_in(content_of(error_frame(3, CorruptionError("bad", "store/1.ldb", 7))))
    assert isinstance(damage, CorruptionError)
    assert (damage.reason, damage.path, damage.offset) == ("bad", "store/1.ldb", 7)
    order = error_in(content_of(error_frame(3, lsmkv.ComparatorMismatchError("store", "a", "b"))))
    assert isinstance(order, lsmkv.ComparatorMismatchError)
    assert (order.path, order.stored, order.given) == ("store", "a", "b")


def test_an_error_of_any_size_and_path_fits_into_a_frame() -> None:
    for error in (lsmkv.Error("\U0001f600" * 10**6), OSError(errno.EIO, "x" * 10**7, b"path")):
        content = content_of(error_frame(3, error))
        check_answer(len(content), FAILED)
        assert isinstance(error_in(content), lsmkv.Error)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"kind": ["CorruptionError"], "text": {}},
        {"kind": "CorruptionError", "text": 7, "path": [], "offset": "x"},
        {"kind": "__import__", "text": "os"},
        {"kind": "SystemExit", "text": "1"},
        {"errno": 10**30, "text": None, "path": 7},
        {"kind": "ComparatorMismatchError", "stored": 7, "path": []},
        {"kind": "DeadlockError", "waits": 7},
        {"kind": "DeadlockError", "waits": [7, [], ["x", "y"], [7, 7], [1, "a", 2]]},
    ],
)
def test_whatever_is_answered_as_an_error_is_one_of_ours(value: dict[str, object]) -> None:
    assert isinstance(error_in(content_of(json_frame(FAILED, 1, value))), lsmkv.Error)


def test_a_bound_of_another_kind_is_damage() -> None:
    whole = bytearray(content_of(commit_frame(1, 5, 77, True, set(), [Bounds(None, None)], b"")))
    whole[-2] = 3
    with pytest.raises(CorruptionError, match="kind of bound: 3"):
        CommitRequest(bytes(whole))


def test_an_error_of_an_unknown_kind_is_an_error() -> None:
    class Own(Exception):
        pass

    arrived = error_in(content_of(error_frame(3, Own("text"))))
    assert type(arrived) is lsmkv.Error
    assert str(arrived) == "Own: text"


def test_a_commit() -> None:
    ranges = [
        Bounds(Position(b"a", False), Position(b"b", True)),
        Bounds(None, Position(b"c", False)),
        Bounds(None, None),
    ]
    keys = {b"", b"k", b"\0" * 300}
    commit = CommitRequest(content_of(commit_frame(1, 5, 77, True, keys, ranges, b"batch")))
    assert (commit.transaction, commit.sequence, commit.sync) == (5, 77, True)
    assert commit.keys == keys
    assert list(map(str, commit.ranges)) == list(map(str, ranges))
    assert commit.batch == b"batch"


def test_any_part_of_a_commit_is_damage_or_another_commit() -> None:
    whole = content_of(
        commit_frame(1, 5, 77, True, {b"key"}, [Bounds(Position(b"a", False), None)], b"")
    )
    for size in range(len(whole)):
        with pytest.raises(CorruptionError, match="truncated commit"):
            CommitRequest(whole[:size])

"""The messages between the processes of a shared store, and bytes that are none."""

from __future__ import annotations

import errno

import pytest

import lsmkv
from lsmkv.db.read.scan import Bounds
from lsmkv.errors import CorruptionError
from lsmkv.format.key_order import Position
from lsmkv.shared.frames import (
    BEGIN,
    CALL,
    COMMIT,
    DONE,
    HEADER,
    HELLO,
    LARGEST_FRAME,
    WRITE,
    CommitRequest,
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
        check_request(size, kind)


def test_large_batches_are_no_damage() -> None:
    check_request(LARGEST_FRAME, WRITE)
    check_request(LARGEST_FRAME, COMMIT)


@pytest.mark.parametrize("content", [b"", b"[]", b"7", b"\xff", b"{", b"[" * 100_000])
def test_json_of_another_kind(content: bytes) -> None:
    with pytest.raises(CorruptionError, match="no JSON object"):
        decoded(content)


@pytest.mark.parametrize(
    "error",
    [
        lsmkv.ConflictError("b'k' was written"),
        lsmkv.Error("anything"),
        lsmkv.ReadOnlyError("no"),
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
    damage = error_in(content_of(error_frame(3, CorruptionError("bad", "store/1.ldb", 7))))
    assert isinstance(damage, CorruptionError)
    assert (damage.reason, damage.path, damage.offset) == ("bad", "store/1.ldb", 7)


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
        with pytest.raises(CorruptionError, match="ends early"):
            CommitRequest(whole[:size])

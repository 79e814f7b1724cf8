"""The member's half of the connections."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from others import Other, new

import lsmkv
from lsmkv.shared.joining import Member

Start = Callable[..., Other]


def part_of(db: lsmkv.SharedDB) -> Member:
    assert isinstance(db._part, Member)
    return db._part


def test_progress_that_calls_the_store(path: Path, other: Start) -> None:
    other(create_if_missing=True)
    with new(path) as db:
        db.put(b"k", b"v")
        seen: list[bytes | None] = []

        def look(done: int, total: int, phase: str) -> None:
            db.put(b"seen", phase.encode())
            seen.append(db.get(b"seen"))

        db.compact_range(progress=look)
        assert seen[-1] == b"done"


def test_answers_of_many_megabytes_are_not_needed_but_requests_are(
    path: Path, other: Start
) -> None:
    owner = other(create_if_missing=True)
    with new(path) as db:
        value = bytes(5_000_000)
        db.put(b"large", value)
        assert db.get(b"large") == value
        assert owner("len(db.get(b'large'))") == len(value)


def test_what_the_owner_refuses_is_raised_and_the_connection_is_used_again(
    path: Path, other: Start, tmp_path: Path
) -> None:
    other(create_if_missing=True)
    with new(path) as db:
        (tmp_path / "no table").write_bytes(b"anything")
        for _ in range(3):
            with pytest.raises(lsmkv.CorruptionError):
                db.ingest([tmp_path / "no table"])
        assert len(part_of(db).joined._idle) == 1


def test_progress_that_fails_with_an_error_of_the_system(path: Path, other: Start) -> None:
    """It is not the connection that has failed."""
    other(create_if_missing=True)
    with new(path) as db:
        db.put(b"k", b"v")

        def fail(*step: object) -> None:
            raise BrokenPipeError(32, "Broken pipe")

        with pytest.raises(BrokenPipeError):
            db.compact_range(progress=fail)
        assert db.get(b"k") == b"v"


def test_a_call_that_is_refused_leaves_the_connection_its_patience(
    path: Path, other: Start, tmp_path: Path
) -> None:
    owner = other(create_if_missing=True)
    (tmp_path / "no table").write_bytes(b"anything")
    with new(path, patience=0.2, may_own=False) as db:
        with pytest.raises(lsmkv.CorruptionError):
            db.ingest([tmp_path / "no table"])
        owner.stop()
        with pytest.raises(lsmkv.IOError, match="does not answer"):
            db.put(b"k", b"v")
        owner.go_on()

"""What a member has of one epoch: connections for calls at the same time, and its presence."""

from __future__ import annotations

import os
import threading
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


def test_calls_of_several_threads_have_a_connection_each(path: Path, other: Start) -> None:
    owner = other(create_if_missing=True)
    with new(path) as db:
        threads = [
            threading.Thread(target=lambda n=n: [db.put(b"%d" % n, b"v") for _ in range(20)])
            for n in range(5)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert 1 <= len(part_of(db).joined._idle) <= 6
        assert owner("len(list(db))") == 5
        assert owner("len(db.members)") == 1


def test_a_call_in_the_middle_of_another_has_a_connection_of_its_own(
    path: Path, other: Start
) -> None:
    """As a signal handler's would: the request that it interrupts is half sent."""
    other(create_if_missing=True)
    with new(path) as db:
        joined = part_of(db).joined
        outer = joined.take()
        db.put(b"k", b"v")
        joined.give_back(outer)
        assert db.get(b"k") == b"v"


def test_the_owner_knows_a_process_whose_calls_were_cut_off(path: Path, other: Start) -> None:
    """Or the next owner could not find the page that this one reads."""
    owner = other(create_if_missing=True)
    with new(path, may_own=False, patience=0.1) as db:
        owner.stop()
        with pytest.raises(lsmkv.IOError, match="does not answer"):
            db.put(b"k", b"v")
        owner.go_on()
        assert db.get(b"x") is None
        assert owner("db.members") == [os.getpid()]
        owner.kill()
        other()("db.put(b'x', b'new')")
        assert db.get(b"x") == b"new"

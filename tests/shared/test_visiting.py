"""Asking an owner about itself, without joining the store."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from others import Other, new
from owner_processes import ended, ends
from owner_processes import new as new_by_process

import lsmkv
from lsmkv.shared.system.release import RELEASE
from lsmkv.shared.visiting import hand_over, owner_status

Start = Callable[..., Other]


def test_who_owns_a_store(path: Path, other: Start) -> None:
    with pytest.raises(lsmkv.NotFoundError):
        owner_status(path)
    with new(path, filter_policy=lsmkv.Bloom64Policy(8)) as db:
        assert owner_status(path) == (os.getpid(), RELEASE, False, [])
        first = other(filter_policy=None, bloom_filter_bits=0)
        assert "shared with the filter policy" in first.opened
        db.put(b"k", b"v")
        assert db.role == "owner"
        assert db.members == []
    assert owner_status(path) is None
    assert hand_over(path) is None
    with lsmkv.DB(path), pytest.raises(lsmkv.LockedError):
        owner_status(path)


def test_a_process_that_uses_the_store_hands_over_on_request(path: Path, other: Start) -> None:
    with new(path) as db:
        first = other()
        db.put(b"k", b"v")
        batches = db.batches()
        with pytest.raises(lsmkv.Error, match=f"process {os.getpid()} owns the store, and does no"):
            hand_over(path)
        batches.close()
        assert hand_over(path) == (os.getpid(), RELEASE, False, [first.pid])
        assert owner_status(path) is None
        first("db.put(b'l', b'w')")
        assert (db.get(b"l"), db.role, db.owner) == (b"w", "member", first.pid)
        first("db.close()")
        db.put(b"m", b"x")
        assert hand_over(path) == (os.getpid(), RELEASE, False, [])
        db.put(b"n", b"y")  # nobody else is there
        assert (db.role, len(list(db))) == ("owner", 4)


def test_a_process_that_only_owns_hands_over_on_request(path: Path, other: Start) -> None:
    with ended(path), new_by_process(path) as db:
        owner = db.owner
        first = other(owner="process")
        before = hand_over(path)
        assert before == (owner, RELEASE, True, sorted((os.getpid(), first.pid)))
        assert ends(owner)
        assert owner_status(path) is None
        first("db.put(b'k', b'v')")
        assert db.get(b"k") == b"v"
        status = owner_status(path)
        assert status is not None
        assert status.pid == db.owner != owner


def test_an_owner_that_does_not_answer(path: Path, other: Start) -> None:
    """What is known of it without it."""
    first = other(create_if_missing=True)
    first.kill()
    with new(path) as db:
        assert owner_status(path) == (os.getpid(), RELEASE, False, [])
        db._part.listener.stop()  # type: ignore[union-attr]
        assert owner_status(path) == (os.getpid(), None, None, None)
        with pytest.raises(lsmkv.Error, match="does not hand it over: it runs an older"):
            hand_over(path)

"""Fills the file system of a shared store: ``full_store_child.py CASE PLACE``, a small tmpfs.

The owner is a process of its own; this one is a member.  Run in a mount namespace of its own.
Prints one line of JSON: what was seen.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from others import Other

import lsmkv
from lsmkv import SharedDB

_OPTIONS: dict[str, Any] = {"compression": None, "write_buffer_size": 256 * 1024}
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Numbers:
    """Puts numbered keys through a handle, and knows which were acknowledged."""

    def __init__(self, db: SharedDB, name: str) -> None:
        self._db = db
        self._name = name
        self.written: dict[bytes, bytes] = {}
        self._tried = 0

    def put(self) -> OSError | None:
        """The error, which must be that of a full disk; None if the next one was taken."""
        self._tried += 1
        key = f"{self._name}{self._tried:06d}".encode()
        value = os.urandom(1500)
        try:
            self._db.put(key, value, sync=self._tried % 7 == 0)
        except lsmkv.IOError as error:
            if error.errno not in _FULL:
                raise
            return error
        self.written[key] = value
        return None


class Place:
    """A tmpfs, and the store in it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.store = Path(path, "store")
        self._filler = Path(path, "filler")

    def fill(self) -> None:
        """Take every byte that is free."""
        with open(self._filler, "ab", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(512))
            except OSError as error:
                if error.errno not in _FULL:
                    raise

    def make_room(self) -> None:
        """Give it back, and more."""
        subprocess.run(["mount", "-o", "remount,size=32m", self._path], check=True)
        self._filler.unlink()


def _refused(numbers: Numbers, at_once: int) -> int:
    """How many of so many puts are refused, once the store has used up what it has freed itself."""
    refused = 0
    while refused == 0:
        assert len(numbers.written) < 100_000
        refused = sum(numbers.put() is not None for _ in range(at_once))
    return refused


def owner_goes_on(place: Place) -> dict[str, Any]:
    """Fill it, make room, and hand the store over."""
    owner = Other(place.store, create_if_missing=True, **_OPTIONS)
    assert owner.opened == "open"
    db = SharedDB(place.store, may_own=False, **_OPTIONS)
    numbers = Numbers(db, "a")
    while numbers.put() is None:
        assert len(numbers.written) < 100_000
    place.fill()
    refused = _refused(numbers, 100)
    # Reads go on, here and in processes that join only now.
    _check(db, numbers)
    with SharedDB(place.store, may_own=False, **_OPTIONS) as newcomer:
        _check(newcomer, numbers)
    assert owner("db.role") == "owner"
    place.make_room()
    taken = sum(numbers.put() is None for _ in range(300))
    _check(db, numbers)
    owner("db.close()")
    with SharedDB(place.store, paranoid_checks=True, **_OPTIONS) as after:
        again = Numbers(after, "b")
        assert all(again.put() is None for _ in range(300))
        numbers.written |= again.written
        _check(after, numbers)
        _check(db, numbers)
        after.compact_range()
        assert after.verify() == []
    db.close()
    owner.kill()
    return {"refused": refused, "taken": taken}


def owner_is_killed(place: Place) -> dict[str, Any]:
    """On the full disk: the next one cannot recover the store before there is room."""
    owner = Other(place.store, create_if_missing=True, **_OPTIONS)
    db = SharedDB(place.store, **_OPTIONS)
    numbers = Numbers(db, "a")
    while numbers.put() is None:
        assert len(numbers.written) < 100_000
    place.fill()
    _check(db, numbers)
    owner.kill()
    refused = _refused(numbers, 20)
    place.make_room()
    taken = sum(numbers.put() is None for _ in range(300))
    assert db.role == "owner"
    _check(db, numbers)
    assert db.verify() == []
    db.close()
    return {"refused": refused, "taken": taken}


def _check(db: SharedDB, numbers: Numbers) -> None:
    """All that was acknowledged is there, and nothing else."""
    found = dict(db)
    wrong = [key for key, value in numbers.written.items() if found.get(key) != value]
    assert not wrong, f"missing or wrong: {wrong[:5]}"
    more = [key for key in found if key not in numbers.written]
    assert not more, f"refused, and there: {more[:5]}"


_CASES = {"goes on": owner_goes_on, "is killed": owner_is_killed}

if __name__ == "__main__":
    sys.stdout.write(json.dumps(_CASES[sys.argv[1]](Place(sys.argv[2]))))

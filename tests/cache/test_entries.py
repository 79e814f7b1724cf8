"""What a step does to an entry: exact keys, and nothing left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import lsmkv
from lsmkv.cache.atomic_steps import Step, Steps
from lsmkv.cache.counters import BASE
from lsmkv.cache.entries import move, put, remove, set_expiry
from lsmkv.cache.entry_head import Pointer, parse

NAME, NUMBER = b"hkey", b"number of 12"


@pytest.fixture
def db() -> Iterator[lsmkv.DB]:
    with lsmkv.DB(":memory:") as db:
        yield db


@pytest.fixture
def run(db: lsmkv.DB) -> Callable[[Callable[[Step], object]], set[bytes]]:
    steps = Steps(db, False)

    def do(function: Callable[[Step], object]) -> set[bytes]:
        steps.run(function)
        return {key for key, _ in db} - {BASE}

    return do


def stored(now: float, expiry: float | None, tag: bytes | None) -> Callable[[Step], object]:
    return lambda step: put(
        step, NAME, step.get(NAME), NUMBER, now, expiry, tag, False, b"value", False
    )


def at(position: int) -> bytes:
    return position.to_bytes(8, "big")


def test_the_keys_of_an_entry(
    db: lsmkv.DB, run: Callable[[Callable[[Step], object]], set[bytes]]
) -> None:
    micro = 1_000_000
    assert run(stored(1.0, 2.0, b"t")) == {
        *(NAME, b"n" + NUMBER, b"r" + at(micro) + NUMBER),
        *(b"e" + at(2 * micro) + NUMBER, b"t\0\1t" + NUMBER),
    }
    assert db.get(b"n" + NUMBER) == at(micro) + b"key"
    assert run(stored(1.0, 2.0, b"t")) == run(stored(1.0, 2.0000001, b"t"))
    assert run(stored(3.0, None, b"u")) == {
        *(NAME, b"n" + NUMBER, b"r" + at(3 * micro) + NUMBER, b"t\0\1u" + NUMBER),
    }
    assert run(lambda step: move(step, NUMBER, at(7))) == {
        *(NAME, b"n" + NUMBER, b"r" + at(7) + NUMBER, b"t\0\1u" + NUMBER),
    }

    def touch(step: Step) -> None:
        data = step.get(NAME)
        assert data is not None
        set_expiry(step, NAME, data, parse(data), 4.0)

    assert b"e" + at(4 * micro) + NUMBER in run(touch)

    def drop(step: Step) -> None:
        data = step.get(NAME)
        assert data is not None
        remove(step, NAME, data)

    assert run(drop) == set()
    assert run(lambda step: move(step, NUMBER, at(9))) == set()


def test_chunks_go_with_their_entry(
    db: lsmkv.DB, run: Callable[[Callable[[Step], object]], set[bytes]]
) -> None:
    pointer = Pointer(1 << 20, b"value number")
    db.put(b"vvalue number\0\0\0\0", b"chunk")
    run(lambda step: put(step, NAME, None, NUMBER, 1.0, None, None, False, pointer, True))
    keys = run(stored(1.0, None, None))
    assert keys == {NAME, b"n" + NUMBER, b"r" + at(1_000_000) + NUMBER}

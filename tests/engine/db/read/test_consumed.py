"""lsmkv.engine.db.read.consumed: how far iterators went, at both ends, and ranges that are
joined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import lsmkv
from lsmkv import DB
from lsmkv.engine.db.read.consumed import ConsumedRange, ConsumedRanges
from lsmkv.engine.format.key_order import KeyOrder, Position
from lsmkv.engine.util.comparator import BYTEWISE

LETTERS = "abcdefghi"


def steps(*forwards: int, **arguments: Any) -> Callable[[lsmkv.Transaction], None]:
    """Iterate, 1 for ``next`` and -1 for ``prev``."""

    def read(transaction: lsmkv.Transaction) -> None:
        entries = transaction.iterator(**arguments)
        for one in forwards:
            entries.next() if one > 0 else entries.prev()

    return read


def everything(**arguments: Any) -> Callable[[lsmkv.Transaction], None]:
    def read(transaction: lsmkv.Transaction) -> None:
        list(transaction.iterator(**arguments))

    return read


def moves(*parts: Any) -> Callable[[lsmkv.Transaction], None]:
    """Iterate: a key to seek it, a number of steps, or the name of a method."""

    def read(transaction: lsmkv.Transaction) -> None:
        entries = transaction.iterator()
        for part in parts:
            if isinstance(part, bytes):
                entries.seek(part)
            elif isinstance(part, str):
                getattr(entries, part)()
            else:
                for _ in range(abs(part)):
                    entries.next() if part > 0 else entries.prev()

    return read


CASES: list[tuple[str, Callable[[lsmkv.Transaction], None], str]] = [
    ("nothing is read", steps(), ""),
    ("a step from the start", steps(1), "ab"),
    ("two steps", steps(1, 1), "abcd"),
    ("all", everything(), LETTERS),
    ("from a key", steps(1, start=b"c"), "cd"),
    ("from a key that is there", steps(1, start=b"d"), "d"),
    ("from a key, without it", steps(1, start=b"d", include_start=False), "ef"),
    ("from after a key", steps(1, start=b"c", include_start=False), "d"),
    ("to a stop", everything(start=b"c", stop=b"f"), "cde"),
    ("to a stop, with it", everything(start=b"c", stop=b"f", include_stop=True), "cdef"),
    ("not as far as the stop", steps(1, start=b"c", stop=b"i"), "cd"),
    ("an empty range", everything(start=b"c", stop=b"d"), "c"),
    ("a range upside down", everything(start=b"f", stop=b"c"), ""),
    ("a prefix", everything(prefix=b"c"), "c"),
    ("a limit", everything(limit=1), "ab"),
    ("a limit of nothing", everything(limit=0), ""),
    ("a limit beyond the end", everything(limit=9, start=b"g"), "ghi"),
    ("a limit that just reaches the end", everything(limit=1, start=b"g"), "gh"),
    ("backwards", steps(1, reverse=True), "hi"),
    ("backwards, two steps", steps(1, 1, reverse=True), "fghi"),
    ("backwards to the start", everything(reverse=True, start=b"c", stop=b"g"), "cdef"),
    ("backwards from after a key", steps(1, reverse=True, stop=b"f", include_stop=True), "f"),
    ("backwards, a limit", everything(reverse=True, limit=1, stop=b"g"), "f"),
    ("there and back", steps(1, -1, 1), "ab"),
    ("a step back from a place", moves(b"e", -1), "d"),
    ("on both sides of a place", moves(b"e", -1, 2), "def"),
    ("a seek", moves(b"e", 1), "ef"),
    ("a seek leaves a gap", moves(1, b"g", 1), "abgh"),
    ("a seek and no step", moves(b"e"), ""),
    ("a seek back", moves(b"g", 1, b"c", 1), "cdgh"),
    ("to the stop and back", moves("seek_to_stop", -1), "hi"),
    ("to the start", moves(b"g", 1, "seek_to_start", 1), "abgh"),
]
"""What is done in a store that has every second letter, and which letters conflict then."""


def writes_in_memory(db: DB, key: bytes) -> None:
    db.put(key, b"theirs")


def deletes_and_compacts(db: DB, key: bytes) -> None:
    db.delete(key)
    db.flush()
    db.compact_range()


@pytest.mark.parametrize(
    "change", [writes_in_memory, deletes_and_compacts], ids=lambda one: one.__name__
)
@pytest.mark.parametrize(
    ("read", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_what_conflicts(
    read: Callable[[lsmkv.Transaction], None], expected: str, change: Callable[[DB, bytes], None]
) -> None:
    found = ""
    for letter in LETTERS:
        with DB(":memory:") as db:
            for key in b"bdfh":
                db.put(b"%c" % key, b"old")
            with db.transaction(isolation="snapshot") as weak, db.transaction() as transaction:
                for one in (weak, transaction):
                    read(one)
                    one.put(b"+", b"mine")
                change(db, letter.encode())
                try:
                    transaction.commit()
                except lsmkv.ConflictError:
                    found += letter
                    weak.commit()
                else:
                    weak.rollback()
    assert found == expected


def test_an_iterator_that_was_dropped_or_closed_has_consumed_its_range() -> None:
    with DB(":memory:") as db:
        db.put(b"a", b"")
        for close in (True, False):
            transaction = db.transaction()
            keys = transaction.iterator()
            assert next(keys)
            if close:
                keys.close()
            del keys
            transaction.put(b"new", b"")
            db.put(b"a", b"")
            with pytest.raises(lsmkv.ConflictError):
                transaction.commit()


def test_many_seeks_of_one_range_and_an_iterator_that_goes_on() -> None:
    """Ranges that overlap are joined on the way, and those that grow after that are added again."""
    with DB(":memory:") as db:
        for number in range(1000):
            db.put(b"%04d" % number, b"")
        for key, within in (
            (b"0300", "b'0100' <= key < b'0400'"),
            (b"0600", "b'0600' <= key <= b'0690'"),
            (b"0750", ""),
            (b"0800", "b'0790' <= key <= b'0809'"),
        ):
            transaction = db.transaction()
            slow = transaction.iterator(start=b"0600")
            seeks = transaction.iterator(start=b"0100", stop=b"0400")
            next(slow)
            for number in range(900):
                seeks.seek(b"%04d" % (100 + number % 300))
                list(zip(range(2), seeks, strict=False))
                if number % 10 == 0:
                    next(slow)
            last = transaction.iterator(start=b"0790", limit=20)
            assert len(list(last)) == 20
            transaction.put(b"new", b"")
            db.put(key, b"")
            if within:
                with pytest.raises(lsmkv.ConflictError, match=f"{key!r} .* the range {within}$"):
                    transaction.commit()
            else:
                transaction.commit()


def consumed(order: KeyOrder, low: bytes | None, high: bytes | None, after: bool) -> ConsumedRange:
    one = ConsumedRange(order, None if low is None else Position(low, False), False)
    one.rise(None if high is None else Position(high, after))
    return one


def test_ranges_that_overlap_or_touch_are_joined() -> None:
    order = KeyOrder(BYTEWISE)
    ranges = ConsumedRanges(order)
    for low, high, after in (
        (b"p", b"q", False),
        (b"a", b"c", True),
        (b"b", b"d", False),
        (b"d", b"e", True),
        (b"e", b"e", True),
        (b"m", b"m", False),  # empty
        (b"g", b"k", False),
        (b"h", b"i", True),
        (b"x", None, False),
        (b"y", b"z", True),
    ):
        ranges.add(consumed(order, low, high, after))
    assert [str(one) for one in ranges.join()] == [
        "b'a' <= key <= b'e'",
        "b'g' <= key < b'k'",
        "b'p' <= key < b'q'",
        "b'x' <= key",
    ]
    ranges.add(consumed(order, None, b"g", False))
    assert str(ranges.join()[0]) == "key < b'k'"
    ranges.add(consumed(order, None, None, False))
    assert [str(one) for one in ranges.join()] == ["all keys"]

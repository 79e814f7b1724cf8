"""lsmkv.engine.table.deletion_run: runs begin after a few deletions, and are cut at the ends of
a scan.
"""

from __future__ import annotations

from typing import Any

import pytest
from orders import FOLDING
from runs import single_entries

from lsmkv.engine.format.key_order import KeyOrder, Position
from lsmkv.engine.table.deletion_run import (
    SHORTEST_RUN,
    add_deletion,
    entries_before,
    entries_from,
    run_in,
)
from lsmkv.engine.util.comparator import BYTEWISE, Comparator


def key(number: int) -> bytes:
    return b"k%02d" % number


def chunk_of(count: int, with_sequence: bool) -> list[Any]:
    """A value, as many deletions, and a value."""
    tails = [(None, 100 + at) if with_sequence else (None,) for at in range(count + 2)]
    found: list[Any] = [(key(0), b"v", *tails[0][1:])]
    run = None
    for at in range(1, count + 1):
        run = add_deletion(found, run, at, key(at), 100 + at, with_sequence)
        assert (run is None) == (at <= SHORTEST_RUN)
    found.append((key(count + 1), b"v", *tails[count + 1][1:]))
    return found


@pytest.mark.parametrize("with_sequence", [False, True])
def test_a_run_knows_the_deletions_before_it(with_sequence: bool) -> None:
    chunk = chunk_of(30, with_sequence)
    run = run_in(chunk[SHORTEST_RUN + 1])
    assert run is not None
    assert run.keys == [key(at) for at in range(1, 31)]
    assert run.sequences == ([100 + at for at in range(1, 31)] if with_sequence else None)
    assert [run_in(entry) for entry in chunk].count(None) == len(chunk) - 1
    entries = single_entries(chunk)
    assert [entry[0] for entry in entries] == [key(at) for at in range(32)]
    assert {len(entry) for entry in entries} == {3 if with_sequence else 2}


@pytest.mark.parametrize("comparator", [BYTEWISE, FOLDING], ids=["bytewise", "folding"])
@pytest.mark.parametrize("with_sequence", [False, True])
@pytest.mark.parametrize("after", [False, True])
def test_a_chunk_is_cut_anywhere(comparator: Comparator, with_sequence: bool, after: bool) -> None:
    order = KeyOrder(comparator)
    everything = single_entries(chunk_of(30, with_sequence))
    for at in range(-1, 34):
        position = Position(key(at), after)
        lower = [entry for entry in everything if not order.is_at_or_after(entry[0], position)]
        upper = [entry for entry in everything if order.is_at_or_after(entry[0], position)]
        assert single_entries(entries_before(chunk_of(30, with_sequence), position, order)) == lower
        assert single_entries(entries_from(chunk_of(30, with_sequence), position, order)) == upper

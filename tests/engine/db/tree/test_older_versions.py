"""lsmkv.engine.db.tree.older_versions: what is kept of a key's versions, and what is found of
them.
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from lsmkv.engine.db.tree.older_versions import OlderVersions
from lsmkv.engine.format.keys import KIND_VALUE, pack


def tagged(sequence: int) -> bytes:
    """A version of this sequence, whose value is the sequence too."""
    return pack(b"", sequence, KIND_VALUE) + b"%d" % sequence


def written(
    sequences: list[int], newest_pinned: int, pinned: list[int] | None = None
) -> OlderVersions:
    """The versions of the key ``k`` before its newest one, each replaced by the next."""
    older = OlderVersions()
    for sequence, after in pairwise(sequences):
        older.keep(b"k", b"k", tagged(sequence), newest_pinned, after, pinned)
    return older


def values(older: OlderVersions, key: bytes) -> list[bytes]:
    return [version[8:] for _, version in older.by_key.get(key, ())]


@pytest.mark.parametrize(
    ("newest_pinned", "kept"),
    [(-1, []), (0, []), (1, [b"1"]), (2, [b"2", b"1"]), (9, [b"2", b"1"])],
)
def test_versions_up_to_the_newest_pinned_sequence_are_kept(
    newest_pinned: int, kept: list[bytes]
) -> None:
    assert values(written([1, 2, 3], newest_pinned), b"k") == kept


@pytest.mark.parametrize(
    ("pinned", "kept"),
    [
        ([], []),
        ([1], []),
        ([2], [b"2"]),
        ([3, 4], [b"2"]),
        ([5], [b"5"]),
        ([4, 4, 8], [b"7", b"2"]),
        ([9], []),  # there the newest one is visible
        ([2, 5, 7], [b"7", b"5", b"2"]),
    ],
)
def test_versions_that_no_pinned_sequence_sees_go(pinned: list[int], kept: list[bytes]) -> None:
    newest_pinned = max(pinned, default=-1)
    assert values(written([2, 5, 7, 9], newest_pinned, pinned), b"k") == kept


def test_ever_newer_snapshots_of_one_key_keep_one_version() -> None:
    """As of a counter that transactions increment, beside a snapshot that stays."""
    older = OlderVersions()
    for sequence in range(5, 1000):
        older.keep(b"k", b"k", tagged(sequence), sequence, sequence + 1, [5, sequence])
        assert len(older.by_key[b"k"]) <= 2
    assert older.entry(b"k", 5) == (b"k", tagged(5))


def test_the_newest_version_at_or_before_a_sequence_is_found() -> None:
    older = written([2, 5, 9], 5)
    found = [older.entry(b"k", sequence) for sequence in (1, 2, 4, 5, 8)]
    assert found == [None, *((b"k", tagged(number)) for number in (2, 2, 5, 5))]
    assert older.entry(b"another", 8) is None


def test_a_step_that_is_done_again_keeps_no_version_twice() -> None:
    older = OlderVersions()
    newest = tagged(1)
    for _ in range(2):
        older.keep(b"k", b"k", newest, 1, 2, [1])
    assert values(older, b"k") == [b"1"]


def test_versions_move_to_another_spelling_of_their_key_and_keep_their_own() -> None:
    older = OlderVersions()
    first, second = tagged(1), tagged(2)
    older.keep(b"Key", b"key", first, 9, 2, None)
    older.keep(b"KEY", b"Key", second, 9, 3, None)
    assert values(older, b"KEY") == [b"2", b"1"]
    assert older.entry(b"KEY", 2) == (b"Key", second)
    assert older.entry(b"KEY", 1) == (b"key", first)
    assert older.with_newest([b"KEY", b"other"], [tagged(3), tagged(4)]) == (
        [b"KEY", b"Key", b"key", b"other"],
        [tagged(3), second, first, tagged(4)],
    )


def test_check_finds_versions_out_of_order() -> None:
    older = written([1, 2, 3], 9)
    older.check({b"k": tagged(3)})
    for wrong in (2, 1):
        with pytest.raises(AssertionError, match="precedes a newer one"):
            older.check({b"k": tagged(wrong)})

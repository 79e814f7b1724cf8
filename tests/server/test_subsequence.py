"""The longest common subsequence: compared with Redis' algorithm, cell by cell."""

from __future__ import annotations

import random

import pytest

from lsmkv.server.subsequence import CommonSubsequence, Match


def expected(a: bytes, b: bytes) -> list[Match]:
    """What Redis' algorithm finds."""
    lengths = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            if a[i - 1] == b[j - 1]:
                lengths[i][j] = lengths[i - 1][j - 1] + 1
            else:
                lengths[i][j] = max(lengths[i - 1][j], lengths[i][j - 1])
    found: list[Match] = []
    i, j, count = len(a), len(b), 0
    while i > 0 and j > 0:
        if a[i - 1] == b[j - 1]:
            i, j, count = i - 1, j - 1, count + 1
            continue
        if count:
            found.append(Match(i, j, count))
            count = 0
        if lengths[i - 1][j] > lengths[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return [*found, Match(i, j, count)] if count else found


@pytest.mark.parametrize("letters", [b"ab", b"abcd", bytes(range(256))])
def test_matches_are_those_of_redis(letters: bytes) -> None:
    choices = random.Random(0)
    for _ in range(300):
        a, b = (bytes(choices.choices(letters, k=choices.randrange(40))) for _ in range(2))
        found = CommonSubsequence(a, b)
        assert found.matches() == expected(a, b)
        assert found.length == sum(one.length for one in found.matches())

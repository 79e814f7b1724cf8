"""The longest common subsequence of two strings, as LCS of Redis chooses it among several.

``length(i, j)`` is that of the first *i* and *j* bytes.  Along a row it grows by 0 or 1 from one
column to the next, so a row is a number with one bit for each column: 0 where it grows.  The next
row takes four operations on such numbers (Crochemore, Iliopoulos, Pinzon and Reid, 2001).  Rows
stand for the bytes of the shorter string.

Redis goes back from both ends: over a match to both sides, otherwise to the previous byte of the
first string if that is longer, else to that of the second.  So it continues in the second string as
far as the length stays the same, unless a match comes first, and then in the first one to the next
match: here a step each.
"""

from __future__ import annotations

from typing import NamedTuple


class Match(NamedTuple):
    """Bytes that both strings have, one after the other."""

    first: int
    """The position in the first string."""
    second: int
    length: int


class CommonSubsequence:
    """The longest common subsequence of two strings.

    Costs O(len(a) * len(b) / 64), and that many words of memory.
    """

    def __init__(self, a: bytes, b: bytes) -> None:
        self._a, self._b = a, b
        self._by_a = len(a) <= len(b)
        """True if the rows stand for the first string."""
        self._rows = _rows(a, b) if self._by_a else _rows(b, a)

    @property
    def length(self) -> int:
        return self._length(len(self._a), len(self._b))

    def _length(self, i: int, j: int) -> int:
        row, column = (i, j) if self._by_a else (j, i)
        return (~self._rows[row] & (1 << column) - 1).bit_count()

    def _first_column(self, i: int, j: int, length: int) -> int:
        """The least number of bytes of the second string, up to ``j``, of this length."""
        if self._by_a:
            return (~self._rows[i] & (1 << j) - 1).bit_length()
        low, high = 0, j
        while low < high:
            middle = (low + high) // 2
            if self._length(i, middle) < length:
                low = middle + 1
            else:
                high = middle
        return high

    def matches(self) -> list[Match]:
        """The parts that both strings have, from the last one on."""
        a, b = self._a, self._b
        i, j = len(a), len(b)
        found: list[Match] = []
        first, second, count = i, j, 0
        for left in range(self.length, 0, -1):
            j = max(self._first_column(i, j, left), b.rfind(a[i - 1 : i], 0, j) + 1)
            i = a.rfind(b[j - 1 : j], 0, i) + 1
            if count and (i, j) != (first, second):
                found.append(Match(first, second, count))
                count = 0
            i, j = i - 1, j - 1
            first, second, count = i, j, count + 1
        if count:
            found.append(Match(first, second, count))
        return found


def _rows(short: bytes, long: bytes) -> list[int]:
    """A row for each number of bytes of the shorter string."""
    backwards = long[::-1]
    places = {
        byte: int(backwards.translate(_ONE_OF[byte]) or b"0", 2) for byte in dict.fromkeys(short)
    }
    full = (1 << len(long)) - 1
    row = full
    rows = [row]
    for byte in short:
        growing = row & places[byte]
        row = (row + growing | row - growing) & full
        rows.append(row)
    return rows


_ONE_OF = [b"0" * byte + b"1" + b"0" * (255 - byte) for byte in range(256)]
"""Tables that turn one byte into the digit 1, and all others into 0."""

"""The keys of the demo: real names, or the user's lines; and keys that look like them."""

from __future__ import annotations

import random
import sys
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_TRIES = 20
_SAMPLE = 1000


@dataclass(frozen=True)
class DataSet:
    """What is loaded, in this order, and what must be found afterwards."""

    title: str
    records: list[tuple[bytes, bytes]]
    expected: dict[bytes, bytes]
    """The value of each key: that of its last record."""
    blank_lines: int = 0

    @property
    def duplicates(self) -> int:
        """Records whose key came before."""
        return len(self.records) - len(self.expected)

    @property
    def size(self) -> int:
        """Bytes of all keys and values."""
        return sum(len(key) + len(value) for key, value in self.records)


def unicode_names(more: int = 0) -> DataSet:
    """Every named character of the Unicode database that Python ships: name -> the character.

    In the order of the code points.  ``more`` records follow, whose keys are the names with
    `` #2``, `` #3`` and so on behind them.
    """
    names = [
        (name, character.encode())
        for character in map(chr, range(sys.maxunicode + 1))
        if (name := unicodedata.name(character, ""))
    ]
    records = [(name.encode(), value) for name, value in names]
    for at in range(more):
        name, value = names[at % len(names)]
        records.append((f"{name} #{at // len(names) + 2}".encode(), value))
    return DataSet(
        f"names of Unicode {unicodedata.unidata_version}, each with its character",
        records,
        dict(records),
    )


def lines_as_keys(lines: Iterable[bytes], title: str) -> DataSet:
    """Every line a key, its number the value; blank lines are left out.

    ``ValueError`` if there is no key at all.
    """
    records: list[tuple[bytes, bytes]] = []
    blank = 0
    for number, line in enumerate(lines, 1):
        key = line.removesuffix(b"\n").removesuffix(b"\r")
        if key:
            records.append((key, b"%d" % number))
        else:
            blank += 1
    if not records:
        raise ValueError(f"{title}: no keys in it; the demo takes one key per line")
    return DataSet(f"lines of {title}, each with its number", records, dict(records), blank)


class Misspeller:
    """Makes keys that are nearly right, and certainly not in the data set.

    They lie between its first and its last key where that can be: a key beyond them is not looked
    for in any table, and costs nothing with filters or without.
    """

    def __init__(self, data: DataSet, rng: random.Random) -> None:
        self._keys = list(data.expected)
        self._taken = data.expected
        self._first = min(self._keys)
        self._last = max(self._keys)
        self._rng = rng
        sample = rng.sample(self._keys, min(_SAMPLE, len(self._keys)))
        letters = {letter for key in sample for letter in _text(key) if letter.isalnum()}
        self._alphabet = sorted(letters) if len(letters) > 1 else list(_LETTERS)

    def absent_keys(self, number: int) -> list[bytes]:
        """So many absent keys, in random order; a small data set may repeat some."""
        return [self.misspelt(key) for key in self._rng.choices(self._keys, k=number)]

    def misspelt(self, key: bytes) -> bytes:
        """``key`` with two neighbours swapped or a letter changed, such that no such key exists.

        Where neither will do (all such neighbours exist), letters are added until it does.
        """
        text = _text(key)
        for _ in range(_TRIES):
            wrong = _bytes(self._mistake(text))
            if self._first < wrong < self._last and wrong not in self._taken:
                return wrong
        while True:
            text += self._rng.choice(self._alphabet)
            wrong = _bytes(text)
            if wrong not in self._taken:
                return wrong

    def _mistake(self, text: str) -> str:
        rng = self._rng
        at = rng.randrange(len(text))
        if at + 1 < len(text) and rng.random() < 0.5:
            return text[:at] + text[at + 1] + text[at] + text[at + 2 :]
        return text[:at] + rng.choice(self._alphabet) + text[at + 1 :]


def _text(key: bytes) -> str:
    return key.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")

"""Keys to try a store with: real names or the user's lines, and absent keys that look like them.

The demo, the filter lab, the playground and the course take theirs from here.
"""

from __future__ import annotations

import random
import sys
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_TRIES = 20
_SAMPLE = 1000


@dataclass(frozen=True)
class DataSet:
    """The records to load, in this order, and what must be found afterwards."""

    title: str
    records: list[tuple[bytes, bytes]]
    expected: dict[bytes, bytes]
    """The value of each key, which is that of its last record."""
    blank_lines: int = 0

    @property
    def duplicates(self) -> int:
        """The number of records with the key of an earlier one."""
        return len(self.records) - len(self.expected)

    @property
    def size(self) -> int:
        """The bytes of all keys and values."""
        return sum(len(key) + len(value) for key, value in self.records)


def unicode_names(more: int = 0) -> DataSet:
    """The name of every character in Python's Unicode database, with the character as its value.

    They are in the order of the code points.  ``more`` records follow, whose keys are the names
    with `` #2``, `` #3`` and so on appended.
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
    """Each line as a key, with its line number as the value; blank lines are left out.

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
    """Makes absent keys that resemble keys of a store.

    They are between the first and the last of these where possible: a key outside the range of a
    table is not looked for in it, so it costs nothing with or without filters.
    """

    def __init__(
        self, keys: list[bytes], is_taken: Callable[[bytes], bool], rng: random.Random
    ) -> None:
        """``keys`` are those to misspell; ``is_taken`` says whether a key exists."""
        self._keys = keys
        self._is_taken = is_taken
        self._first = min(keys)
        self._last = max(keys)
        self._rng = rng
        sample = rng.sample(keys, min(_SAMPLE, len(keys)))
        letters = {letter for key in sample for letter in _text(key) if letter.isalnum()}
        self._alphabet = sorted(letters) if len(letters) > 1 else list(_LETTERS)

    def absent_keys(self, number: int) -> list[bytes]:
        """``number`` absent keys in random order, which may repeat for a small data set."""
        return [self.misspelt(key) for key in self._rng.choices(self._keys, k=number)]

    def misspelt(self, key: bytes) -> bytes:
        """``key`` with two adjacent letters swapped or one changed, if no such key exists.

        If all such keys exist, letters are appended until one does not.
        """
        text = _text(key)
        for _ in range(_TRIES if text else 0):
            wrong = _bytes(self._mistake(text))
            if self._first < wrong < self._last and not self._is_taken(wrong):
                return wrong
        while True:
            text += self._rng.choice(self._alphabet)
            wrong = _bytes(text)
            if not self._is_taken(wrong):
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

"""The errors that clients were answered with, by their first word: ``ERR``, ``WRONGTYPE``."""

from __future__ import annotations

_MOST = 128
"""Different words that are counted.  A script may make up any number of them."""


class Errors:
    """Counts of errors, for INFO."""

    def __init__(self) -> None:
        self.total = 0
        self.counts: dict[str, int] = {}
        """By their first word."""

    def note(self, text: str) -> None:
        """Count an error of this text."""
        self.total += 1
        word = text.split(maxsplit=1)[0] if text.strip() else ""
        if word in self.counts or len(self.counts) < _MOST:
            self.counts[word] = self.counts.get(word, 0) + 1

    def forget(self) -> None:
        """Count from 0 again."""
        self.total = 0
        self.counts.clear()

"""The older versions of a memtable's keys: those that newer ones have replaced, while a snapshot or
an iterator can still see them.

A :class:`~lsmkv.engine.db.tree.memtable.MemTable` has one, in addition to the newest version of
each key, and changes it under the store's lock.  Any thread reads it without a lock: the versions
of a key are a tuple, which is replaced as a whole.

In a user's order, equal keys may differ in their bytes.  The versions of a key are stored under the
bytes that were written last, and each keeps the bytes that it was written with.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise

from lsmkv.engine.format.keys import Entry, sequence_in


class OlderVersions:
    """For each key, the versions before its newest one, newest first."""

    __slots__ = ("by_key",)

    def __init__(self) -> None:
        self.by_key: dict[bytes, tuple[Entry, ...]] = {}

    def entry(self, key: bytes, sequence: int) -> Entry | None:
        """The newest of them at or before ``sequence``, with the key that it was written under; or
        None."""
        for entry in self.by_key.get(key, ()):
            if sequence_in(entry[1]) <= sequence:
                return entry
        return None

    def with_newest(
        self, keys: list[bytes], newest: list[bytes]
    ) -> tuple[list[bytes], list[bytes]]:
        """User keys and tagged values of all versions of these keys, the newest of which are
        given."""
        if not self.by_key:
            return keys, newest
        user_keys: list[bytes] = []
        tagged_values: list[bytes] = []
        for key, tagged in zip(keys, newest, strict=True):
            user_keys.append(key)
            tagged_values.append(tagged)
            for older_key, older in self.by_key.get(key, ()):
                user_keys.append(older_key)
                tagged_values.append(older)
        return user_keys, tagged_values

    def keep(
        self,
        key: bytes,
        found: bytes,
        newest: bytes,
        newest_pinned: int,
        sequence: int,
        pinned: list[int] | None,
    ) -> None:
        """Keep the versions that are visible at a pinned sequence: of ``newest``, which a version
        at ``sequence`` is to replace, and those before it.

        They are under ``found`` so far, and under the new version's ``key`` from now on.  An
        interrupted call can be repeated.  Caller holds the lock, and finally removes those of
        ``found``.  Without ``pinned``, all up to ``newest_pinned`` are kept.  With it there are at
        most as many as pinned sequences: a key that is overwritten under ever newer snapshots, as
        a counter is by transactions, costs no more each time.
        """
        versions = self.by_key.get(found, ())
        if not versions or versions[0][1] is not newest:  # else an interrupted call added it
            versions = ((found, newest), *versions)
        kept: list[Entry] = []
        for entry in versions:
            own = sequence_in(entry[1])
            if own <= newest_pinned and (pinned is None or _any_within(pinned, own, sequence)):
                kept.append(entry)
            sequence = own
        if kept:
            self.by_key[key] = tuple(kept)
        else:
            self.by_key.pop(key, None)

    def check(self, newest: dict[bytes, bytes]) -> None:
        """Assert that the versions of each key descend, from its newest one on."""
        for key, versions in self.by_key.items():
            sequences = [sequence_in(tagged) for _, tagged in versions]
            sequences.insert(0, sequence_in(newest[key]))
            for newer, older in pairwise(sequences):
                assert newer > older, "an older version precedes a newer one"


def _any_within(ascending: list[int], first: int, stop: int) -> bool:
    """Return True if one of the numbers is at least ``first`` and less than ``stop``."""
    at = bisect_left(ascending, first)
    return at < len(ascending) and ascending[at] < stop

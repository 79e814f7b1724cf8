"""The recency or frequency of keys, for eviction by ``lru`` and ``lfu``.

Only keys that were used since the server started are known, and of these at most 100,000.  A key
that is not known counts as used longest ago, and never.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

MOST_KEYS: Final = 100_000
"""The most keys that are known.  One takes about 200 bytes."""
_HALVED_EVERY: Final = 10 * MOST_KEYS
"""Uses of keys after which all frequencies are halved."""


class Usage:
    """The uses of keys, by the names of their records."""

    def __init__(self, by_frequency: bool, most: int = MOST_KEYS) -> None:
        self._by_frequency = by_frequency
        self._most = most
        self._scores: OrderedDict[bytes, int] = OrderedDict()
        """The last use, or the frequency, of each key; last used last."""
        self._uses = 0

    def note(self, name: bytes) -> None:
        """Note the use of a key.  O(1)."""
        self._uses = uses = self._uses + 1
        scores = self._scores
        if self._by_frequency:
            scores[name] = scores.get(name, 0) + 1
            if uses % _HALVED_EVERY == 0:
                self._halve()
        else:
            scores[name] = uses
        scores.move_to_end(name)
        if len(scores) > self._most:
            scores.popitem(last=False)

    def _halve(self) -> None:
        for name, count in [*self._scores.items()]:
            if count > 1:
                self._scores[name] = count // 2
            else:
                del self._scores[name]

    def forget(self, name: bytes) -> None:
        """Forget a removed key."""
        self._scores.pop(name, None)

    def quantile(self, part: float) -> int:
        """A score that this part of the known keys do not exceed; O(n log n).  From 1 on, one that
        none will ever exceed."""
        scores = sorted(self._scores.values())
        return scores[int(part * len(scores))] if scores and part < 1 else 2**62

    def score(self, name: bytes) -> int:
        """Keys with a lower one are evicted first; 0 for a key that is not known."""
        return self._scores.get(name, 0)

"""What the databases in this directory hold: a pure function of a seed, known to no engine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

Change = tuple[bytes, bytes | None]
"""A key, and its new value; None for a deletion."""

EDGES = (b"", b"\0", b"\xff", b"\xff\xff", b"key", b"key00100\0")
WORDS = (b"level ", b"block ", b"filter ", b"table ", b"log ", b"key ", b"value ", b"")


def draw(seed: str, at: int, below: int) -> int:
    """A number that looks random, the same on every machine."""
    digest = hashlib.sha256(f"{seed}/{at}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % below


def changes(seed: str, count: int, keys: int) -> list[Change]:
    """Puts, overwrites and deletions (one in six) of ``keys`` keys and a few odd ones."""
    names = [*EDGES, *(b"key%05d" % n for n in range(keys))]
    result: list[Change] = []
    for at in range(count):
        key = names[draw(f"{seed} key", at, len(names))]
        if draw(f"{seed} kind", at, 6) == 0:
            result.append((key, None))
        else:
            word = WORDS[draw(f"{seed} word", at, len(WORDS))]
            value = b"%d " % at + word * draw(f"{seed} size", at, 20)
            result.append((key, value if draw(f"{seed} empty", at, 30) else b""))
    return result


def applied(*parts: Iterable[Change]) -> dict[bytes, bytes]:
    """The state after all of them."""
    state: dict[bytes, bytes] = {}
    for part in parts:
        for key, value in part:
            if value is None:
                state.pop(key, None)
            else:
                state[key] = value
    return state


LEVELS = [changes(f"levels {n}", count, 400) for n, count in enumerate((420, 200, 90, 90, 30))]
"""What ends on level 2, level 1, level 0 twice, and in the log."""
SMALL = changes("small", 300, 200)
LOG = [
    *changes("log", 150, 80),
    (b"large", b"more than one block of the log; " * 1200),
    *changes("log end", 20, 80),
]
HAND = sorted(applied(changes("hand", 260, 200)).items())
"""The entries of the tables that are put together by hand."""

CONTENTS: dict[str, dict[bytes, bytes]] = {
    "levels-snappy-bloom": applied(*LEVELS),
    "levels-none": applied(*LEVELS),
    "none-bloom": applied(SMALL),
    "snappy": applied(SMALL),
    "reverse-comparator": applied(*LEVELS[:2], *LEVELS[4:]),
    "unflushed-log": applied(SMALL, LOG),
    "old-sst": applied(SMALL),
    "hand-zstd": dict(HAND),
    "hand-mojang-zlib": dict(HAND),
    "hand-mojang-deflate": dict(HAND),
    "hand-unknown-codec": dict(HAND),
}
"""By directory."""

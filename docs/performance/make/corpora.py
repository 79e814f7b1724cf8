"""The keys that filters are measured with: sorted, distinct, and the same in every run."""

from __future__ import annotations

import os
import random
import subprocess
import uuid

from lsmkv.tools.sample_keys import unicode_names

WORDS = "/usr/share/dict/american-english-huge"
MADE = 100_000
"""Keys of a corpus that is made here, and not found."""
_POINTS = 100  # of a series


class MissingCorpusError(Exception):
    """The machine does not have a corpus; the message says what would bring it."""


def names() -> list[bytes]:
    """The names of Unicode's characters."""
    return sorted(unicode_names().expected)


def words() -> list[bytes]:
    """A large word list."""
    if not os.path.exists(WORDS):
        raise MissingCorpusError(f"there is no {WORDS} (Debian: wamerican-huge)")
    with open(WORDS, "rb") as file:
        return sorted(set(file.read().split(b"\n")) - {b""})


def packages() -> list[bytes]:
    """The names of Debian's packages, as far as apt knows them."""
    try:
        listed = subprocess.run(["apt-cache", "pkgnames"], capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise MissingCorpusError(f"apt-cache pkgnames: {error}") from None
    found = sorted(set(listed.split(b"\n")) - {b""})
    if not found:
        raise MissingCorpusError("apt-cache pkgnames names no packages")
    return found


def counters() -> list[bytes]:
    """Keys that count, as db_bench's do."""
    return [b"%016d" % number for number in range(MADE)]


def uuids() -> list[bytes]:
    """Random UUIDs as text."""
    rng = random.Random(1)
    return sorted(
        {str(uuid.UUID(int=rng.getrandbits(128), version=4)).encode() for _ in range(MADE)}
    )


def series_key(series: int, point: int) -> bytes:
    """The key of a point of a time series: ``series000017:`` and milliseconds, one a minute."""
    return b"series%06d:%013d" % (series, 1_700_000_000_000 + 60_000 * point)


def time_series() -> list[bytes]:
    """Points of time series, a hundred of each."""
    return [
        series_key(series, point) for series in range(MADE // _POINTS) for point in range(_POINTS)
    ]


CORPORA = {
    "Unicode names": names,
    "words": words,
    "package names": packages,
    "counters": counters,
    "UUIDs": uuids,
    "time series": time_series,
}

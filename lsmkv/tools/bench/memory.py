"""Measures the peak memory of a store; a separate program, run as a file.

    python memory.py MODULE DIRECTORY NUM VALUE_SIZE BLOOM_BITS CACHE_SIZE

``lsmkv`` and ``plyvel`` have one API.  The process imports only the given module, and makes each
key when it needs it: puts in scattered order, Gets, one scan.  It prints JSON.
"""

from __future__ import annotations

import importlib
import json
import random
import sys

_STEP = 2_654_435_761  # a prime: i * _STEP % num is a permutation
_GETS = 100_000


def main() -> None:
    """Run, and print the peak of this process's memory and what it was before the store."""
    name, directory, *numbers = sys.argv[1:]
    num, value_size, bloom_bits, cache_size = map(int, numbers)
    module = importlib.import_module(name)
    rng = random.Random(1)
    half = -(-value_size // 2)
    values = [(rng.randbytes(half) * 2)[:value_size] for _ in range(1000)]
    imported = peak_rss()
    db = module.DB(
        directory,
        create_if_missing=True,
        bloom_filter_bits=bloom_bits,
        lru_cache_size=max(1, cache_size),
    )
    for at in range(num):
        db.put(b"%016d" % (at * _STEP % num), values[at % 1000])
    filled = peak_rss()
    hits = sum(db.get(b"%016d" % (at * _STEP % num)) is not None for at in range(min(num, _GETS)))
    entries = sum(1 for _ in db.iterator())
    db.close()
    assert (hits, entries) == (min(num, _GETS), num)
    print(json.dumps({"imported": imported, "filled": filled, "peak": peak_rss(), "entries": num}))


def peak_rss() -> int | None:
    """The most memory that this process ever had, in bytes; None if the system does not say."""
    return of_process("VmHWM")


def of_process(field: str) -> int | None:
    """The bytes in a field of this process's status; None if the system has no such field.

    ``VmHWM`` is the most memory that the process ever had, and ``VmRSS`` what it has now, with
    mapped files.  Not ``getrusage``: on Linux its figure begins with that of the process that
    started this one.
    """
    try:
        with open("/proc/self/status", encoding="ascii") as lines:
            return next((1024 * int(line.split()[1]) for line in lines if field in line), None)
    except OSError:
        return None


if __name__ == "__main__":
    main()

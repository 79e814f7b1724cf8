"""Draw the curves of docs/filters.md: rate.svg, fill.svg and replay.svg.

python docs/pictures/rate.py

All is measured here, with seeds, so that the same matplotlib draws the same pictures.  It takes a
minute or two where lsmkv is not compiled.
"""

from __future__ import annotations

import random
import unicodedata
from pathlib import Path

import lsmkv
from lsmkv.engine.filter.bloom import BloomFilterPolicy, fill_rate
from lsmkv.filter_lab import DEFAULT_SETTINGS, parse_settings, replay
from lsmkv.plot import blocks_per_get, false_positive_rates, fill, to_svg
from lsmkv.tools.lab.gets import sampled_gets

HERE = Path(__file__).resolve().parent

KEYS_PER_BLOCK = 35
"""About as many as a filter of 2 KiB has where an entry takes 60 bytes."""
KEYS_PER_TABLE = 10_000
TABLES = 3


def rate(keys: int, bits: int, asked: int) -> float:
    """The share of random absent keys that pass filters of that many random keys."""
    rng = random.Random(bits)
    policy = BloomFilterPolicy(bits)
    filters = max(1, min(asked // 20, 200_000 // keys))
    each = asked // filters
    passed = 0
    for _ in range(filters):
        summary = policy.create_filter([rng.randbytes(16) for _ in range(keys)])
        passed += sum(policy.key_may_match(rng.randbytes(16), summary) for _ in range(each))
    return passed / (filters * each)


def rates(asked: int) -> dict[str, dict[int, float]]:
    """The rates to draw, with that many keys asked for each."""
    return {
        f"measured, {keys:,} keys in a filter": {
            bits: rate(keys, bits, asked) for bits in range(1, 21)
        }
        for keys in (KEYS_PER_BLOCK, KEYS_PER_TABLE)
    }


def filling(bits: int = 1000, bits_per_key: int = 10) -> list[tuple[int, float]]:
    """The share of ones in a filter of a size, for more and more keys than it was made for."""
    rng = random.Random(1)
    keys = [rng.randbytes(16) for _ in range(3 * bits // bits_per_key)]
    probes = BloomFilterPolicy(bits_per_key).probes
    points: list[tuple[int, float]] = []
    for number in range(10, len(keys) + 1, 10):
        ones: set[int] = set()
        for key in keys[:number]:
            ones |= positions(key, bits, probes)
        array = bytearray(bits // 8)
        for one in ones:
            array[one >> 3] |= 1 << (one & 7)
        points.append((number, fill_rate(bytes(array) + bytes([probes]))))
    return points


def positions(key: bytes, bits: int, probes: int) -> set[int]:
    """The bits of a key in a filter of a size, whatever the number of keys."""
    everything = b"\xff" * (bits // 8) + bytes([probes])
    policy = BloomFilterPolicy()
    return set(policy.probed_positions(policy.key_hash(key), everything))


def reads(gets: int, points: int = 0x30000) -> dict[str, tuple[float, float]]:
    """Blocks read per Get, useful and wasted, for the names of the first Unicode characters."""
    names = [unicodedata.name(chr(point), "").encode() for point in range(points)]
    names = [name for name in names if name]
    options: lsmkv.OptionArguments = {"bloom_filter_bits": 0, "seek_compaction": False}
    with lsmkv.DB(":memory:", **options) as db:
        for first in range(TABLES):
            with db.write_batch() as batch:
                for name in names[first::TABLES]:
                    batch.put(name, b"")
            db.flush()
        chosen = sampled_gets(db, gets, 1)
        done = replay(db, chosen.keys, parse_settings(DEFAULT_SETTINGS))
    return {
        one.setting: (
            (one.blocks_read - one.wasted_reads) / done.gets,
            one.wasted_reads / done.gets,
        )
        for one in done.results[1:]
    }


def main() -> None:
    """Measure, and write the three pictures."""
    pictures = {
        "rate.svg": false_positive_rates(measured=rates(200_000)),
        "fill.svg": fill(filling(), bits=1000, probes=BloomFilterPolicy(10).probes),
        "replay.svg": blocks_per_get(reads(10_000)),
    }
    for name, figure in pictures.items():
        (HERE / name).write_bytes(to_svg(figure))


if __name__ == "__main__":
    main()

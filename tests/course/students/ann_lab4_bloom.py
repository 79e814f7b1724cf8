"""Lab 4, as a student writes it."""

from __future__ import annotations

import math
from collections.abc import Sequence

MASK = 0xFFFFFFFF
SEED = 0xBC9F1D34
FACTOR = 0xC6A4A793


def bloom_hash(key: bytes) -> int:
    h = (SEED ^ (len(key) * FACTOR)) & MASK
    whole = len(key) // 4 * 4
    for at in range(0, whole, 4):
        word = int.from_bytes(key[at : at + 4], "little")
        h = (h + word) & MASK
        h = (h * FACTOR) & MASK
        h ^= h >> 16
    rest = key[whole:]
    if rest:
        for place, byte in enumerate(rest):
            h = (h + (byte << (8 * place))) & MASK
        h = (h * FACTOR) & MASK
        h ^= h >> 24
    return h


def probes(bits_per_key: int) -> int:
    k = int(bits_per_key * 0.69)
    return min(30, max(1, k))


def positions(key: bytes, k: int, size: int) -> list[int]:
    h = bloom_hash(key)
    delta = ((h >> 17) | (h << 15)) & MASK
    found = []
    for _ in range(k):
        found.append(h % size)
        h = (h + delta) & MASK
    return found


def create_filter(keys: Sequence[bytes], bits_per_key: int) -> bytes:
    k = probes(bits_per_key)
    size = (max(64, len(keys) * bits_per_key) + 7) // 8
    array = bytearray(size)
    for key in keys:
        for bit in positions(key, k, 8 * size):
            array[bit // 8] |= 1 << (bit % 8)
    array.append(k)
    return bytes(array)


def key_may_match(key: bytes, filter_data: bytes) -> bool:
    if len(filter_data) < 2:
        return False
    k = filter_data[-1]
    if k > 30:
        return True
    size = 8 * (len(filter_data) - 1)
    found = 0
    for bit in positions(key, k, size):
        if filter_data[bit // 8] & (1 << (bit % 8)):
            found += 1
    return found == k


def predicted_rate(bits_per_key: float, k: int) -> float:
    return (1 - math.exp(-k / bits_per_key)) ** k

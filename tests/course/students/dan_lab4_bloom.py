"""Lab 4, as another student writes it."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence


def mul(a: int) -> int:
    return a * 3332679571 % 2**32


def bloom_hash(key: bytes) -> int:
    n, left = divmod(len(key), 4)
    h = 3164544308 ^ mul(len(key))
    for word in struct.unpack(f"<{n}I", key[: 4 * n]):
        h = mul((h + word) % 2**32)
        h = h ^ h >> 16
    if left:
        h = mul((h + int.from_bytes(key[-left:], "little")) % 2**32)
        h = h ^ h >> 24
    return h


def probes(bits_per_key: int) -> int:
    if bits_per_key < 2:
        return 1
    return int(bits_per_key * 0.69) if bits_per_key < 44 else 30


def bits_of(key: bytes, data: bytes | bytearray, k: int) -> Iterator[tuple[int, int]]:
    h = bloom_hash(key)
    for number in range(k):
        step = number * (h >> 17 | h << 15 & 2**32 - 1)
        byte, bit = divmod((h + step) % 2**32 % (len(data) * 8), 8)
        yield byte, 1 << bit


def create_filter(keys: Sequence[bytes], bits_per_key: int) -> bytes:
    data = bytearray(max(8, -(-len(keys) * bits_per_key // 8)))
    k = probes(bits_per_key)
    for key in keys:
        for byte, mask in bits_of(key, data, k):
            data[byte] |= mask
    return bytes(data) + bytes([k])


def key_may_match(key: bytes, filter_data: bytes) -> bool:
    if len(filter_data) < 2:
        return False
    *_, k = filter_data
    if k > 30:
        return True
    data = filter_data[:-1]
    return all(data[byte] & mask for byte, mask in bits_of(key, data, k))


def predicted_rate(bits_per_key: float, k: int) -> float:
    e = 2.718281828459045
    return float((1 - e ** (-k / bits_per_key)) ** k)

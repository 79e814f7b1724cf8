"""HyperLogLog: an estimate of how many different items were added, in at most 12 KiB.

The bytes are those of Redis, so a value can be copied between servers with GET and SET.

====================  ===========================================================================
``HYLL`` (4 bytes)
encoding (1)          0 dense, 1 sparse
zeros (3)
estimate (8)          little-endian; with the highest bit the registers have changed since then
registers             16,384 numbers: dense, 6 bits each, from the lowest bit of each byte on; or
                      sparse, as runs
====================  ===========================================================================

A run is ``00nnnnnn`` (n + 1 zeros), ``01nnnnnn nnnnnnnn`` (n + 1 zeros, big-endian) or ``1vvvvvnn``
(n + 1 registers of v + 1).  Splitting and joining of runs is done exactly as in Redis, because an
equal set of items should have equal bytes on both.

An item's hash chooses a register.  The register holds the longest run of zeros that any of its
items' hashes had, plus 1.  The estimator is that of Otmar Ertl, https://arxiv.org/abs/1702.01284.
"""

from __future__ import annotations

import math
from typing import Final

from lsmkv.server.resp import CommandError

REGISTERS: Final = 16384
SPARSE_MOST: Final = 3000
"""The default size in bytes above which registers become dense."""
_HEAD: Final = 16
_DENSE_SIZE: Final = _HEAD + REGISTERS * 6 // 8
_DENSE: Final = 0
_SPARSE: Final = 1
_Q: Final = 50
"""Bits of a hash that do not choose a register."""
_MOST_SPARSE: Final = 32
"""The largest value of a register in a run."""
_ZERO: Final = 64
"""The longest run of zeros in one byte."""
_VALUES: Final = 4
"""The longest run of another value."""
_ALPHA: Final = 0.721347520444481703680
_U64: Final = (1 << 64) - 1
_M: Final = 0xC6A4A7935BD1E995
_EMPTY: Final = b"HYLL\x01" + bytes(11) + b"\x7f\xff"


def murmur_hash(data: bytes, seed: int = 0xADC83B19) -> int:
    """MurmurHash64A of a little-endian machine.

    >>> hex(murmur_hash(b"hello"))
    '0xf656f01eecfe400'
    """
    size = len(data)
    hashed = seed ^ (size * _M & _U64)
    whole = size & ~7
    for at in range(0, whole, 8):
        part = int.from_bytes(data[at : at + 8], "little") * _M & _U64
        part = (part ^ part >> 47) * _M & _U64
        hashed = (hashed ^ part) * _M & _U64
    if size > whole:
        hashed = (hashed ^ int.from_bytes(data[whole:], "little")) * _M & _U64
    hashed = (hashed ^ hashed >> 47) * _M & _U64
    return hashed ^ hashed >> 47


class HyperLogLog:
    """The value of a string as registers.

    Raises :class:`CommandError` if the string is no HyperLogLog, and later if it is damaged.
    """

    def __init__(self, value: bytes | None, sparse_most: int = SPARSE_MOST) -> None:
        self.value = bytearray(_EMPTY if value is None else value)
        self._sparse_most = sparse_most
        self._place = (_HEAD, 0)
        """The offset of a run, and its first register: where a search may begin."""
        if (
            len(self.value) < _HEAD
            or self.value[:4] != b"HYLL"
            or self.value[4] > _SPARSE
            or (self.is_dense and len(self.value) != _DENSE_SIZE)
        ):
            raise CommandError("WRONGTYPE Key is not a valid HyperLogLog string value.")

    @property
    def is_dense(self) -> bool:
        return self.value[4] == _DENSE

    @property
    def estimate(self) -> int | None:
        """The estimate that was kept; None if registers have changed since then."""
        if self.value[15] & 0x80:
            return None
        return int.from_bytes(self.value[8:16], "little")

    def keep_estimate(self, number: int) -> None:
        """Keep an estimate until a register changes."""
        self.value[8:16] = number.to_bytes(8, "little")

    def outdate(self) -> None:
        """Note that registers have changed."""
        self.value[15] |= 0x80

    def add(self, item: bytes) -> bool:
        """Add an item.  Returns whether a register has changed."""
        hashed = murmur_hash(item)
        zeros = hashed >> 14 | 1 << _Q
        return self.raise_register(hashed & (REGISTERS - 1), (zeros & -zeros).bit_length())

    def raise_register(self, index: int, number: int) -> bool:
        """Raise a register to a number if it is lower.  Returns whether it was."""
        if self.is_dense:
            return self._raise_dense(index, number)
        return self._raise_sparse(index, number)

    def _raise_dense(self, index: int, number: int) -> bool:
        value = self.value
        at, shift = _HEAD + (index * 6 >> 3), index * 6 & 7
        pair = value[at] | (value[at + 1] << 8 if shift > 2 else 0)
        if number <= pair >> shift & 63:
            return False
        pair = pair & ~(63 << shift) | number << shift
        value[at] = pair & 0xFF
        if shift > 2:
            value[at + 1] = pair >> 8
        return True

    # Runs

    def _run(self, at: int) -> tuple[int, int, int]:
        """The bytes, the registers and the value of the run at an offset."""
        first = self.value[at]
        if first & 0x80:
            return 1, (first & 3) + 1, (first >> 2 & 31) + 1
        if first & 0x40:
            second = self.value[at + 1] if at + 1 < len(self.value) else 0
            return 2, ((first & 63) << 8 | second) + 1, 0
        return 1, first + 1, 0

    def _raise_sparse(self, index: int, number: int) -> bool:
        if number > _MOST_SPARSE:
            self.make_dense()
            return self._raise_dense(index, number)
        at, first, before = self._find_run(index)
        size, length, old = self._run(at)
        if old >= number:
            return False
        if length == 1:
            self.value[at] = _value_run(number, 1)
        else:
            runs = _run_of(old, index - first) + bytes((_value_run(number, 1),))
            runs += _run_of(old, first + length - 1 - index)
            if len(runs) > size and len(self.value) + len(runs) - size > self._sparse_most:
                self.make_dense()
                return self._raise_dense(index, number)
            self.value[at : at + size] = runs
        self._join_runs(before)
        self.outdate()
        return True

    def _find_run(self, index: int) -> tuple[int, int, int]:
        """The offset of the run that has a register, its first register, and the offset of the run
        before it."""
        at, first = self._place
        before, before_first = -1, 0
        if at > _HEAD and index < first + self._run(at)[1]:
            at, first = _HEAD, 0
        value = self.value
        end = len(value)
        while at < end:
            byte = value[at]
            size = 1
            if byte & 0x80:
                length = (byte & 3) + 1
            elif byte & 0x40:
                length = ((byte & 63) << 8 | (value[at + 1] if at + 1 < end else 0)) + 1
                size = 2
            else:
                length = byte + 1
            if index < first + length:
                self._place = (before, before_first) if before >= 0 else (_HEAD, 0)
                return at, first, before if before >= 0 else _HEAD
            before, before_first = at, first
            at += size
            first += length
        raise _damaged()

    def _join_runs(self, at: int) -> None:
        """Join neighbors of the same value, among five runs from this one on."""
        value = self.value
        left = 5
        while at < len(value) and left:
            left -= 1
            byte = value[at]
            if byte & 0x80 and at + 1 < len(value):
                other = value[at + 1]
                length = (byte & 3) + (other & 3) + 2
                if other & 0x80 and byte >> 2 == other >> 2 and length <= _VALUES:
                    value[at : at + 2] = bytes((byte & ~3 | (length - 1),))
                    continue
            at += 2 if byte & 0xC0 == 0x40 else 1

    def make_dense(self) -> None:
        """Give each register its 6 bits."""
        if self.is_dense:
            return
        registers = self.registers()
        packed = bytearray(_DENSE_SIZE)
        packed[:_HEAD] = self.value[:_HEAD]
        packed[4] = _DENSE
        self.value = packed
        for index in range(REGISTERS):
            if registers[index]:
                self._raise_dense(index, registers[index])

    def registers(self) -> bytearray:
        """The registers, one byte each."""
        found = bytearray(REGISTERS)
        value = self.value
        if self.is_dense:
            at = _HEAD
            for index in range(0, REGISTERS, 4):
                three = value[at] | value[at + 1] << 8 | value[at + 2] << 16
                found[index] = three & 63
                found[index + 1] = three >> 6 & 63
                found[index + 2] = three >> 12 & 63
                found[index + 3] = three >> 18
                at += 3
            return found
        at, index = _HEAD, 0
        while at < len(value):
            size, length, number = self._run(at)
            if number:
                if index + length > REGISTERS:
                    raise _damaged()
                for place in range(index, index + length):
                    found[place] = number
            index += length
            at += size
        if index != REGISTERS:
            raise _damaged()
        return found


def _value_run(number: int, length: int) -> int:
    return 0x80 | (number - 1) << 2 | (length - 1)


def _run_of(number: int, length: int) -> bytes:
    """Registers of one value as a run; nothing if there are none."""
    if length == 0:
        return b""
    if number:
        return bytes((_value_run(number, length),))
    if length > _ZERO:
        return bytes((0x40 | (length - 1) >> 8, length - 1 & 0xFF))
    return bytes((length - 1,))


def estimate(registers: bytearray) -> int:
    """The number of different items that registers were made from, estimated."""
    size = float(REGISTERS)
    total = size * _tau((size - registers.count(_Q + 1)) / size)
    for number in range(_Q, 0, -1):
        total += registers.count(number)
        total *= 0.5
    total += size * _sigma(registers.count(0) / size)
    exact = _ALPHA * size * size / total
    whole = math.floor(exact)
    return whole + 1 if exact - whole >= 0.5 else whole


def _sigma(share: float) -> float:
    if share == 1.0:
        return math.inf
    factor, total, before = 1.0, share, -1.0
    while total != before:
        share *= share
        before = total
        total += share * factor
        factor += factor
    return total


def _tau(share: float) -> float:
    if share in (0.0, 1.0):
        return 0.0
    factor, total, before = 1.0, 1.0 - share, -1.0
    while total != before:
        share = math.sqrt(share)
        before = total
        factor *= 0.5
        total -= math.pow(1.0 - share, 2.0) * factor
    return total / 3.0


def _damaged() -> CommandError:
    return CommandError("INVALIDOBJ Corrupted HLL object detected")

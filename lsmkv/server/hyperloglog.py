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
import re
from base64 import b64decode, b64encode
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
_TOO_MANY: Final = 1 << 63
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
        """The stored estimate; None if registers have changed since."""
        if self.value[15] & 0x80:
            return None
        return int.from_bytes(self.value[8:16], "little")

    def keep_estimate(self, number: int) -> None:
        """Keep an estimate until a register changes; a negative one counts as changed already."""
        self.value[8:16] = (number & _U64).to_bytes(8, "little")

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
        if not self.is_dense:
            self._pack(self.registers())

    def _pack(self, registers: bytes) -> None:
        """Store registers with 6 bits each: see :meth:`registers`."""
        packed = b64decode(registers[::-1].translate(_TO_DIGITS))[::-1]
        self.value[:] = self.value[:4] + bytes((_DENSE,)) + self.value[5:_HEAD] + packed

    def registers(self) -> bytes:
        """The registers, one byte each.

        The last register has the highest bits of the last byte.  So the bytes in reverse have the
        registers in reverse, as the digits of base64.
        """
        if self.is_dense:
            return b64encode(self.value[: _HEAD - 1 : -1]).translate(_FROM_DIGITS)[::-1]
        parts: list[bytes] = []
        for number, runs in enumerate(_LONG_ZEROS.split(self.value[_HEAD:])):
            if number % 2:
                parts.append(bytes(int.from_bytes(runs.ljust(2, b"\0"), "big") - 0x3FFF))
            else:
                parts += [_RUNS[run] for run in runs]
        registers = b"".join(parts)
        if len(registers) != REGISTERS:
            raise _damaged()
        return registers

    def raise_registers(self, registers: bytes) -> None:
        """Raise each register to the number that is given for it, where that is higher."""
        if self.value[_HEAD:] == _EMPTY[_HEAD:]:
            self._fill(registers)
        if not self.is_dense:
            before = self.registers()
            for index, number in enumerate(registers):
                if number > before[index] and self.raise_register(index, number) and self.is_dense:
                    break
        if self.is_dense:
            self._pack(largest(self.registers(), registers))

    def _fill(self, registers: bytes) -> None:
        """Make an empty one sparse or dense with these registers.

        The runs are those that raising one register after the other makes, unless their size is so
        near the limit that it may have exceeded it in between.
        """
        runs = [_run_of(run[0][0], len(run[0])) for run in _EQUAL.finditer(registers)]
        size = _HEAD + sum(map(len, runs))
        if registers.translate(None, _OF_RUNS) or size > self._sparse_most:
            self.make_dense()
        elif size < self._sparse_most - _LONGEST_SPLIT:
            self.value[_HEAD:] = b"".join(runs)


_LONGEST_SPLIT: Final = 5
"""The bytes of three runs that one is split into."""
_OF_RUNS: Final = bytes(range(_MOST_SPARSE + 1))
"""The values that runs can have."""
_EQUAL: Final = re.compile(rb"\0+|([^\0])\1{0,3}", re.DOTALL)
"""Registers that one run can have."""
_LONG_ZEROS: Final = re.compile(rb"([\x40-\x7f].?)", re.DOTALL)
"""The runs of two bytes; if the value is cut, as in Redis, the second one is 0."""
_RUNS: Final = [
    bytes([(run >> 2 & 31) + 1] * ((run & 3) + 1)) if run & 0x80 else bytes(run + 1)
    for run in range(256)
]
"""The registers of each run of one byte."""
_DIGITS: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_TO_DIGITS: Final = _DIGITS.ljust(256)
_FROM_DIGITS: Final = bytes(max(0, _DIGITS.find(digit)) for digit in range(256))
_ONES: Final = int.from_bytes(b"\x01" * REGISTERS, "little")
_TOPS: Final = _ONES << 7


def largest(one: bytes, other: bytes) -> bytes:
    """The larger of each two registers.

    They are compared at once, as two numbers.  No register has its highest bit, so a difference
    with that bit set borrows from no neighbor, and keeps the bit where the first is not less.
    """
    first, second = int.from_bytes(one, "little"), int.from_bytes(other, "little")
    not_less = ((first | _TOPS) - second & _TOPS) >> 7
    chosen = second ^ (first ^ second) & (not_less << 8) - not_less
    return chosen.to_bytes(REGISTERS, "little")


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


def estimate(registers: bytes) -> int:
    """The number of different items that registers were made from, estimated.

    Registers that a client wrote itself can mean any number.  As in Redis, one that does not fit in
    64 bits is -2^63.
    """
    size = float(REGISTERS)
    counts, left = [0] * (_Q + 2), REGISTERS
    for number in range(_Q + 2):
        counts[number] = registers.count(number)
        left -= counts[number]
        if left == 0:  # as a rule, halfway
            break
    total = size * _tau((size - counts[_Q + 1]) / size)
    for number in range(_Q, 0, -1):
        total += counts[number]
        total *= 0.5
    total += size * _sigma(counts[0] / size)
    exact = _ALPHA * size * size / total if total else math.inf
    if exact >= _TOO_MANY:
        return -_TOO_MANY
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

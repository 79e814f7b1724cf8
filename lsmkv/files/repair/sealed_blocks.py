"""Finds the blocks of a damaged table by the checksums that seal them.

A stored block ends in a type byte and the masked CRC-32C of the block and of that byte.  So a block
can be found without an index: by :func:`find_sealed_end` where its start is known, and by
:class:`SealFinder` where only possible starts are known.
"""

from __future__ import annotations

from typing import Final

from librt.vecs import vec
from mypy_extensions import i64

from lsmkv.engine.util.checksum import POLYNOMIAL, TABLE, mask, unmask


def _inverse_table() -> vec[i64]:
    """The table for a step back: it exists since the top bytes of the table of steps are all
    different."""
    inverse = vec[i64](256 * [0])
    for byte in range(256):
        changed: i64 = TABLE[byte]
        inverse[changed >> 24] = (changed << 8 & 0xFFFFFFFF) ^ byte
    return inverse


_INVERSE: Final = _inverse_table()
_ONE = 0x80000000  # the polynomial 1, its bits in reverse order
_MOST_STARTS = 1 << 20
_CODECS = (0, 1, 2, 4)


def find_sealed_end(data: bytes, length: int, crc: int = -1) -> tuple[int, int]:
    """Find where a stored block that begins at ``data[0]`` may end, within ``data[:length]``.

    It ends in a type byte, which the masked CRC-32C of all bytes up to and with it follows.
    Returns ``(offset after the type byte, crc)``.  The offset is -1 if there is none; the search
    then continues in the next bytes with this ``crc``.  ``data`` holds four bytes more than
    ``length``.  O(length): 0.15 us a byte in pure Python, since each byte needs the running value.
    """
    running = 0xFFFFFFFF if crc < 0 else crc
    table = TABLE
    for at in range(length):
        byte = data[at]
        running = table[(running ^ byte) & 0xFF] ^ running >> 8
        if byte <= 4 and byte in _CODECS and _stored(data, at + 1) == mask(running ^ 0xFFFFFFFF):
            return at + 1, running
    return -1, running


class SealFinder:
    """Finds stored blocks in one pass, where only their possible starts are known.

    Call order: ``feed*``.

    A CRC is linear.  With A for the step over a zero byte and R(n) for the value that runs from 0
    at the stream's beginning, the CRC of the bytes from ``s`` to ``e`` has the value T exactly if

        A^-s (R(s) ^ 0xFFFFFFFF)  ==  A^-e (R(e) ^ T ^ 0xFFFFFFFF)

    The left side needs only the start and the right side only the end.  So all starts are tried at
    once: each end looks up its start in a dict.  A false match occurs once in 2^32 pairs.

    No block ends in five zeros, of which the last would be its type: the bytes before the type are
    the end of a compressed stream, or the number of restart points, which is one or more.

    Cost: 0.25 us a byte in pure Python, and 3 us for each start and each byte that may be a type.
    """

    def __init__(self, position: int) -> None:
        """``position`` is that of the stream's first byte; all positions are counted from there."""
        self._position = position
        self._running = 0
        self._scale = _ONE  # A^-n, as the polynomial to multiply by
        self._starts: dict[int, int] = {}
        self._zeros = 0  # the length of the run of zeros that ends here

    def feed(self, data: bytes, length: int, starts: list[int]) -> list[tuple[int, int]]:
        """Search ``data[:length]``, where a block may begin at each of ``starts``, in ascending
        order.

        Returns the start and the end (after the type byte) of each block found, in the order of
        their ends.  ``data`` holds four bytes more than ``length``.
        """
        found: list[tuple[int, int]] = []
        running = self._running
        scale = self._scale
        table = TABLE
        inverse = _INVERSE
        known = self._starts
        zeros = self._zeros
        coming = 0
        if len(known) + len(starts) > _MOST_STARTS:
            known.clear()  # only a crafted file has so many; this bounds memory
        for at in range(length):
            if coming < len(starts) and starts[coming] == at:
                coming += 1
                known[_multiply(running ^ 0xFFFFFFFF, scale)] = self._position + at
            byte = data[at]
            running = table[(running ^ byte) & 0xFF] ^ running >> 8
            scale = (scale << 8 & 0xFFFFFFFF) ^ inverse[scale >> 24]
            zeros = 0 if byte else zeros + 1
            if byte <= 4 and zeros < 5 and byte in _CODECS:
                wanted = running ^ unmask(_stored(data, at + 1)) ^ 0xFFFFFFFF
                start = known.get(_multiply(wanted, scale), -1)
                if start >= 0:
                    found.append((start, self._position + at + 1))
        self._running = running
        self._scale = scale
        self._zeros = zeros
        self._position += length
        return found


def _stored(data: bytes, at: int) -> int:
    """The fixed32 at ``at``."""
    return data[at] | data[at + 1] << 8 | data[at + 2] << 16 | data[at + 3] << 24


def _multiply(a: int, b: int) -> int:
    """The product of two polynomials, in a CRC's bit order, modulo the CRC's polynomial."""
    product = 0
    bit = _ONE
    while a:
        if a & bit:
            product ^= b
            a ^= bit
        bit >>= 1
        b = b >> 1 ^ (POLYNOMIAL if b & 1 else 0)
    return product

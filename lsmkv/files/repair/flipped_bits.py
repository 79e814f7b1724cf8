"""Finds single bits that have flipped, by the checksums of the blocks and records that they are in.

A CRC is linear: flipping one bit of a message changes its checksum by a value that depends on the
bit's distance from the end alone, and for CRC-32C no two distances below 2^31 bits give the same
value.  So the difference between the stored checksum and that of the damaged bytes shows which bit
to turn back, if it is one bit.  Bytes that are damaged in another way look like a flipped bit with
a chance of one in 2^32 for each of their bits: 8 in a million for a block of 4 KiB.

Surveys and repairs read files through :class:`MendedFile`.  No file is changed.
"""

from __future__ import annotations

from lsmkv.engine.env.base import RandomAccessFile
from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.format.log import (
    BLOCK_SIZE,
    FULL,
    HEADER_SIZE,
    LAST,
    check_fragment,
    next_fragment,
)
from lsmkv.engine.table.block import Block
from lsmkv.engine.table.format import (
    BLOCK_TRAILER_SIZE,
    FOOTER_SIZE,
    BlockHandle,
    Footer,
    open_block,
)
from lsmkv.engine.util.checksum import crc32c, typed_crc32c, unmask
from lsmkv.engine.util.coding import decode_fixed32

FLIPPED = "one bit has flipped, and the checksum shows which: nothing is lost by it"

_POLYNOMIAL = 0x82F63B78  # of CRC-32C, its bits reversed
_LARGEST = 1 << 20  # bytes of a block in which a bit is looked for


class MendedFile(RandomAccessFile):
    """A file as it was before some of its bits flipped; closes the file that it reads."""

    def __init__(self, file: RandomAccessFile, flips: list[int]) -> None:
        """``flips`` are bits, counted from the first byte's lowest one."""
        self._file = file
        self._flips = flips
        self.path = file.path
        self.size = file.size

    def read(self, offset: int, length: int) -> bytes:
        data = self._file.read(offset, length)
        for flip in self._flips:
            at = flip // 8 - offset
            if 0 <= at < len(data):
                data = _turned(data, flip - 8 * offset)
        return data

    def close(self) -> None:
        self._file.close()


def flips_in_log(file: RandomAccessFile) -> list[int]:
    """The flipped bits of a log or MANIFEST.  O(its size).

    After the last fragment that is whole, a byte of zero is not taken for one with a flipped bit: a
    record that was copied in part has such bytes.
    """
    flips: list[int] = []
    zeros: set[int] = set()  # those that are in bytes of zero
    settled = 0  # of the flips, those before a fragment that is whole
    for base in range(0, file.size, BLOCK_SIZE):
        block = file.read(base, BLOCK_SIZE)
        at = 0
        while at + HEADER_SIZE <= len(block):
            if check_fragment(block, at)[0] == 0:
                flip = _flip_in_fragment(block, at)
                if flip < 0:
                    at = next_fragment(block, at + 1)
                    continue
                flips.append(8 * base + flip)
                if block[flip // 8] == 0:
                    zeros.add(8 * base + flip)
                block = _turned(block, flip)
            else:
                settled = len(flips)
            at += HEADER_SIZE + len(check_fragment(block, at)[1])
    return flips[:settled] + [flip for flip in flips[settled:] if flip not in zeros]


def flips_in_table(file: RandomAccessFile, max_block_bytes: int) -> list[int]:
    """The flipped bits of the blocks that a table's footer and index name.  O(its size)."""
    flips: list[int] = []
    try:
        footer = Footer.decode(file.read(max(file.size - FOOTER_SIZE, 0), FOOTER_SIZE))
    except CorruptionError:
        return flips
    for handle in (footer.index, footer.metaindex):
        stored = _mended_block(file, handle, flips)
        try:
            values = Block(open_block(stored, max_block_bytes), max_block_bytes).entries()[1]
        except CorruptionError:
            continue
        for value in values:
            try:
                _mended_block(file, BlockHandle.decode(value)[0], flips)
            except CorruptionError:
                continue
    return flips


def _mended_block(file: RandomAccessFile, handle: BlockHandle, flips: list[int]) -> bytes:
    """A block and its trailer, without a flipped bit, which is added to ``flips``."""
    size = handle.size + BLOCK_TRAILER_SIZE
    if handle.offset + size > file.size or size > _LARGEST:
        return b""
    stored = file.read(handle.offset, size)
    flip = flipped_bit(stored[:-4], decode_fixed32(stored, size - 4))
    if flip < 0:
        return stored
    flips.append(8 * handle.offset + flip)
    return _turned(stored, flip)


def _flip_in_fragment(block: bytes, at: int) -> int:
    """The flipped bit of a log's fragment at ``at`` in its block; -1 if it is not one bit."""
    stored = decode_fixed32(block, at)
    length = block[at + 4] | block[at + 5] << 8
    begin = at + HEADER_SIZE
    if begin + length <= len(block):
        flip = flipped_bit(block[begin - 1 : begin + length], stored)
        if flip >= 0:
            # The message is the type and the data, and the checksum is before the length.
            in_message = flip < 8 * (1 + length)
            flip += 8 * (begin - 1) if in_message else 8 * (at - 1 - length)
            return flip if check_fragment(_turned(block, flip), at)[0] != 0 else -1
    kind = block[at + 6]
    if FULL <= kind <= LAST:
        for bit in range(16):
            other = length ^ 1 << bit
            data = block[begin : begin + other]
            if len(data) == other and typed_crc32c(kind, data) == stored:
                return 8 * (at + 4) + bit
    return -1


def flipped_bit(message: bytes, masked: int) -> int:
    """The bit of a message and the stored checksum after it that has flipped.

    -1 if the checksum is right, or if more than one bit is wrong.  O(bits).
    """
    actual = crc32c(message)
    difference = unmask(masked) ^ actual
    if difference == 0:
        return -1
    size = 8 * len(message)
    for bit in range(32):
        if unmask(masked ^ 1 << bit) == actual:
            return size + bit
    effect = _POLYNOMIAL
    for distance in range(1, size + 1):
        if effect == difference:
            return size - distance
        effect = effect >> 1 ^ (_POLYNOMIAL if effect & 1 else 0)
    return -1


def _turned(data: bytes, bit: int) -> bytes:
    turned = bytearray(data)
    turned[bit // 8] ^= 1 << bit % 8
    return bytes(turned)

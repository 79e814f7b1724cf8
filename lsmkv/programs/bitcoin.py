r"""Bitcoin Core's chain state (the unspent outputs) and its block index.

==========================  ==================================================================
key                         value
==========================  ==================================================================
``\x0e\0obfuscate_key``     the mask, with its length before it; all other values of the chain
                            state are combined with it by XOR, over and over
``C`` transaction, output   a coin: height * 2 + (1 if mined), amount, script, all compressed
``B``                       the hash of the newest block
``b`` block                 block index: its header and its place
``f`` number                block index: a file of blocks
``l``, ``R``, ``F`` name    block index: the last file; whether it is being made again; a flag
==========================  ==================================================================

Hashes are shown as Bitcoin shows them, last byte first.
"""

from __future__ import annotations

from typing import Final

OBFUSCATE_KEY: Final = b"\x0e\x00obfuscate_key"
_HASH: Final = 32


def is_coin(key: bytes) -> bool:
    """True for the key of an output: a transaction, and a number of at most 5 bytes."""
    number = key[1 + _HASH :]
    ends = [byte < 128 for byte in number]
    return key[:1] == b"C" and len(ends) <= 5 and ends == [False] * (len(ends) - 1) + [True]


def is_block_index(key: bytes) -> bool:
    """True for the key of a block or of a file of blocks."""
    return (key[:1], len(key)) in ((b"b", 1 + _HASH), (b"f", 5))

"""Records of other programs' stores as text: whose a store is, and its decoder."""

from __future__ import annotations

import itertools
from typing import Final

import lsmkv
from lsmkv.programs import LANDMARKS, Decoder, Program, guess, program_named
from lsmkv.shards import Shards
from lsmkv.tools.text import printable

LONGEST: Final = 4096
"""Bytes of a key or value that pages decode."""
_SHOWN: Final = 300
_BYTEWISE: Final = "leveldb.BytewiseComparator"
_FIRST: Final = 100
"""Keys from the beginning of a store that belong to its sample."""


def program_of(db: lsmkv.DB | Shards, path: str = "") -> Program | None:
    """The program that wrote a store; None if it is unknown.  Reads some 100 keys."""
    if isinstance(db, Shards):
        return None
    comparator = db.options.comparator.name
    keys: list[bytes] = []
    if comparator == _BYTEWISE:
        for prefix in (*LANDMARKS, b""):
            with db.iterator(prefix=prefix, include_value=False, fill_cache=False) as found:
                keys += itertools.islice(found, 1 if prefix else _FIRST)
    return program_named(guess(keys, comparator, path))


def decoder_of(db: lsmkv.DB | Shards, program: Program) -> Decoder | None:
    """The decoder of a program for this store; None if it has none."""
    return None if program.decoder is None else program.decoder(db.get)


def meaning(text: str | None) -> str | None:
    """A decoded text for a page: printable, and cut if it is long."""
    if text is None:
        return None
    shown = printable(text[:LONGEST])
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"

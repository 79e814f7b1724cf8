"""Records of other programs' stores as text: the program of a store, and the decoding of its bytes.

The pages also use this in a browser's tab, where there are no shards and no typer.
"""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Final

import lsmkv
from lsmkv.engine.errors import Error
from lsmkv.files.programs import LANDMARKS, Decoder, Program, guess, in_hex, program_named
from lsmkv.tools.text import printable, shown

if TYPE_CHECKING:
    from lsmkv.shards import Shards

LONGEST: Final = 4096
"""Bytes of a key or value that pages decode."""
_SHOWN: Final = 300
_SPACES: Final = dict.fromkeys(map(ord, "\t\n\r"))
_FIRST: Final = 100
"""Keys from the beginning of a store that belong to its sample."""


def program_of(db: lsmkv.DB, path: str = "") -> Program | None:
    """The program that wrote a store; None if it is unknown.  Reads some 100 keys."""
    comparator = db.options.comparator.name
    keys: list[bytes] = []
    for prefix in (*LANDMARKS, b""):
        with db.iterator(prefix=prefix, include_value=False, fill_cache=False) as found:
            keys += itertools.islice(found, 1 if prefix else _FIRST)
    return program_named(guess(keys, comparator, path))


def decoder_of(db: lsmkv.DB | Shards | None, program: Program | None) -> Decoder | None:
    """The decoder of a program for this store, or for one that cannot be opened; None if it has
    none."""

    def find(start: bytes, most: int) -> list[tuple[bytes, bytes]]:
        if db is None:
            return []
        try:
            with db.iterator(start=start, fill_cache=False) as found:
                return list(itertools.islice(found, most))
        except Error:  # what is damaged has no names
            return []

    if program is None or program.decoder is None:
        return None
    return program.decoder(find)


def meaning(text: str | None) -> str | None:
    """A decoded text for a page: printable, and cut if it is long."""
    if text is None:
        return None
    line = _line(text[:LONGEST])
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"


def cut(data: bytes) -> bytes:
    """The beginning of a long value that a page decodes; an odd length stays odd, as texts in
    UTF-16 need it."""
    return data if len(data) <= LONGEST else data[: LONGEST + len(data) % 2]


class Texts:
    """The keys and values of a store as lines of text.  No bytes raise an error."""

    def __init__(self, family: str, decoder: Decoder) -> None:
        self._family = family
        self._decoder = decoder

    def key(self, key: bytes) -> str:
        """The program's text for a key; the key as ``scan`` shows it if there is none."""
        text = self._decoder.key(key)
        return shown(key, False) if text is None else _line(text)

    def value(self, key: bytes, value: bytes) -> str:
        """The text of a value; otherwise the value as ``scan`` shows it if it is text in UTF-8,
        and else its size and first bytes."""
        text = self._decoder.value(key, value)
        if text is not None:
            return _line(text)
        try:
            is_text = value.decode().translate(_SPACES).isprintable()
        except UnicodeDecodeError:
            is_text = False
        return shown(value, False) if is_text else in_hex(value)

    def json_line(self, key: bytes, value: bytes | None = None) -> bytes:
        """A record as an object, which 'import' refuses."""
        fields = {"as": self._family, "key_text": self.key(key)}
        if value is not None:
            fields["value_text"] = self.value(key, value)
        return json.dumps(fields).encode("ascii") + b"\n"


def _line(text: str) -> str:
    """A decoded text as one printable line; halves of surrogate pairs are escaped."""
    return printable(text.encode("utf-8", "backslashreplace").decode())

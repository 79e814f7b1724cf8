r"""Chromium's Local Storage and Session Storage, and so those of Electron's programs.

=======================  ==================================================================
key                      value
=======================  ==================================================================
``VERSION``              the version of the layout, as text
``META:`` origin         when the origin was last written to, and the size of its items
``METAACCESS:`` origin   when it was last read
``_`` origin ``\0`` key  Local Storage: key and value are each a byte for the encoding, and a text
``namespace-`` id ``-``  Session Storage: the number of the map of a tab and an origin, as text
origin
``map-`` number ``-``    Session Storage: an item, in UTF-16, little-endian
key
=======================  ==================================================================

The encodings of Local Storage are 0 for UTF-16, little-endian, and 1 for Latin-1.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.util.text import count
from lsmkv.files.programs.reading import Reader

_ITEM = re.compile(rb"_[a-z][a-z0-9+.-]*://[^\0]*\0[\0\1]", re.DOTALL)
_META = re.compile(rb"META(ACCESS)?:[a-z][a-z0-9+.-]*://")
_MAP = re.compile(rb"map-[0-9]+-|namespace-[0-9a-f]{8}_")
_EPOCH: Final = datetime(1601, 1, 1)
_TIME, _SIZE = 1 << 3, 2 << 3
_FACTS: Final = {
    b"META:": "facts about",
    b"METAACCESS:": "the last access to",
}


def is_local(key: bytes) -> bool:
    """True for an item of Local Storage, or the facts about its origin."""
    return _ITEM.match(key) is not None or _META.match(key) is not None


def is_session(key: bytes) -> bool:
    """True for an item of Session Storage, or the map of a tab."""
    return _MAP.match(key) is not None


def storage_text(data: bytes) -> str | None:
    r"""A text of Local Storage: its first byte is the encoding.

    >>> storage_text(b"\x01caf\xe9"), storage_text(b"\x00a\x00\xac\x20"), storage_text(b"?")
    ('café', 'a€', None)
    """
    if data[:1] == b"\x01":
        return data[1:].decode("latin-1")
    if data[:1] == b"\x00" and len(data) % 2:
        return data[1:].decode("utf-16-le", "replace")
    return None


class Storage:
    """The texts of either store: their keys differ."""

    def key(self, key: bytes) -> str | None:
        """The origin and the item's name; None for another key."""
        if key[:1] == b"_":
            origin, zero, rest = key[1:].partition(b"\x00")
            text = storage_text(rest)
            return f"{_latin(origin)}: {text}" if zero and text is not None else None
        for start, words in _FACTS.items():
            if key.startswith(start):
                return f"{words} {_latin(key[len(start) :])}"
        if key.startswith(b"map-"):
            number, _, name = key[len(b"map-") :].decode("utf-8", "replace").partition("-")
            return f"map {number}: {name}" if name else f"map {number}"
        return "the version of this format" if key == b"VERSION" else None

    def value(self, key: bytes, value: bytes) -> str | None:
        """The text of an item; None for a value without one."""
        if key == b"VERSION":
            return _latin(value)
        if key.startswith(tuple(_FACTS)):
            return _facts(value)
        if key.startswith(b"map-") and len(value) % 2 == 0:
            return value.decode("utf-16-le", "replace")
        return storage_text(value) if key[:1] == b"_" else None


def _facts(value: bytes) -> str | None:
    """A protocol buffer: field 1 is a time in microseconds since 1601, field 2 a size in bytes."""
    reader = Reader(value)
    found: dict[int, int] = {}
    try:
        while not reader.at_end:
            field = reader.varint()
            found[field] = reader.varint()
        when = _EPOCH + timedelta(microseconds=found.get(_TIME, 0))
    except (CorruptionError, OverflowError):
        return None
    size = f", {count(found[_SIZE], 'byte')}" if _SIZE in found else ""
    return f"{when:%Y-%m-%d %H:%M:%S} UTC{size}"


def _latin(data: bytes) -> str:
    return data.decode("latin-1")

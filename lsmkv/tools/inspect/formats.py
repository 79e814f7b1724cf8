r"""Programs whose stores are recognized, and what their keys and values mean.

=============================  ================================================================
Chromium's IndexedDB           keys under the order ``idb_cmp1``: see :mod:`lsmkv.indexeddb`
Chromium's Local Storage       ``_`` origin ``\0`` key; ``META:`` origin; ``VERSION``
Chromium's Session Storage     ``namespace-`` id ``-`` origin; ``map-`` number ``-`` key
Minecraft's Bedrock edition    chunks: x and z, a dimension, a tag, and the number of a subchunk
Bitcoin Core's chain state     coins; its values are masked by a key that the store contains
geth, an Ethereum node         named by the keys of its chain's head
=============================  ================================================================

Texts of Local Storage begin with their encoding: 0 for UTF-16, 1 for Latin-1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from lsmkv.indexeddb import IndexedDBComparator
from lsmkv.tools.text import printable

LONGEST: Final = 4096
"""Bytes of a key or value that are decoded."""
_DIMENSIONS: Final = {1: "the Nether", 2: "the End"}
_CHUNK_TAGS: Final = {
    43: "heights and biomes (3D)",
    44: "version",
    45: "heights and biomes (2D)",
    47: "blocks of subchunk",
    49: "block entities",
    50: "entities",
    51: "pending ticks",
    53: "biome states",
    54: "finalized state",
    56: "border blocks",
    57: "places for spawns",
    58: "random ticks",
    59: "checksums",
    61: "hash of the metadata",
    63: "blending data",
    64: "version of the actors' list",
    118: "version, as old games wrote it",
}
_BEDROCK: Final = (b"~local_player", b"BiomeData", b"Overworld", b"AutonomousEntities")


class Format(NamedTuple):
    """A program's way to store its data."""

    name: str
    words: str
    """What the store contains, as a sentence."""
    key: Callable[[bytes], str | None]
    """The meaning of a key; None if it is not known."""
    value: Callable[[bytes, bytes], str | None]
    """The text of a value, by its key; None if it has none."""


def recognize(comparator: str | None, has: Callable[[bytes], bool]) -> Format | None:
    """The format of a store, by its order of keys and by keys that it has; None if unknown.

    ``has`` says whether a key begins with these bytes.

    >>> recognize("leveldb.BytewiseComparator", lambda start: start == b"META:https:").name
    "Chromium's Local Storage"
    """
    if comparator == IndexedDBComparator.name:
        return INDEXED_DB
    for found, starts in _BY_KEYS:
        if any(has(start) for start in starts):
            return found
    return None


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


def _storage_key(key: bytes) -> str | None:
    if key[:1] == b"_":
        origin, zero, rest = key[1:].partition(b"\x00")
        text = storage_text(rest)
        if zero and text is not None:
            return f"{origin.decode('latin-1')}: {text}"
    for start, words in ((b"META:", "facts about"), (b"METAACCESS:", "the last access to")):
        if key.startswith(start):
            return f"{words} {key[len(start) :].decode('latin-1')}"
    return "the version of this format" if key == b"VERSION" else None


def _storage_value(key: bytes, value: bytes) -> str | None:
    if key == b"VERSION":
        return value.decode("latin-1")
    return storage_text(value) if key[:1] == b"_" else None


def _session_key(key: bytes) -> str | None:
    if key.startswith(b"map-"):
        number, _, name = key[len(b"map-") :].decode("utf-8", "replace").partition("-")
        return f"map {number}: {name}" if name else f"map {number}"
    return None


def _session_value(key: bytes, value: bytes) -> str | None:
    if key.startswith(b"map-") and len(value) % 2 == 0:
        return value.decode("utf-16-le", "replace")
    return None


def chunk_key(key: bytes) -> str | None:
    r"""The meaning of a chunk's key in a Bedrock world.

    >>> chunk_key(b"\x03\x00\x00\x00\xff\xff\xff\xff\x2f\x01")
    'chunk 3, -1: blocks of subchunk 1'
    >>> chunk_key(b"\x03\x00\x00\x00\xff\xff\xff\xff\x01\x00\x00\x00\x2c")
    'chunk 3, -1 in the Nether: version'
    >>> chunk_key(b"~local_player")
    """
    if key.startswith(_BEDROCK):
        return None
    has_dimension = len(key) in (13, 14)
    if not has_dimension and len(key) not in (9, 10):
        return None
    at = 12 if has_dimension else 8
    x, z = (int.from_bytes(key[i : i + 4], "little", signed=True) for i in (0, 4))
    dimension = int.from_bytes(key[8:12], "little") if has_dimension else 0
    what = _CHUNK_TAGS.get(key[at])
    if what is None or (has_dimension and dimension not in _DIMENSIONS):
        return None
    if key[at + 1 :]:
        what += f" {int.from_bytes(key[at + 1 :], 'little', signed=True)}"
    where = f" in {_DIMENSIONS[dimension]}" if has_dimension else ""
    return f"chunk {x}, {z}{where}: {what}"


def _no_key(_: bytes) -> str | None:
    return None


def _no_value(_key: bytes, _value: bytes) -> str | None:
    return None


INDEXED_DB: Final = Format(
    "Chromium's IndexedDB",
    "The databases of one web site. Keys are decoded; values are those of the browser's own"
    " serialization.",
    _no_key,  # the source decodes them everywhere
    _no_value,
)
_BY_KEYS: Final = (
    (
        Format(
            "Chromium's Local Storage",
            "What web sites keep in localStorage. Keys and values are decoded.",
            _storage_key,
            _storage_value,
        ),
        (b"META:http", b"META:https:", b"META:chrome", b"METAACCESS:"),
    ),
    (
        Format(
            "Chromium's Session Storage",
            "What web sites keep in sessionStorage, for each tab. Keys and values are decoded.",
            _session_key,
            _session_value,
        ),
        (b"namespace-",),
    ),
    (
        Format(
            "a world of Minecraft's Bedrock edition",
            "Chunks by their coordinates, entities and players. The keys of chunks are decoded;"
            " values are in the game's own formats.",
            chunk_key,
            _no_value,
        ),
        _BEDROCK,
    ),
    (
        Format(
            "Bitcoin Core's chain state",
            "The unspent coins. Values are masked by the key that the store itself contains.",
            _no_key,
            _no_value,
        ),
        (b"\x0e\x00obfuscate_key",),
    ),
    (
        Format("geth's chain data", "An Ethereum node's blocks and state.", _no_key, _no_value),
        (b"LastHeader", b"LastBlock"),
    ),
)


def meaning(text: str | None) -> str | None:
    """A decoded text for a page: printable, and cut if it is long."""
    if text is None:
        return None
    shown = printable(text[:LONGEST])
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"


_SHOWN: Final = 300

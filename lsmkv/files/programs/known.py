"""The programs whose stores are recognized, and how.

Chromium's IndexedDB is known by its order of keys.  The others are known by landmarks (keys that
no other program writes), by most keys having the program's form, or by the names of the
directories, in this order.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, Protocol

from lsmkv.engine.indexeddb import IndexedDBComparator, decode_key
from lsmkv.files.programs.bedrock import WORDS, Bedrock, is_bedrock
from lsmkv.files.programs.bitcoin import OBFUSCATE_KEY, Bitcoin, is_block_index, is_coin
from lsmkv.files.programs.indexed_db import IndexedDB
from lsmkv.files.programs.reading import Find
from lsmkv.files.programs.storage import Storage, is_local, is_session

_BYTEWISE: Final = "leveldb.BytewiseComparator"
_GETH: Final = (b"LastHeader", b"LastBlock", b"LastFast")
_MOST: Final = 1000
"""Keys that a guess looks at."""


class Decoder(Protocol):
    """Gives keys and values of one store as text; None for bytes that it cannot read."""

    def key(self, key: bytes, /) -> str | None:
        """The meaning of a key."""

    def value(self, key: bytes, value: bytes, /) -> str | None:
        """The text of a value, by its key."""


class Program(NamedTuple):
    """A program's way to store its data."""

    name: str
    words: str
    """The content of the store, as a sentence."""
    landmarks: tuple[bytes, ...]
    """A key that begins with one of these, and has the program's form, is enough."""
    is_key: Callable[[bytes], bool]
    """True for a key of the program's form; other programs may also write such keys."""
    family: str
    """The name of its decoders on the command line; empty if it has none."""
    place: str
    """The end of the directory's path, in lower case and with slashes."""
    decoder: Callable[[Find], Decoder] | None = None
    """Makes a decoder, from a function that looks keys up in the store."""


def _is_indexed_db(key: bytes) -> bool:
    found = decode_key(key[:4096])
    return not found.rest and found.what not in ("unreadable", "unknown", "lower bound")


INDEXED_DB: Final = Program(
    "Chromium's IndexedDB",
    "The databases of one web site. Keys and values are decoded.",
    (),
    _is_indexed_db,
    "chromium",
    ".indexeddb.leveldb",
    IndexedDB,
)
PROGRAMS: Final = (
    INDEXED_DB,
    Program(
        "Chromium's Local Storage",
        "What web sites keep in localStorage. Keys and values are decoded.",
        (
            *(b"META:http", b"META:chrome", b"META:file:", b"METAACCESS:"),
            *(b"_http://", b"_https://", b"_chrome-extension://", b"_file://"),
        ),
        is_local,
        "chromium",
        "local storage/leveldb",
        lambda _: Storage(),
    ),
    Program(
        "Chromium's Session Storage",
        "What web sites keep in sessionStorage, for each tab. Keys and values are decoded.",
        (b"namespace-",),
        is_session,
        "chromium",
        "session storage",
        lambda _: Storage(),
    ),
    Program(
        "a world of Minecraft's Bedrock edition",
        "Chunks by their coordinates, entities and players. Keys and NBT are decoded; blocks are"
        " shown by their size.",
        WORDS,
        is_bedrock,
        "bedrock",
        "worlds/*/db",
        lambda _: Bedrock(),
    ),
    Program(
        "Bitcoin Core's chain state",
        "The unspent coins. Values are unmasked with the key that the store itself contains.",
        (OBFUSCATE_KEY,),
        lambda key: key == OBFUSCATE_KEY or is_coin(key),
        "bitcoin",
        "/chainstate",
        Bitcoin,
    ),
    Program(
        "Bitcoin Core's block index",
        "Where each block is.",
        (),
        is_block_index,
        "",
        "blocks/index",
    ),
    Program(
        "geth's chain data",
        "An Ethereum node's blocks and state.",
        _GETH,
        _GETH.__contains__,
        "",
        "geth/chaindata",
    ),
)
LANDMARKS: Final = tuple(start for program in PROGRAMS for start in program.landmarks)
"""Beginnings of keys that name a program: a sample has a key for each that the store has."""


def guess(keys: Iterable[bytes], comparator: str | None = None, path: str = "") -> str:
    r"""The name of the program whose store this is, as in :data:`PROGRAMS`; ``""`` if unknown.

    ``keys`` are some user keys of the store, best of all with one for each of :data:`LANDMARKS`; at
    most 1,000 are read.  ``comparator`` is the name in the MANIFEST, None if that is lost.
    ``path`` is looked at only if the keys decide nothing, and it need not exist.  Raises nothing.

    >>> guess([b"VERSION", b"META:https://a.org"], "leveldb.BytewiseComparator")
    "Chromium's Local Storage"
    >>> guess([], None, "Default/IndexedDB/https_a.org_0.indexeddb.leveldb")
    "Chromium's IndexedDB"
    >>> guess([b"ant", b"bee"])
    ''
    """
    if comparator == IndexedDBComparator.name:
        return INDEXED_DB.name
    if comparator not in (None, _BYTEWISE):
        return ""
    possible = [one for one in PROGRAMS if one is not INDEXED_DB or comparator is None]
    sample = list(itertools.islice(keys, _MOST))
    for program in possible:
        if any(key.startswith(program.landmarks) and program.is_key(key) for key in sample):
            return program.name
    for program in possible:
        if sample and sum(map(program.is_key, sample)) * 10 >= len(sample) * 9:
            return program.name
    place = path.replace("\\", "/").rstrip("/").lower()
    for program in possible:
        if _ends(place, program.place):
            return program.name
    return ""


def _ends(path: str, place: str) -> bool:
    """True if a path ends like this; ``*`` stands for any one folder."""
    begin, star, end = place.partition("/*/")
    if not star:
        return path.endswith(place) or f"/{path}".endswith(place)
    parts = path.split("/")
    return "/".join(parts[:-2]).endswith(begin) and parts[-1] == end


def program_named(name: str) -> Program | None:
    """The program that :func:`guess` has named; None for ``""``."""
    return next((one for one in PROGRAMS if one.name == name), None)

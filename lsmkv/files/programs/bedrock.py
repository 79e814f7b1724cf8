r"""The world of Minecraft's Bedrock edition: chunks, entities, players.

===================================  ==========================================================
key                                  fields
===================================  ==========================================================
chunk                                x, z; a dimension if it is not the Overworld; a tag byte;
                                     for blocks (tag 47), the number of the subchunk, a byte
``digp`` chunk                       the entities of a chunk: their ids, 8 bytes each
``actorprefix`` id                   an entity
a word                               ``~local_player``, ``map_`` id, ``VILLAGE_`` id, ...
===================================  ==========================================================

Numbers have 32 bits and are little-endian.  Players, entities, block entities and words have values
in NBT: :mod:`lsmkv.programs.nbt`.  Blocks and biomes are shown by their size alone.
"""

from __future__ import annotations

from typing import Final

from lsmkv.engine.util.text import count
from lsmkv.files.programs.nbt import nbt_text
from lsmkv.files.programs.reading import in_hex

_FARTHEST: Final = 1 << 27
"""No chunk has a larger coordinate: blocks have 32 bits.  Text in these places is larger."""
_DIMENSIONS: Final = {1: "the Nether", 2: "the End"}
_BLOCKS: Final = 47
_BIOMES_3D: Final = 43
_LOWEST: Final = -64
"""The bottom of the Overworld, from which heights are counted where biomes have 3 dimensions."""
_NUMBERS: Final = (44, 54, 64, 118)
_HEIGHTS: Final = (_BIOMES_3D, 45)
_ENTITIES: Final = b"digp"
_ENTITY: Final = b"actorprefix"
_TAGS: Final = {
    _BIOMES_3D: "heights and biomes (3D)",
    44: "version",
    45: "heights and biomes (2D)",
    46: "heights and biomes (2D), as old games wrote them",
    _BLOCKS: "blocks of subchunk",
    48: "terrain, as old games wrote it",
    49: "block entities",
    50: "entities",
    51: "pending ticks",
    52: "extra data of blocks, as old games wrote it",
    53: "biome states",
    54: "finalized state",
    55: "conversion data",
    56: "border blocks",
    57: "places for spawns",
    58: "random ticks",
    59: "checksums",
    60: "seed of the generator",
    61: "hash of the metadata",
    62: "generated before the caves update",
    63: "blending data",
    64: "version of the actors' list",
    118: "version, as old games wrote it",
}
WORDS: Final = (
    *(b"~local_player", b"BiomeData", b"Overworld", b"AutonomousEntities", b"schedulerWT"),
    *(b"LevelChunkMetaDataDictionary", b"BiomeIdsTable"),
)
"""Keys that no other program writes."""


def is_bedrock(key: bytes) -> bool:
    """True for the key of a chunk or an entity, or a word that no other program uses."""
    return key in WORDS or Bedrock().key(key) is not None


class Bedrock:
    """The texts of a world."""

    def key(self, key: bytes) -> str | None:
        """The chunk or entity, and the kind of record; None for a word, and for another key."""
        if key.startswith(_ENTITIES) and len(key) in (12, 16):
            place = _place(key[len(_ENTITIES) :])
            return f"{place}: ids of its entities" if place else None
        if key.startswith(_ENTITY) and len(key) == len(_ENTITY) + 8:
            return f"entity {key[len(_ENTITY) :].hex()}"
        return chunk_key(key)

    def value(self, key: bytes, value: bytes) -> str | None:
        """A compound of NBT, a number, or some facts about blocks; None for another value."""
        tag = tag_of(key) if chunk_key(key) else None
        if key.startswith(_ENTITIES) and value and len(value) % 8 == 0:
            return ", ".join(value[at : at + 8].hex() for at in range(0, len(value), 8))
        if tag in _NUMBERS and 0 < len(value) <= 4:
            return str(int.from_bytes(value, "little"))
        if tag in _HEIGHTS and len(value) >= 512:
            bottom = _LOWEST if tag == _BIOMES_3D and len(key) == 9 else 0
            tops = [int.from_bytes(value[at : at + 2], "little") for at in range(0, 512, 2)]
            return f"heights {bottom + min(tops)} to {bottom + max(tops)}, {in_hex(value[512:])}"
        if tag == _BLOCKS and value:
            layers = (
                f", {count(value[1], 'layer')}" if value[0] in (8, 9) and len(value) > 1 else ""
            )
            return f"version {value[0]}{layers}, {in_hex(value)}"
        return nbt_text(value)


def chunk_key(key: bytes) -> str | None:
    r"""The meaning of a chunk's key.

    >>> chunk_key(b"\x03\x00\x00\x00\xff\xff\xff\xff\x2f\x01")
    'chunk 3, -1: blocks of subchunk 1'
    >>> chunk_key(b"\x03\x00\x00\x00\xff\xff\xff\xff\x01\x00\x00\x00\x2c")
    'chunk 3, -1 in the Nether: version'
    >>> chunk_key(b"~local_player")
    """
    tag = tag_of(key)
    if tag not in _TAGS:
        return None
    place = _place(key[:12] if len(key) > 10 else key[:8])
    if place is None:
        return None
    number = f" {int.from_bytes(key[-1:], signed=True)}" if tag == _BLOCKS else ""
    return f"{place}: {_TAGS[tag]}{number}"


def tag_of(key: bytes) -> int | None:
    """The tag byte of a chunk's key; None if its length is not that of one."""
    if len(key) in (9, 13):
        return key[-1] if key[-1] != _BLOCKS else None
    if len(key) in (10, 14) and key[-2] == _BLOCKS:
        return _BLOCKS
    return None


def _place(data: bytes) -> str | None:
    """The chunk of 8 or 12 bytes; None for one that no world has."""
    x, z, *dimension = (
        int.from_bytes(data[at : at + 4], "little", signed=True) for at in range(0, len(data), 4)
    )
    if not (-_FARTHEST <= x < _FARTHEST and -_FARTHEST <= z < _FARTHEST):
        return None
    if not dimension:
        return f"chunk {x}, {z}"
    if dimension[0] not in _DIMENSIONS:
        return None
    return f"chunk {x}, {z} in {_DIMENSIONS[dimension[0]]}"

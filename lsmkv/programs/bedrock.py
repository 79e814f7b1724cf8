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

_FARTHEST: Final = 1 << 27
"""No chunk has a larger coordinate: blocks have 32 bits.  Text in these places is larger."""
_DIMENSIONS: Final = {1: "the Nether", 2: "the End"}
_BLOCKS: Final = 47
_TAGS: Final = {
    43: "heights and biomes (3D)",
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
    *(b"~local_player", b"BiomeData", b"Overworld", b"AutonomousEntities", b"actorprefix"),
    *(b"player_server_", b"LevelChunkMetaDataDictionary", b"BiomeIdsTable", b"schedulerWT"),
)
"""Beginnings of keys that no other program writes."""


def is_bedrock(key: bytes) -> bool:
    """True for the key of a chunk, an entity, or a word that the game uses."""
    return chunk_key(key) is not None or key.startswith((b"digp", b"actorprefix", *WORDS))


class Bedrock:
    """The texts of a world."""

    def key(self, key: bytes) -> str | None:
        """The chunk and the kind of record; None for another key."""
        return chunk_key(key)

    def value(self, _key: bytes, _value: bytes) -> str | None:
        """None."""
        return None


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

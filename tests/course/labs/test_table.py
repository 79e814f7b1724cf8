"""Lab 6: planted mistakes are named."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from labs import Mistake, assert_caught, reference

from lsmkv.course.labs.block import built as block_of
from lsmkv.course.labs.table import LAB, MAGIC, blocks_in, built, contents_of
from lsmkv.course.running import load
from lsmkv.format.keys import unpack
from lsmkv.table.block import Block
from lsmkv.table.format import FOOTER_SIZE, BlockHandle, Footer
from lsmkv.util.checksum import crc32c, masked_crc32c

RIGHT = load(reference(LAB))
Entries = Sequence[tuple[bytes, bytes]]
Read = Callable[[int, int], bytes]


def entries_of(contents: bytes) -> list[tuple[bytes, bytes]]:
    return list(zip(*Block(contents).entries(), strict=True))


def versions(read: Read, size: int, user_key: bytes) -> list[tuple[int, bytes]]:
    """Kinds and values of a key's versions, the newest first."""
    data = read(0, size)
    found: list[tuple[int, bytes]] = []
    for name, handle in blocks_in(data)[:-2]:
        assert name.startswith("data")
        for key, value in entries_of(contents_of(data, handle)):
            if key[:-8] == user_key:
                found.append((key[-8], value))
    return found


def sealed_with(checksum: Callable[[bytes], int]) -> Callable[[bytes], bytes]:
    """A seal_block whose checksum of the contents is another one."""
    return lambda contents: contents + b"\0" + checksum(contents).to_bytes(4, "little")


def with_checksum_turned(contents: bytes) -> bytes:
    stored: bytes = RIGHT.seal_block(contents)
    return stored[:-4] + stored[-4:][::-1]


def unsealed_without_a_look(stored: bytes) -> bytes:
    if len(stored) < 5:
        raise ValueError
    return stored[:-5]


def unsealed_of_any_type(stored: bytes) -> bytes:
    if len(stored) < 5 or masked_crc32c(stored[:-4]) != int.from_bytes(stored[-4:], "little"):
        raise ValueError
    return stored[:-5]


def raised_by_one(last: bytes, first: bytes) -> bytes:
    """Between ant and bee, b: it is below bee, but LevelDB does not shorten to it."""
    a, b = unpack(last)[0], unpack(first)[0]
    if len(a) > 1 and a[:1] < b[:1] and len(b) > 1:
        return bytes([a[0] + 1]) + b"\x01" + b"\xff" * 7
    key: bytes = RIGHT.separator(last, first)
    return key


def replaced_at_any_length(last: bytes, first: bytes) -> bytes:
    key: bytes = RIGHT.separator(last, first)
    if key == last == b"ant" + last[-8:] and first.startswith(b"anz"):
        return b"anu\x01" + b"\xff" * 7
    return key


def successor_raised_at_the_first(last: bytes) -> bytes:
    user_key = unpack(last)[0]
    if user_key[:1] == b"\xff":
        return last
    key: bytes = RIGHT.successor(last)
    return key


def footer_as_it_comes(metaindex: bytes, index: bytes) -> bytes:
    return metaindex + index + MAGIC


def with_blocks(data: bytes, change: Callable[[str, bytes], bytes]) -> bytes:
    """The table of the same blocks, each of them changed; data blocks stay where they are."""
    made = bytearray()
    places: list[BlockHandle] = []
    for name, handle in blocks_in(data):
        contents = change(name, contents_of(data, handle))
        places.append(BlockHandle(len(made), len(contents)))
        made += RIGHT.seal_block(contents)
    return bytes(made) + Footer(places[-2], places[-1]).encode()


def with_index_of_last_keys(entries: Entries, block_size: int) -> bytes:
    """Whole keys in the index."""
    data = built(list(entries), block_size)

    def change(name: str, contents: bytes) -> bytes:
        if name != "index":
            return contents
        blocks = [handle for name, handle in blocks_in(data) if name.startswith("data")]
        keys = [entries_of(contents_of(data, handle))[-1][0] for handle in blocks]
        values = [handle.encode() for handle in blocks]
        return block_of(list(zip(keys, values, strict=True)), 1)

    return with_blocks(data, change)


def with_shared_keys_in_the_index(entries: Entries, block_size: int) -> bytes:
    def change(name: str, contents: bytes) -> bytes:
        return block_of(entries_of(contents), 16) if name == "index" else contents

    return with_blocks(built(list(entries), block_size), change)


def with_trailers_in_sizes(entries: Entries, block_size: int) -> bytes:
    def change(name: str, contents: bytes) -> bytes:
        if name != "index":
            return contents
        found = [(key, BlockHandle.decode(value)[0]) for key, value in entries_of(contents)]
        longer = [(key, BlockHandle(one.offset, one.size + 5).encode()) for key, one in found]
        return block_of(longer, 1)

    return with_blocks(built(list(entries), block_size), change)


def without_a_last_index_entry(entries: Entries, block_size: int) -> bytes:
    def change(name: str, contents: bytes) -> bytes:
        return block_of(entries_of(contents)[:-1], 1) if name == "index" else contents

    return with_blocks(built(list(entries), block_size), change)


def handles_turned(entries: Entries, block_size: int) -> bytes:
    data = built(list(entries), block_size)
    footer = Footer.decode(data[-FOOTER_SIZE:])
    return data[:-FOOTER_SIZE] + Footer(footer.index, footer.metaindex).encode()


def got(read: Read, size: int, user_key: bytes) -> bytes | None:
    value: bytes | None = RIGHT.get(read, size, user_key)
    return value


def deleted_is_empty(read: Read, size: int, user_key: bytes) -> bytes | None:
    found = versions(read, size, user_key)
    return found[0][1] if found else None


def oldest(read: Read, size: int, user_key: bytes) -> bytes | None:
    found = versions(read, size, user_key)
    return found[-1][1] if found and found[0][0] == found[-1][0] == 1 else None


def deletion_skipped(read: Read, size: int, user_key: bytes) -> bytes | None:
    return next((value for kind, value in versions(read, size, user_key) if kind == 1), None)


def not_below(read: Read, size: int, user_key: bytes) -> bytes | None:
    """The first entry that is not below the key, whichever key it is of."""
    data = read(0, size)
    for _, handle in blocks_in(data)[:-2]:
        for key, value in entries_of(contents_of(data, handle)):
            if key[:-8] >= user_key:
                return value if key[-8] == 1 else None
    return None


def by_internal_bytes(read: Read, size: int, user_key: bytes) -> bytes | None:
    """The index is searched by its keys as they are: tags sort as if they were letters."""
    data = read(0, size)
    index = entries_of(contents_of(data, blocks_in(data)[-1][1]))
    handle = next((value for key, value in index if key >= user_key + b"\x01" + b"\xff" * 7), None)
    if handle is None:
        return None
    found = entries_of(contents_of(data, BlockHandle.decode(handle)[0]))
    of_key = [(key, value) for key, value in found if key[:-8] == user_key]
    return of_key[0][1] if of_key and of_key[0][0][-8] == 1 else None


def without_a_look_at_the_size(read: Read, size: int, user_key: bytes) -> bytes | None:
    read(size - FOOTER_SIZE, FOOTER_SIZE)
    return got(read, size, user_key)


def reads_all(read: Read, size: int, user_key: bytes) -> bytes | None:
    data = read(0, size)
    return got(lambda offset, length: data[offset : offset + length], size, user_key)


def reads_block_by_block(read: Read, size: int, user_key: bytes) -> bytes | None:
    data = read(0, size)
    for name, handle in blocks_in(data):
        if name.startswith("data"):
            RIGHT.unseal_block(data[handle.offset : handle.offset + handle.size + 5])
    return got(read, size, user_key)


def without_magic(read: Read, size: int, user_key: bytes) -> bytes | None:
    def whole(offset: int, length: int) -> bytes:
        data = read(offset, length)
        return data[:-8] + MAGIC if length == FOOTER_SIZE else data

    return got(whole, size, user_key)


def believes_blocks(read: Read, size: int, user_key: bytes) -> bytes | None:
    def whole(offset: int, length: int) -> bytes:
        data = read(offset, length)
        sealed: bytes = data if length == FOOTER_SIZE else RIGHT.seal_block(data[:-5])
        return sealed

    return got(whole, size, user_key)


def first_key_whole(entries: Entries, block_size: int) -> bytes:
    """Without a key of the table of the last check."""
    return built([entry for entry in entries if entry[0][:-8] != b"user:00297"], block_size)


def with_a_wrong_index(entries: Entries, block_size: int) -> bytes:
    """In the table of the last check, an index key is not above its block's last key."""

    def change(name: str, contents: bytes) -> bytes:
        found = entries_of(contents)
        if name != "index" or len(found) < 10:
            return contents
        before = found[3][0]
        return block_of(
            [*found[:4], (before[:-8] + b"\0" + before[-8:], found[4][1]), *found[5:]], 1
        )

    return with_blocks(built(list(entries), block_size), change)


def one_key_not_found(read: Read, size: int, user_key: bytes) -> bytes | None:
    return None if user_key == b"user:00300" else got(read, size, user_key)


MISTAKES = (
    Mistake(
        "not masked",
        "seal_block",
        sealed_with(lambda contents: crc32c(contents + b"\0")),
        "sealing a block",
        "That is the CRC itself: mask it",
    ),
    Mistake(
        "the type left out",
        "seal_block",
        sealed_with(masked_crc32c),
        "sealing a block",
        "include the type byte",
    ),
    Mistake(
        "the type first",
        "seal_block",
        sealed_with(lambda contents: masked_crc32c(b"\0" + contents)),
        "sealing a block",
        "not before them as in the log",
    ),
    Mistake(
        "a checksum turned",
        "seal_block",
        with_checksum_turned,
        "sealing a block",
        "stored little-endian",
    ),
    Mistake(
        "no type",
        "seal_block",
        lambda contents: contents + masked_crc32c(contents).to_bytes(4, "little"),
        "sealing a block",
        "is the type, 0",
    ),
    Mistake(
        "no look at the checksum",
        "unseal_block",
        unsealed_without_a_look,
        "opening a block",
        "whose byte 0 is damaged (part of the contents) must raise ValueError",
    ),
    Mistake(
        "no look at the type",
        "unseal_block",
        unsealed_of_any_type,
        "opening a block",
        "Type 1 is compressed by Snappy",
    ),
    Mistake(
        "the size with the trailer",
        "block_handle",
        lambda offset, size: RIGHT.block_handle(offset, size + 5),
        "block handles",
        "without the trailer",
    ),
    Mistake(
        "size first",
        "block_handle",
        lambda offset, size: RIGHT.block_handle(size, offset),
        "block handles",
        "of the offset",
    ),
    Mistake(
        "a user key in the index",
        "separator",
        lambda last, first: RIGHT.separator(last, first)[:-8],
        "keys between blocks",
        "That is a user key",
    ),
    Mistake(
        "the old tag",
        "separator",
        lambda last, first: RIGHT.separator(last, first)[:-8] + last[-8:],
        "keys between blocks",
        "The tag of a shortened key has the largest sequence",
    ),
    Mistake(
        "raised up to the next key",
        "separator",
        raised_by_one,
        "keys between blocks",
        "which is not below the b of bee",
    ),
    Mistake(
        "no shorter",
        "separator",
        replaced_at_any_length,
        "keys between blocks",
        "anu would be no shorter than ant",
    ),
    Mistake(
        "ff not passed over",
        "successor",
        successor_raised_at_the_first,
        "the last index key",
        "the first other byte is",
    ),
    Mistake(
        "the last key itself",
        "successor",
        lambda last: last,
        "the last index key",
        "The first byte is raised by one",
    ),
    Mistake(
        "not filled up", "footer", footer_as_it_comes, "the footer", "is zeros, byte 0: expected 00"
    ),
    Mistake(
        "index first",
        "footer",
        lambda metaindex, index: RIGHT.footer(index, metaindex),
        "the footer",
        "is handle of the metaindex",
    ),
    Mistake(
        "magic turned",
        "footer",
        lambda metaindex, index: RIGHT.footer(metaindex, index)[:40] + MAGIC[::-1],
        "the footer",
        "is magic number, byte 0",
    ),
    Mistake(
        "whole keys in the index",
        "build_table",
        with_index_of_last_keys,
        "the bytes of a table",
        "index: entry 0: unshared length, 9",
    ),
    Mistake(
        "shared keys in the index",
        "build_table",
        with_shared_keys_in_the_index,
        "the bytes of a table",
        "index:",
    ),
    Mistake(
        "trailers counted",
        "build_table",
        with_trailers_in_sizes,
        "the bytes of a table",
        "index: entry 0: handle, byte 1",
    ),
    Mistake(
        "the last block not in the index",
        "build_table",
        without_a_last_index_entry,
        "the bytes of a table",
        "index: entry 0",
    ),
    Mistake(
        "blocks too large",
        "build_table",
        lambda entries, block_size: built(list(entries), block_size + 25),
        "the bytes of a table",
        "A data block ends with the entry that brings its size estimate to block_size",
    ),
    Mistake(
        "handles turned",
        "build_table",
        handles_turned,
        "the bytes of a table",
        "footer: handle of the metaindex",
    ),
    Mistake(
        "a deletion is empty",
        "get",
        deleted_is_empty,
        "reading a table",
        "The newest version is a deletion",
    ),
    Mistake(
        "below a deletion",
        "get",
        deletion_skipped,
        "reading a table",
        "The newest version is a deletion",
    ),
    Mistake("the oldest", "get", oldest, "reading a table", "the newest first"),
    Mistake("another key", "get", not_below, "reading a table", "The table does not hold this key"),
    Mistake(
        "tags compared as keys",
        "get",
        by_internal_bytes,
        "reading a table",
        "first index key whose user key is not below",
    ),
    Mistake(
        "the whole table", "get", reads_all, "the reads of a get", "Footer, index, and the one data"
    ),
    Mistake("no magic", "get", without_magic, "damaged tables", "the magic number is damaged"),
    Mistake(
        "no look at the size",
        "get",
        without_a_look_at_the_size,
        "damaged tables",
        "get reads 48 bytes at -48 of a table of 0 bytes",
    ),
    Mistake("blocks believed", "get", believes_blocks, "damaged tables", "the index is damaged"),
    Mistake(
        "all blocks read",
        "get",
        reads_block_by_block,
        "damaged tables",
        "no other data block should be read",
    ),
    Mistake(
        "a key left out",
        "build_table",
        first_key_whole,
        "in the real engine",
        "for the key b'user:00297'",
    ),
    Mistake(
        "an index key too low",
        "build_table",
        with_a_wrong_index,
        "in the real engine",
        "A store whose only table is yours: lsmkv finds it damaged",
    ),
    Mistake(
        "a key not found",
        "get",
        one_key_not_found,
        "in the real engine",
        "Your get reads a table of a store: None for the key b'user:00300'",
    ),
)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_named(mistake: Mistake) -> None:
    assert_caught(LAB, mistake)


def test_each_check_catches_a_mistake() -> None:
    assert {mistake.check for mistake in MISTAKES} == {check.name for check in LAB.checks}

"""Lab 6: planted mistakes are named."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from labs import Mistake, Planted, assert_caught, load, mistakes, reference

from lsmkv.course.labs.block import built as block_of
from lsmkv.course.labs.table import LAB, MAGIC, blocks_in, built, contents_of
from lsmkv.engine.format.keys import unpack
from lsmkv.engine.table.block import Block
from lsmkv.engine.table.format import FOOTER_SIZE, BlockHandle, Footer
from lsmkv.engine.util.checksum import crc32c, masked_crc32c

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


MISTAKES: Planted = {
    ("seal_block", "sealing a block"): [
        (
            "not masked",
            sealed_with(lambda contents: crc32c(contents + b"\0")),
            "That is the CRC itself: mask it",
        ),
        ("the type left out", sealed_with(masked_crc32c), "include the type byte"),
        (
            "the type first",
            sealed_with(lambda contents: masked_crc32c(b"\0" + contents)),
            "not before them as in the log",
        ),
        ("a checksum turned", with_checksum_turned, "stored little-endian"),
        (
            "no type",
            lambda contents: contents + masked_crc32c(contents).to_bytes(4, "little"),
            "is the type, 0",
        ),
    ],
    ("unseal_block", "opening a block"): [
        (
            "no look at the checksum",
            unsealed_without_a_look,
            "whose byte 0 is damaged (part of the contents) must raise ValueError",
        ),
        ("no look at the type", unsealed_of_any_type, "Type 1 is compressed by Snappy"),
    ],
    ("block_handle", "block handles"): [
        (
            "the size with the trailer",
            lambda offset, size: RIGHT.block_handle(offset, size + 5),
            "without the trailer",
        ),
        ("size first", lambda offset, size: RIGHT.block_handle(size, offset), "of the offset"),
    ],
    ("separator", "keys between blocks"): [
        (
            "a user key in the index",
            lambda last, first: RIGHT.separator(last, first)[:-8],
            "That is a user key",
        ),
        (
            "the old tag",
            lambda last, first: RIGHT.separator(last, first)[:-8] + last[-8:],
            "The tag of a shortened key has the largest sequence",
        ),
        ("raised up to the next key", raised_by_one, "which is not below the b of bee"),
        ("no shorter", replaced_at_any_length, "anu would be no shorter than ant"),
    ],
    ("successor", "the last index key"): [
        ("ff not passed over", successor_raised_at_the_first, "the first other byte is"),
        ("the last key itself", lambda last: last, "The first byte is raised by one"),
    ],
    ("footer", "the footer"): [
        ("not filled up", footer_as_it_comes, "is zeros, byte 0: expected 00"),
        (
            "index first",
            lambda metaindex, index: RIGHT.footer(index, metaindex),
            "is handle of the metaindex",
        ),
        (
            "magic turned",
            lambda metaindex, index: RIGHT.footer(metaindex, index)[:40] + MAGIC[::-1],
            "is magic number, byte 0",
        ),
    ],
    ("build_table", "the bytes of a table"): [
        ("whole keys in the index", with_index_of_last_keys, "index: entry 0: unshared length, 9"),
        ("shared keys in the index", with_shared_keys_in_the_index, "index:"),
        ("trailers counted", with_trailers_in_sizes, "index: entry 0: handle, byte 1"),
        ("the last block not in the index", without_a_last_index_entry, "index: entry 0"),
        (
            "blocks too large",
            lambda entries, block_size: built(list(entries), block_size + 25),
            "A data block ends with the entry that raises its size estimate to block_size",
        ),
        ("handles turned", handles_turned, "footer: handle of the metaindex"),
    ],
    ("get", "reading a table"): [
        ("a deletion is empty", deleted_is_empty, "The newest version is a deletion"),
        ("below a deletion", deletion_skipped, "The newest version is a deletion"),
        ("the oldest", oldest, "the newest first"),
        ("another key", not_below, "The table does not hold this key"),
        ("tags compared as keys", by_internal_bytes, "first index key whose user key is not below"),
    ],
    ("get", "the reads of a get"): [
        ("the whole table", reads_all, "Footer, index, and the one data"),
    ],
    ("get", "damaged tables"): [
        ("no magic", without_magic, "the magic number is damaged"),
        (
            "no look at the size",
            without_a_look_at_the_size,
            "get reads 48 bytes at -48 of a table of 0 bytes",
        ),
        ("blocks believed", believes_blocks, "the index is damaged"),
        ("all blocks read", reads_block_by_block, "no other data block should be read"),
    ],
    ("build_table", "in the real engine"): [
        ("a key left out", first_key_whole, "for the key b'user:00297'"),
        (
            "an index key too low",
            with_a_wrong_index,
            "A store whose only table is yours: lsmkv finds it damaged",
        ),
    ],
    ("get", "in the real engine"): [
        (
            "a key not found",
            one_key_not_found,
            "Your get reads a table of a store: None for the key b'user:00300'",
        ),
    ],
}


@pytest.mark.parametrize("mistake", mistakes(MISTAKES), ids=lambda mistake: mistake.name)
def test_a_mistake_is_named(mistake: Mistake) -> None:
    assert_caught(LAB, mistake)


def test_each_check_catches_a_mistake() -> None:
    assert {check for _, check in MISTAKES} == {check.name for check in LAB.checks}

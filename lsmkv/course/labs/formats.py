"""Formats that the checks of several labs need, and the content of a store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import lsmkv
from lsmkv.course.given import Directory, Operation, encode_string
from lsmkv.engine.format.log import frame
from lsmkv.engine.table.builder import TableBuilder
from lsmkv.files import (
    BlockHandle,
    Entry,
    Manifest,
    StoreFiles,
    Table,
    TableEntry,
    Version,
    make_key,
    make_name,
    parse_block,
)

__all__ = ["frame"]
"""Names that other labs' checks import from here: the engine's, which no starter includes."""

LEVELS = 7
KIND_DELETION, KIND_VALUE = 0, 1
MAX_SEQUENCE = (1 << 56) - 1
TAG_SIZE = 8
"""Bytes of an internal key after its user key."""
TRAILER_SIZE = 5
"""Bytes of a stored block after its contents: the type, and the checksum."""
NO_COMPRESSION, SNAPPY = 0, 1
"""Types of stored blocks."""
FOOTER_SIZE = 48
MAGIC = bytes.fromhex("57fb808b247547db")
"""The last eight bytes of a table."""


def sealed(contents: bytes) -> bytes:
    """A block as it is stored, uncompressed."""
    return parse_block(contents, "data").stored


def entries_in(contents: bytes) -> list[Entry]:
    """The entries of a block with any keys and values."""
    return [part for part in parse_block(contents, "data").walk() if isinstance(part, Entry)]


def footer_of(metaindex: BlockHandle, index: BlockHandle) -> bytes:
    """The last bytes of a table: two handles, zeros, the magic number."""
    handles = metaindex.encode() + index.encode()
    return handles.ljust(FOOTER_SIZE - len(MAGIC), b"\0") + MAGIC


def batch_of(sequence: int, operations: Sequence[Operation]) -> bytes:
    """The record of a batch: sequence, number of operations, and the operations."""
    parts = [sequence.to_bytes(8, "little"), len(operations).to_bytes(4, "little")]
    for key, value in operations:
        parts += [bytes([KIND_DELETION if value is None else KIND_VALUE]), encode_string(key)]
        parts += [] if value is None else [encode_string(value)]
    return b"".join(parts)


def version_key(user_key: bytes, sequence: int, value: bytes | None) -> bytes:
    """The internal key of a version; the value None means a deletion."""
    return make_key(user_key, sequence, KIND_DELETION if value is None else KIND_VALUE)


def table_of(entries: Iterable[tuple[bytes, bytes]], options: lsmkv.Options | None = None) -> bytes:
    """The engine's table of internal keys, in ascending order, and their values.

    Raises ``ValueError`` if they do not ascend.
    """
    with lsmkv.MemoryEnv().open_directory("tables", create=True) as directory:
        with directory.create("table") as file:
            builder = TableBuilder(options or lsmkv.Options(), file)
            for key, value in entries:
                builder.add(key, value)
            builder.finish()
        return directory.read_file("table", builder.file_size)


def entries_of_table(directory: Directory, number: int) -> list[TableEntry]:
    """All versions in a table of a store."""
    with Table(directory.open(make_name("table", number))) as table:
        return list(table.entries())


def manifest_in_force(directory: Directory) -> str:
    """The name of a store's current MANIFEST."""
    name = StoreFiles(directory).manifest_in_force()
    assert name is not None, "CURRENT names no MANIFEST"
    return name


def version_of_store(directory: Directory) -> Version:
    """The state that a store's MANIFEST describes: the tables of each level, and the counters."""
    with Manifest(directory.open(manifest_in_force(directory))) as manifest:
        return manifest.version()


def write(directory: Directory, name: str, content: bytes) -> None:
    """Write a file, durably."""
    with directory.create(name) as made:
        made.append(content)
        made.sync()
    directory.sync()


def set_current(directory: Directory, manifest_number: int) -> None:
    """Make CURRENT name the durable MANIFEST of this number, durably."""
    temporary = f"{manifest_number:06d}.dbtmp"
    with directory.create(temporary) as file:
        file.append(make_name("manifest", manifest_number).encode() + b"\n")
        file.sync()
    directory.rename(temporary, make_name("current"))
    directory.sync()

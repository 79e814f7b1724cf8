"""The bytes that checks expect are the engine's."""

from __future__ import annotations

import pytest

import lsmkv
import lsmkv.testing
from lsmkv.course.labs import formats
from lsmkv.engine.counters import NUM_LEVELS
from lsmkv.engine.format import batch, filenames, keys
from lsmkv.engine.table import format as table_format
from lsmkv.engine.util import compression
from lsmkv.files import BlockHandle, Table, make_key

ENTRIES = [(make_key(b"key%03d" % n, 7 + n, n % 2), b"value" * n) for n in range(100)]


def test_constants_are_those_of_the_engine() -> None:
    assert formats.LEVELS == NUM_LEVELS
    assert formats.MAX_SEQUENCE == keys.MAX_SEQUENCE
    assert (formats.KIND_DELETION, formats.KIND_VALUE) == (keys.KIND_DELETION, keys.KIND_VALUE)
    assert formats.TAG_SIZE == keys.TAG_SIZE
    assert formats.MAGIC == table_format.MAGIC
    assert formats.FOOTER_SIZE == table_format.FOOTER_SIZE
    assert formats.TRAILER_SIZE == table_format.BLOCK_TRAILER_SIZE
    assert (formats.NO_COMPRESSION, formats.SNAPPY) == (0, compression.SNAPPY)


@pytest.mark.parametrize("contents", [b"", b"abc", bytes(4096)])
def test_blocks_are_sealed_as_the_engine_seals_them(contents: bytes) -> None:
    assert formats.sealed(contents) == table_format.seal_block(contents, 0)


def test_footers_are_the_engines() -> None:
    for numbers in ((0, 8, 13, 20), (2**62, 2**62, 2**63, 2**61)):
        one, other, *index = numbers
        engine = table_format.Footer(
            table_format.BlockHandle(one, other), table_format.BlockHandle(*index)
        )
        assert formats.footer_of(BlockHandle(one, other), BlockHandle(*index)) == engine.encode()


@pytest.mark.parametrize(
    "operations", [[], [(b"a", None)], [(b"a", b""), (b"a", None), (b"", b"v" * 300)]]
)
def test_batches_are_the_engines(operations: list[tuple[bytes, bytes | None]]) -> None:
    assert formats.batch_of(2**40, operations) == batch.encode_batch(2**40, operations)


def test_a_table_is_a_stores() -> None:
    table = Table(formats.table_of(ENTRIES, lsmkv.Options(block_size=200)))
    found = [(make_key(one.user_key, one.sequence, one.kind), one.value) for one in table.entries()]
    assert found == ENTRIES
    blocks = [formats.entries_in(block.plain) for block in table.data_blocks()]
    assert [(one.key, one.value) for block in blocks for one in block] == ENTRIES
    assert len(blocks) > 10
    with pytest.raises(ValueError, match="out of order"):
        formats.table_of(ENTRIES[::-1])


def test_what_a_store_holds_is_found() -> None:
    env = lsmkv.MemoryEnv()
    with lsmkv.DB("store", create_if_missing=True, env=env) as db:
        db.put(b"ant", b"1")
        db.delete(b"bee")
        with db.snapshot():  # for which the flush keeps the deletion
            db.flush()
    with env.open_directory("store") as directory:
        version = formats.version_of_store(directory)
        (number,) = [file.number for files in version.levels for file in files]
        assert version.last_sequence == 2
        assert formats.manifest_in_force(directory) in directory.names()
        first, *_ = formats.entries_of_table(directory, number)
    assert (first.user_key, first.sequence, first.value) == (b"ant", 1, b"1")


def test_files_are_durable_once_written() -> None:
    env = lsmkv.testing.FaultyEnv()
    with env.open_directory("store", create=True) as directory:
        formats.write(directory, "name", b"content")
    with env.power_cut().open_directory("store") as directory:
        assert directory.read_file("name", 100) == b"content"


def test_current_is_set_as_the_engine_sets_it() -> None:
    with lsmkv.MemoryEnv().open_directory("store", create=True) as directory:
        formats.set_current(directory, 12)
        assert directory.names() == [filenames.CURRENT]
        assert filenames.read_current(directory) == "MANIFEST-000012"

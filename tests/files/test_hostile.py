"""Files cut at every byte, and with bits flipped: what comes out are errors of lsmkv's alone."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator

import pytest
from made_files import Made, make_store

import lsmkv
from lsmkv.engine.util.checksum import masked_crc32c
from lsmkv.errors import CorruptionError, UnsupportedCompressionError
from lsmkv.files import (
    Batch,
    Block,
    Current,
    Damage,
    Filter,
    Log,
    Manifest,
    Table,
    edit_fields,
    parse_block,
    parse_current,
    parse_edit,
    parse_filter_block,
    parse_footer,
    parse_handle,
    parse_key,
    parse_name,
)

REFUSED = (CorruptionError, UnsupportedCompressionError)


def attempt(*calls: Callable[[], object]) -> None:
    """Call each; errors of damage are what is expected."""
    for call in calls:
        try:
            call()
        except REFUSED:
            pass


def look_into_block(block: Block) -> None:
    """Ask everything of a block."""
    assert (block.damage is None) == can(lambda: block.plain)
    attempt(lambda: block.trailer, lambda: block.codec)
    if block.place.kind in ("data", "index", "metaindex"):
        parts = list(block.walk())
        for part in parts:
            if not isinstance(part, Damage):
                assert part.internal_key.user_key is not None
                assert part.spans.value.end <= len(block.plain)
                _ = part.handle
        assert any(isinstance(part, Damage) for part in parts) != can(block.entries)
        attempt(block.restart_points, lambda: block.entries_end)


def can(call: Callable[[], object]) -> bool:
    try:
        call()
    except REFUSED:
        return False
    return True


def look_into_filter(one: Filter) -> None:
    """Ask everything of a filter."""
    assert one.kind in ("block", "table", "prefix")
    _ = one.bits, one.probes, one.ones, one.fuse, one.expected_rate, one.estimated_keys
    one.probe(b"key:001")
    if one.knows_members:
        one.member(b"key:001")


def look_into_table(data: bytes) -> None:
    table = Table(data)
    attempt(lambda: table.footer)
    try:
        for place in table.places():
            look_into_block(table.block(place))
    except REFUSED:
        with pytest.raises(REFUSED):
            _ = table.footer
        return
    for part in itertools.chain(table.walk(), table.filters()):
        if isinstance(part, Filter):
            look_into_filter(part)
    attempt(lambda: list(table.entries()), lambda: table.filters_for(0), table.meta_blocks)


def look_into_log(data: bytes) -> None:
    log = Log(data)
    for part in log.walk():
        if not isinstance(part, Damage):
            attempt(
                lambda one=part.batch: list(one.operations()),  # type: ignore[misc]
                lambda one=part.batch: list(one.fields()),  # type: ignore[misc]
            )
    assert b"".join(one.stored for one in log.fragments()) == data
    attempt(lambda: list(log.records()), log.ending)


def look_into_manifest(data: bytes) -> None:
    manifest = Manifest(data)
    for part in manifest.walk_edits():
        if not isinstance(part, Damage):
            assert [field.end for field in edit_fields(part.payload)][-1:] != [0]
    attempt(lambda: list(manifest.versions()), manifest.version, manifest.ending)


def harmed(data: bytes, step: int = 1) -> Iterator[bytes]:
    """The data cut at every ``step``th byte, and with a bit of every ``step``th byte flipped."""
    random_bits = random.Random(1)
    for at in range(0, len(data), step):
        yield data[:at]
        flipped = bytearray(data)
        flipped[at] ^= 1 << random_bits.randrange(8)
        yield bytes(flipped)


def with_good_crcs(table: bytes) -> Iterator[bytes]:
    """A table with damage inside its blocks, whose checksums are right nevertheless."""
    places = Table(table).places()
    random_bytes = random.Random(2)
    for place in places:
        for at in range(place.offset, place.offset + place.size):
            changed = bytearray(table)
            changed[at] = random_bytes.choice([0, 1, 127, 128, 255])
            body = bytes(changed[place.offset : place.offset + place.size + 1])
            end = place.offset + place.size + 1
            changed[end : end + 4] = masked_crc32c(body).to_bytes(4, "little")
            yield bytes(changed)


OPTIONS = [
    {},
    {"compression": "snappy", "filter_layout": "both"},
    {"filter_policy": lsmkv.BinaryFusePolicy(), "filter_layout": "table"},
    {"filter_policy": lsmkv.Bloom64Policy(), "prefix_extractor": lsmkv.DelimitedPrefix(b":")},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_a_harmed_table_raises_errors_of_lsmkv_alone(options: dict[str, object]) -> None:
    table = make_store(24, 1, **options).table()
    for data in harmed(table, 3):
        look_into_table(data)


@pytest.mark.parametrize("options", OPTIONS)
def test_damage_with_a_right_checksum_raises_errors_of_lsmkv_alone(
    options: dict[str, object],
) -> None:
    table = make_store(12, 1, **options).table()
    for data in with_good_crcs(table):
        look_into_table(data)


def test_a_harmed_log_raises_errors_of_lsmkv_alone(made: Made) -> None:
    for data in harmed(made.log()[:600]):
        look_into_log(data)
    look_into_log(made.log() + bytes(70_000))


def test_a_harmed_manifest_raises_errors_of_lsmkv_alone(made: Made) -> None:
    for data in harmed(made.manifest()):
        look_into_manifest(data)


def test_harmed_records_raise_errors_of_lsmkv_alone(made: Made) -> None:
    batch = next(Log(made.log()).records()).payload
    edit = list(Manifest(made.manifest()).edits())[-1].payload
    table = Table(made.table())
    index = table.index.plain
    filters = table.block(table.meta_blocks()[0]).plain
    footer = table.read(table.footer.offset, table.size)
    for data in harmed(batch):
        attempt(lambda d=data: list(Batch(d).operations()), lambda d=data: list(Batch(d).fields()))  # type: ignore[misc]
    for data in harmed(edit):
        attempt(lambda d=data: parse_edit(d), lambda d=data: list(edit_fields(d)))  # type: ignore[misc]
    for data in harmed(index):
        look_into_block(parse_block(data, "index"))
    for data in harmed(filters):
        attempt(lambda d=data: parse_filter_block(d))  # type: ignore[misc]
    for data in harmed(footer):
        attempt(lambda d=data: parse_footer(d), lambda d=data: parse_handle(d))  # type: ignore[misc]


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff" * 100, bytes(100_000), bytes(range(256))])
def test_what_is_no_file_of_a_store_is_refused(data: bytes) -> None:
    look_into_table(data)
    look_into_log(data)
    look_into_manifest(data)
    look_into_block(parse_block(data, "data"))
    assert parse_current(data) is None
    assert Current(data).manifest is None
    assert parse_name(data.decode("latin-1")) is None
    assert parse_key(data).user_key in (data, data[:-8])


def test_sizes_beyond_any_file_are_not_read(made: Made) -> None:
    table = bytearray(made.table())
    footer = Table(bytes(table)).footer
    huge = bytes.fromhex("ffffffffffffffff7f") * 4
    table[footer.offset : footer.offset + 36] = huge
    damaged = Table(bytes(table))
    reason = "a block of 9,223,372,036,854,775,807 bytes beyond the end of the file"
    assert damaged.index.damage is not None
    assert damaged.index.damage.reason == reason
    assert [part.reason for part in damaged.walk() if isinstance(part, Damage)] == [reason]

"""Files of any content: each byte is in one piece, and each change of a byte is found."""

from __future__ import annotations

import random

import pytest
from dumped import (
    LOG,
    MANIFEST,
    TABLE,
    batch_record,
    covers,
    edit,
    encode_delete,
    encode_put,
    faults,
    make_log,
    make_table,
)

from lsmkv.engine.format.keys import pack
from lsmkv.engine.format.version_edit import FileMetaData


def random_file(rng: random.Random) -> tuple[str, bytes]:
    def text(longest: int) -> bytes:
        return bytes(rng.choices(b"abc\xff\0", k=rng.randrange(longest)))

    kind = rng.randrange(3)
    if kind == 0:
        payloads = []
        for _ in range(rng.randrange(8)):
            count = rng.randrange(5)
            size = rng.choice([20, 20, 300, 50_000])
            operations = [
                encode_put(text(20), text(size)) if rng.random() < 0.7 else encode_delete(text(20))
                for _ in range(count)
            ]
            payloads.append(batch_record(rng.randrange(1 << 40), count, b"".join(operations)))
        return "000001.log", make_log(payloads)
    if kind == 1:
        edits = []
        for _ in range(rng.randrange(6)):
            one = edit(last_sequence=rng.randrange(1 << 56), next_file_number=rng.randrange(99))
            for _ in range(rng.randrange(4)):
                one.delete_file(rng.randrange(7), rng.randrange(1 << 30))
                smallest, largest = pack(text(9), 1, 1), pack(text(30), 2, 0)
                one.add_file(rng.randrange(7), FileMetaData(5, 1 << 33, smallest, largest))
                one.compact_pointers.append((1, largest))
            edits.append(one.encode())
        return "MANIFEST-000001", make_log(edits)
    sequence = iter(range(1 << 20, 0, -1))
    keys = sorted(text(12) for _ in range(rng.randrange(150)))
    entries = [
        (pack(key, next(sequence), rng.randrange(2)), text(rng.choice([5, 200]))) for key in keys
    ]
    return "000001.ldb", make_table(
        entries,
        bits=rng.choice([0, 10]),
        compression=rng.randrange(3),
        filter_layout=rng.choice(["block", "table", "both"]),
        block_size=rng.choice([100, 1000, 4096]),
        block_restart_interval=rng.choice([1, 3, 16]),
    )


def damaged(rng: random.Random, data: bytes) -> bytes:
    content = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(content) + 1)
        match rng.randrange(4):
            case 0:
                del content[at:]
            case 1:
                content[at:at] = rng.randbytes(rng.randrange(20))
            case 2:
                content[at : at + 9] = bytes(9)
            case _:
                content[at : at + 1] = bytes([rng.randrange(256)])
    return bytes(content)


@pytest.mark.parametrize("seed", range(150))
def test_every_byte_is_in_exactly_one_piece(seed: int) -> None:
    rng = random.Random(seed)
    name, data = random_file(rng)
    covers(name, data)
    assert faults(name, data) == []
    for _ in range(2):
        covers(name, damaged(rng, data))
    covers(name, rng.randbytes(rng.randrange(500)))


def test_current_and_empty_files_are_covered_too() -> None:
    for content in (b"MANIFEST-000001\n", b"MANIFEST-1", b"x" * 1000, b"", b"\xff\n"):
        covers("CURRENT", content)
    for name in ("1.log", "MANIFEST-1", "1.ldb"):
        covers(name, b"")
    assert faults("1.log", b"") == []
    assert faults("1.ldb", b"") != []


def test_every_flipped_byte_of_a_table_is_detected() -> None:
    for name, content in (("1.log", LOG), ("MANIFEST-1", MANIFEST), ("1.ldb", TABLE)):
        for at in range(len(content)):
            broken = bytearray(content)
            broken[at] ^= 0x40
            found = faults(name, bytes(broken))
            if name == "1.ldb" and 172 <= at < 207:  # the footer's padding has no meaning
                assert found == []
            else:
                assert found != []
                assert {one.kind for one in found} <= {"damage", "torn"}


def test_every_truncation_of_a_table_is_detected() -> None:
    for cut in range(len(TABLE)):
        fault, *_ = faults("1.ldb", TABLE[:cut])
        assert fault.offset == max(0, cut - 48)
    for name, content, borders in (("1.log", LOG, {0, 30}), ("MANIFEST-1", MANIFEST, {0, 39})):
        for cut in range(len(content)):
            assert [one.kind for one in faults(name, content[:cut])] == (
                [] if cut in borders else ["torn"]
            )
            assert faults(name, content[:cut], annotate=True) == faults(name, content[:cut])

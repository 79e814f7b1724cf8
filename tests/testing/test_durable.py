"""What a power cut leaves of content that was not synced; names are in test_faulty.py."""

from __future__ import annotations

import random

import pytest

from lsmkv.testing.durable import DurableFile, DurableFolder, NameModel, PowerCut, Tails

SYNCED = b"s" * 100
DATA = bytes(range(1, 251)) * 12  # no zeros, and longer than five sectors


def survivors(tails: Tails) -> list[bytes]:
    file = DurableFile(SYNCED)
    file.append(DATA)
    return [
        bytes(file.survivor(PowerCut(NameModel.SYNCED, tails, random.Random(seed))).data)
        for seed in range(100)
    ]


@pytest.mark.parametrize("tails", Tails)
def test_synced_content_stays_and_no_bytes_are_invented(tails: Tails) -> None:
    seen = survivors(tails)
    for left in seen:
        assert left.startswith(SYNCED)
        assert len(left) <= len(SYNCED + DATA)
        assert all(byte in (0, whole) for byte, whole in zip(left, SYNCED + DATA, strict=False))
    assert len(set(seen)) == (1 if tails is Tails.LOST else len(set(seen)))
    assert len(set(seen)) > 50 or tails is Tails.LOST


def test_tails_lost_keeps_no_unsynced_byte() -> None:
    assert set(survivors(Tails.LOST)) == {SYNCED}


def test_tails_torn_keeps_a_prefix() -> None:
    assert all((SYNCED + DATA).startswith(left) for left in survivors(Tails.TORN))


def test_tails_zeroed_keeps_a_prefix_and_then_zeros() -> None:
    seen = survivors(Tails.ZEROED)
    assert all((SYNCED + DATA).startswith(left.rstrip(b"\0")) for left in seen)
    assert sum(left.endswith(b"\0") for left in seen) > 50


def test_holes_are_whole_sectors_with_content_behind_them() -> None:
    seen = survivors(Tails.HOLES)
    behind = 0
    for left in seen:
        whole = (SYNCED + DATA)[: len(left)]
        for start in range(0, len(left), 512):
            sector = left[max(start, len(SYNCED)) : start + 512]
            assert sector in (whole[max(start, len(SYNCED)) : start + 512], bytes(len(sector)))
        behind += b"\0" in left.rstrip(b"\0")
    assert behind > 20


def test_a_file_of_two_names_is_one_file() -> None:
    root, other = DurableFolder(), DurableFolder()
    file = root.new_file()
    for folder, name in ((root, "a"), (other, "b")):
        folder.link(name, file)
    root.link("other", other)
    for folder in (root, other):
        folder.sync()
    file.append(DATA)
    left = root.survivor(PowerCut(NameModel.SYNCED, Tails.TORN, random.Random(1)))
    inner = left.entries["other"]
    assert isinstance(inner, DurableFolder)
    assert inner.entries["b"] is left.entries["a"]

"""HyperLogLog: the bytes of Redis, and its estimates."""

from __future__ import annotations

import hashlib
import random

import pytest

from lsmkv.server.hyperloglog import REGISTERS, HyperLogLog, estimate, largest, murmur_hash
from lsmkv.server.resp import CommandError


def filled(count: int, sparse_most: int = 3000) -> HyperLogLog:
    made = HyperLogLog(None, sparse_most)
    for number in range(count):
        made.add(b"item %d" % number)
    return made


def test_hashes() -> None:
    assert [murmur_hash(b"abcdefghijk"[:size]) for size in (0, 1, 7, 8, 11)] == [
        *(0xD8DFEA6585BC9732, 0x53D2470A9B43B1A7, 0x22FE613BB08C9602),
        *(0xF3A65DF559914567, 0x0F85070A21C57729),
    ]


def test_bytes_of_an_empty_one() -> None:
    assert bytes(HyperLogLog(None).value) == b"HYLL\x01" + bytes(11) + b"\x7f\xff"


def test_bytes_of_redis() -> None:
    """What Redis 7.0 had under a key after PFADD of the same items in the same order."""
    few = filled(3)
    assert bytes(few.value).hex() == "48594c4c010000000000000000000080518f8061719c49f2884307"
    many = hashlib.sha256(bytes(filled(500).value)).hexdigest()
    assert many == "6fdd48ad3ba6c1250d2a26b818f5a7e161ff5bbc53d1d02ed10b3e95f53afc8e"
    dense = filled(5000)
    assert dense.is_dense
    assert (
        hashlib.sha256(bytes(dense.value)).hexdigest()
        == "bb4c13300d17d9ad80fd4c2c6727f85cdaf2a10cf8755af683d8efc2f570b4db"
    )


@pytest.mark.parametrize("count", [0, 1, 2, 10, 100, 1000, 20_000])
def test_estimates_are_near(count: int) -> None:
    assert abs(estimate(filled(count).registers()) - count) <= count * 0.03


def test_sparse_and_dense_are_the_same_registers() -> None:
    sparse, dense = filled(700), filled(700, sparse_most=0)
    assert dense.is_dense
    assert not sparse.is_dense
    assert sparse.registers() == dense.registers()
    sparse.make_dense()
    assert sparse.value[16:] == dense.value[16:]


def test_a_register_is_only_raised() -> None:
    for most in (0, 3000):
        made = HyperLogLog(None, most)
        for index in (0, 1, 2, 3, 5000, 16_382, 16_383):
            assert made.raise_register(index, 7)
            assert not made.raise_register(index, 7)
            assert not made.raise_register(index, 3)
            assert made.raise_register(index, 9)
            assert made.registers()[index] == 9
        assert made.registers().count(0) == REGISTERS - 7


def test_a_value_that_no_run_can_have_makes_it_dense() -> None:
    made = filled(10)
    assert made.raise_register(77, 33)
    assert made.is_dense
    assert made.registers()[77] == 33


def test_an_estimate_is_kept_until_a_register_changes() -> None:
    made = HyperLogLog(None)
    assert made.estimate == 0
    made.add(b"a")
    assert made.estimate is None
    made.keep_estimate(1)
    assert made.estimate == 1
    made.add(b"a")
    assert made.estimate == 1


@pytest.mark.parametrize(
    "value", [b"", b"HYLL", b"HYLX" + bytes(14), b"HYLL\x02" + bytes(13), b"HYLL\0" + bytes(13)]
)
def test_other_strings_are_refused(value: bytes) -> None:
    with pytest.raises(CommandError, match="WRONGTYPE Key is not a valid HyperLogLog"):
        HyperLogLog(value)


def test_every_truncation_is_damage_or_refused() -> None:
    value = bytes(filled(50).value)
    for cut in range(len(value)):
        with pytest.raises(CommandError, match=r"WRONGTYPE|INVALIDOBJ"):
            HyperLogLog(value[:cut]).registers()
        with pytest.raises(CommandError, match=r"WRONGTYPE|INVALIDOBJ"):
            HyperLogLog(value[:cut]).raise_register(REGISTERS - 1, 40)


def test_too_many_runs_are_damage() -> None:
    with pytest.raises(CommandError, match="INVALIDOBJ Corrupted HLL object detected"):
        HyperLogLog(bytes(filled(50).value) + b"\xff").registers()


def test_the_larger_of_each_two_registers_is_chosen() -> None:
    choices = random.Random(0)
    one, other = (bytes(choices.choices(range(64), k=REGISTERS)) for _ in range(2))
    assert largest(one, other) == bytes(map(max, one, other))


@pytest.mark.parametrize("before", [0, 200])
@pytest.mark.parametrize("count", [0, 1, 300, 1690, 20_000])
def test_raising_all_registers_is_raising_each(before: int, count: int) -> None:
    """The bytes are the same, sparse or dense, also where they become dense."""
    at_once, one_by_one = filled(before), filled(before)
    registers = filled(count).registers()
    at_once.raise_registers(registers)
    for index in range(REGISTERS):
        one_by_one.raise_register(index, registers[index])
    assert at_once.value[16:] == one_by_one.value[16:]


def test_runs_of_equal_registers_are_filled_in_as_they_are_raised() -> None:
    """With every limit near the size that they take."""
    choices = random.Random(1)
    for _ in range(8):
        runs = (bytes([choices.randrange(4)]) * choices.randrange(1, 9) for _ in range(90))
        registers = b"".join(runs).ljust(REGISTERS, b"\0")
        unlimited = HyperLogLog(None, REGISTERS)
        unlimited.raise_registers(registers)
        for most in range(len(unlimited.value) - 1, len(unlimited.value) + 8):
            at_once, one_by_one = (HyperLogLog(None, most) for _ in range(2))
            at_once.raise_registers(registers)
            for index in range(len(registers.rstrip(b"\0"))):
                one_by_one.raise_register(index, registers[index])
            assert at_once.value[16:] == one_by_one.value[16:]


def test_a_register_that_no_run_can_have_is_raised_with_the_others() -> None:
    made = HyperLogLog(None)
    registers = bytes(100) + b"\x21\x01" + bytes(REGISTERS - 102)
    made.raise_registers(registers)
    assert made.is_dense
    assert made.registers() == registers

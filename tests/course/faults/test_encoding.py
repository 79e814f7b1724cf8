"""Faults of labs 1 to 3: each can be found."""

from __future__ import annotations

import random

from faulty import MARK, assert_can_be_found, assert_right, each
from labs import solution

from lsmkv.course.faults.encoding import BLOCK, KEYS, LOG
from lsmkv.course.faults.fault import Fault, Subject
from lsmkv.course.labs.log import log_of
from lsmkv.course.labs.registry import find


@each(BLOCK, KEYS, LOG)
def test_each_can_be_found(subject: Subject, fault: Fault) -> None:
    assert_can_be_found(subject, fault)


def test_the_right_functions_take_what_is_seen() -> None:
    for subject in (BLOCK, KEYS, LOG):
        assert_right(subject)


def test_the_right_functions_are_those_of_the_labs() -> None:
    keys, log, block = (solution(find(slug)) for slug in ("keys", "log", "block"))
    for name, arguments in KEYS.scene(MARK, random.Random(3)):
        if name != "encode_string":
            assert KEYS.right[name](*arguments) == getattr(keys, name)(*arguments)
    for name, arguments in LOG.scene(MARK, random.Random(3)):
        if name == "frame":
            assert LOG.right[name](*arguments) == log.frame(*arguments)
        else:
            assert LOG.right[name](*arguments) == log.read_log(spoiled(*arguments))
    for name, arguments in BLOCK.scene(MARK, random.Random(3)):
        data = block.build_block(*arguments[:2])
        expected = {
            "build_block": data,
            "read_block": block.read_block(data),
            "seek": block.seek(data, arguments[-1]) if name == "seek" else None,
        }
        assert BLOCK.right[name](*arguments) == expected[name]


def spoiled(payloads: list[bytes], changes: list[tuple[int, int]], end: int) -> bytes:
    log = bytearray(log_of(payloads))
    for at, byte in changes:
        log[at] = byte
    return bytes(log[:end])

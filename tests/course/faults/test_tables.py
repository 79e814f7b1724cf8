"""Faults of labs 4 to 6: each can be found."""

from __future__ import annotations

import functools
import random

from faulty import MARK, assert_can_be_found, assert_right, each
from labs import solution

from lsmkv.course.faults.fault import Fault, Subject
from lsmkv.course.faults.tables import BLOOM, FILTER_BLOCK, TABLE
from lsmkv.course.labs.registry import find
from lsmkv.files import make_key


@each(BLOOM, FILTER_BLOCK, TABLE)
def test_each_can_be_found(subject: Subject, fault: Fault) -> None:
    assert_can_be_found(subject, fault)


def test_the_right_functions_take_what_is_seen() -> None:
    for subject in (BLOOM, FILTER_BLOCK, TABLE):
        assert_right(subject)


def test_the_right_functions_are_those_of_the_labs() -> None:
    bloom, blocks, table = (solution(find(slug)) for slug in ("bloom", "filter_block", "table"))
    for name, arguments in BLOOM.scene(MARK, random.Random(3)):
        if name == "key_may_match":
            key, keys, bits = arguments
            expected = bloom.key_may_match(key, bloom.create_filter(keys, bits))
        else:
            expected = getattr(bloom, name)(*arguments)
        assert BLOOM.right[name](*arguments) == expected
    for name, arguments in FILTER_BLOCK.scene(MARK, random.Random(3)):
        internal = [(at, [make_key(key, 1) for key in keys]) for at, keys in arguments[0]]
        if name == "group_keys":
            expected = blocks.group_keys(internal)
        else:
            made = functools.partial(bloom.create_filter, bits_per_key=10)
            expected = blocks.build_filter_block(internal, made)
            if name == "filter_for":
                expected = blocks.filter_for(expected, arguments[1])
        assert FILTER_BLOCK.right[name](*arguments) == expected
    for name, arguments in TABLE.scene(MARK, random.Random(3)):
        if name == "successor":
            expected = table.successor(make_key(arguments[0], 1))
            assert TABLE.right[name](*arguments) == expected.removesuffix(expected[-8:])

"""Asking in a process of its own."""

from __future__ import annotations

import pytest
from own_data import call_that_shows

from lsmkv.course.faults.asking import answers, ask
from lsmkv.course.faults.fault import InputError, size_of
from lsmkv.course.faults.registry import fault_of
from lsmkv.course.labs.registry import find
from lsmkv.course.seeds import mark_of, seed_of

BLOOM = find("bloom")
SEED = seed_of("ann")


SHOWS = call_that_shows("bloom", "ann")


def test_both_answer_through_a_pipe() -> None:
    found = ask(BLOOM, SEED, SHOWS)
    assert found == answers(BLOOM, SEED, SHOWS)
    assert found.is_found
    assert found.size == found.least == size_of(fault_of(BLOOM, SEED).shows(mark_of(SEED).encode()))
    assert not ask(BLOOM, SEED, "bloom_hash(b'ant')").is_found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hash(b'a')", "there is no hash: the functions are bloom_hash, "),
        ("bloom_hash()", "the arguments are not those of bloom_hash: key"),
        ("bloom_hash(1)", "the arguments are not those of"),
        ("import os", "it must be one call"),
    ],
)
def test_what_is_no_call_is_refused(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        ask(BLOOM, SEED, text)


def test_an_input_without_end_is_stopped() -> None:
    with pytest.raises(InputError, match="too much time or memory"):
        ask(find("measuring"), SEED, "alternate(['a'], 10**12)")

"""Filter settings as text, and the policies that they stand for."""

from __future__ import annotations

import pytest
from lab_stores import LastByte

from lsmkv.filter.bloom import BloomFilterPolicy
from lsmkv.tools.lab.settings import (
    DEFAULT_SETTINGS,
    FilterSetting,
    parse_setting,
    parse_settings,
)


def bits(setting: FilterSetting) -> list[int]:
    found = []
    for level in range(7):
        policy = setting.policy(level)
        assert policy is None or isinstance(policy, BloomFilterPolicy)
        found.append(0 if policy is None else policy.bits_per_key)
    return found


@pytest.mark.parametrize(
    ("text", "by_level"),
    [
        ("none", [0] * 7),
        ("block:10", [10] * 7),
        ("table:15", [15] * 7),
        ("block:10,10,8,5", [10, 10, 8, 5, 5, 5, 5]),
        ("table:20,0", [20, 0, 0, 0, 0, 0, 0]),
        ("block:1,2,3,4,5,6,7", [1, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_the_text_goes_both_ways(text: str, by_level: list[int]) -> None:
    setting = parse_setting(text)
    assert str(setting) == text
    assert bits(setting) == by_level
    assert setting.layout == text.partition(":")[0]


@pytest.mark.parametrize(
    "text",
    ["", "block", "block:", "block:x", "block:10,", "none:10", "both:10", "block:-1", "block: 10"],
)
def test_what_is_no_setting(text: str) -> None:
    with pytest.raises(ValueError, match=r"write none, block:10, table:15"):
        parse_setting(text)


def test_too_many_bits() -> None:
    with pytest.raises(ValueError, match="at most 256"):
        parse_setting("block:10,257")


def test_bits_go_with_a_layout() -> None:
    with pytest.raises(ValueError, match="layouts"):
        FilterSetting("none", (10,))
    with pytest.raises(ValueError, match="layouts"):
        FilterSetting("block")


def test_a_list() -> None:
    assert [str(one) for one in parse_settings(" none  table:3 none ")] == ["none", "table:3"]
    assert len(parse_settings(DEFAULT_SETTINGS)) == 7
    with pytest.raises(ValueError, match="at least one"):
        parse_settings("  ")


def test_another_policy() -> None:
    setting = FilterSetting("block", (10, 0), LastByte)
    assert isinstance(setting.policy(0), LastByte)
    assert setting.policy(3) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("none", "no filter"),
        ("block:1", "1 bit a key"),
        ("table:10,5", "10 and 5 bits a key by level in a filter for each table"),
        ("block:10,8,5", "10, 8 and 5 bits a key by level"),
    ],
)
def test_in_words(text: str, words: str) -> None:
    assert parse_setting(text).in_words() == words

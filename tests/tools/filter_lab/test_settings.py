"""Filter settings as text, and the policies that they stand for."""

from __future__ import annotations

import pytest
from lab_stores import LastByteOfBits

from lsmkv.engine.filter.bloom import BloomFilterPolicy
from lsmkv.engine.filter.bloom64 import Bloom64Policy
from lsmkv.engine.filter.fuse import BinaryFusePolicy
from lsmkv.tools.filter_lab.settings import (
    DEFAULT_SETTINGS,
    FilterSetting,
    parse_setting,
    parse_settings,
)


def bits(setting: FilterSetting) -> list[float]:
    found: list[float] = []
    for level in range(7):
        policy = setting.policy(level)
        assert policy is None or isinstance(policy, (BloomFilterPolicy, Bloom64Policy))
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
        ("block:12.5", [12.5] * 7),
        ("block64:10", [10] * 7),
        ("table64:9.5,0", [9.5, 0, 0, 0, 0, 0, 0]),
        ("block:0", [0] * 7),
    ],
)
def test_the_text_goes_both_ways(text: str, by_level: list[float]) -> None:
    setting = parse_setting(text)
    assert str(setting) == text
    assert bits(setting) == by_level
    assert setting.layout == text.partition(":")[0].removesuffix("64")


@pytest.mark.parametrize(
    ("text", "layout", "policy", "asked"),
    [
        ("none", "none", type(None), False),
        ("block:10", "block", BloomFilterPolicy, True),
        ("table:10", "table", BloomFilterPolicy, False),
        ("block64:10", "block", Bloom64Policy, False),
        ("table64:10", "table", Bloom64Policy, False),
        ("fuse", "table", BinaryFusePolicy, False),
    ],
)
def test_the_kinds_of_filter(text: str, layout: str, policy: type, asked: bool) -> None:
    setting = parse_setting(text)
    assert str(setting) == text
    assert setting.layout == layout
    assert type(setting.policy(3)) is policy
    assert setting.leveldb_asks == asked


def test_an_average_is_spread_over_the_levels() -> None:
    for text in ("block:auto:10", "table64:auto:9.5"):
        setting = parse_setting(text)
        assert str(setting) == text
        policies = [setting.policy(level, [1, 10, 100], level) for level in range(3)]
        given = []
        for policy in policies:
            assert isinstance(policy, (BloomFilterPolicy, Bloom64Policy))
            given.append(policy.bits_per_key)
        assert given == sorted(given, reverse=True)
        assert given[0] > given[2] + 9
        spent = sum(size * bits for size, bits in zip([1, 10, 100], given, strict=True))
        assert spent == pytest.approx(111 * float(text.rpartition(":")[2]))
    assert parse_setting("block:auto:2").policy(1, [1, 10_000], 0) is not None
    assert parse_setting("block:auto:1").policy(1, [1, 10_000], 1) is None  # fewer than one


@pytest.mark.parametrize(
    "text",
    [
        "",
        "block",
        "block:",
        "block:x",
        "block:10,",
        "none:10",
        "both:10",
        "block:-1",
        "block: 10",
        "block:1.",
        "block:\u0661\u0660",
        "fuse:10",
        "table64",
        "auto:10",
        "block:auto:",
    ],
)
def test_what_is_no_setting(text: str) -> None:
    with pytest.raises(ValueError, match=r"write none, block:10, .* table64:10 or fuse; .*auto:10"):
        parse_setting(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("block:10,257", "at most 256 bits"),
        ("block:auto:45", "at most 44 bits"),
        ("block:10,0.5", "at least 1 bit a key, or 0"),
        ("block:auto:0", "at least 1 bit a key"),
        ("block:auto:10,5", "one number is spread"),
    ],
)
def test_bits_out_of_range(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=rf"^{text}: {words}"):
        parse_setting(text)


def test_bits_go_with_a_kind_that_takes_them() -> None:
    bits = (10.0,)
    for kind in ("none", "fuse"):
        with pytest.raises(ValueError, match=f"'{kind}' takes no bits"):
            FilterSetting(kind, bits)
    with pytest.raises(ValueError, match="'table64' needs bits"):
        FilterSetting("table64")
    with pytest.raises(ValueError, match="there are none, block, table, block64, table64, fuse"):
        FilterSetting("both", bits)


def test_a_list() -> None:
    assert [str(one) for one in parse_settings(" none  table:3 none ")] == ["none", "table:3"]
    assert [str(one) for one in parse_settings("block:5 block:5.0")] == ["block:5"]
    kinds = {one.kind for one in parse_settings(DEFAULT_SETTINGS)}
    assert kinds == {"none", "block", "table", "table64", "fuse"}
    with pytest.raises(ValueError, match="at least one"):
        parse_settings("  ")


def test_another_policy() -> None:
    setting = FilterSetting("block", (10, 0), make_policy=LastByteOfBits)
    assert isinstance(setting.policy(0), LastByteOfBits)
    assert not setting.leveldb_asks
    assert setting.policy(3) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("none", "no filter"),
        ("block:1", "1 bit a key"),
        ("table:10,5", "10 and 5 bits a key by level in a filter for each table"),
        ("block:10,8,5", "10, 8 and 5 bits a key by level"),
        ("block64:7.5", "7.5 bits a key in filters of 64-bit hashes"),
        ("table64:10", "10 bits a key in a filter of 64-bit hashes for each table"),
        ("fuse", "a fuse filter for each table"),
        ("block:auto:10", "10 bits a key on average, spread over the levels,"),
        (
            "table:auto:10",
            "10 bits a key on average, spread over the levels, in a filter for each table",
        ),
    ],
)
def test_in_words(text: str, words: str) -> None:
    assert parse_setting(text).in_words() == words


def test_a_policy_of_ones_own() -> None:
    setting, spread, _ = parse_settings("own:10 own:auto:9.5 block:10", BloomFilterPolicy)
    assert (str(setting), setting.layout, setting.leveldb_asks) == ("own:10", "block", False)
    assert repr(setting.policy(3)) == "BloomFilterPolicy(10)"
    assert str(spread) == "own:auto:9.5"
    assert setting.in_words() == "10 bits a key in filters of your own policy"
    with pytest.raises(ValueError, match=r"own:10 needs a custom policy: --policy FILE"):
        parse_settings("block:10 own:10")

"""The verdict keeps to its rule, and says so when nothing pays."""

from __future__ import annotations

import pytest

from lsmkv.filter_lab import Replay, SettingReads, TableReads
from lsmkv.tools.lab.verdict import judge


def replay_of(gets: int, *results: tuple[str, int, int]) -> Replay:
    """A replay with these settings: name, wasted reads, and bytes of filters."""
    found = [
        SettingReads(name, [TableReads(0, 7, wasted_reads=wasted, filter_bytes=memory)])
        for name, wasted, memory in results
    ]
    return Replay(gets, 0, 0, 100, found)


def test_the_cheapest_that_saves_nearly_as_much_as_the_best() -> None:
    verdict = judge(
        replay_of(
            5000,
            ("as stored", 1000, 1 << 20),
            ("none", 9000, 0),
            ("block:12", 500, 1_200_000),
            ("block:15", 100, 1_677_722),
            ("table:15", 101, 1_677_723),
            ("block:20", 60, 2 << 20),
        )
    )
    assert verdict.setting == "block:15"
    assert (verdict.saved_reads, verdict.more_bytes) == (900, 1_677_722 - (1 << 20))
    assert verdict.sentence == (
        "15 bits a key would save 900 of 1,000 wasted reads for 614.4 KiB more memory."
    )


def test_a_setting_may_save_memory_too() -> None:
    verdict = judge(replay_of(1000, ("as stored", 500, 8000), ("block:10,0", 20, 3000)))
    assert verdict.more_bytes == -5000
    assert verdict.sentence == (
        "10 and 0 bits a key by level would save 480 of 500 wasted reads and 4.9 KiB of memory."
    )


def test_what_costs_nothing_comes_first() -> None:
    results = [
        ("as stored", 451, 175_000),
        ("none", 45_777, 0),
        ("block:10", 451, 175_000),
        ("block:auto:10", 239, 174_900),
        ("block:15", 48, 259_000),
        ("block:20", 11, 343_000),
        ("fuse", 175, 162_600),
    ]
    verdict = judge(replay_of(10_000, *results))
    assert (verdict.setting, verdict.saved_reads, verdict.more_bytes) == ("fuse", 276, -12_400)
    assert verdict.sentence == (
        "A fuse filter for each table would save 276 of 451 wasted reads and 12.1 KiB of memory."
        " LevelDB reads such tables unfiltered; of the filters that it reads, 10 bits a key on"
        " average, spread over the levels, would save 212 and 100 B of memory."
        " For 164.1 KiB more memory, 20 bits a key would save 440."
    )


def test_what_costs_little_and_saves_little_more_is_not_named() -> None:
    results = [("as stored", 451, 1000), ("fuse", 20, 900), ("block:20", 11, 2000)]
    sentence = judge(replay_of(10_000, *results)).sentence
    assert sentence.startswith("A fuse filter for each table would save 431 of 451 wasted reads")
    assert " For " not in sentence


def test_the_same_memory() -> None:
    verdict = judge(replay_of(100, ("as stored", 50, 80), ("table:10", 0, 80)))
    assert verdict.sentence == (
        "10 bits a key in a filter for each table would save 50 of 50 wasted reads"
        " for no more memory. LevelDB reads such tables unfiltered."
    )


def test_filters_that_leveldb_does_not_ask_are_recommended_beside_those_that_it_asks() -> None:
    results = [("as stored", 1000, 1 << 20), ("none", 9000, 0), ("fuse", 20, 1 << 20)]
    verdict = judge(replay_of(5000, *results, ("table64:10", 500, 900_000)))
    assert verdict.setting == "fuse"
    assert verdict.sentence == (
        "A fuse filter for each table would save 980 of 1,000 wasted reads for no more memory."
        " LevelDB reads such tables unfiltered."
    )
    asked = [("block:15", 300, 3 << 19), ("block:20", 290, 2 << 20), ("table:15", 100, 3 << 19)]
    verdict = judge(replay_of(5000, *results, *asked))
    assert verdict.setting == "fuse"
    assert verdict.sentence.endswith(
        "LevelDB reads such tables unfiltered; of the filters that it reads, 15 bits a key would"
        " save 700 for 512.0 KiB more memory."
    )


def test_a_cheaper_setting_that_leveldb_does_not_ask() -> None:
    verdict = judge(replay_of(1000, ("as stored", 5, 1000), ("fuse", 5, 800)))
    assert verdict.sentence.endswith(
        " With a fuse filter for each table it would waste no more, for 200 B less memory."
        " But LevelDB reads such tables unfiltered."
    )


@pytest.mark.parametrize(
    ("results", "sentence"),
    [
        (
            [("as stored", 120, 1000), ("block:15", 21, 1500)],
            "Nothing pays: the 10,000 Gets waste 120 reads,"
            " and the best setting would save 99 of them.",
        ),
        (
            [("as stored", 120, 1000), ("none", 5000, 0)],
            "Nothing pays: the 10,000 Gets waste 120 reads, and no setting saves any.",
        ),
        (
            [("as stored", 120, 1000)],
            "Nothing pays: the 10,000 Gets waste 120 reads, and no other setting was tried.",
        ),
        (
            [("as stored", 0, 1000), ("none", 0, 0)],
            "Nothing pays: the 10,000 Gets waste no read."
            " With no filter it would waste no more, for 1,000 B less memory.",
        ),
        ([("as stored", 0, 0)], "Nothing pays: the 10,000 Gets waste no read."),
    ],
)
def test_nothing_pays(results: list[tuple[str, int, int]], sentence: str) -> None:
    verdict = judge(replay_of(10_000, *results))
    assert verdict.setting is None
    assert verdict.more_bytes == 0
    assert verdict.sentence == sentence


def test_one_read_in_a_hundred_gets_is_enough() -> None:
    verdict = judge(replay_of(10_000, ("as stored", 120, 1000), ("block:15", 20, 1500)))
    assert verdict.setting == "block:15"


def test_an_order_that_filters_do_not_go_with() -> None:
    replay = replay_of(1000, ("as stored", 500, 0), ("block:10", 5, 100))
    replay.unsafe_order = "test.\x1bFolding"
    verdict = judge(replay)
    assert verdict.setting == "block:10"
    assert "But the store's order, test.\\x1bFolding, may call keys" in verdict.sentence


def test_no_gets() -> None:
    assert judge(replay_of(0, ("as stored", 0, 0), ("block:5", 0, 5))).setting is None


def test_no_setting_is_named_twice() -> None:
    results = [("as stored", 451, 175_000), ("block:20", 11, 343_000), ("fuse", 175, 162_600)]
    verdict = judge(replay_of(10_000, *results))
    assert verdict.setting == "fuse"
    assert verdict.sentence.count("20 bits a key") == 1
    assert verdict.sentence.endswith("20 bits a key would save 440 for 164.1 KiB more memory.")


def test_a_price_is_named_only_for_what_it_saves_beyond_the_free_setting() -> None:
    results = [
        ("as stored", 200, 1000),
        ("block:10", 103, 1000),
        ("table:12", 97, 1100),  # six reads more, for a price
        ("table:20", 92, 2000),
    ]
    verdict = judge(replay_of(1000, *results))
    assert verdict.setting == "block:10"
    assert "12 bits" not in verdict.sentence
    assert "20 bits a key in a filter for each table would save 108" in verdict.sentence

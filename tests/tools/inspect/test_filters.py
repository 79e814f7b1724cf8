from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from inspected import HOSTILE, WORDS, damage, one_table, opened
from policies import FirstByte
from typer.testing import CliRunner

import lsmkv
from lsmkv.engine.filter.bloom import BloomFilterPolicy, rate_from_fill
from lsmkv.engine.filter.bloom64 import Bloom64Policy
from lsmkv.engine.filter.fuse import BinaryFusePolicy
from lsmkv.engine.filter.prefix import DelimitedPrefix
from lsmkv.tools.app import app
from lsmkv.tools.inspect import filters
from lsmkv.tools.inspect.api import Api
from lsmkv.tools.inspect.filters import LONGEST_KEY, MOST_BITS, MOST_KEYS, probe, table_filter
from lsmkv.tools.inspect.plain import NotThereError, Plain


def filters_of(api: Api) -> list[Plain]:
    """Every filter of every table."""
    found: list[Plain] = []
    for table in api.source.db().tables():
        found.append(table_filter(api.source, table.name))
        while found[-1]["next"] is not None:
            found.append(table_filter(api.source, table.name, **found[-1]["next"]))
        assert found[-1]["place"] == found[-1]["filters"]
    return found


def test_the_keys_set_exactly_the_bits(api: Api) -> None:
    policy = BloomFilterPolicy()
    filters = filters_of(api)
    for one in filters:
        assert (one["kind"], one["probes"], one["more_keys"]) == ("block", policy.probes, False)
        assert one["bits"] == 8 * (one["bytes"] - 1)
        everything = b"\xff" * (one["bits"] // 8) + bytes([one["probes"]])
        bits = bytearray(one["bits"] // 8)
        for key in one["keys"]:
            for at in policy.probed_positions(key["hash"], everything):
                bits[at >> 3] |= 1 << (at & 7)
        assert bits.hex() == one["hex"]
    keys = {key.get("hex") for one in filters for key in one["keys"]}
    assert keys >= {key.hex() for key in [*WORDS, *HOSTILE] if len(key) <= LONGEST_KEY}
    cut = [key for one in filters for key in one["keys"] if "hex" not in key]
    assert {key["bytes"] for key in cut} == {len(key) for key in HOSTILE if len(key) > LONGEST_KEY}


def test_a_filter_of_a_whole_table_is_cut(tmp_path: Path) -> None:
    keys = [b"%08d" % number for number in range(8000)]
    with opened(one_table(tmp_path / "db", keys, filter_layout="table")) as (api, name):
        answer = api.answer("filter", {"name": name})
    assert (answer["kind"], answer["filters"], answer["first"], answer["last"]) == (
        "table",
        1,
        None,
        None,
    )
    assert (len(answer["keys"]), answer["more_keys"]) == (MOST_KEYS, True)
    assert answer["bits"] > MOST_BITS
    assert len(answer["hex"]) == MOST_BITS // 4
    assert 0 < answer["rate"] < 0.02


@pytest.mark.parametrize("number", [1, MOST_KEYS, MOST_KEYS + 1, 5000])
def test_the_number_of_keys_is_stated_however_many_there_are(tmp_path: Path, number: int) -> None:
    keys = [b"%08d" % at for at in range(number)]
    with opened(one_table(tmp_path / "db", keys, filter_layout="table")) as (api, name):
        answer = table_filter(api.source, name)
    assert (answer["key_count"], answer["counted"]) == (number, True)
    assert answer["more_keys"] == (number > MOST_KEYS)
    data = BloomFilterPolicy().create_filter(keys)
    assert answer["ones"] == sum(byte.bit_count() for byte in data[:-1])


def test_the_number_of_very_many_keys_follows_from_the_fill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filters, "MOST_COUNTED", 1000)
    keys = [b"%08d" % at for at in range(5000)]
    with opened(one_table(tmp_path / "db", keys, filter_layout="table")) as (api, name):
        answer = table_filter(api.source, name)
    assert not answer["counted"]
    assert answer["key_count"] == pytest.approx(5000, rel=0.1)  # probes repeat


def test_a_filter_of_another_policy_has_no_bits(tmp_path: Path) -> None:
    path = one_table(tmp_path / "db", [b"ant", b"bee"], filter_policy=FirstByte())
    with opened(path) as (api, name):
        answer = table_filter(api.source, name)
        with pytest.raises(NotThereError, match=r"only the code of 'test\.FirstByte' can ask"):
            probe(api.source, name, b"ant")
    assert answer["policy"] == "test.FirstByte"
    assert (answer["bits"], answer["probes"], answer["fuse"], answer["hex"]) == (
        None,
        None,
        None,
        "",
    )
    assert [key["text"] for key in answer["keys"]] == ["ant", "bee"]


@pytest.mark.parametrize("layout", ["block", "table"])
@pytest.mark.parametrize("policy", [BloomFilterPolicy(10), Bloom64Policy(10)])
def test_bits_and_probes_of_both_bloom_filters(tmp_path: Path, layout: str, policy: Any) -> None:
    keys = [b"%08d" % number for number in range(0, 400, 2)]
    options = {"filter_policy": policy, "filter_layout": layout}
    with opened(one_table(tmp_path / "db", keys, **options)) as (api, name):
        answer = table_filter(api.source, name)
        data = bytes.fromhex(answer["hex"]) + bytes([answer["probes"]])
        ones = {at for at in range(answer["bits"]) if data[at >> 3] >> (at & 7) & 1}
        if not answer["leveldb"]:
            assert {at for key in answer["keys"] for at in key["positions"]} == ones
        for number in range(100):
            key = b"%08d" % number
            found = probe(api.source, name, key)
            assert found["may_match"] == policy.key_may_match(key, data)
            assert found["positions"] == policy.probed_positions(policy.key_hash(key), data)
    by_fill = (len(ones) / answer["bits"]) ** answer["probes"]
    leveldb = policy.name != "lsmkv.Bloom64"
    assert answer["leveldb"] == leveldb
    assert answer["rate"] == pytest.approx(rate_from_fill(data) if leveldb else by_fill)


def test_the_slots_of_a_fuse_filter(tmp_path: Path) -> None:
    keys = [b"%08d" % number for number in range(0, 8000, 2)]
    policy = BinaryFusePolicy()
    path = one_table(tmp_path / "db", keys, filter_policy=policy, compression=None)
    with opened(path) as (api, name):
        answer = table_filter(api.source, name)
        whole = (path / name).read_bytes()
        data = whole[answer["block"] : answer["block"] + answer["bytes"]]
        assert answer["fuse"]["slots"] == answer["bytes"] - 7
        assert (
            answer["fuse"]["segments"] * answer["fuse"]["segment_slots"] == answer["fuse"]["slots"]
        )
        assert (answer["bits"], answer["rate"]) == (None, 1 / 256)
        for key in answer["keys"]:
            assert len(key["slots"]) == answer["fuse"]["arity"]
            assert [data[slot] for slot in key["slots"]] == key["values"]
            assert key["xored"] == key["fingerprint"]
        passed = 0
        for number in range(2000):
            key = b"%08d" % number
            found = probe(api.source, name, key)
            assert found["may_match"] == policy.key_may_match(key, data)
            passed += found["may_match"] and number % 2
            near = {at["first"]: bytes.fromhex(at["hex"]) for at in found["near"]}
            for slot, value in zip(found["slots"], found["values"], strict=True):
                assert near[slot // 64 * 64][slot % 64] == value
    assert passed < 20


def test_a_fuse_filter_of_few_keys_is_a_bloom_filter(tmp_path: Path) -> None:
    path = one_table(tmp_path / "db", [b"ant", b"bee"], filter_policy=BinaryFusePolicy())
    with opened(path) as (api, name):
        answer = table_filter(api.source, name)
    assert (answer["policy"], answer["fuse"], answer["bits"]) == ("lsmkv.BinaryFuse8", None, 64)
    assert all(key["positions"] for key in answer["keys"])


def test_the_filter_of_prefixes_is_one_of_prefixes(tmp_path: Path) -> None:
    keys = [b"%d:%d" % (user, item) for user in range(5) for item in range(4)]
    extractor = DelimitedPrefix(b":")
    options = {"filter_policy": Bloom64Policy(10), "prefix_extractor": extractor}
    with opened(one_table(tmp_path / "db", keys, **options)) as (api, name):
        first = table_filter(api.source, name)
        answer = table_filter(api.source, name, **first["next"])
        found = probe(api.source, name, b"3:", **first["next"])
    assert (answer["kind"], answer["extractor"]) == ("prefix", extractor.name)
    assert [key["text"] for key in answer["keys"]] == ["0:", "1:", "2:", "3:", "4:"]
    assert found["may_match"]


def test_filters_are_numbered_as_dump_numbers_them(tmp_path: Path) -> None:
    """Blocks of 4 KiB leave every second filter or so without keys; the numbers go on."""
    keys = [b"%08d" % number for number in range(3000)]
    path = one_table(tmp_path / "db", keys, compression=None)
    with opened(path) as (api, name):
        shown = {one["n"]: (one["first"], one["last"], one["bits"]) for one in filters_of(api)}
    dumped = {}
    for line in CliRunner().invoke(app, ["dump", str(path / name)]).output.splitlines():
        match = re.match(r"  filter (\d+), blocks at (\d+) to (\d+): ([\d,]+) bits", line)
        if match is not None:
            number, first, last = map(int, match.groups()[:3])
            dumped[number] = first, last, int(match[4].replace(",", ""))
    assert shown == dumped
    assert max(shown) > len(shown)


def test_what_is_not_there(tmp_path: Path) -> None:
    with opened(one_table(tmp_path / "db", [b"ant"])) as (api, name):
        with pytest.raises(
            NotThereError, match=r"1 filter, of number 0; there is none of number 1"
        ):
            api.answer("filter", {"name": name, "n": "1"})
        with pytest.raises(NotThereError, match="there is none of number 0"):
            api.answer("filter", {"name": name, "block": "1"})
        with pytest.raises(NotThereError, match="is not the name"):
            api.answer("filter", {})
        with pytest.raises(ValueError, match="n must be a number"):
            api.answer("filter", {"name": name, "n": "one"})


def test_a_damaged_data_block_leaves_the_filter(tmp_path: Path) -> None:
    path = one_table(tmp_path / "db", [b"ant"])
    with opened(path) as (api, name):
        before = table_filter(api.source, name)
        damage(path / name, 3)  # in the data block
        answer = table_filter(api.source, name)
    assert answer["hex"] == before["hex"]
    assert answer["keys"] == []
    assert f"{name} is damaged: its data block, at 0" in answer["keys_problem"]


def test_a_damaged_filter_is_not_said_to_be_missing(tmp_path: Path) -> None:
    path = one_table(tmp_path / "db", [b"ant"])
    with opened(path) as (api, name):
        block = table_filter(api.source, name)["block"]
        damage(path / name, block)
        with pytest.raises(lsmkv.CorruptionError) as raised:
            table_filter(api.source, name)
        reason = api.reason(raised.value)
        levels = api.answer("levels", {})["facts"]["filter_damage"]
    assert f"{name} is damaged: its filter block, at {block:,} (block checksum mismatch)." in reason
    assert levels == reason


def test_a_damaged_filter_beside_a_sound_one(tmp_path: Path) -> None:
    path = one_table(tmp_path / "db", [b"ant"], filter_layout="both")
    with opened(path) as (api, name):
        first = table_filter(api.source, name)
        second = first["next"]["block"]
        damage(path / name, second)
        answer = table_filter(api.source, name)
        with pytest.raises(lsmkv.CorruptionError):
            table_filter(api.source, name, 0, second)
    assert answer["n"] == 0
    assert answer["filters"] == 1
    assert "whole-table filter" in answer["damage"][0]


def test_the_number_of_prefixes_of_a_custom_extractor_follows_from_the_fill(tmp_path: Path) -> None:
    class FirstTwo:
        name = "first two"

        def extract(self, key: bytes) -> bytes | None:
            return key[:2]

    keys = [b"%02d-%04d" % (at % 50, at) for at in range(500)]
    path = one_table(
        tmp_path / "db", sorted(keys), prefix_extractor=FirstTwo(), filter_layout="both"
    )
    with opened(path) as (api, _):
        (prefixes,) = [one for one in filters_of(api) if one["kind"] == "prefix"]
    assert prefixes["keys"] == []
    assert not prefixes["counted"]
    assert prefixes["key_count"] == pytest.approx(50, rel=0.25)

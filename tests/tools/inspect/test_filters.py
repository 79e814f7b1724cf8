from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from inspected import HOSTILE, WORDS, damage

import lsmkv
from lsmkv.filter.bloom import BloomFilterPolicy
from lsmkv.tools.inspect import filters
from lsmkv.tools.inspect.api import Api
from lsmkv.tools.inspect.filters import LONGEST_KEY, MOST_BITS, MOST_KEYS, table_filter
from lsmkv.tools.inspect.plain import NotThereError, Plain


def filters_of(api: Api) -> list[Plain]:
    """Every filter of every table."""
    found: list[Plain] = []
    for table in api.source.db().tables():
        first = table_filter(api.source, table.name)
        found += [first] + [
            table_filter(api.source, table.name, n) for n in range(1, first["filters"])
        ]
    return found


def one_table(path: Path, keys: list[bytes], **options: Any) -> Path:
    with lsmkv.DB(path, create_if_missing=True, **options) as db:
        for key in keys:
            db.put(key, b"value " * 5)
        db.flush()
    return path


@contextlib.contextmanager
def opened(path: Path) -> Any:
    with contextlib.closing(Api(str(path))) as api:
        yield api, next(path.glob("*.ldb")).name


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
        told = api.answer("filter", {"name": name})
    assert (told["kind"], told["filters"], told["first"], told["last"]) == ("table", 1, None, None)
    assert (len(told["keys"]), told["more_keys"]) == (MOST_KEYS, True)
    assert told["bits"] > MOST_BITS
    assert len(told["hex"]) == MOST_BITS // 4
    assert 0 < told["rate"] < 0.02


@pytest.mark.parametrize("number", [1, MOST_KEYS, MOST_KEYS + 1, 5000])
def test_the_number_of_keys_is_stated_however_many_there_are(tmp_path: Path, number: int) -> None:
    keys = [b"%08d" % at for at in range(number)]
    with opened(one_table(tmp_path / "db", keys, filter_layout="table")) as (api, name):
        told = table_filter(api.source, name)
    assert (told["key_count"], told["counted"]) == (number, True)
    assert told["more_keys"] == (number > MOST_KEYS)
    data = BloomFilterPolicy().create_filter(keys)
    assert told["ones"] == sum(byte.bit_count() for byte in data[:-1])


def test_the_number_of_very_many_keys_follows_from_the_fill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filters, "MOST_COUNTED", 1000)
    keys = [b"%08d" % at for at in range(5000)]
    with opened(one_table(tmp_path / "db", keys, filter_layout="table")) as (api, name):
        told = table_filter(api.source, name)
    assert not told["counted"]
    assert told["key_count"] == pytest.approx(5000, rel=0.1)  # probes repeat


class FirstByte:
    name = "first byte"

    def create_filter(self, keys: list[bytes]) -> bytes:
        return bytes({key[0] for key in keys})

    def key_may_match(self, key: bytes, data: bytes) -> bool:
        return key[0] in data


def test_a_filter_of_another_policy_has_no_bits(tmp_path: Path) -> None:
    path = one_table(tmp_path / "db", [b"ant", b"bee"], filter_policy=FirstByte())
    with opened(path) as (api, name):
        told = table_filter(api.source, name)
    assert told["policy"] == "first byte"
    assert (told["bits"], told["probes"], told["hex"]) == (None, None, "")
    assert [key["text"] for key in told["keys"]] == ["ant", "bee"]


def test_what_is_not_there(tmp_path: Path) -> None:
    with opened(one_table(tmp_path / "db", [b"ant"])) as (api, name):
        with pytest.raises(NotThereError, match="1 filter; there is none of number 1"):
            api.answer("filter", {"name": name, "n": "1"})
        with pytest.raises(NotThereError, match="is not the name"):
            api.answer("filter", {})
        with pytest.raises(ValueError, match="n must be a number"):
            api.answer("filter", {"name": name, "n": "one"})
    with (
        opened(one_table(tmp_path / "none", [b"ant"], bloom_filter_bits=0)) as (api, name),
        pytest.raises(NotThereError, match="no filter"),
    ):
        table_filter(api.source, name)


def test_damage_is_told(tmp_path: Path) -> None:
    path = one_table(tmp_path / "db", [b"ant"])
    with opened(path) as (api, name):
        damage(path / name, 3)  # in the data block
        with pytest.raises(lsmkv.CorruptionError):
            table_filter(api.source, name)

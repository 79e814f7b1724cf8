"""lsmkv.engine.options.whose: which options of a shared store are the owner's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

import lsmkv
from lsmkv.engine.options import OPTIONS, Options, make_options
from lsmkv.engine.options.whose import WHOSE, differing, in_force, sent

OTHERS: dict[str, Any] = {
    "compression": "zlib",
    "bloom_filter_bits": [16, 12, 0],
    "filter_policy": lsmkv.BloomFilterPolicy(12.5),
    "filter_layout": "both",
    "background": "inline",
    "flush_prefix": "v",
    "trace": "somewhere",
}
"""Other values than the default, of options that are neither numbers nor on or off."""
OWNERS = [name for name, whose in WHOSE.items() if whose == "owner"]


def other_value(name: str) -> Any:
    default = OPTIONS[name].default
    if name in OTHERS:
        return OTHERS[name]
    return not default if isinstance(default, bool) else 2 * default


def received(options: Options) -> Any:
    return json.loads(json.dumps(sent(options)))


def test_every_option_is_in_one_class() -> None:
    assert list(WHOSE) == list(OPTIONS)
    assert set(WHOSE.values()) == {"owner", "process", "files"}


def test_every_field_of_the_owner_is_sent() -> None:
    fields = {name for name in OWNERS if name in Options._fields}
    made = {"auto_compression", "filter_policy", "filter_bits"}
    assert set(sent(make_options())) == fields | made


@pytest.mark.parametrize("name", [*OWNERS, "filter_policy"])
def test_what_the_owner_has_is_in_force_and_named(name: str) -> None:
    given: Any = {name: other_value(name)}
    own, owners = make_options(), make_options(**given)
    shown = in_force(own, received(owners))
    assert sent(shown) == sent(owners) != sent(own)
    assert shown.block_cache is own.block_cache
    assert differing(given, shown) == {}
    assert list(differing(given, in_force(owners, received(own)))) == [name]


def test_what_is_not_the_owners_is_ones_own() -> None:
    given: Any = {"max_open_files": 99, "lock_timeout": 3.0, "lru_cache_size": 0}
    shown = in_force(make_options(**given), received(make_options()))
    assert (shown.max_open_files, shown.lock_timeout, shown.block_cache) == (99, 3.0, None)
    assert differing(given, shown) == {}


def test_defaults_that_were_not_given_do_not_differ() -> None:
    shown = in_force(make_options(), received(make_options(block_size=8192, compression=None)))
    assert differing({}, shown) == {}
    assert differing({"block_size": None, "trace": None}, shown) == {}
    assert differing({"compression": None}, shown) == {}
    assert differing({"compression": None}, make_options()).keys() == {"compression"}
    assert differing({"block_size": 4096}, shown) == {"block_size": "8192, not 4096"}


def test_a_codec_that_the_store_has_decided() -> None:
    world = make_options()._replace(compression=make_options(compression="zlib-raw").compression)
    shown = in_force(make_options(), received(world))
    assert shown.compression == world.compression
    assert differing({"compression": "auto"}, shown) == {}
    assert differing({"compression": "zlib-raw"}, shown) == {}
    assert differing({"compression": "snappy"}, shown) == {"compression": "'auto', not 'snappy'"}


class FirstByte:
    """A policy of a program's own."""

    name = "example.FirstByte"

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        return bytes({key[0] for key in keys if key})

    def key_may_match(self, key: bytes, filter_data: bytes) -> bool:
        return key == b"" or key[0] in filter_data


def test_a_policy_that_cannot_be_sent_is_the_members_own() -> None:
    own = make_options(filter_policy=FirstByte())
    shown = in_force(own, received(make_options(filter_policy=FirstByte())))
    assert shown.filter_policy is own.filter_policy


@pytest.mark.parametrize(
    "value",
    [
        None, [], 3, {}, {"new_option": 1}, {"max_open_files": 20}, {"comparator": "x"},
        {"write_buffer_size": "4"}, {"compression": "lz9"}, {"compression": []},
        {"filter_policy": "xor:3"}, {"filter_policy": 3}, {"filter_layout": "none"},
        {"filter_bits": 1}, {"filter_bits": [1]}, {"filter_bits": ["x", []]},
        {"filter_bits": {"0": 1}}, {"background": "cloud"}, {"trace": {}}, {"trace_sample": 0},
    ],
)  # fmt: skip
def test_an_owner_of_another_release(value: object) -> None:
    own = make_options()
    assert in_force(own, value) == own


def test_a_long_value_is_not_sent() -> None:
    given: Any = {"trace": "\u1234" * 5000, "bloom_filter_bits": [10.123456] * 500}
    options = make_options(**given)
    assert len(json.dumps(sent(options))) < 3000  # a greeting of 4,096 bytes has more than these
    shown = in_force(make_options(), received(options))
    assert shown.trace is None
    assert differing({"trace": given["trace"]}, shown).keys() == {"trace"}

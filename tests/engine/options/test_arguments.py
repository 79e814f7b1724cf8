"""lsmkv.engine.options.arguments: an option is declared once, and what has to repeat it is
right.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

import lsmkv
from lsmkv.engine.db.compact.messages import decode_settings, encode_settings
from lsmkv.engine.options import OPTIONS, Options, TableArguments, make_options

MADE_OF_OTHERS = {"auto_compression", "filter_bits"}
"""Fields of ``Options`` that are no keywords."""
MADE_INTO_OTHERS = {
    "bloom_filter_bits": "filter_policy",
    "comparator_name": "comparator",
    "lru_cache_size": "block_cache",
    "prefix_extractor_name": "prefix_extractor",
}
"""Keywords that are no fields, and the field that each of them decides."""

OTHERS: dict[str, dict[str, Any]] = {
    "compression": {"compression": "zstd"},
    "bloom_filter_bits": {"bloom_filter_bits": 17},
    "filter_policy": {"filter_policy": lsmkv.Bloom64Policy(12)},
    "filter_layout": {"filter_layout": "both"},
    "prefix_extractor": {"prefix_extractor": 3},
    "prefix_extractor_name": {
        "prefix_extractor": b":",
        "prefix_extractor_name": lsmkv.DelimitedPrefix(b":").name,
    },
    "comparator": {"comparator": lsmkv.ReverseBytewiseComparator()},
    "comparator_name": {
        "comparator": lsmkv.ReverseBytewiseComparator(),
        "comparator_name": "leveldb.ReverseBytewiseComparator",
    },
}
"""Settings other than the default, of options that are no plain numbers."""


def test_every_keyword_is_a_field_of_the_settings_in_force_or_decides_one() -> None:
    assert set(Options._fields) - MADE_OF_OTHERS == set(OPTIONS) - set(MADE_INTO_OTHERS)
    assert set(MADE_INTO_OTHERS.values()) <= set(Options._fields)


def test_settings_have_the_declared_defaults() -> None:
    bare = make_options(lru_cache_size=0, bloom_filter_bits=0)
    assert Options() == bare._replace(auto_compression=False)
    for name, option in OPTIONS.items():
        if name in Options._fields and name not in ("comparator", "compression", "filter_layout"):
            assert getattr(bare, name) == option.default, name


def facts(options: Options) -> dict[str, str]:
    """The settings as text, to be compared; each store has a block cache of its own."""
    order = options.comparator.name
    plain = options._replace(block_cache=None)._asdict()
    return {name: order if name == "comparator" else repr(value) for name, value in plain.items()}


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_a_default_may_be_given(name: str) -> None:
    keywords: Any = {name: OPTIONS[name].default}
    assert facts(make_options(**keywords)) == facts(make_options())


@pytest.mark.parametrize("name", sorted(set(TableArguments.__annotations__) - {"env"}))
def test_what_shapes_tables_reaches_worker_processes(name: str) -> None:
    """Whether it is plain data, or an object that has a name."""
    keywords: Any = OTHERS.get(name) or {name: OPTIONS[name].default + 1}
    options = make_options(**keywords)
    _, _, decoded = decode_settings(encode_settings("token", False, options))
    given, received, default = facts(options), facts(decoded), facts(make_options())
    for field in given:
        if field in TableArguments.__annotations__:
            assert received[field] == given[field], field
    assert given != default


def test_worker_processes_get_what_is_declared_for_them() -> None:
    settings = json.loads(encode_settings("token", False, make_options()))
    plain = {name: settings[name] for name, option in OPTIONS.items() if option.in_workers}
    options = make_options()
    assert plain == {name: getattr(options, name) for name in plain}
    assert {"block_size", "compression", "max_open_files"} <= set(plain)
    objects = {"comparator", "filter", "filter_layout", "prefix_extractor"}
    assert set(settings) == {"token", "low_priority", *objects, *plain}


def test_a_misspelt_option_is_refused_with_the_nearest() -> None:
    with pytest.raises(TypeError, match="no option 'blok_size': did you mean 'block_size'"):
        make_options(blok_size=1)  # type: ignore[call-arg]

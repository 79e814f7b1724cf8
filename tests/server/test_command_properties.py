"""What is known of commands by their names."""

from __future__ import annotations

import pytest

from lsmkv.server.command_properties import KeySpec, properties_of
from lsmkv.server.commands import COMMANDS


@pytest.mark.parametrize(
    ("name", "specs"),
    [
        ("GET", [KeySpec(("RO", "access"), 1, 1)]),
        ("MSET", [KeySpec(("OW", "update"), 1, -1, 2)]),
        ("BLPOP", [KeySpec(("RW", "access", "delete"), 1, -2)]),
        ("BLMPOP", [KeySpec(("RW", "access", "delete"), 2, counted=True)]),
        ("COPY", [KeySpec(("RO", "access"), 1, 1), KeySpec(("OW", "update"), 2, 2)]),
        ("SORT_RO", [KeySpec(("RO", "access"), 1, 1), KeySpec(("RO", "access"), 0)]),
        ("OBJECT|ENCODING", [KeySpec(("RO",), 2, 2)]),
        ("PING", []),
    ],
)
def test_keys(name: str, specs: list[KeySpec]) -> None:
    assert list(properties_of(name, frozenset(), "generic").keys) == specs


def test_a_name_with_a_star_stands_for_all_subcommands() -> None:
    none: frozenset[str] = frozenset()
    assert {"loading", "stale"} <= properties_of("CLIENT|ID", none, "connection").flags
    assert "loading" not in properties_of("CLIENT", none, "connection").flags
    assert "connection" in properties_of("COMMAND|DOCS", none, "server").categories


def test_an_unknown_name_has_what_follows_from_its_flags() -> None:
    properties = properties_of("NEW", frozenset({"write", "fast"}), "hash")
    assert (properties.keys, properties.tips, properties.since) == ((), [], "1.0.0")
    assert properties.flags == {"write", "fast"}
    assert properties.categories == {"write", "fast", "hash"}


def test_what_reads_or_writes_a_key_says_which() -> None:
    """Those that walk over all keys, or change all, name none, nor do those of functions."""
    walking = {"KEYS", "SCAN", "RANDOMKEY", "DBSIZE", "FLUSHDB", "FLUSHALL", "SWAPDB"}
    for name, outer in COMMANDS.items():
        for one in (outer, *outer.subcommands.values()):
            about_keys = name != b"FUNCTION" and one.name not in walking
            if one.flags & {"readonly", "write"} and about_keys:
                assert one.properties.keys, one.name

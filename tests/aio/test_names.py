"""Classes that show one API twice have the same names and arguments, but for those listed here.

``lsmkv.aio`` shows the plain classes, and ``PrefixedDB`` shows a part of a ``DB``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import lsmkv
import lsmkv.shards
from lsmkv import aio

PAIRS: list[tuple[type, type]] = [
    (aio.DB, lsmkv.DB),
    (aio.SharedDB, lsmkv.SharedDB),
    (aio.PrefixedDB, lsmkv.PrefixedDB),
    (aio.Snapshot, lsmkv.Snapshot),
    (aio.Transaction, lsmkv.Transaction),
    (aio.WriteBatch, lsmkv.WriteBatch),
    (aio.Iterator, lsmkv.Iterator),
    (aio.Batches, lsmkv.Batches),
    (aio.Cache, lsmkv.Cache),
    (aio.Shards, lsmkv.shards.Shards),
    (lsmkv.PrefixedDB, lsmkv.DB),
]
OPENED = {"open": "it is opened by an await"}
AWAITED = {"contains": "`key in db` cannot be awaited"}
STORE = OPENED | AWAITED | {"options": "an attribute of each plain store"}
ADDED: dict[type, dict[str, str]] = {
    aio.DB: STORE,
    aio.SharedDB: STORE,
    aio.PrefixedDB: AWAITED,
    aio.Snapshot: OPENED | AWAITED,
    aio.Cache: OPENED | AWAITED | {"count": "`len(cache)` cannot be awaited"},
    aio.Shards: OPENED | AWAITED,
    lsmkv.PrefixedDB: {"db": "the store", "prefix": "the part"},
}
"""Names that the model lacks, and why."""
RAW = {"raw_iterator": "it moves by single steps, each of which would be a trip to a thread"}
WHOLE = "is about the whole store"
LEFT_OUT: dict[type, dict[str, str]] = {
    aio.DB: RAW,
    aio.SharedDB: RAW,
    aio.PrefixedDB: RAW,
    aio.Snapshot: RAW | {"release": "LevelDB's name for close"},
    aio.WriteBatch: {"encode": "for files", "encoded_operations": "for files"},
    aio.Iterator: {"hide_prefix": "for prefixed parts, in the engine"},
    lsmkv.PrefixedDB: {
        **dict.fromkeys(("close", "closed", "name", "recovery", "acknowledge_recovery"), WHOLE),
        **dict.fromkeys(("flush", "sync", "refresh", "rewrite_tables", "checkpoint"), WHOLE),
        **dict.fromkeys(("stats", "metrics_text", "get_property", "verify", "check"), WHOLE),
        **dict.fromkeys(("tables", "written_keys", "ingest"), WHOLE),
        **dict.fromkeys(("sequence", "wait_for_change", "batches"), WHOLE),
        **dict.fromkeys(
            ("compact_range", "approximate_size", "approximate_sizes"), "takes a range"
        ),
        **dict.fromkeys(("explain", "may_contain", "multi_get"), "takes keys with the prefix"),
        **dict.fromkeys(("write", "transaction"), "write_batch and run add the prefix"),
    },
}
"""Names of the model that a class lacks, and why."""
OTHER_ARGUMENTS = {
    "iterator": "has a chunk",
    "batches": "has no timeout: it waits for ever",
    "sequence": "awaited, where a store's may ask its owner",
}


@pytest.mark.parametrize(("ours", "model"), PAIRS)
def test_names_are_those_of_the_model(ours: type, model: type) -> None:
    here, there = public_names(ours), public_names(model)
    assert sorted(here - there) == sorted(ADDED.get(ours, {}))
    assert sorted(there - here) == sorted(LEFT_OUT.get(ours, {}))


@pytest.mark.parametrize(("ours", "model"), PAIRS)
def test_arguments_are_those_of_the_model(ours: type, model: type) -> None:
    for name in public_names(ours) & public_names(model):
        here, there = (inspect.getattr_static(one, name) for one in (ours, model))
        if name in OTHER_ARGUMENTS:
            assert callable(here) or not callable(there), name
            continue
        assert callable(here) == callable(there), name
        if callable(here) and not lsmkv.COMPILED:  # compiled functions of some have no signature
            assert parameters(here) == parameters(there), name


def public_names(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def parameters(function: Callable[..., Any]) -> list[tuple[str, Any, Any]]:
    found = inspect.signature(function).parameters.values()
    return [(one.name, one.kind, one.default) for one in found]


def test_everything_public_has_a_docstring() -> None:
    for name in aio.__all__:
        thing = getattr(aio, name)
        assert thing.__doc__
        for member in public_names(thing) if isinstance(thing, type) else ():
            assert inspect.getattr_static(thing, member).__doc__, (name, member)

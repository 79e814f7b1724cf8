"""lsmkv.aio as a whole: the same names, arguments and objects as the plain classes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import lsmkv
from lsmkv import aio


def public_names(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("ours", "model", "extra"),
    [
        (aio.DB, lsmkv.DB, {"open", "contains", "options"}),
        (aio.Iterator, lsmkv.Iterator, {"closed"}),
        (aio.Snapshot, lsmkv.Snapshot, {"open"}),
        (aio.PrefixedDB, lsmkv.PrefixedDB, {"contains"}),
        (aio.Transaction, lsmkv.Transaction, set()),
        (aio.WriteBatch, lsmkv.WriteBatch, set()),
    ],
)
def test_names_and_arguments_are_those_of_the_plain_classes(
    ours: type, model: type, extra: set[str]
) -> None:
    for name in public_names(ours) - extra:
        there = inspect.getattr_static(model, name)
        here = inspect.getattr_static(ours, name)
        if isinstance(there, property):
            assert isinstance(here, property)
        elif lsmkv.COMPILED:
            assert callable(there)  # compiled functions tell no signature; the pure ones do
        elif name not in ("iterator", "batches"):  # a chunk, and keywords by Unpack; no timeout
            assert parameters(here) == parameters(there), name


def parameters(function: Callable[..., Any]) -> list[tuple[str, Any, Any]]:
    found = inspect.signature(function).parameters.values()
    return [(one.name, one.kind, one.default) for one in found]


def test_everything_public_has_a_docstring() -> None:
    for name in aio.__all__:
        thing = getattr(aio, name)
        assert thing.__doc__
        for member in public_names(thing) if isinstance(thing, type) else ():
            assert inspect.getattr_static(thing, member).__doc__, (name, member)

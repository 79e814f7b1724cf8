"""lsmkv.engine.options.shown: what a running program is shown of the keywords, compiled or not."""

from __future__ import annotations

import inspect
import pydoc
from typing import Any

import pytest

import lsmkv
import lsmkv.aio
from lsmkv.engine.options import OPTIONS, OptionArguments, TableArguments


@pytest.mark.parametrize(
    ("cls", "keywords"),
    [
        (lsmkv.DB, OptionArguments),
        (lsmkv.aio.DB, OptionArguments),
        (lsmkv.TableWriter, TableArguments),
    ],
    ids=lambda one: one.__qualname__,
)
def test_a_signature_has_the_keywords_with_types_and_defaults(cls: Any, keywords: Any) -> None:
    path, *shown = inspect.signature(cls).parameters.values()
    assert (path.name, path.default) == ("path", inspect.Parameter.empty)
    assert {one.name for one in shown} == set(keywords.__annotations__)
    for one in shown:
        assert one.kind is inspect.Parameter.KEYWORD_ONLY
        assert one.default == OPTIONS[one.name].default
        assert one.annotation == keywords.__annotations__[one.name].__origin__
    assert "block_size: int | None = 4096" in str(inspect.signature(cls))


class Inherits(lsmkv.DB):
    """Opens as the base does."""


class OpensAlone(lsmkv.DB):
    """Has a signature of its own."""

    def __init__(self, name: str) -> None:
        super().__init__(name, create_if_missing=True)


def test_derived_classes_show_their_own_signature() -> None:
    assert inspect.signature(Inherits) == inspect.signature(lsmkv.DB)
    assert list(inspect.signature(OpensAlone).parameters) == ["name"]


def test_help_has_each_option_with_default_and_meaning() -> None:
    assert "block_size: int | None = 4096" in pydoc.plain(pydoc.render_doc(lsmkv.DB))
    text = pydoc.plain(pydoc.render_doc(lsmkv.Options))
    assert "``write_buffer_size``: 4194304" in text
    assert "Size to which a memtable grows before it becomes a table" in text

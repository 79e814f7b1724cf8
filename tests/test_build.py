"""Which build is under test: the makefile says what it expects, so that none hides the other."""

from __future__ import annotations

import os

import lsmkv
import lsmkv.db.db
import lsmkv.table.block
import lsmkv.util.coding

COMPILED_MODULES = (lsmkv.db.db, lsmkv.table.block, lsmkv.util.coding)


def test_compiled_is_what_this_run_expects() -> None:
    expected = os.environ.get("LSMKV_EXPECT_COMPILED")
    if expected is not None:
        assert lsmkv.COMPILED is (expected == "1")


def test_all_or_nothing() -> None:
    compiled = {not module.__file__.endswith(".py") for module in COMPILED_MODULES}
    assert compiled == {lsmkv.COMPILED}

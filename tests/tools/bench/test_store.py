"""lsmkv.tools.bench.store: what an engine does that has neither order nor levels."""

from __future__ import annotations

import pytest

from lsmkv.tools.bench.store import Store


def test_a_store_without_levels_counts_nothing_and_compacts_nothing() -> None:
    store = Store({})
    store.flush()
    store.settle()
    assert (store.levels(), store.counters(), store.table_bytes_written()) == ([], {}, None)
    with pytest.raises(ValueError, match="no levels"):
        store.compact()
    for call in (store.batch_writer, store.seeker):
        with pytest.raises(NotImplementedError):
            call()

"""A shard set that no test changes, and a reader of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from small_sets import build

import lsmkv
import lsmkv.bulk
import lsmkv.shards


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set that no test changes."""
    path = tmp_path_factory.mktemp("set")
    build(path, prefix_extractor=4)
    return path


@pytest.fixture
def shards(url: Path) -> Iterator[lsmkv.shards.Shards]:
    with lsmkv.shards.open(url) as s:
        yield s

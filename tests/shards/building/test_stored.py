"""A part of the input, stored where a worker finds it."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest
from bulk_pairs import read

import lsmkv
import lsmkv.bulk
import lsmkv.shards
from lsmkv.shards.building.blob import pack_pairs
from lsmkv.shards.building.place import Place
from lsmkv.shards.building.stored import StoredPart
from lsmkv.shards.remote.objects.retrying import DEFAULT_LIMITS


class Weighing(Executor):
    """Notes how many bytes are sent with each call."""

    def __init__(self) -> None:
        self.sent: list[int] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        content = pickle.dumps((fn, args, kwargs))
        self.sent.append(len(content))
        fn, args, kwargs = pickle.loads(content)
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@pytest.mark.parametrize("is_table", [False, True])
def test_no_pairs_are_sent_with_a_call(tmp_path: Path, is_table: bool) -> None:
    rng = random.Random(1)
    pairs = [(b"%06d" % n, rng.randbytes(1000)) for n in range(2000)]
    source: Any = pairs
    if is_table:
        keys, values = zip(*pairs, strict=True)
        source = pytest.importorskip("pyarrow").table({"key": keys, "value": values})
    executor = Weighing()
    lsmkv.bulk.build(source, tmp_path, executor=executor)
    assert read(tmp_path) == pairs
    assert len(executor.sent) == 2
    assert max(executor.sent) < 20_000


def test_a_damaged_blob_is_named_by_its_part(tmp_path: Path) -> None:
    work = Place.at(str(tmp_path / "work"), None, DEFAULT_LIMITS)
    with work.open(create=True) as objects:
        objects.put("part", pack_pairs([(b"a", b"1"), (b"b", b"2")]))
        objects.put("damaged", b"no blob")
    assert list(StoredPart(work, "part", "part 1", None).pairs()) == [(b"a", b"1"), (b"b", b"2")]
    with pytest.raises(lsmkv.CorruptionError) as caught:
        list(StoredPart(work, "damaged", "part 2", None).pairs())
    assert caught.value.path == "part 2"

"""lsmkv.engine.db.observe.observation: it is there where an option asks for it, and costs
nothing else.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from observing import kinds, owner_of, published
from processes import ENVIRON

import lsmkv
import lsmkv.aio
import lsmkv.plyvel
from lsmkv import DB
from lsmkv.engine.db.read.reader import Reader
from lsmkv.engine.db.write.writer import Writer


def test_only_a_store_that_is_observed_has_a_listener(tmp_path: Path) -> None:
    """Reader and writer are the same with it and without."""
    for options, observed in (({"trace_sample": 5}, False), ({"publish_stats": True}, True)):
        with DB(tmp_path / "db", create_if_missing=True, **options) as db:  # type: ignore[arg-type]
            assert (db._open_store().listener is not None) == observed
            assert (type(db._reader), type(db._writer)) == (Reader, Writer)


def test_what_observes_is_imported_when_it_is_asked_for() -> None:
    code = (
        "import sys, lsmkv\n"
        "with lsmkv.DB(':memory:') as db: db.put(b'k', b'v')\n"
        "names = 'observation', 'observer', 'publisher'\n"
        "late = {f'lsmkv.engine.db.observe.{name}' for name in names}\n"
        "assert not late & set(sys.modules), late & set(sys.modules)\n"
        "lsmkv.DB(':memory:', publish_stats=True).close()\n"
        "assert 'lsmkv.engine.db.observe.publisher' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True, env=ENVIRON)


def test_nothing_stays_after_a_failed_open(tmp_path: Path) -> None:
    path, trace = tmp_path / "db", tmp_path / "trace"
    with DB(path, create_if_missing=True) as db:
        db.put(b"k", b"v")
    (path / "CURRENT").write_bytes(b"nonsense")
    before = sorted(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else []
    for _ in range(3):
        with pytest.raises(lsmkv.CorruptionError):
            DB(path, publish_stats=True, trace=trace)
    if before:
        assert sorted(os.listdir("/proc/self/fd")) == before
    assert owner_of(path).pid is None


def test_a_store_in_its_own_order_is_observed_too(tmp_path: Path) -> None:
    path, trace = tmp_path / "db", tmp_path / "trace"
    order = lsmkv.ReverseBytewiseComparator()
    DB(path, create_if_missing=True, comparator=order).close()
    with DB(path, trace=trace, publish_stats=True) as db:
        db.put(b"k", b"v")
        assert published(path, lambda it: it.stats.writes == 1).pid == os.getpid()
    assert kinds(trace) == [("put", b"k", 1)]


def test_the_options_are_checked(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="trace must be a path or None, not bool"):
        DB(":memory:", trace=True)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="trace_sample must be an int"):
        DB(":memory:", trace_sample=0.5)  # type: ignore[arg-type]
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="trace_sample"):
            DB(":memory:", trace_sample=wrong)
    with DB(":memory:", trace=tmp_path / "t", trace_sample=2, publish_stats=True) as db:
        options = db.options
        assert (options.publish_stats, options.trace_sample) == (True, 2)
        assert options.trace == str(tmp_path / "t")
    with pytest.raises(TypeError, match="no option 'trace'"):
        lsmkv.plyvel.DB(str(tmp_path / "p"), create_if_missing=True, trace="t")  # type: ignore[call-arg]


def test_a_relative_path_is_one_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with DB(":memory:", trace="t") as db:
        db.get(b"k")
    assert kinds(tmp_path / "t") == kinds("t") == [("get", b"k", None)]


def test_a_store_that_is_unpickled_does_not_restart_the_trace(tmp_path: Path) -> None:
    path, trace = tmp_path / "db", tmp_path / "trace"
    DB(path, create_if_missing=True).close()
    with DB(path, read_only=True, trace=trace) as db:
        db.get(b"a")
        with pickle.loads(pickle.dumps(db)) as again:
            assert again.options.trace is None
            again.get(b"b")
    assert kinds(trace) == [("get", b"a", None)]


def test_other_doors(tmp_path: Path) -> None:
    path, trace = tmp_path / "db", tmp_path / "trace"
    with lsmkv.open(path, "c", trace=trace, publish_stats=True) as mapping:
        mapping[b"k"] = b"v"
        assert mapping[b"k"] == b"v"
        assert published(path).pid == os.getpid()
    assert ("put", b"k", 1) in kinds(trace)

    async def main() -> None:
        async with lsmkv.aio.open_db(path, trace=trace, publish_stats=True) as db:
            await db.put(b"k", b"v2")
            assert await db.get(b"k") == b"v2"
            assert [pair async for pair in db.iterator()] == [(b"k", b"v2")]

    asyncio.run(main())
    assert kinds(trace) == [("put", b"k", 2), ("get", b"k", 2), ("seek", b"", 2)]

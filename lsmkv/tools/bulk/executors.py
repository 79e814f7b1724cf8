"""Executors of a bulk build: processes of this machine, or a Dask cluster."""

from __future__ import annotations

import importlib
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from lsmkv.engine.env.process import processors
from lsmkv.shards.building import Workers
from lsmkv.tools.console import needing

_CONNECT = 10
"""Seconds in which a scheduler has to answer."""


@contextmanager
def open_executor(workers: int | None, scheduler: str | None) -> Iterator[Executor | None]:
    """This many processes, by default one for each processor, or the workers of a Dask scheduler.

    None for one process: it is this one.
    """
    if scheduler is not None:
        with _dask(scheduler) as executor:
            yield executor
        return
    number = processors() if workers is None else workers
    if number == 1:
        yield None
        return
    before = set(multiprocessing.active_children())
    pool = Workers(number)
    try:
        yield pool
    except BaseException:
        # Their results are no longer needed, and may take minutes.
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()


@contextmanager
def _dask(address: str) -> Iterator[Executor]:
    with needing("--scheduler", "distributed"):
        distributed: Any = importlib.import_module("distributed")  # takes most of a second
    try:
        client = distributed.Client(address, timeout=_CONNECT)
    except OSError as error:
        raise OSError(f"{address}: no Dask scheduler answers: {error}") from None
    with client:
        yield client.get_executor()

from __future__ import annotations

import threading

import pytest

from lsmkv.tools.inspect import background
from lsmkv.tools.inspect.background import Work


def test_it_runs_in_a_thread_of_its_name() -> None:
    may_end = threading.Event()
    names: list[str] = []

    def function() -> None:
        may_end.wait(60)
        names.append(threading.current_thread().name)

    work = Work(function, "lsmkv-example")
    may_end.set()
    work.join()
    assert names == ["lsmkv-example"]


def test_without_threads_it_has_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "HAS_THREADS", False)
    names: list[str] = []
    work = Work(lambda: names.append(threading.current_thread().name), "lsmkv-example")
    assert names == [threading.current_thread().name]
    work.join()

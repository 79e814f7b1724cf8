"""A place for objects that another process opens."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest
from bulk_pairs import read, some

import lsmkv
import lsmkv.bulk
import lsmkv.shards


def test_a_directory_for_runs_takes_no_options_of_the_store(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    for work in (tmp_path / "work", (tmp_path / "work").as_uri()):
        document = lsmkv.bulk.build(
            some(50), "memory://set", work_url=work, options={"skip_instance_cache": True}
        )
        assert document.pairs == len(dict(some(50)))
    with pytest.raises(ValueError, match="takes no options"):
        lsmkv.bulk.build(some(50), tmp_path / "set", options={"region": "here"})


class Elsewhere(Executor):
    """Runs calls in another working directory."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        with contextlib.chdir(self._path):
            future.set_result(fn(*args, **kwargs))
        return future


def test_a_relative_path_is_the_same_place_for_all_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    executor = Elsewhere(tmp_path / "elsewhere")
    lsmkv.bulk.build(some(50), "set", work_url="work", executor=executor)
    assert read(tmp_path / "set") == sorted(dict(some(50)).items())
    assert list((tmp_path / "elsewhere").iterdir()) == []


class Late(Executor):
    """Runs calls when it is asked to."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], Any]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.calls.append(lambda: fn(*args, **kwargs))
        if len(self.calls) == 3:
            raise KeyboardInterrupt
        return Future()


def test_a_task_that_is_left_alone_makes_no_directory(tmp_path: Path) -> None:
    executor = Late()
    with pytest.raises(KeyboardInterrupt):
        lsmkv.bulk.build(
            [some(50, n) for n in range(4)],
            tmp_path / "set",
            work_url=tmp_path / "work",
            executor=executor,
        )
    for call in executor.calls:
        with pytest.raises(FileNotFoundError):
            call()
    assert list((tmp_path / "work").iterdir()) == []

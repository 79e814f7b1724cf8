"""Options of a shared store: which are in force, and the warning of those that are not."""

from __future__ import annotations

import copy
import itertools
import logging
import os
import pickle
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from others import Other, new
from waiting import wait_until

import lsmkv
from lsmkv import SharedDB
from lsmkv.shared import connection

Start = Callable[..., Other]


@contextmanager
def warned() -> Iterator[list[str]]:
    """The warnings of the block, each with the name of the file that it shows."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield texts
    assert [one.filename for one in caught] == [__file__] * len(caught)
    texts += [str(one.message) for one in caught]


def test_a_member_shows_the_owners_options_and_its_own(path: Path, other: Start) -> None:
    owner = other(create_if_missing=True, block_size=8192, publish_stats=True, max_open_files=50)
    with warned() as texts, SharedDB(path, max_open_files=60) as db:
        assert (db.options.block_size, db.options.publish_stats) == (8192, True)
        assert (db.options.max_open_files, db.options.read_only) == (60, False)
        assert texts == []
        owner.kill()
        db.put(b"k", b"v")
        assert db.role == "owner"
        assert (db.options.block_size, db.options.publish_stats) == (4096, False)
    assert texts == []


def test_what_is_not_in_force_is_one_warning_that_names_both_values(
    path: Path, other: Start
) -> None:
    owner = other(create_if_missing=True, block_size=8192)
    with warned() as texts, SharedDB(path, block_size=4096, compression=None) as db:
        db.put(b"k", b"v")
        assert db.role == "member"
    assert texts == [
        f"{path}: process {owner.pid} owns the store with other options: block_size is 8192, not"
        " 4096; compression is 'auto', not 'none'"
    ]


def test_the_next_owner_is_another_reason_only_if_it_differs_in_another_way(
    path: Path, other: Start
) -> None:
    owners = [other(create_if_missing=True, block_size=8192), other(block_size=8192)]
    owners.append(other(block_size=16384))
    with warned() as texts, SharedDB(path, block_size=4096) as db:
        for gone, following in itertools.pairwise(owners):
            gone.kill()
            following("db.put(b'k', b'v')")
            assert db.get(b"k") == b"v"
            assert db.owner == following.pid
        assert db.options.block_size == 16384
        owners[-1].kill()
        db.put(b"k", b"v")
        assert (db.role, db.options.block_size) == ("owner", 4096)
    assert [text.partition(": process ")[2] for text in texts] == [
        f"{owners[0].pid} owns the store with other options: block_size is 8192, not 4096",
        f"{owners[2].pid} owns the store with other options: block_size is 16384, not 4096",
    ]


def test_a_warning_that_is_an_error_refuses_the_opening(path: Path) -> None:
    with new(path) as db, warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="block_size is 4096, not 8192"):
            SharedDB(path, block_size=8192)
        wait_until(lambda: not db.members)


def test_a_warning_that_is_an_error_fails_no_later_call(
    path: Path, other: Start, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = other(create_if_missing=True, block_size=8192), other()
    with SharedDB(path, block_size=8192, may_own=False) as db, warnings.catch_warnings():
        warnings.simplefilter("error")
        first.kill()
        second("db.get(b'k')")
        second("db.put(b'k', b'v')")
        with caplog.at_level(logging.WARNING, "lsmkv"):
            db.put(b"k", b"w")
        assert second("db.get(b'k')") == b"w"
    assert "block_size is 4096, not 8192" in caplog.text


def test_a_forked_child_repeats_no_warning(path: Path, other: Start) -> None:
    other(create_if_missing=True)
    with pytest.warns(RuntimeWarning, match="not 8192"):
        db = SharedDB(path, block_size=8192)
    pid = os.fork()
    if pid == 0:
        try:
            with warned() as texts:
                db.put(b"k", b"v")
            os._exit(len(texts))
        finally:
            os._exit(99)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    db.close()


def test_copies_and_pickles_are_other_openings(path: Path) -> None:
    with new(path) as owner:
        with warned() as texts, SharedDB(path, block_size=8192) as db:
            pass
        assert len(texts) == 1
        pickled = pickle.dumps(db)
        for again in (lambda: copy.copy(db), lambda: pickle.loads(pickled)):
            with pytest.warns(RuntimeWarning, match="not 8192"):
                made = again()
            made.close()
        assert owner.options.block_size == 4096


def test_the_process_that_only_owns_has_the_options_of_the_first(path: Path) -> None:
    with warned() as texts:
        first = SharedDB(
            path, owner="process", create_if_missing=True, block_size=8192, trace=f"{path}/trace"
        )
    assert texts == [
        f"{path}: process {first.owner} owns the store with other options: trace is None, not"
        f" '{path}/trace'"
    ]
    with warned() as texts, SharedDB(path, owner="process", block_size=4096) as second:
        assert first.options.block_size == second.options.block_size == 8192
    assert len(texts) == 1
    assert texts[0].endswith(": block_size is 8192, not 4096")
    with first:
        os.kill(first.owner, signal.SIGKILL)
        with warned() as texts:
            first.put(b"k", b"v")
        assert texts == []


def test_a_member_writes_no_trace_until_it_owns(path: Path, tmp_path: Path, other: Start) -> None:
    owner = other(create_if_missing=True)
    trace = tmp_path / "trace"
    with pytest.warns(RuntimeWarning, match="trace is None"):
        db = SharedDB(path, trace=trace)
    with db:
        db.put(b"k", b"v")
        assert not trace.exists()
        owner.kill()
        db.put(b"k", b"w")
        assert db.options.trace == str(trace)
    assert trace.exists()


def test_a_mapping_shows_the_users_line(path: Path) -> None:
    with new(path), warned() as texts, lsmkv.open(path, "w", shared=True, block_size=8192):
        pass
    assert len(texts) == 1


def test_the_two_warnings_of_one_opening(path: Path, other: Start) -> None:
    other(create_if_missing=True)
    with warned() as texts, SharedDB(path, owner="process", block_size=8192):
        pass
    assert [text.rpartition(": ")[2] for text in texts] == [
        "block_size is 4096, not 8192",
        "members wait while it computes",
    ]


def test_a_cache_does_not_warn_of_what_it_sets_itself(tmp_path: Path) -> None:
    with lsmkv.Cache(tmp_path, size_limit=1 << 30):
        with warned() as texts, lsmkv.Cache(tmp_path, size_limit=1 << 20):
            pass
        assert texts == []
        with warned() as texts, lsmkv.Cache(tmp_path, size_limit=1 << 20, block_size=8192):
            pass
    assert len(texts) == 1
    assert texts[0].endswith(": block_size is 4096, not 8192")


@pytest.mark.skipif(lsmkv.COMPILED, reason="a compiled module keeps its classes")
def test_an_owner_of_an_older_release_sends_none(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Greeting(connection.Greeting):
        def __init__(self, content: bytes) -> None:
            super().__init__(content)
            assert self.options is not None
            self.options = None

    with new(path), warned() as texts:
        monkeypatch.setattr(connection, "Greeting", Greeting)
        with SharedDB(path, block_size=8192) as db:
            assert db.options.block_size == 8192
    assert texts == []

"""lsmkv.engine.db.opening.directory: the lock of a store, and how long it is waited for."""

from __future__ import annotations

import math
import os
import threading
import time
from typing import Any

import pytest
from processes import python_without_warnings

import lsmkv
from lsmkv import DB


def test_a_lock_held_by_this_process_is_reported(db: DB) -> None:
    with pytest.raises(lsmkv.LockedError) as caught:
        DB(db.path)
    assert caught.value.pid == os.getpid()
    assert "the database is in use (held by this process): " in str(caught.value)


def test_a_lock_is_waited_for(db: DB) -> None:
    closing = threading.Timer(0.2, db.close)
    closing.start()
    with DB(db.path, lock_timeout=60) as second:
        assert db.closed
        assert second.options.lock_timeout == 60.0
    closing.join()


def test_a_lock_that_is_not_given_up_in_time_is_reported(db: DB) -> None:
    started = time.monotonic()
    with pytest.raises(lsmkv.LockedError) as caught:
        DB(db.path, lock_timeout=0.2)
    assert time.monotonic() - started >= 0.2
    assert caught.value.pid == os.getpid()
    with pytest.raises(lsmkv.LockedError):
        lsmkv.destroy_db(db.path, lock_timeout=0.1)
    with DB(db.path, read_only=True, lock_timeout=60) as reader:  # which needs no lock
        assert not reader.closed


def test_destroying_and_repairing_wait_for_the_lock(path: str) -> None:
    for wait in (lsmkv.destroy_db, lsmkv.repair_db):
        db = DB(path, create_if_missing=True)
        closing = threading.Timer(0.2, db.close)
        closing.start()
        wait(path, lock_timeout=60)
        assert db.closed
        closing.join()


def test_ctrl_c_ends_the_wait_for_a_lock(db: DB) -> None:
    program = """
        import os, signal, sys, threading, time, lsmkv
        def interrupt():
            time.sleep(0.3)
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        try:
            lsmkv.DB(sys.argv[1], lock_timeout=600)
        except KeyboardInterrupt:
            print("interrupted")
    """
    assert python_without_warnings(program, db.path).stdout == "interrupted\n"


@pytest.mark.parametrize(
    ("wrong", "error"),
    [("1", TypeError), (True, TypeError), (-1, ValueError), (math.nan, ValueError)],
)
def test_wrong_lock_timeouts_are_refused(wrong: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="lock_timeout"):
        DB(":memory:", lock_timeout=wrong)

"""lsmkv.engine.db.write.log_rotation: a log for each memtable; a log that failed is not reused."""

from __future__ import annotations

import pytest

import lsmkv
from lsmkv import DB
from lsmkv.testing.faulty import FaultyEnv


def logs(env: lsmkv.Env) -> list[str]:
    return sorted(name for name in env.open_directory("db").names() if name.endswith(".log"))


def test_a_flush_goes_on_in_a_new_log_and_the_old_one_goes() -> None:
    env = FaultyEnv()
    with DB("db", create_if_missing=True, env=env) as db:
        db.put(b"k", b"v")
        (first,) = logs(env)
        db.flush()
        (second,) = logs(env)
        assert second > first
        syncs = db.stats().log_syncs
        db.put(b"k2", b"v2", sync=True)
        assert db.stats().log_syncs == syncs + 1
    with DB("db", env=env) as db:
        assert dict(db) == {b"k": b"v", b"k2": b"v2"}


def test_a_log_whose_sync_failed_is_not_taken_up_again() -> None:
    env = FaultyEnv()
    db = DB("db", create_if_missing=True, env=env)
    db.put(b"before", b"v", sync=True)
    (failed,) = logs(env)
    env.fail_at(1, calls={"sync"})
    with pytest.raises(lsmkv.IOError):
        db.put(b"k", b"v", sync=True)
    assert logs(env)[0] == failed
    assert len(logs(env)) == 2  # an empty, newer one, which keeps a later open from reusing it
    with pytest.raises(lsmkv.IOError):
        db.close()
    with DB("db", env=env) as again:
        assert again.get(b"before") == b"v"
        assert failed not in logs(env)

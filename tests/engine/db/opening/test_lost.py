"""lsmkv.engine.db.opening.lost: the record of what recovery has set aside, until it is
acknowledged.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

import lsmkv
from lsmkv import DB, MemoryEnv
from lsmkv.engine.db.opening.lost import read_lost
from lsmkv.engine.env.base import Directory

pytestmark = [
    pytest.mark.usefixtures("quiet"),
    pytest.mark.filterwarnings("ignore::lsmkv.RecoveryWarning"),
]


def put_all(env: lsmkv.Env, first: int, last: int) -> None:
    with DB("/db", create_if_missing=True, env=env) as db:
        for n in range(first, last):
            db.put(b"%02d" % n, b"value")


def damage(env: lsmkv.Env, at: int = 40) -> str:
    """Flip a bit of the only log; returns its name."""
    with env.open_directory("/db") as directory:
        (name,) = [name for name in directory.names() if name.endswith(".log")]
        data = bytearray(directory.read_file(name, 10_000))
        data[at] ^= 1
        directory.remove(name)
        with directory.create(name) as file:
            file.append(bytes(data))
    return name


def lost_of(env: lsmkv.Env) -> Directory:
    with env.open_directory("/db") as directory:
        return directory.subdirectory("lost")


def store() -> tuple[MemoryEnv, str]:
    """A store whose recovery has set its log aside: one put of ten was kept."""
    env = MemoryEnv()
    put_all(env, 0, 10)
    name = damage(env)
    DB("/db", env=env).close()
    return env, name


def test_verify_names_what_was_set_aside_until_it_is_acknowledged() -> None:
    env, name = store()
    for _ in range(2):
        with DB("/db", env=env) as db:
            (error,) = db.verify()
            assert (error.path, error.offset) == (f"/db/lost/{name}", 29)
            assert "8 writes in 8 batches" in error.reason
            db.check()  # the tables are sound
        with DB("/db", env=env, read_only=True) as view:
            assert len(view.verify()) == 1
            with pytest.raises(lsmkv.ReadOnlyError):
                view.acknowledge_recovery()
    with DB("/db", env=env) as db:
        assert db.acknowledge_recovery() == [f"lost/{name}"]
        assert db.acknowledge_recovery() == []
        assert db.verify() == []
    with lost_of(env) as lost:
        assert sorted(lost.names()) == [name, "RECOVERY.json"]
        (entry,) = json.loads(lost.read_file("RECOVERY.json", 10_000))["logs"]
        assert entry == {
            "log": name,
            "offset": 29,
            "reason": "fragment checksum mismatch",
            "batches": 8,
            "operations": 8,
            "missing": 1,
            "last_sequence": 1,
            "acknowledged": True,
        }
    put_all(env, 20, 30)
    second = damage(env)
    with DB("/db", env=env) as db:  # only the new one is named
        (error,) = db.verify()
        assert error.path == f"/db/lost/{second}"
        assert db.acknowledge_recovery() == [f"lost/{second}"]


def test_a_killed_recovery_records_the_log_once() -> None:
    from lsmkv.testing.faulty import FaultyEnv

    base = FaultyEnv()
    put_all(base, 0, 10)
    name = damage(base)
    n = 0
    while True:
        n += 1
        env = base.kill()
        env.fail_at(n, sticky=True)
        try:
            DB("/db", env=env).close()
        except (lsmkv.Error, OSError):
            pass
        struck = env.failures
        killed = env.kill()
        with DB("/db", env=killed) as db:
            assert dict(db) == {b"00": b"value"}
            assert [error.path for error in db.verify()] == [f"/db/lost/{name}"]
        if struck == 0:
            break
    assert n > 20


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[1]",
        b"[" * 100_000,
        b'{"format": 2, "logs": []}',
        b'{"format": 1, "logs": [{}]}',
        b'{"format": 1, "logs": 7}',
        b'{"format": 1, "logs": [{"log": "../x.log", "offset": 0, "reason": "", "batches": 0,'
        b' "operations": 0, "missing": 0, "last_sequence": 0, "acknowledged": false}]}',
        b'{"format": 1, "logs": [{"log": "000003.log", "offset": -1, "reason": "", "batches": 0,'
        b' "operations": 0, "missing": 0, "last_sequence": 0, "acknowledged": false}]}',
        bytes(2 << 20),
    ],
    ids=range(10),
)
def test_a_record_that_is_none_is_damage_and_hinders_no_opening(content: bytes) -> None:
    env, name = store()
    with lost_of(env) as lost:
        lost.remove("RECOVERY.json")
        with lost.create("RECOVERY.json") as file:
            file.append(content)
    with DB("/db", env=env) as db:
        (error,) = db.verify()
        assert error.path == "/db/lost/RECOVERY.json"
        with pytest.raises(lsmkv.CorruptionError):
            db.acknowledge_recovery()
    plan: Any = lsmkv.plan_repair("/db", env=env)
    assert "RECOVERY.json" in str(plan.to_dict()["problems"])
    assert not plan.needed  # no repair can help
    put_all(env, 20, 30)
    name = damage(env)
    with DB("/db", env=env), env.open_directory("/db") as directory:  # opening makes it again
        assert [entry.log.name for entry in read_lost(directory)] == [name]


def test_destroying_a_store_removes_the_record() -> None:
    env, _ = store()
    lsmkv.destroy_db("/db", env=env)
    with pytest.raises(FileNotFoundError):
        env.open_directory("/db")

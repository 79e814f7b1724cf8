"""From Redis, here a server of lsmkv, into a store: interruptions, and what commands say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from commands import fails, lsm

import lsmkv
from lsmkv.server import export_resp, import_redis
from lsmkv.server.check import check
from lsmkv.server.moving.exporting import Exported
from lsmkv.server.moving.importing import Importer
from lsmkv.testing import serving


@pytest.fixture
def source() -> Iterator[redis.Redis]:
    with serving() as server, redis.Redis(port=server.port) as client:
        yield client


def url_of(client: redis.Redis, database: str = "") -> str:
    return f"redis://127.0.0.1:{client.connection_pool.connection_kwargs['port']}{database}"


def commands_in(store: Path) -> list[list[bytes]]:
    with lsmkv.DB(store, read_only=True) as db:
        return list(Exported(db).commands())


def test_what_is_said(source: redis.Redis, tmp_path: Path) -> None:
    source.set("a", 1)
    source.rpush("b", 1, 2)
    source.execute_command("BF.ADD", "filter", "x")
    store = tmp_path / "store"
    done = lsm("import", store, url_of(source), "--from", "redis", "--create", "--json")
    assert done.status == 0
    assert "lsmkv: 2 keys imported in " in done.err
    assert "lsmkv: left out: 1 key of the kind MBbloom--" in done.err
    assert json.loads(done.out) == {"path": str(store), "keys": 2, "left_out": {"MBbloom--": 1}}
    file = tmp_path / "resp"
    done = lsm("export", store, "--format", "resp", "--output", file, "--json")
    assert done.status == 0
    assert "lsmkv: 2 keys exported in " in done.err
    assert json.loads(done.out)["bytes"] == file.stat().st_size
    assert file.read_bytes() == (
        b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n"
        b"*2\r\n$3\r\nDEL\r\n$1\r\nb\r\n*4\r\n$5\r\nRPUSH\r\n$1\r\nb\r\n$1\r\n1\r\n$1\r\n2\r\n"
    )


def test_one_database(source: redis.Redis, tmp_path: Path) -> None:
    source.set("zero", 0)
    source.execute_command("SELECT", 3)
    source.set("three", 3)
    import_redis(tmp_path / "store", url_of(source, "/3"), create_if_missing=True)
    assert commands_in(tmp_path / "store") == [[b"SELECT", b"3"], [b"SET", b"three", b"3"]]


def test_keys_that_are_there_are_replaced(source: redis.Redis, tmp_path: Path) -> None:
    source.rpush("list", 1, 2)
    for _ in range(2):
        import_redis(tmp_path / "store", url_of(source), create_if_missing=True)
    assert commands_in(tmp_path / "store")[-1] == [b"RPUSH", b"list", b"1", b"2"]
    with lsmkv.DB(tmp_path / "store") as db:
        assert check(db) == []


def interrupt(store: Path, url: str, after: int) -> None:
    """Begin an import, and interrupt it after so many keys."""

    def report(done: int, total: int) -> None:
        if done >= after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_redis(store, url, create_if_missing=True, progress=report)


@pytest.mark.parametrize("after", [50, 500, 700, 1800])
def test_an_interrupted_import_goes_on(source: redis.Redis, tmp_path: Path, after: int) -> None:
    source.mset({f"k{number}": number for number in range(1500)})
    source.rpush("list", *range(10))
    source.execute_command("SELECT", 4)
    source.mset({f"l{number}": number for number in range(300)})
    store = tmp_path / "store"
    interrupt(store, url_of(source), after)
    notices: list[str] = []
    moved = import_redis(store, url_of(source), notice=notices.append)
    goes_on = "an earlier import was interrupted: this one continues from there"
    assert notices == ([goes_on] if after > 500 else [])
    assert moved.keys <= 1801 - (after - 1) // 500 * 500
    found = commands_in(store)
    assert sum(one[0] == b"SET" for one in found) == 1800
    assert [b"RPUSH", b"list", *(b"%d" % number for number in range(10))] in found
    with lsmkv.DB(store) as db:
        assert Importer(db).position is None
        assert check(db) == []


def test_after_a_restart_of_the_source_all_is_imported_again(
    source: redis.Redis, tmp_path: Path
) -> None:
    keys = {f"k{number}": number for number in range(1500)}
    source.mset(keys)
    interrupt(tmp_path / "store", url_of(source), 700)
    with serving() as server, redis.Redis(port=server.port) as other:
        other.mset(keys)
        notices: list[str] = []
        moved = import_redis(tmp_path / "store", url_of(other), notice=notices.append)
    assert moved.keys == 1500
    assert "was restarted: all keys are imported again" in notices[0]


def test_progress(source: redis.Redis, tmp_path: Path) -> None:
    source.mset({f"k{number}": number for number in range(120)})
    reports: list[tuple[int, int]] = []
    import_redis(
        tmp_path / "store",
        url_of(source),
        create_if_missing=True,
        progress=lambda done, total: reports.append((done, total)),
    )
    assert reports == [(50, 120), (100, 120), (120, 120)]
    with lsmkv.DB(tmp_path / "store", read_only=True) as db:
        written: list[bytes] = []
        moved = export_resp(db, written.append, progress=lambda *done: reports.append(done))
    assert reports[3:] == [(50, 120), (100, 120)]
    assert (moved.keys, len(written)) == (120, 121)


def test_failures_say_why(
    source: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = str(tmp_path / "store")
    words = ("--from", "redis", "--create")
    fails(lsm("import", store, "http://host", *words), "not a Redis URL")
    fails(lsm("import", store, "redis://127.0.0.1:1", *words), "redis://127.0.0.1:1: ")
    assert not (tmp_path / "store").exists()
    options = ("--from", "redis", "--format", "raw")
    fails(lsm("import", store, "redis://127.0.0.1:1", *options), "takes neither --format nor")
    source.config_set("requirepass", "secret")
    fails(lsm("import", store, url_of(source), *words), "NOAUTH Authentication required")
    wrong = url_of(source).replace("//", "//:wrong@")
    fails(lsm("import", store, wrong, *words), "WRONGPASS")
    right = url_of(source).replace("//", "//default:secret@")
    assert lsm("import", store, right, *words).status == 0
    monkeypatch.setenv("REDISCLI_AUTH", "secret")
    assert lsm("import", store, url_of(source), *words).status == 0
    with lsmkv.DB(tmp_path / "plain", create_if_missing=True) as db:
        db.put(b"k", b"v")
    fails(lsm("import", str(tmp_path / "plain"), right, *words), "holds data that lsmkv serve")
    plain = ("export", str(tmp_path / "plain"), "--format", "resp", "-o", store + ".resp")
    fails(lsm(*plain), "holds data that lsmkv serve")
    fails(lsm(*plain, "--prefix", "a"), "exports all keys")

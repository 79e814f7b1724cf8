"""``lsmkv import --from redis``, from a server of lsmkv: what a user sees, and interruptions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from commands import fails, lsm

import lsmkv
from lsmkv.server.check import check
from lsmkv.server.exporting import Exported
from lsmkv.server.importing import Importer
from lsmkv.testing import serving
from lsmkv.tools.moving import moves
from lsmkv.tools.moving.source import Source


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
    assert commands_in(store) == [
        [b"SELECT", b"0"], [b"SET", b"a", b"1"], [b"DEL", b"b"], [b"RPUSH", b"b", b"1", b"2"],
    ]  # fmt: skip


def test_one_database(source: redis.Redis, tmp_path: Path) -> None:
    source.set("zero", 0)
    source.execute_command("SELECT", 3)
    source.set("three", 3)
    lsm("import", tmp_path / "store", url_of(source, "/3"), "--from", "redis", "--create")
    assert commands_in(tmp_path / "store") == [[b"SELECT", b"3"], [b"SET", b"three", b"3"]]


def test_keys_that_are_there_are_replaced(source: redis.Redis, tmp_path: Path) -> None:
    source.rpush("list", 1, 2)
    for _ in range(2):
        lsm("import", tmp_path / "store", url_of(source), "--from", "redis", "--create")
    assert commands_in(tmp_path / "store")[-1] == [b"RPUSH", b"list", b"1", b"2"]
    with lsmkv.DB(tmp_path / "store") as db:
        assert check(db) == []


class _Interrupting(Source):
    """A source that is interrupted after so many keys."""

    left = 0

    def commands(self, keys: list[bytes]) -> Iterator[list[bytes]]:
        for words in super().commands(keys):
            type(self).left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
            yield words


@pytest.mark.parametrize("after", [1, 400, 700, 1800])
def test_an_interrupted_import_goes_on(
    source: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    source.mset({f"k{number}": number for number in range(1500)})
    source.rpush("list", *range(10))
    source.execute_command("SELECT", 4)
    source.mset({f"l{number}": number for number in range(300)})
    store = tmp_path / "store"
    words = ("import", store, url_of(source), "--from", "redis", "--create")
    monkeypatch.setattr(moves, "Source", _Interrupting)
    _Interrupting.left = after
    done = lsm(*words)
    assert done.status == 130
    assert "the same command goes on from here" in done.err
    monkeypatch.setattr(moves, "Source", Source)
    done = lsm(*words)
    assert done.status == 0
    assert ("goes on from there" in done.err) == (after > 500)
    imported = int(done.err.split(" keys imported")[0].split()[-1].replace(",", ""))
    assert imported <= 1801 - after // 500 * 500
    found = commands_in(store)
    assert sum(one[0] == b"SET" for one in found) == 1800
    assert [b"RPUSH", b"list", *(b"%d" % number for number in range(10))] in found
    with lsmkv.DB(store) as db:
        assert Importer(db).position is None
        assert check(db) == []


def test_after_a_restart_of_the_source_all_is_imported_again(
    source: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.mset({f"k{number}": number for number in range(1500)})
    words = ("import", tmp_path / "store", url_of(source), "--from", "redis", "--create")
    monkeypatch.setattr(moves, "Source", _Interrupting)
    _Interrupting.left = 700
    lsm(*words)
    monkeypatch.setattr(moves, "Source", Source)
    monkeypatch.setattr(Source, "run_id", lambda self: b"another")
    done = lsm(*words)
    assert "was restarted: all keys are imported" in done.err
    assert "1,500 keys imported" in done.err


def test_failures_say_why(source: redis.Redis, tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    words = ("--from", "redis", "--create")
    fails(lsm("import", store, "http://host", *words), "not the URL of a Redis")
    fails(lsm("import", store, "redis://host:x", *words), "the port of")
    fails(lsm("import", store, "redis://host/x", *words), "the database of")
    fails(lsm("import", store, "redis://127.0.0.1:1", *words), "redis://127.0.0.1:1: ")
    fails(lsm("import", store, "redis://127.0.0.1:1", "--from", "redis", "--format", "raw"),
          "takes neither --format nor --on-conflict")  # fmt: skip
    source.config_set("requirepass", "secret")
    fails(lsm("import", store, url_of(source), *words), "NOAUTH Authentication required")
    wrong = url_of(source).replace("//", "//:wrong@")
    fails(lsm("import", store, wrong, *words), "WRONGPASS")
    right = url_of(source).replace("//", "//default:secret@")
    assert lsm("import", store, right, *words).status == 0
    with lsmkv.DB(tmp_path / "plain", create_if_missing=True) as db:
        db.put(b"k", b"v")
    fails(lsm("import", str(tmp_path / "plain"), right, *words), "holds data that lsmkv serve")

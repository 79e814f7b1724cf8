"""Commands for stores that take shard sets too, and those that refuse them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import fails, lsm, on_terminal
from s3_servers import S3Server, an_s3_server
from shard_pairs import PAIRS

import lsmkv
import lsmkv.bulk
from lsmkv.tools.app import GROUPS
from lsmkv.tools.arguments import is_shard_set
from lsmkv.tools.shard_sets import store_options

TAKES_SHARD_SETS = ("get", "scan", "keys", "count", "export", "stats", "explain", "inspect")


MORE = {
    "put": ["k", "v"],
    "delete": ["k"],
    "load": ["-"],
    "import": ["-"],
    "checkpoint": ["new"],
    "diff": ["other"],
}
"""What a command must be given besides the store."""


def test_a_shard_set_is_recognized(url: Path, tmp_path: Path) -> None:
    assert is_shard_set(str(url))
    assert is_shard_set(f"file://{url}")
    assert is_shard_set("s3://bucket/name")
    with lsmkv.DB(tmp_path / "db", create_if_missing=True):
        pass
    (tmp_path / "db" / "versions").mkdir()
    assert not is_shard_set(str(tmp_path / "db"))
    assert not is_shard_set(str(tmp_path / "nothing"))
    assert not is_shard_set("odd:name")


def test_keys_are_read(url: Path) -> None:
    assert lsm("get", url, "0004").out == "value 4\n"
    assert lsm("get", f"file://{url}", "0004").out == "value 4\n"
    missed = lsm("get", url, "0005")
    assert (missed.status, missed.err) == (1, "lsmkv: 0005: no such key\n")


def test_ranges_are_read(url: Path) -> None:
    assert lsm("scan", url, "--prefix", "199").out.splitlines() == [
        f"{n}\tvalue {n}" for n in range(1990, 2000, 2)
    ]
    assert lsm("keys", url, "--reverse", "--limit", "2").out == "1998\n1996\n"
    assert lsm("count", url).out == "1000\n"
    assert lsm("count", url, "--start", "0100", "--stop", "1900").out == "900\n"
    assert json.loads(lsm("count", url, "--json").out) == {"path": str(url), "keys": 1000}


def test_a_set_is_exported_and_can_be_imported(url: Path, tmp_path: Path) -> None:
    done = lsm("export", url, "--output", tmp_path / "all.raw", "--format", "raw")
    assert done.err.startswith("lsmkv: 1,000 records exported")
    assert lsm("import", tmp_path / "db", tmp_path / "all.raw", "--create").status == 0
    with lsmkv.DB(tmp_path / "db", read_only=True) as db:
        assert list(db) == PAIRS
    assert len(lsm("export", url, "--prefix", "00").out.splitlines()) == 50


def test_explain_counts_requests(url: Path) -> None:
    done = lsm("explain", url, "0600")
    assert done.status == 0
    assert done.out.splitlines()[-1] == "  requests: 1; without filters and caches: 1"
    first = lsm("explain", url, "0004")  # in the block that opening the shard has read
    assert "requests: 0; without filters and caches: 1; 1 request saved" in first.out
    missed = lsm("explain", url, "0005")
    assert missed.status == 1
    assert "requests: 0; without filters and caches: 1; 1 request saved" in missed.out
    plain = json.loads(lsm("explain", url, "0005", "--json").out)
    assert (plain["requests"], plain["requests_saved"], plain["shard"]) == (0, 1, 0)
    assert plain["steps"]["found"] is False


def test_explain_of_a_set_is_a_tree_on_a_terminal(url: Path) -> None:
    status, shown = on_terminal("explain", url, "0005", columns=80)
    assert status == 1
    assert "└── " in shown
    assert "1 request saved" in " ".join(shown.split())


def test_stats_watch_is_for_stores(url: Path) -> None:
    fails(lsm("stats", url, "--watch"), "--watch is for stores")


def test_commands_that_are_for_stores_refuse_a_set(url: Path) -> None:
    before = sorted(path for path in url.rglob("*"))
    names = {name for group in ("Data", "Serve", "Look", "Care") for name in GROUPS[group]}
    # doctor and rescue look at any directory
    refusing = names - {*TAKES_SHARD_SETS, "verify", "repair", "doctor", "rescue"}
    assert {"put", "compact", "destroy", "serve", "dump", "report"} <= refusing
    for name in sorted(refusing):
        for where in (url, "s3://bucket/name"):
            done = lsm(*name.split(), where, *MORE.get(name, []))
            fails(done, f"{where} is a shard set, and 'lsmkv {name}' is for stores")
    fails(lsm("diff", url.parent / "db", url), "is a shard set")
    fails(lsm("filter-lab", url), "is a shard set")
    assert sorted(path for path in url.rglob("*")) == before


def test_a_missing_set_is_one_line(tmp_path: Path) -> None:
    fails(lsm("get", f"file://{tmp_path}/nothing", "k"), "nothing: there is no shard set here")
    fails(lsm("get", f"file://{tmp_path}", "k"), "no version of a shard set is published here")
    fails(lsm("get", "nosuch://bucket/name", "k"), "nosuch")


def test_inspect_refuses_a_shard_that_is_not_there(url: Path, tmp_path: Path) -> None:
    fails(lsm("inspect", url, "--shard", "3"), "there is no shard 3: version 1 has 3 shards")
    with lsmkv.DB(tmp_path / "db", create_if_missing=True):
        pass
    fails(lsm("inspect", tmp_path / "db", "--shard", "0"), "is not a shard set")


def test_http_is_allowed_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ALLOW_HTTP", raising=False)
    assert store_options("s3://bucket/name") is None
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    assert store_options("s3://bucket/name") == {"allow_http": "true"}
    assert store_options("/data/set") is None


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    pytest.importorskip("obstore")
    with an_s3_server() as server:
        yield server


def test_credentials_come_from_the_environment(
    server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    environment = {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{server.host}:{server.port}",
        "AWS_ALLOW_HTTP": "true",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    url = f"s3://{server.new_bucket()}/set"
    (tmp_path / "in.json").write_text('{"key": "ant", "value": "six"}\n')
    built = lsm("bulk", "build", tmp_path / "in.json", "--into", url, "--workers", "1")
    assert (built.status, built.err) == (0, "")
    assert lsm("get", url, "ant").out == "six\n"
    assert lsm("verify", url).status == 0
    assert lsm("bulk", "list", url).out.splitlines()[1].split()[:1] == ["1"]
    fails(lsm("inspect", url, "--shard", "1"), "there is no shard 1: version 1 has 1 shard")
    monkeypatch.delenv("AWS_ALLOW_HTTP")
    fails(lsm("get", url, "ant"), "allow_http")

"""``lsmkv filter-lab`` as a user starts it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from commands import fails, lsm, lsm_bytes
from lab_stores import build, key
from stores import contents

import lsmkv

FEW = ("--settings", "none block:10 table:4 table64:7.5 fuse", "--gets", "400")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("lab") / "store", "block:3")


def test_a_store(store: Path) -> None:
    before = contents(str(store))
    done = lsm("filter-lab", store, *FEW)
    assert (done.status, done.err) == (0, "")
    for word in ("as stored", *FEW[1].split(), "level 2", "would save", "The rule"):
        assert word in done.out
    assert contents(str(store)) == before


def test_json_is_the_same_again(store: Path) -> None:
    first, again, other = (
        lsm("filter-lab", store, *FEW, "--json", "--seed", seed).out for seed in "112"
    )
    assert first == again != other
    report = json.loads(first)
    assert report["gets"] == 400
    assert report["keys"] == "200 keys of the store, and as many near misses"
    assert [one["setting"] for one in report["settings"]] == ["as stored", *FEW[1].split()]
    none = report["settings"][1]
    assert none["blocks_read"] == max(one["blocks_read"] for one in report["settings"])
    assert none["filter_bytes"] == 0
    assert report["heat"]["scans"] > 100
    assert report["path"] == str(store)


def test_the_gets_of_a_trace(store: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with lsmkv.DB(store, read_only=True, trace=trace) as db:
        asked = [key(n) for n in range(1000, 1010)]
        for one in asked:
            db.get(one)
        next(db.iterator())
    report = json.loads(lsm("filter-lab", store, "--trace", trace, *FEW, "--json").out)
    assert (report["gets"], report["found"], report["heat"]["scans"]) == (10, 10, 0)
    assert report["keys"] == f"10 keys of the trace {trace}"
    with lsmkv.DB(store, read_only=True, trace=trace) as db:
        next(db.iterator())
    fails(lsm("filter-lab", store, "--trace", trace, *FEW), "no keys in it")
    both = ("--trace", trace, "--keys", trace)
    fails(
        lsm("filter-lab", store, *both),
        "--trace requires a store, and cannot be combined with --keys",
    )
    fails(lsm("filter-lab", store, "--trace", tmp_path / "none", *FEW), "none")


def test_keys_of_a_file_against_a_store(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "keys.txt"
    file.write_bytes(b"".join(key(n) + b"\tvalue\n\n" for n in range(1000, 1010)))
    report = json.loads(lsm("filter-lab", store, "--keys", file, *FEW, "--json").out)
    assert (report["gets"], report["found"], report["heat"]["scans"]) == (10, 10, 0)
    assert report["keys"] == f"10 keys of {file}"
    piped = lsm_bytes("filter-lab", store, "--keys", "-", *FEW, stdin=file.read_bytes())
    assert b"10 keys of stdin" in piped.out


def test_a_store_made_of_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    file = tmp_path / "keys.txt"
    file.write_bytes(b"".join(b"key %d\n" % n for n in range(3000)))
    done = lsm("filter-lab", "--keys", file, *FEW)
    assert (done.status, done.err) == (0, "")
    assert "1 table with 3,000 entries" in " ".join(done.out.split())
    assert not list(tmp_path.glob("lsmkv-filter-lab-*"))


def test_hostile_keys(tmp_path: Path) -> None:
    file = tmp_path / "keys.txt"
    file.write_bytes(b"\x1b[31m\n\xff\xfe\n<b>\n" + b"x" * 1_000_000 + b"\n")
    done = lsm("filter-lab", "--keys", file, *FEW)
    assert done.status == 0
    assert "\x1b" not in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), ("name a store",)),
        (("nowhere",), ("nowhere",)),
        (("--keys", "nowhere.txt"), ("nowhere.txt",)),
        (("--keys", os.devnull), ("empty",)),
        (("nowhere", "--settings", "block"), ("'block'", "table:15", "table64:10 or fuse")),
    ],
)
def test_errors(arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    fails(lsm("filter-lab", *arguments), *words)


def test_an_empty_list_of_keys(store: Path) -> None:
    fails(lsm_bytes("filter-lab", store, "--keys", "-", stdin=b"\n\n"), "stdin: no keys")


def test_a_damaged_table_is_named(tmp_path: Path) -> None:
    path = build(tmp_path / "store", "none")
    table = max(path.glob("*.ldb"), key=lambda file: file.stat().st_size)
    data = bytearray(table.read_bytes())
    data[len(data) // 2] ^= 1
    table.write_bytes(data)
    fails(lsm("filter-lab", path, *FEW), table.name)


def test_interrupt(tmp_path: Path) -> None:
    """Ctrl-C ends it at once, and the temporary store is removed."""
    file = tmp_path / "keys.txt"
    file.write_bytes(b"".join(b"key %d\n" % n for n in range(300_000)))
    command = [sys.executable, "-m", "lsmkv", "filter-lab", "--keys", str(file)]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        while not list(tmp_path.glob("lsmkv-filter-lab-*/store/*.ldb")):
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert process.returncode == 130
    assert (out, err) == (b"", b"lsmkv: interrupted\n")
    assert not list(tmp_path.glob("lsmkv-filter-lab-*"))


OWN = """
from lsmkv import BloomFilterPolicy

def create_filter(keys, bits_per_key):
    return BloomFilterPolicy(bits_per_key).create_filter(keys)

def key_may_match(key, filter_data):
    return BloomFilterPolicy().key_may_match(key, filter_data)
"""


def test_a_policy_of_ones_own_beside_leveldbs(store: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(OWN)
    done = lsm("filter-lab", store, "--policy", path, "--gets", "400", "--json")
    assert (done.status, done.err) == (0, "")
    figures = {one["setting"]: one for one in json.loads(done.out)["settings"]}
    names = ["as stored", "none", "block:5", "own:5", "block:10", "own:10", "block:15", "own:15"]
    assert list(figures) == names
    for bits in (5, 10, 15):
        own = figures[f"own:{bits}"] | {"setting": f"block:{bits}"}
        assert own == figures[f"block:{bits}"]
    done = lsm("filter-lab", store, "--policy", path, "--settings", "none own:10", "--gets", "400")
    assert (done.status, "own:10" in done.out) == (0, True)
    assert "in filters of your own policy would save" in done.out


def test_a_policy_that_loses_keys_is_refused(store: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(OWN + "\nkey_may_match = lambda key, data: False\n")
    done = lsm("filter-lab", store, "--policy", path, "--settings", "own:10")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("lsmkv: a false negative: your key_may_match says no to b'user")
    done = lsm("filter-lab", store, "--policy", path, "--settings", "block:10")
    assert done.err == "lsmkv: --policy requires a setting such as own:10\n"
    done = lsm("filter-lab", store, "--settings", "own:10")
    assert done.err.startswith("lsmkv: own:10 needs a custom policy")

"""``lsmkv bulk build``."""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path

import pytest
from built_sets import PAIRS, content, write_input
from commands import fails, lsm, lsm_bytes

import lsmkv
import lsmkv.shards
from lsmkv.files.exchange import json_line, write_raw
from lsmkv.tools.text import from_size


def test_a_set_is_built_and_reported_in_a_line(source: Path, tmp_path: Path) -> None:
    done = lsm("bulk", "build", source, "--into", tmp_path / "set", "--shards", 3, "--workers", 1)
    assert (done.status, done.err) == (0, "")
    pattern = r"version 1: 500 pairs, [\d.]+ KiB, 3 shards, in \d+\.\d s\n"
    assert re.fullmatch(pattern, done.out)
    assert content(tmp_path / "set") == PAIRS


def test_inputs_are_files_directories_and_stdin(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")  # for CSV
    (tmp_path / "in").mkdir()
    write_input(tmp_path / "in" / "a.json", [(b"a", b"1"), (b"b", b"1")])
    (tmp_path / "in" / "b.raw").write_bytes(b"".join(write_raw([(b"b", b"2"), (b"c", b"2")])))
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress(b"name,size\nc,3\nd,3\n"))
    arguments = ["--into", tmp_path / "set", "--workers", 1, "--json"]
    arguments += ["--key", "name", "--value", "size"]
    stdin = json_line(b"d", b"4") + json_line(b"e", b"4")
    done = lsm_bytes(
        "bulk", "build", tmp_path / "in", tmp_path / "c.csv.gz", "-", *arguments, stdin=stdin
    )
    assert (done.status, done.err) == (0, "")
    figures = json.loads(done.out)
    assert (figures["version"], figures["pairs"], figures["shards"]) == (1, 5, 1)
    assert figures["url"] == str(tmp_path / "set")
    assert content(tmp_path / "set") == [
        (b"a", b"1"),
        (b"b", b"2"),
        (b"c", b"3"),
        (b"d", b"4"),
        (b"e", b"4"),
    ]


@pytest.mark.parametrize(
    ("arguments", "policy", "extractor"),
    [
        ([], "lsmkv.BinaryFuse8", None),
        (["--filter", "bloom:12"], "leveldb.BuiltinBloomFilter2", None),
        (["--filter", "none"], None, None),
        (["--filter", "bloom64", "--prefix", ":"], "lsmkv.Bloom64", "lsmkv.Delimiter"),
        (["--prefix", "2", "--compression", "none"], "lsmkv.BinaryFuse8", "lsmkv.FixedPrefix"),
    ],
)
def test_tables_are_made_as_asked(
    source: Path, tmp_path: Path, arguments: list[str], policy: str | None, extractor: str | None
) -> None:
    done = lsm("bulk", "build", source, "--into", tmp_path / "set", "--workers", 1, *arguments)
    assert (done.status, done.err) == (0, "")
    (version,) = lsmkv.bulk.versions(tmp_path / "set")
    assert (version.filter_policy is None) == (policy is None)
    if policy is not None:
        assert str(version.filter_policy).startswith(policy)
    assert (version.prefix_extractor is None) == (extractor is None)
    assert content(tmp_path / "set") == PAIRS


def test_sizes_reach_the_tables(source: Path, tmp_path: Path) -> None:
    pairs = [(b"%06d" % n, b"v" * 100) for n in range(2000)]
    write_input(source, pairs)
    done = lsm(
        *("bulk", "build", source, "--into", tmp_path / "set", "--workers", 1),
        *("--block-size", "4K", "--table-size", "64 KiB", "--compression", "none"),
        *("--memory", "1M"),
    )
    assert done.status == 0
    (version,) = lsmkv.bulk.versions(tmp_path / "set")
    sizes = [f.size for f in version.shards[0].files if f.name.endswith(".ldb")]
    assert len(sizes) >= 3
    assert max(sizes) < 80 * 1024


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--workers", "2", "--scheduler", "tcp://127.0.0.1:1"], "not both"),
        (["--memory", "5x"], "not a size: '5x'"),
        (["--table-size", "1"], "16 KiB or more"),
        (["--filter", "bloom:auto:10"], "one level"),
        (["--filter", "what"], "what"),
        (["--after", "1", "--workers", "1"], "the current version is 0, not 1"),
    ],
)
def test_wrong_arguments_are_one_line(
    source: Path, tmp_path: Path, arguments: list[str], words: str
) -> None:
    done = lsm("bulk", "build", source, "--into", tmp_path / "set", *arguments)
    fails(done, words)
    assert not list((tmp_path / "set").glob("versions/*.json"))


def test_bad_input_names_its_place(tmp_path: Path) -> None:
    into = ["--into", tmp_path / "set", "--workers", 1]
    good = json_line(b"k", b"v")
    (tmp_path / "bad.json").write_bytes(good + b"?\n")
    fails(lsm("bulk", "build", tmp_path / "bad.json", *into), "bad.json: line 2: ")
    fails(lsm_bytes("bulk", "build", "-", *into, stdin=good + b"?\n"), "stdin: line 2: ")
    raw = b"".join(write_raw([(b"k", b"v")]))[:-1]
    fails(lsm_bytes("bulk", "build", "-", *into, stdin=raw), "stdin: the file ends before")
    fails(lsm("bulk", "build", tmp_path / "none", *into), "none: No such file or directory")
    fails(lsm("bulk", "build", "-", "-", *into), "stdin can be read only once")
    assert lsm("bulk", "list", tmp_path / "set").out == ""


def test_a_missing_package_is_named(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.setitem(sys.modules, "obstore", None)
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.delitem(sys.modules, "lsmkv.shards.remote.objects.obstore_objects", raising=False)
    monkeypatch.delitem(sys.modules, "lsmkv.shards.remote.objects.fsspec_objects", raising=False)
    into = ["--into", tmp_path / "set"]
    done = lsm("bulk", "build", source, *into, "--scheduler", "tcp://127.0.0.1:1")
    fails(done, "--scheduler needs distributed: pip install distributed")
    fails(lsm("bulk", "list", "s3://bucket/name"), "s3:// needs obstore: pip install")


def test_a_size_has_a_number_and_a_unit() -> None:
    assert from_size("1k") == 1024
    for text in ("", "K", "1.K", "-1", "1 MB", "1e3"):
        with pytest.raises(ValueError, match="not a size"):
            from_size(text)

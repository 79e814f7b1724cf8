"""Records as text: the lines of each kind of file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from dumped import (
    LOG,
    ONE_RESTART,
    dump,
    edit,
    forged,
    make_log,
    make_table,
    objects,
)

from lsmkv.engine.filter.bloom64 import Bloom64Policy
from lsmkv.engine.filter.fuse import BinaryFusePolicy
from lsmkv.engine.filter.prefix import DelimitedPrefix
from lsmkv.engine.format.keys import pack


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (Bloom64Policy(), r"  filter 0: 20,000 bits, [\d,]+ set, 7 probes"),
        (BinaryFusePolicy(), r"  filter 0: fuse, 4 slots a key, 38 \+ 3 segments of 64, seed \d"),
    ],
    ids=repr,
)
def test_filters_of_lsmkv_are_decoded(tmp_path: Path, policy: Any, expected: str) -> None:
    entries = [(pack(b"%02d:%05d" % (n // 50, n), n + 1, 1), b"") for n in range(2000)]
    path = tmp_path / "1.ldb"
    extractor = DelimitedPrefix(b":")
    options = {"filter_layout": "table", "prefix_extractor": extractor}
    path.write_bytes(make_table(entries, filter_policy=policy, **options))
    lines = dump(path)[1]
    assert any(re.fullmatch(expected, line) for line in lines)
    assert "  filter of prefixes, lsmkv.DelimitedPrefix.3a: 400 bits, " in "\n".join(lines)
    annotated = "\n".join(dump(path, "--annotate")[1])
    assert "filter of prefixes: 400 bits, " in annotated
    assert "meta block of an unknown kind" not in annotated
    by_kind = [json.loads(line) for line in dump(path, "--json")[1]]
    filters = [one for one in by_kind if one.get("policy", "").startswith("lsmkv.")]
    whole, prefixes = [one for one in filters if "bytes" in one]
    assert prefixes["extractor"] == "lsmkv.DelimitedPrefix.3a"
    assert prefixes["probes"] == 7
    if isinstance(policy, BinaryFusePolicy):
        assert (
            "filter for the whole table: fuse, 2,624 slots of a byte, 4 for each key" in annotated
        )
        assert (whole["arity"], whole["segments"], whole["segment_slots"]) == (4, 38, 64)
    else:
        assert (whole["bits"], whole["probes"]) == (20_000, 7)


def test_a_filter_without_keys_and_one_of_another_policy(tmp_path: Path) -> None:
    class Odd:
        name = "odd.\x1bpolicy"

        def create_filter(self, keys: Any, /) -> bytes:
            return b"\x01\x02\x03"

        def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
            return True

    entries = [(pack(b"%05d" % n, n + 1, 1), bytes(3000)) for n in range(3)]
    path = tmp_path / "1.ldb"
    path.write_bytes(make_table(entries, filter_policy=Odd()))
    _, printed, _ = dump(path)
    start = next(at for at, line in enumerate(printed) if "filter block" in line)
    expected = r"--- offset 9073; filter block 'filter.odd.\x1bpolicy'; size 27, uncompressed"
    assert printed[start] == expected
    assert printed[start + 1 : start + 4] == [
        "  filter 0, blocks at 0 to 2047: 010203",
        "  filter 1, blocks at 2048 to 4095: empty",
        "  filter 2, blocks at 4096 to 6143: 010203",
    ]


def test_control_characters_are_always_escaped(tmp_path: Path) -> None:
    path = tmp_path / "\x9b[31m.log"
    path.write_bytes(LOG[:-1])
    manifest = tmp_path / "MANIFEST-1"
    manifest.write_bytes(make_log([edit(comparator="\x9b\\x").encode()]))
    for file in (path, manifest):
        for options in ([], ["--json"], ["--annotate"], ["--annotate", "--json"]):
            _, printed, err = dump(file, *options)
            assert all(line.isprintable() for line in [*printed, *err.splitlines()])
    assert objects(manifest)[1]["comparator"] == r"\xc2\x9b\\x"
    assert dump(manifest)[1][1] == r"  Comparator: \xc2\x9b\\x"


def test_a_bad_key_is_printed_as_leveldb_does(tmp_path: Path) -> None:
    path = tmp_path / "1.ldb"
    path.write_bytes(forged(b"\0\3\1key" + b"v" + ONE_RESTART))
    assert "badkey 'key' => 'v'" in dump(path)[1]
    assert dump(path, "--json")[0] == 2

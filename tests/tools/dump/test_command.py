"""``lsmkv dump``: its options, and how it leaves what it reads."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from dumped import LOG_TEXT, TABLE_TEXT, batch_record, dump, encode_put, lines, make_log
from started import into_a_closed_pipe
from states import Case, Drawing, states

import lsmkv


@states("made.txt")
def test_the_files_of_a_store(store: Path, case: Case) -> None:
    def answer(_: Drawing, words: list[str]) -> str:
        _, name, *options = words
        status, printed, err = dump(store / name, *options)
        assert (status, err) == (0, "")
        return "\n".join(printed)

    case.check(answer, "")


def test_a_relative_path(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(store)
    assert dump("000009.log") == (0, lines(LOG_TEXT), "")
    assert dump(".") == dump(store)


def test_hex_and_keys_only_and_limit(store: Path) -> None:
    log = store / "000009.log"
    assert "  put 'c3a909' 'ff5c'" in dump(log, "--hex")[1]
    assert dump(log, "--keys-only")[1][1] == "  put 'fig'"
    assert dump(log, "--limit", "1")[1] == lines(LOG_TEXT)[:2]
    assert dump(log, "--limit", "2")[1] == lines(LOG_TEXT)
    assert dump(log, "--limit", "0") == (0, [], "")
    table = store / "000007.ldb"
    assert "'6170706c65' @ 1 : val => '726564'" in dump(table, "--hex")[1]
    assert "'apple' @ 1 : val" in dump(table, "--keys-only")[1]
    assert dump(table, "--limit", "1")[1] == lines(TABLE_TEXT)[:2]
    assert len(dump(store / "MANIFEST-000002", "--limit", "1")[1]) == 5
    status, out, err = dump(log, "--annotate", "--keys-only")
    assert (status, out, err.count("\n")) == (2, [], 1)
    assert dump(log, "--annotate", "--limit", "2")[1] == [
        " 0  ba bf 3b 8c              checksum of type and data",
        " 4  17 00                    length 23",
    ]


def test_nothing_is_written(store: Path) -> None:
    def everything() -> dict[str, tuple[bytes, int]]:
        return {one.name: (one.read_bytes(), one.stat().st_mtime_ns) for one in store.iterdir()}

    (store / "LOCK").unlink()
    before = everything()
    for options in ([], ["--annotate"], ["--json"]):
        assert dump(store, *options)[0] == 0
    assert everything() == before


def test_dump_beside_a_writer(tmp_path: Path) -> None:
    with lsmkv.DB(tmp_path / "db", create_if_missing=True) as db:
        db.put(b"new", b"one")
        status, printed, err = dump(tmp_path / "db")
        assert "  put 'new' 'one'" in printed
        assert (status, err) == (0, "")


def test_dump_into_a_closed_pipe_exits_like_sigpipe(tmp_path: Path) -> None:
    path = tmp_path / "1.log"
    path.write_bytes(make_log([batch_record(1, 9000, encode_put(b"k", b"v" * 50) * 9000)]))
    printed = (128 + signal.SIGPIPE, b"--- offset 0; sequence 1\n")
    assert into_a_closed_pipe("dump", path) == printed

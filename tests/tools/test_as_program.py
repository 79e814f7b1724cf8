"""``lsmkv scan``, ``keys`` and ``export`` with ``--as``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Done, Terminal
from commands import lsm_bytes as lsm
from hypothesis import given
from hypothesis import strategies as st

import lsmkv
from lsmkv.files.exchange import parse_json_line
from lsmkv.indexeddb import IndexedDBComparator
from lsmkv.tools.as_program import Family, texts_of

DATA = Path(__file__).parent.parent / "data"
WRITTEN: dict[str, tuple[dict[bytes, bytes], list[tuple[str, str]]]] = {
    "chromium": (
        {
            b"VERSION": b"1",
            b"META:https://a.org": b"\x08\x00\x10\x05",
            b"_https://a.org\x00\x01name": b"\x00" + "Ольга\n".encode("utf-16-le"),
            b"odd": b"\xff\x00",
            b"text": b"plain",
        },
        [
            ("facts about https://a.org", "1601-01-01 00:00:00 UTC, 5 bytes"),
            ("the version of this format", "1"),
            ("https://a.org: name", r"Ольга\n"),
            ("odd", "2 bytes: ff 00"),
            ("text", "plain"),
        ],
    ),
    "bedrock": (
        {
            bytes(8) + b"\x2c": b"\x29",
            b"~local_player": b"\x0a\x00\x00\x08\x02\x00id\x03\x00pig\x00",
        },
        [("chunk 0, 0: version", "41"), ("~local_player", '{id: "pig"}')],
    ),
    "bitcoin": (
        {
            b"\x0e\x00obfuscate_key": b"\x08" + b"\xff" * 8,
            b"B": bytes([255 - 7]) * 32,
            b"C" + bytes(32) + b"\x01": bytes([255, 254, 248, 255 - 0x6A]),
        },
        [
            ("the mask of all values", "ff" * 8),
            ("the newest block", "07" * 32),
            (f"output {'00' * 32}:1", "0.00000001 BTC, height 0, to script 6a"),
        ],
    ),
}
NAMES = {
    "chromium": "Chromium's Local Storage",
    "bedrock": "a world of Minecraft's Bedrock edition",
    "bitcoin": "Bitcoin Core's chain state",
}


def at_terminal(*arguments: str | Path) -> tuple[str, str]:
    """Run a command whose stdout is a terminal: what it shows, and stderr."""
    terminal = Terminal(*arguments, columns=80)
    seen = terminal.read_until("\0")
    status, err = terminal.end()
    assert status == 0
    return seen, err


families = pytest.mark.parametrize("family", WRITTEN)


def made(path: Path, family: str) -> Path:
    with lsmkv.DB(path, create_if_missing=True) as db:
        for key, value in WRITTEN[family][0].items():
            db.put(key, value)
    return path


@families
def test_scan_and_export_decode_on_demand(tmp_path: Path, family: str) -> None:
    store = made(tmp_path / "db", family)
    expected = WRITTEN[family][1]
    lines = "".join(f"{key}\t{value}\n" for key, value in expected)
    assert lsm("scan", store, "--as", family) == Done(0, lines.encode(), "")
    keys = "".join(f"{key}\n" for key, _ in expected)
    for command in (["keys"], ["scan", "--keys-only"]):
        assert lsm(command[0], store, *command[1:], "--as", family) == Done(0, keys.encode(), "")
    objects = [{"as": family, "key_text": key, "value_text": value} for key, value in expected]
    for done in (
        lsm("scan", store, "--as", family, "--json"),
        lsm("export", store, "--as", family),
    ):
        assert done.status == 0
        assert [json.loads(line) for line in done.out.splitlines()] == objects
    done = lsm("keys", store, "--as", family, "--json")
    assert [json.loads(line)["key_text"] for line in done.out.splitlines()] == keys.splitlines()


@families
def test_elsewhere_than_on_a_terminal_bytes_are_shown(tmp_path: Path, family: str) -> None:
    store = made(tmp_path / "db", family)
    for command in (["scan"], ["scan", "--json"], ["scan", "--hex"], ["keys"], ["export"]):
        plain = lsm(command[0], store, *command[1:])
        raw = lsm(command[0], store, *command[1:], "--as", "raw")
        assert plain.out == raw.out
        assert plain.err.partition(" in ")[0] == raw.err.partition(" in ")[0]
        assert "decoded" not in plain.err
    lines = lsm("export", store).out.splitlines()
    assert [parse_json_line(line) for line in lines] == sorted(WRITTEN[family][0].items())


@families
def test_on_a_terminal_the_program_is_guessed_and_named(tmp_path: Path, family: str) -> None:
    store = made(tmp_path / "db", family)
    said = f"lsmkv: {NAMES[family]}, decoded (--as raw shows bytes)"
    seen, err = at_terminal("scan", store)
    assert err == f"{said}\n"
    assert seen == "".join(f"{key}\t{value}\n" for key, value in WRITTEN[family][1])


def test_on_a_terminal_what_is_for_programs_is_not_decoded(tmp_path: Path) -> None:
    store = made(tmp_path / "db", "chromium")
    for command in ("keys", "export"):
        seen, err = at_terminal(command, store)
        assert err.startswith("lsmkv: Chromium's Local Storage, decoded")
        assert "facts about" in seen
    for options in (["--json"], ["--hex"], ["--as", "raw"]):
        assert at_terminal("scan", store, *options)[1] == ""
    file = tmp_path / "file"
    assert "decoded" not in at_terminal("export", store, "-o", file)[1]
    assert file.read_bytes() == lsm("export", store).out


def test_an_unknown_store_is_shown_as_it_is_on_a_terminal(store: Path) -> None:
    seen = at_terminal("scan", store)
    assert seen == (lsm("scan", store).out.decode(), "")


def test_any_store_is_shown_as_the_program_that_is_asked_for(store: Path) -> None:
    with lsmkv.DB(store) as db:
        db.put(b"_odd\x00\x01name", b"\x01caf\xe9")
    assert "odd: name\tcafé\n" in lsm("scan", store, "--as", "chromium").out.decode()
    with lsmkv.DB(store) as db:
        db.delete(b"_odd\x00\x01name")
    plain = lsm("scan", store).out
    for family in WRITTEN:
        assert lsm("scan", store, "--as", family) == Done(
            0, plain.replace(rb"\x1b[31m", b"5 bytes: 1b 5b 33 31 6d"), ""
        )


@families
def test_import_refuses_a_decoded_export(tmp_path: Path, family: str) -> None:
    store = made(tmp_path / "db", family)
    file = tmp_path / "export"
    assert lsm("export", store, "-o", file, "--as", family).status == 0
    done = lsm("import", tmp_path / "copy", file, "--create")
    assert done.status == 2
    assert "line 1: decoded for people: export without --as, or with --as raw" in done.err
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["scan", "--hex"], "--hex shows bytes: it cannot be combined with --as bedrock"),
        (["keys", "--hex"], "--hex shows bytes"),
        (["export", "--hex"], "--hex shows bytes"),
        (["export", "--format", "raw"], "--as bedrock writes JSON lines: give no --format raw"),
        (["export", "--format", "resp"], "--as bedrock writes JSON lines"),
    ],
)
def test_what_does_not_fit_together_is_refused(store: Path, options: list[str], words: str) -> None:
    done = lsm(options[0], store, *options[1:], "--as", "bedrock")
    assert (done.status, done.out) == (2, b"")
    assert words in done.err


def test_indexed_db_is_shown_with_names(tmp_path: Path) -> None:
    store = DATA / "indexeddb-chromium"
    lines = lsm("scan", store, "--as", "chromium").out.decode()
    assert "library / books: name\tbooks\n" in lines
    assert 'library / anything: record "\\ud83d"\t"value 17"\n' in lines  # half of a surrogate pair
    assert lsm("scan", store, "--as", "bedrock", "--limit", "40").status == 0


@given(st.dictionaries(st.binary(max_size=30), st.binary(max_size=60), max_size=8))
def test_any_store_is_shown_a_printable_line_for_each_record(content: dict[bytes, bytes]) -> None:
    for order in (None, IndexedDBComparator()):
        with lsmkv.DB(":memory:", create_if_missing=True, comparator=order) as db:
            for key, value in content.items():
                db.put(key, value)
            for family in (Family.CHROMIUM, Family.BEDROCK, Family.BITCOIN):
                texts = texts_of(db, "", family, False)
                assert texts is not None
                for key, value in db:
                    line = texts.key(key) + texts.value(key, value)
                    assert line.isprintable()
                    assert json.loads(texts.json_line(key, value))["as"] == family


def test_what_a_damaged_store_still_has_is_exported_decoded(tmp_path: Path) -> None:
    store = made(tmp_path / "db", "chromium")
    with lsmkv.DB(store) as db:
        db.compact_range()
    (store / "CURRENT").write_bytes(b"")
    done = lsm("export", store, "--skip-damaged", "--as", "chromium")
    texts = [(one["key_text"], one["value_text"]) for one in map(json.loads, done.out.splitlines())]
    assert texts == WRITTEN["chromium"][1]

"""``lsmkv stats``: what it draws, at several widths, once and again and again."""

from __future__ import annotations

import io
import itertools
import json
import os
import random
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from commands import Terminal, fails, lsm, on_terminal
from observing import published
from rich.console import Console
from stores import put_numbered

import lsmkv
from lsmkv.shared.system.local import SHARES
from lsmkv.tools.filter_figures import FilterFigures
from lsmkv.tools.hash_check import check_hash
from lsmkv.tools.statistics import Look, draw

SMALL: dict[str, Any] = {"write_buffer_size": 64 << 10, "max_file_size": 64 << 10}


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with tables on several levels, and writes in the log."""
    path = tmp_path_factory.mktemp("stats") / "deep"
    options: dict[str, Any] = SMALL | {"compression": None, "seek_compaction": False}
    with lsmkv.DB(path, create_if_missing=True, **options) as db:
        for n in range(4000):
            db.put(b"key%06d" % (n * 7919 % 4000), bytes(100))
        db.compact_range()
        for _ in range(2):
            db.put(b"key000000", b"new")
            db.put(b"key003999", b"new")
            db.flush()
        db.put(b"key000001", bytes(1000))
    return path


def pictured(path: Path, width: int, encoding: str = "utf-8", *, check: bool = False) -> list[str]:
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(file=out, width=width)
    with lsmkv.DB(path, read_only=True) as db:
        look = Look.at(db, FilterFigures(db.path))
        lines = draw(look, console, check_hash(db, look.filters) if check else None)
    for line in lines:
        console.print(line, soft_wrap=True)
    out.seek(0)
    return out.read().splitlines()


def row(lines: list[str], name: str) -> list[str]:
    """Of the levels; rows of filters come after them."""
    return next(line.split() for line in lines if line.split()[:1] == [name])


def filter_rows(lines: list[str]) -> list[list[str]]:
    """The level, the kind, and at the end the expected and the measured rate."""
    (heading,) = [at for at, line in enumerate(lines) if line.endswith("expected  measured")]
    rest = (line for line in lines[heading + 1 :])
    return [line.split() for line in itertools.takewhile(lambda line: line.startswith("  "), rest)]


def test_it_shows_what_the_levels_hold(deep: Path) -> None:
    with lsmkv.DB(deep, read_only=True) as db:
        levels = [level for level in db.stats().levels if level.files]
        tables = db.tables()
    lines = pictured(deep, 80)
    assert len(levels) > 1
    assert lines[0].startswith(f"{deep}: {len(tables)} tables, ")
    for level in levels:
        shown = row(lines, str(level.level))
        assert shown[1] == str(level.files)
        assert "'key000000' .. 'key003999'" in " ".join(shown) or len(shown[-1]) < 12
    assert row(lines, "all")[1] == str(len(tables))
    assert row(lines, "log")[1:4] == ["-", "1.0", "KiB"]
    longest = max(levels, key=lambda level: level.bytes)
    bars = {level.level: " ".join(row(lines, str(level.level))).count("█") for level in levels}
    assert max(bars, key=lambda level: bars[level]) == longest.level
    assert bars[longest.level] == 13


def test_it_shows_what_filters_save(deep: Path) -> None:
    lines = pictured(deep, 80)
    without, searched = [line for line in lines if line.startswith("  with")]
    with lsmkv.DB(deep, read_only=True) as db:
        tables = db.tables()
    asked = sum(table.level == 0 for table in tables)
    asked += len({table.level for table in tables} - {0})
    assert without.split()[:3] == ["without", "filters", f"{asked:.3f}"]
    assert 0 < float(searched.split()[2]) < 0.1 * asked
    assert "Data blocks that a Get of an absent key in each level's range should search:" in lines
    assert without.count("█") > 40 * (searched.count("█") + 1)
    assert f"read amplification   at most {asked} tables to ask for a key" in lines
    (space,) = [line for line in lines if line.startswith("space")]
    assert 1 <= float(re.findall(r"[\d.]+", space)[0]) < 1.2
    assert "write amplification  counted by the process that writes: its db.stats()" in lines
    assert not any("write-ahead log" in line for line in lines)  # a writer may be LevelDB


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_it_fits_the_terminal(deep: Path, width: int, encoding: str) -> None:
    lines = pictured(deep, width, encoding)[1:]  # a path may be longer
    assert max(map(len, lines)) <= min(max(width, 80), 120)
    assert "".join(lines).isascii() == (encoding == "ascii")
    rows = [line for line in lines if " .. " in line]
    assert rows
    assert width > 60 or all(len(line) < 60 for line in rows)
    if width >= 120:
        assert any("'key000000' .. 'key003999'" in line for line in rows)


def test_expected_and_measured_rates_are_side_by_side(tmp_path: Path) -> None:
    """Measured is what a live store publishes; until it is asked for absent keys it has no rate."""
    rng = random.Random(1)
    path = tmp_path / "db"
    options: dict[str, Any] = {"bloom_filter_bits": 5, "publish_stats": True}
    with lsmkv.DB(path, create_if_missing=True, **options) as db:
        for _ in range(2000):
            db.put(rng.randbytes(12), bytes(20))
        db.flush()
        published(tmp_path / "db", lambda now: now.stats.flushes == 1)
        (fresh,) = filter_rows(pictured(path, 80))
        assert fresh[:2] == ["2", "block"]
        assert fresh[-1] == "-"
        assert re.fullmatch(r"1?\d\.\d\d%", fresh[-2])
        for _ in range(3000):
            db.get(rng.randbytes(12))
        published(tmp_path / "db", lambda now: now.stats.gets == 3000)
        lines = pictured(path, 80)
        (row,) = filter_rows(lines)
        measured = db.stats().measured_rate
        assert row[-2:] == [fresh[-2], f"{measured:.2%}"]
        assert any(line.startswith("measured  by ") and "process" in line for line in lines)
        log = "mapped into memory" if db.stats().mapped_log else "written to"
        assert f"write-ahead log      {log} by process {os.getpid()}" in lines
        shown = f"{db.stats().write_amplification:.2f}, by process {os.getpid()}"
        assert f"write amplification  {shown}" in lines
        plain = json.loads(lsm("stats", path, "--json").out)
        assert plain["published"]["measured_rate"] == measured
        assert plain["filters"][0]["kind"] == "block"
    (row,) = filter_rows(pictured(path, 80))
    assert row[-1] == "-"


def test_filters_of_several_kinds_have_rows_of_their_own(tmp_path: Path) -> None:
    rng = random.Random(2)
    path = tmp_path / "db"
    with lsmkv.DB(path, create_if_missing=True) as db:
        for _ in range(3):
            db.put(b"a" + rng.randbytes(9), b"")
            db.put(b"z" + rng.randbytes(9), b"")
            db.flush()
    with lsmkv.DB(path, filter_policy=lsmkv.BinaryFusePolicy()) as db:
        db.put(b"a" + rng.randbytes(9), b"")
        db.put(b"z" + rng.randbytes(9), b"")
        db.flush()
    rows = filter_rows(pictured(path, 80))
    assert [row[1] for row in rows if row[0] == "0"] == ["block", "fuse"]
    assert {row[1] for row in rows} == {"block", "fuse"}


def test_hostile_keys_are_escaped_and_cut(tmp_path: Path) -> None:
    with lsmkv.DB(tmp_path / "db", create_if_missing=True) as db:
        db.put(b"\x1b[31m" * 1000, b"")
        db.put(b"\xff" * 1_000_000, b"")
        db.flush()
    lines = pictured(tmp_path / "db", 80)[1:]
    assert all(line.isprintable() for line in lines)
    assert max(map(len, lines)) < 80
    assert any(r"'\x1b[31" in line and "…" in line for line in lines)


def test_a_store_without_tables_or_without_filters(tmp_path: Path) -> None:
    with lsmkv.DB(tmp_path / "db", create_if_missing=True, bloom_filter_bits=0) as db:
        assert "filters  none" in pictured(tmp_path / "db", 80)
        assert "space amplification  not known before a compaction" in pictured(tmp_path / "db", 80)
        db.put(b"k", b"v")
        db.flush()
        lines = pictured(tmp_path / "db", 80)
    assert row(lines, "2")[-3:] == ["'k'", "..", "'k'"]
    assert [line.split()[2] for line in lines if line.startswith("  with")] == ["1.000", "1.000"]


def test_levels_in_an_order_of_their_own(tmp_path: Path) -> None:
    """The ends of a range are those of the store's order."""
    comparator = lsmkv.ReverseBytewiseComparator()
    options: dict[str, Any] = {"create_if_missing": True, "comparator": comparator}
    with lsmkv.DB(tmp_path / "db", **options) as db:
        for keys in ((b"a", b"m"), (b"c", b"z"), (b"b", b"y"), (b"c", b"x")):
            for key in keys:
                db.put(key, b"v")
            db.flush()
        look = Look.at(db, FilterFigures(db.path))
    assert [table.level for table in look.tables] == [0, 0, 1, 2]
    assert look.ranges == {0: (b"y", b"b"), 1: (b"z", b"c"), 2: (b"m", b"a")}


def test_the_command_prints_it(deep: Path) -> None:
    done = lsm("stats", deep)
    assert (done.status, done.err) == (0, "")
    lines = pictured(deep, 80, check=True)
    assert done.out.splitlines()[: len(lines)] == lines
    figures = json.loads(lsm("stats", deep, "--json").out)
    assert figures["path"] == str(deep)
    with lsmkv.DB(deep, read_only=True) as db:
        assert figures["levels"] == list(db.stats().to_dict()["levels"])


def test_in_colors_on_a_terminal(deep: Path) -> None:
    status, shown = on_terminal("stats", deep, columns=80)
    assert status == 0
    assert re.search("\x1b\\[36m█+", shown)
    assert (
        re.sub("\x1b\\[[\\d;]*m", "", shown).splitlines()[:40]
        == pictured(deep, 80, check=True)[:40]
    )


def test_watching_shows_what_a_writer_does_until_ctrl_c(tmp_path: Path) -> None:
    with lsmkv.DB(tmp_path / "db", create_if_missing=True) as db:
        db.put(b"k", b"v")
        watch = Terminal("stats", tmp_path / "db", "--watch", "0.1", columns=120)
        assert ": 0 tables" in watch.read_until("write amplification")
        db.flush()
        assert ": 1 table, " in watch.read_until(": 1 table, ")
        watch.process.send_signal(signal.SIGINT)
        watch.read_until("\0")
        status, err = watch.end()
    assert status == 130
    assert err == "lsmkv: interrupted\n"


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--watch", "--json"], "--watch, --json"), (["5"], "SECONDS is for --watch")],
)
def test_a_wrong_call(deep: Path, options: list[str], words: str) -> None:
    fails(lsm("stats", deep, *options), words)
    assert lsm("stats", deep, "--watch", "0").status == 2


def test_the_codecs_of_a_minecraft_world(tmp_path: Path) -> None:
    """Its own tables, and one that another program has added."""
    path = tmp_path / "world"
    for codec in ("zlib-raw", "zlib-raw", "snappy"):
        with lsmkv.DB(path, create_if_missing=True, compression=codec) as db:  # type: ignore[arg-type]
            put_numbered(db, b"chunk%03d", range(100), bytes(200))
            db.flush()
    done = lsm("stats", path)
    assert done.status == 0
    assert "compression          of tables: zlib-raw 2, snappy 1; of new ones: zlib-raw" in done.out
    assert json.loads(lsm("stats", path, "--json").out)["compression"] == "zlib-raw"


def test_the_name_of_a_custom_policy_is_escaped(tmp_path: Path) -> None:
    class Hostile:
        name = "test.\x1b[31m" + "x" * 90

        def create_filter(self, keys: Any) -> bytes:
            return b"\x01\x01"

        def key_may_match(self, key: bytes, filter: bytes) -> bool:
            return True

    with lsmkv.DB(tmp_path / "db", create_if_missing=True, filter_policy=Hostile()) as db:
        db.put(b"k", b"v")
        db.flush()
        lines = pictured(tmp_path / "db", 80)
    assert all(line.isprintable() for line in lines[1:])
    assert max(map(len, lines[1:])) <= 80
    assert any(r"test.\x1b[31mxx" in line for line in lines)


def test_narrow_terminals_have_rows_too(deep: Path) -> None:
    for width in (20, 30, 45, 50, 52):
        assert any("expected" in line for line in pictured(deep, width))


def test_damage_is_reported_below_what_could_be_read(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with lsmkv.DB(path, create_if_missing=True, max_file_size=16 << 10) as db:
        put_numbered(db, b"%08d", range(2000), bytes(8))
        db.compact_range()
        tables = db.tables()
    table = path / tables[len(tables) // 2].name
    data = bytearray(table.read_bytes())
    data[3] ^= 0xFF  # of its first data block
    table.write_bytes(data)
    done = lsm("stats", path)
    assert done.status == 2
    assert table.name in done.err
    assert "tables" in done.out
    assert "Data blocks" in done.out


@pytest.mark.skipif(not SHARES, reason="no processes share a store here")
@pytest.mark.parametrize("width", [80, 120])
def test_processes_of_a_shared_store(tmp_path: Path, width: int) -> None:
    path = tmp_path / "db"
    with (
        lsmkv.SharedDB(path, create_if_missing=True, publish_stats=True) as db,
        lsmkv.SharedDB(path) as member,
    ):
        db.put(b"k", b"v")
        member.get(b"k")
        writes = 1
        while not published(path).stats.gets:  # which go with a write, at times
            member.put(b"k", b"w")
            writes += 1
        published(path, lambda now: 1 + now.processes[1].writes.count == writes == now.stats.writes)
        lines = pictured(path, width)
        plain = json.loads(lsm("stats", path, "--json").out)
    at = lines.index("processes  in epoch 1, since this owner opened the store")
    assert max(map(len, lines[at:])) <= width
    assert lines[at + 1].split()[:4] == ["pid", "role", "gets", "writes"]
    rows = [line.split()[:4] for line in lines[at + 2 : at + 6]]
    pid = f"{os.getpid()}"
    assert rows[0] == [pid, "owner", "0", "1"]
    assert rows[1] == [pid, "member", "1", f"{writes - 1:,}"]
    assert rows[2] == ["-", "gone", "0", "0"]
    assert rows[3] == ["all", "1", f"{writes:,}"]
    assert [one["role"] for one in plain["processes"]] == ["owner", "member", "gone"]
    assert plain["processes"][1]["counters"]["gets"] == 1
    assert plain["processes"][1]["writes"]["count"] == writes - 1

from __future__ import annotations

import contextlib
import gc
import io
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

import lsmkv
from lsmkv.filter.bloom import BloomFilterPolicy, rate_from_fill
from lsmkv.filter.bloom64 import Bloom64Policy
from lsmkv.filter.fuse import BinaryFusePolicy
from lsmkv.filter.known import rate_of
from lsmkv.filter.policy import FilterPolicy
from lsmkv.tools import app
from lsmkv.tools.demo import command
from lsmkv.tools.demo.keys import DataSet, Misspeller, lines_as_keys, unicode_names
from lsmkv.tools.demo.measure import (
    LAYOUTS,
    Lookups,
    Measurement,
    RecordingPolicy,
    compact,
    load,
    measure,
)
from lsmkv.tools.demo.reading import findings, reading
from lsmkv.tools.demo.report import print_report, spread, table
from lsmkv.tools.demo.run import Outcome, Plan, place, run_demo
from lsmkv.tools.demo.timing import BATCH, MOST_TIMED, ROUNDS, Times, time_gets

LINES = [b"%06x of %d\n" % (random.Random(n).getrandbits(24), n) for n in range(2000)]


def ignore(_: int) -> None:
    pass


def misspeller(data: DataSet, seed: int) -> Misspeller:
    expected = data.expected
    return Misspeller(list(expected), expected.__contains__, random.Random(seed))


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "keys.txt"
    path.write_bytes(b"".join(LINES))
    return path


@pytest.fixture(scope="module")
def figures(key_file: Path) -> dict[str, Any]:
    done = CliRunner().invoke(app.app, ["demo", "--keys", str(key_file), "--json"])
    assert done.exit_code == 0
    assert done.stderr == ""
    return json.loads(done.stdout)


# The keys


def test_every_unicode_name_is_a_key() -> None:
    data = unicode_names()
    assert len(data.records) > 137_000
    assert data.expected[b"SNOWMAN"] == "☃".encode()
    assert data.duplicates == 0
    assert 3.5e6 < data.size < 5e6


def test_more_names_are_more_keys() -> None:
    plain = len(unicode_names().records)
    more = unicode_names(plain + 1)
    assert len(more.expected) == 2 * plain + 1
    assert more.expected[b"SNOWMAN #2"] == "☃".encode()
    assert b"SPACE #3" in more.expected


def test_lines_are_keys() -> None:
    data = lines_as_keys([b"b\n", b"\n", b"a\r\n", b"b"], "file")
    assert data.records == [(b"b", b"1"), (b"a", b"3"), (b"b", b"4")]
    assert data.expected == {b"a": b"3", b"b": b"4"}
    assert (data.duplicates, data.blank_lines) == (1, 1)
    with pytest.raises(ValueError, match="file: no keys"):
        lines_as_keys([b"\n"], "file")


@pytest.mark.parametrize(
    "lines",
    [
        LINES,
        [b"a"],
        [b"%d" % n for n in range(10)],  # every change of one digit gives another key
        [b"%03d" % n for n in range(1000)],
        [bytes([n]) for n in range(256) if n not in b"\r\n"],
        ["ключ".encode(), "замок".encode()],
        [b"\xff\xfe", b"\xff\xff\xff"],
    ],
)
def test_misspelt_keys_are_absent(lines: list[bytes]) -> None:
    data = lines_as_keys(lines, "file")
    absent = misspeller(data, 1).absent_keys(500)
    assert len(absent) == 500
    assert not set(absent) & set(data.expected)


def test_misspelt_keys_resemble_the_keys_and_lie_among_them() -> None:
    data = lines_as_keys(LINES, "file")
    absent = misspeller(data, 1).absent_keys(500)
    assert all(min(data.expected) < key < max(data.expected) for key in absent)
    lengths = {len(key) for key in data.expected}
    assert all(len(key) in lengths for key in absent)
    assert absent == misspeller(data, 1).absent_keys(500)
    assert absent != misspeller(data, 2).absent_keys(500)


# The measurements


def test_the_recording_policy_counts_every_filter_asked(tmp_path: Path) -> None:
    data = lines_as_keys(LINES, "file")
    load(str(tmp_path / "db"), "block", data.records, ignore)
    policy = RecordingPolicy(BloomFilterPolicy(10))
    with lsmkv.DB(tmp_path / "db", filter_policy=policy) as db:
        assert all(db.get(key) is not None for key in data.expected)
        assert policy.asked == db.stats().filters_asked == len(data.expected)


@pytest.mark.parametrize("plain", [BloomFilterPolicy(10), Bloom64Policy(10), BinaryFusePolicy()])
def test_the_recording_policy_answers_as_the_policy_does(plain: FilterPolicy) -> None:
    keys = [b"%d" % n for n in range(1500)]
    policy = RecordingPolicy(plain)
    assert policy.name == plain.name
    summary = policy.create_filter(keys)
    assert summary == plain.create_filter(keys)
    for key in (b"7", b"absent", b"other"):
        assert policy.key_may_match(key, summary) == plain.key_may_match(key, summary)
    assert policy.rates == pytest.approx(3 * expected_rate_of(plain, summary))


def test_the_rate_of_a_filter() -> None:
    bloom = BloomFilterPolicy(10).create_filter([b"a", b"b"])
    assert expected_rate_of(BloomFilterPolicy(10), bloom) == rate_from_fill(bloom) > 0
    keys = [b"%d" % n for n in range(1500)]
    fuse = BinaryFusePolicy()
    assert expected_rate_of(fuse, fuse.create_filter(keys)) == 1 / 256
    small = fuse.create_filter(keys[:900])
    assert expected_rate_of(fuse, small) == pytest.approx(0.0082, rel=0.2)


def expected_rate_of(policy: FilterPolicy, data: bytes) -> float:
    rate = rate_of(policy.name, data)
    assert rate is not None
    return rate


def test_the_filters_of_a_store_are_counted_as_they_are_stored(tmp_path: Path) -> None:
    data = lines_as_keys(LINES, "file")
    sizes = {}
    for layout in LAYOUTS:
        path = str(tmp_path / layout)
        load(path, layout, data.records, ignore)
        found = measure(path, layout, data.records[:1], [b"no"], ignore, compacted=False)
        sizes[layout] = found.filter_bytes
    keys = list(data.expected)
    assert sizes["off"] == 0
    assert sizes["table"] == len(BloomFilterPolicy(10).create_filter(keys))
    assert sizes["table64"] == len(Bloom64Policy(10).create_filter(keys))
    assert sizes["fuse"] == len(BinaryFusePolicy().create_filter(keys))
    assert sizes["both"] == sizes["table"] + sizes["block"]
    assert sizes["block64"] == pytest.approx(sizes["block"], rel=0.05)


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_leveldb_reads_each_store(tmp_path: Path, layout: str) -> None:
    plyvel = pytest.importorskip("plyvel")
    data = lines_as_keys(LINES, "file")
    load(str(tmp_path / "db"), layout, data.records, ignore)
    with contextlib.closing(plyvel.DB(str(tmp_path / "db"), bloom_filter_bits=10)) as db:
        assert dict(db) == data.expected
        assert all(db.get(key) == value for key, value in data.expected.items())
        assert db.get(b"absent") is None


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_wrong_answers_are_found(tmp_path: Path, layout: str) -> None:
    load(str(tmp_path / "db"), layout, [(b"a", b"1"), (b"b", b"2")], ignore)
    asked = [(b"a", b"1"), (b"b", b"other"), (b"c", b"3")]
    found = measure(str(tmp_path / "db"), layout, asked, [b"b", b"d"], ignore, compacted=False)
    assert (found.present.gets, found.present.wrong) == (3, 2)
    assert (found.absent.gets, found.absent.wrong) == (2, 1)


def test_compact_leaves_one_table_that_covers_a_key(tmp_path: Path) -> None:
    path = str(tmp_path / "db")
    load(path, "off", [(b"a", b"1"), (b"c", b"2")], ignore)
    with lsmkv.DB(path) as db:
        db.put(b"b", b"3")
        db.flush()
    asked = [(b"a", b"1"), (b"b", b"3")]
    before = measure(path, "off", asked, [b"bb"], ignore, compacted=False)
    assert before.overlapping == 2
    compact(path, "off")
    after = measure(path, "off", asked, [b"bb"], ignore, compacted=True)
    assert after.overlapping == 1
    assert (after.present.wrong, after.absent.wrong) == (0, 0)
    assert after.absent.blocks_read == 1


def test_the_figures_show_what_filters_save(figures: dict[str, Any]) -> None:
    assert figures["keys"] == 2000
    assert figures["wrong_answers"] == 0
    assert figures["compacted"] == []  # one table: nothing to compact
    off, *filtered = figures["as_loaded"]
    assert [one["layout"] for one in filtered] == ["block", "table", "table64", "fuse"]
    for one in (off, *filtered):
        assert one["present"]["gets"] == one["absent"]["gets"] == 2000
        assert one["present"]["blocks_per_get"] >= 1
        assert one["metadata_reads"] > 0
    assert off["absent"]["blocks_per_get"] >= 0.9
    assert off["absent"]["filters_asked"] == 0
    assert off["predicted_rate"] is off["measured_rate"] is off["textbook_rate"] is None
    assert filtered[0]["textbook_rate"] == figures["textbook_rate"]
    for one in filtered:
        assert one["absent"]["blocks_per_get"] <= 0.05
        assert one["absent"]["bytes_per_get"] < off["absent"]["bytes_per_get"] / 20
        assert one["disk_bytes"] > off["disk_bytes"]
        assert one["predicted_rate"] == pytest.approx(one["textbook_rate"], rel=0.25)
        assert one["measured_rate"] == pytest.approx(one["predicted_rate"], abs=0.01)
        assert one["absent"]["blocks_read"] == one["absent"]["filter_positives"]
        # One table: a Get reads a block exactly if its one filter says maybe.
        assert one["filters_answered"] == 2000 - one["absent"]["filter_positives"]
        assert 9 < 8 * one["filter_bytes"] / figures["keys"] < 12
    assert off["filters_answered"] is None
    assert off["filter_bytes"] == 0
    fuse = filtered[-1]
    assert fuse["textbook_rate"] == 1 / 256
    assert fuse["absent"]["blocks_read"] < min(one["absent"]["blocks_read"] for one in filtered[:3])


def test_a_seed_gives_the_same_figures_again(figures: dict[str, Any], key_file: Path) -> None:
    options = ["--keys", str(key_file), "--json", "--layout", "block", "--seed"]
    same, other = [
        json.loads(CliRunner().invoke(app.app, ["demo", *options, seed]).stdout)
        for seed in ("1", "2")
    ]

    def absent(result: dict[str, Any], at: int) -> list[int]:
        return [result["as_loaded"][at]["absent"][name] for name in ("bytes_read", "blocks_read")]

    assert absent(same, 0) == absent(figures, 1)
    assert absent(other, 0) != absent(figures, 1)


# The times


class SlowStore:
    """Takes a known time for a Get, and notes the keys and the state of the garbage collector."""

    def __init__(self, name: str, calls: list[tuple[str, bytes]], seconds: float) -> None:
        self._name = name
        self._calls = calls
        self._seconds = seconds

    def get(self, key: bytes) -> None:
        assert not gc.isenabled()
        self._calls.append((self._name, key))
        if self._seconds:
            time.sleep(self._seconds)


def test_the_stores_take_turns_while_gets_are_timed() -> None:
    calls: list[tuple[str, bytes]] = []
    stores: Any = [SlowStore("a", calls, 0.0002), SlowStore("b", calls, 0)]
    rounds: list[int] = []
    keys = [b"%d" % n for n in range(BATCH + 1)]
    (present, absent), (fast, _) = time_gets(stores, [keys, [b"no"]], rounds.append)
    assert gc.isenabled()
    assert rounds == [1] * ROUNDS
    assert Counter(calls) == {(name, key): ROUNDS for name in "ab" for key in [*keys, b"no"]}
    batches = [name for name, group in itertools.groupby(calls, key=lambda call: call[0])]
    assert len(batches) >= 4 * ROUNDS  # not one store after the other
    assert batches[0] == "a"
    assert calls[len(calls) // ROUNDS][0] == "b"  # it is the first one in the second round
    for one in (present, absent):
        assert 200 <= one.per_get <= one.slowest
        assert one.fastest <= one.slowest
        assert one.spread >= 1
    assert fast.per_get < present.slowest


def test_a_batch_counts_at_the_fastest_of_its_rounds() -> None:
    calls: list[tuple[str, bytes]] = []

    class Disturbed(SlowStore):
        def get(self, key: bytes) -> None:
            self._seconds = 0.05 if len(calls) != 3 else 0
            super().get(key)

    stores: Any = [Disturbed("a", calls, 0)]
    [[times]] = time_gets(stores, [[b"k"]])
    assert times.per_get == times.fastest < 50_000 <= times.slowest
    assert times.spread > 1


def test_no_more_keys_are_timed_than_are_needed() -> None:
    calls: list[tuple[str, bytes]] = []
    stores: Any = [SlowStore("a", calls, 0)]
    time_gets(stores, [[b"%d" % n for n in range(3 * MOST_TIMED)]])
    assert len(calls) == MOST_TIMED * ROUNDS


def test_the_spread_of_the_times_is_printed(demo: tuple[Plan, Outcome]) -> None:
    text = " ".join(printed(*demo, 80).split())
    assert text.count("µs: a store's slowest round took up to ") == 1  # one table of stores
    assert "the stores take turns" in text
    assert "took up to 1.50 times as long" in spread([measurement("off")])


# What it prints


def printed(plan: Plan, outcome: Outcome, width: int, encoding: str = "utf-8") -> str:
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    print_report(Console(file=out, width=width), plan, outcome)
    out.seek(0)
    return out.read()


@pytest.fixture(scope="module")
def demo() -> tuple[Plan, Outcome]:
    """The demo of 2,000 keys, of which one is too long for a line."""
    lines = [*LINES, b"9" * 200 + b"\n"]
    data = lines_as_keys(lines, "file")
    plan = Plan(data, command.DEFAULT_LAYOUTS, 2001, 1, None)
    with place(plan) as directory:
        return plan, run_demo(plan, directory)


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_report_fits_the_terminal(demo: tuple[Plan, Outcome], width: int) -> None:
    lines = printed(*demo, width).splitlines()
    assert max(map(len, lines)) <= min(max(width, 50), 80)
    assert not any(re.match(r" *([KM]i)?B\b", line) for line in lines)  # a unit without a figure


@pytest.mark.parametrize("width", [60, 80])
def test_the_three_findings_come_first(demo: tuple[Plan, Outcome], width: int) -> None:
    title, *lines = printed(*demo, width).split("\n\n")[0].splitlines()
    assert title == "lsmkv demo: what a filter saves"
    assert re.fullmatch(
        r"1\. The filters answered 9\d\.\d% of the Gets of absent keys without reading a block:"
        r" 0\.0\d\d blocks a Get instead of (0\.9\d\d|1\.000)\."
        r" 2\. A Get of an existing key read 1\.000 blocks with and without them: one of them is"
        r" the block that holds it\."
        r" 3\. The filters cost 10\.\d bits a key: [\d.]+ KiB beside tables of [\d.]+ KiB\.",
        " ".join(line.strip() for line in lines),
    )


@pytest.mark.parametrize(("encoding", "mark"), [("utf-8", "█"), ("ascii", "#")])
def test_the_picture_at_the_end_has_bars_that_the_encoding_can_show(
    demo: tuple[Plan, Outcome], encoding: str, mark: str
) -> None:
    text = printed(*demo, 60, encoding)
    title, *lines = text.split("\n\n")[-1].splitlines()
    assert title == "Data blocks read per Get, as loaded"
    bars = [line for line in lines if "." in line]
    high = [float(bar.split()[-2]) > 0.9 for bar in bars]
    assert high == [True, False, False, False, False] + [True] * 5
    assert max(bar.count(mark) for bar in bars) == 32
    assert bars[1].split()[-1] in ("▍", "▎", "▏", "#")  # small, and visible
    assert text.isascii() == (encoding == "ascii")


def test_the_colours_tell_what_filters_save(demo: tuple[Plan, Outcome]) -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, color_system="standard")
    print_report(console, *demo)
    picture = out.getvalue().split("\n\n")[-1]
    bars = [line for line in picture.splitlines() if line.startswith("    ")]
    yellow, green = "\x1b[33m", "\x1b[32m"
    assert [yellow in bar for bar in bars] == [True, False, False, False, False] * 2
    assert [green in bar for bar in bars] == [False, True, True, True, True] * 2
    plain = printed(*demo, 80)
    assert "\x1b" not in plain
    assert re.sub("\x1b\\[[\\d;]*m", "", out.getvalue()) == plain


def test_the_report_of_a_process_tells_all(key_file: Path) -> None:
    done = CliRunner().invoke(app.app, ["demo", "--keys", str(key_file)])
    assert done.exit_code == 0
    assert done.stderr == ""
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\x1b" not in done.stdout
    for words in (
        "2,000 keys",
        "block cache",
        "textbook",
        "As loaded: at most 1 table",
        "per 2 KiB",
        "whole table",
        "whole 64-bit",
        "whole, fuse",
        "asks filters only in the store with a filter per 2 KiB.",
        "All 20,000 answers were right.",
    ):
        assert words in " ".join(done.stdout.split())


def answers_in(page: str) -> list[dict[str, Any]]:
    _, _, rest = page.partition('<script type="application/json" id="lsmkv-answers">')
    found: list[dict[str, Any]] = json.loads(rest.partition("</script>")[0])
    return found


def test_the_report_opens_on_the_result(key_file: Path, tmp_path: Path) -> None:
    file = tmp_path / "demo.html"
    options = ["demo", "--keys", str(key_file), "--lookups", "200", "--report", str(file), "--json"]
    done = CliRunner().invoke(app.app, options)
    assert done.exit_code == 0
    assert f"{file}: the result, and a store as it was loaded" in done.stderr
    told = json.loads(done.stdout)["as_loaded"]
    answers = answers_in(file.read_text(encoding="utf-8"))
    assert {one["view"] for one in answers} > {"demo", "levels", "table", "get", "filter"}
    assert answers[0]["view"] == "demo"
    result = answers[0]["answer"]
    assert len(result["findings"]) == 3
    assert (result["keys"], result["lookups"]) == (2000, 200)
    assert result["found"] == result["shown"] == "with a filter per 2 KiB"
    (state,) = result["states"]
    assert [one["layout"] for one in state["stores"]] == list(command.DEFAULT_LAYOUTS)
    for shown, counted in zip(state["stores"], told, strict=True):
        for kind in ("present", "absent"):
            assert shown[kind]["blocks"] == counted[kind]["blocks_per_get"]
            assert shown[kind]["microseconds"] == counted[kind]["microseconds_per_get"] > 0
        assert shown["measured_rate"] == counted["measured_rate"]
        assert shown["bits_per_key"] == 8 * counted["filter_bytes"] / 2000
    again = CliRunner().invoke(app.app, options)
    assert again.exit_code == 2
    assert "it exists already" in again.stderr
    assert CliRunner().invoke(app.app, ["demo", "--report", "-"]).exit_code == 2


def test_the_story_of_an_absent_key_says_what_each_filter_answers(
    key_file: Path, tmp_path: Path
) -> None:
    file = tmp_path / "demo.html"
    options = ["demo", "--keys", str(key_file), "--lookups", "200", "--report", str(file)]
    stores = tmp_path / "stores"
    assert CliRunner().invoke(app.app, [*options, "--dir", str(stores)]).exit_code == 0
    answers = answers_in(file.read_text(encoding="utf-8"))
    story = answers[0]["answer"]["story"]
    key = story["key"]["text"].encode()
    assert key + b"\n" not in LINES
    assert story["near"]["text"].encode() + b"\n" in LINES
    assert next(one for one in answers if one["view"] == "get")["query"]["key"] == key.decode()
    for one in story["stores"]:
        with lsmkv.DB(stores / one["layout"]) as db:  # one table: nothing was compacted since
            found = db.explain(key)
        assert (one["searched"], one["without"]) == (
            found.blocks_searched,
            found.blocks_without_filters,
        )
        (table,) = one["tables"]
        assert table["name"] == found.tables[0].name
        if one["layout"] == "off":
            assert (table["filter"], table["tone"]) == (None, "wasted")
        elif found.blocks_searched:
            assert (table["filter"], table["tone"]) == ("maybe", "wasted")
        else:
            assert (table["filter"], table["tone"]) == ("no", "saved")


def test_stores_stay_in_the_directory_given(key_file: Path, tmp_path: Path) -> None:
    stores = tmp_path / "stores"
    options = ["demo", "--keys", str(key_file), "--dir", str(stores), "--layout", "both"]
    assert CliRunner().invoke(app.app, options).exit_code == 0
    with lsmkv.DB(stores / "both") as db:
        assert db.get(LINES[0].rstrip()) == b"1"
    again = CliRunner().invoke(app.app, options)
    assert again.exit_code == 2
    assert again.stdout == ""
    assert again.stderr == f"lsmkv: {stores / 'both'} exists; the demo makes new stores\n"


def test_overlapping_tables_are_compacted_and_measured_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(LAYOUTS, "block", LAYOUTS["block"] | {"write_buffer_size": 16 << 10})
    data = lines_as_keys(LINES, "file")
    plan = Plan(data, ("block",), 500, 1, None)
    asked: list[int] = []

    def as_loaded(outcome: Outcome) -> None:
        with lsmkv.DB(os.path.join(directory, "block"), seek_compaction=False) as db:
            for _, absent in [outcome.example, *outcome.questions.examples]:
                asked.append(db.explain(absent).blocks_without_filters)

    with place(plan) as directory:
        outcome = run_demo(plan, directory, as_loaded)
    (before,), (after,) = outcome.as_loaded, outcome.compacted
    assert asked[0] == max(asked) > 1  # the example that is shown is a telling one
    assert before.overlapping > 1
    assert after.overlapping == 1
    assert outcome.wrong == 0
    assert before.absent.checks_per_get > 1.5
    assert after.absent.checks_per_get <= 1
    assert "After compact_range(): at most 1 table" in printed(plan, outcome, 80)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_the_demo_leaves_no_files(
    tmp_path: Path, key_file: Path, number: signal.Signals
) -> None:
    program = (
        "import signal, sys\n"
        "from lsmkv.tools import cli\n"
        "from lsmkv.tools.demo import run\n"
        "def measure(*_, **__):\n"
        "    print('ready', flush=True)\n"
        "    signal.pause()\n"
        "run.measure = measure\n"
        # As a terminal starts it, even if the suite runs under nohup.
        f"signal.signal({int(number)}, signal.SIG_DFL)\n"
        "sys.exit(cli.main())"
    )
    home = str(Path(lsmkv.__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-c", program, "demo", "--keys", str(key_file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": home, "TMPDIR": str(tmp_path)},
    ) as demo:
        assert demo.stdout is not None
        assert demo.stdout.readline() == b"ready\n"
        assert len(list(tmp_path.glob("lsmkv-demo-*/block/CURRENT"))) == 1
        demo.send_signal(number)
        _, err = demo.communicate()
    assert demo.returncode == 128 + number
    assert err == b""
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--keys", "no such file"], "no such file: No such file or directory"),
        (["--keys", "/dev/null"], "no keys"),
        (["--keys", "/dev/null", "--more", "5"], "--more"),
    ],
)
def test_keys_that_cannot_be_used_are_an_error(options: list[str], words: str) -> None:
    done = CliRunner().invoke(app.app, ["demo", *options])
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("lsmkv: ")
    assert done.stderr.count("\n") == 1
    assert words in done.stderr


def test_keys_from_stdin() -> None:
    done = CliRunner().invoke(
        app.app, ["demo", "--keys", "-", "--json", "--layout", "off"], input=b"one\ntwo\none\n"
    )
    assert done.exit_code == 0
    assert json.loads(done.stdout)["duplicates"] == 1


def test_a_wrong_answer_of_the_demo_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    data = DataSet("wrong", [(b"a", b"1"), (b"b", b"2")], {b"a": b"1", b"b": b"other"})
    monkeypatch.setattr(command, "lines_as_keys", lambda *_: data)
    done = CliRunner().invoke(app.app, ["demo", "--keys", "/dev/null"])
    assert done.exit_code == 2
    lines = done.stdout.splitlines()
    assert lines[1] == lines[-1] == "5 of 20 answers were WRONG."
    assert "without reading a block" not in done.stdout
    assert done.stderr == "lsmkv: 5 wrong answers\n"


# Its sentences


def measurement(
    layout: str,
    *,
    asked: int = 0,
    positives: int = 0,
    blocks: int = 0,
    predicted: float | None = None,
    answered: int | None = None,
    levels: dict[int, int] | None = None,
    disk: int = 100_000,
    filters: int = 0,
) -> Measurement:
    hits = Lookups(1000, 0, 1000, 2_000_000, asked, asked, Times(10.0, 9.0, 13.5))
    misses = Lookups(1000, 0, blocks, blocks * 2000, asked, positives, Times(5.0, 5.0, 6.0))
    tables = {2: 1} if levels is None else levels
    opened = (4, 5_000, filters)
    return Measurement(layout, False, tables, disk, *opened, hits, misses, predicted, answered)


def test_the_reading_follows_the_figures() -> None:
    off = measurement("off", blocks=2500, levels={0: 2, 1: 3})
    block = measurement("block", blocks=25, asked=2500, positives=25, predicted=0.01)
    told = " ".join(reading([off, block], [], 100_000))
    assert "read 2.500 data blocks without filters: up to 3 tables" in told
    assert "0.025 with a filter per 2 KiB (a factor of 100)" in told
    assert "25 of 2,500 checks of absent keys wrongly said maybe, 1.00%" in told
    assert "Their bits predict 1.00%" in told
    assert "agree within chance" in told
    assert "compaction" not in told
    assert "LevelDB" not in told


def test_the_reading_says_which_filters_leveldb_asks() -> None:
    off = measurement("off", blocks=2500)
    fuse = measurement("fuse", blocks=10, asked=2500, positives=10, predicted=0.004)
    told = " ".join(reading([off, fuse], [], 100_000))
    assert "0.010 with a fuse filter per table (a factor of 250)" in told
    assert "Their bits predict 0.40%, the textbook 0.39%; measured and predicted agree" in told
    assert "LevelDB reads all these stores, and asks filters in none of them." in told
    both = measurement("both", blocks=25, asked=2500, positives=25, predicted=0.01)
    told = " ".join(reading([off, fuse, both], [], 100_000))
    assert "asks filters only in the store with both kinds." in told


@pytest.mark.parametrize(
    ("positives", "words"),
    [(25, "agree within chance"), (60, "more than chance"), (1, "fewer than chance")],
)
def test_the_reading_compares_false_positives_with_chance(positives: int, words: str) -> None:
    one = measurement("table", blocks=positives, asked=2500, positives=positives, predicted=0.01)
    assert words in " ".join(reading([one], [], 1000))


def test_the_reading_of_a_perfect_filter_and_of_none() -> None:
    off = measurement("off", blocks=1000)
    perfect = measurement("block", asked=1000, predicted=0.01)
    assert "(no block at all)" in " ".join(reading([off, perfect], [perfect], 1000))
    alone = " ".join(reading([off], [], 1000))
    assert "the one block where it would have been." in alone
    assert "predict" not in alone


def test_the_findings_follow_the_figures() -> None:
    off = measurement("off", blocks=2500)
    block = measurement("block", blocks=25, asked=2500, positives=25, answered=976, disk=100_125)
    assert findings([off, block], 100, 0, 4000) == [
        "The filters answered 97.6% of the Gets of absent keys without reading a block:"
        " 0.025 blocks a Get instead of 2.500.",
        "A Get of an existing key read 1.000 blocks with and without them:"
        " one of them is the block that holds it.",
        "The filters cost 10.0 bits a key: 125 B beside tables of 97.7 KiB.",
    ]
    searching = replace(off, present=replace(off.present, blocks_read=2431))
    assert findings([searching, block], 100, 0, 4000)[1].startswith(
        "A Get of an existing key read 1.000 blocks instead of 2.431: "
    )
    absent, existing = findings([block], 100, 0, 2000)  # nothing to compare with
    assert absent.endswith(": 0.025 blocks a Get.")
    assert existing.startswith("A Get of an existing key read 1.000 blocks: ")
    assert findings([off], 100, 0, 2000) == [
        "Without filters, a Get of an absent key read 2.500 data blocks."
    ]
    assert findings([off, block], 100, 1, 4000) == ["1 of 4,000 answers were WRONG."]


def test_the_table_that_does_not_fit_is_two_tables() -> None:
    off = measurement("off", blocks=2500)
    block = measurement("block", blocks=25, asked=2500, positives=25, predicted=0.011, filters=1260)
    lines = [line.plain for line in table([off, block], 1000, 59)]
    assert max(map(len, lines)) <= 59
    assert lines[-1].split() == ["per", "2", "KiB", "absent", "1.00%", "1.10%", "0.84%", "10.08"]
    assert lines[-5] == ""
    assert "" not in [line.plain for line in table([off], 1000, 59)]


def test_the_table_of_costs_and_false_positives() -> None:
    off = measurement("off", blocks=2500)
    asked = {"asked": 2500, "positives": 25, "blocks": 25}
    block = measurement("block", **asked, predicted=0.011, filters=1260)
    fuse = measurement("fuse", **asked, predicted=0.004, filters=1200)
    *_, exists, absent, kept, lost, _, fused = [
        line.plain for line in table([off, block, fuse], 1000, 79)
    ]
    assert exists.split() == ["filters", "off", "exists", "1.000", "2,000", "-", "10.0"]
    assert absent.split() == ["absent", "2.500", "5,000", "-", "5.0"]
    assert kept.split() == ["per", "2", "KiB", "exists", "1.000", "2,000", "2.50", "10.0"]
    costs = ["absent", "0.025", "50", "2.50", "5.0"]
    assert lost.split() == [*costs, "1.00%", "1.10%", "0.84%", "10.08"]
    assert fused.split() == [*costs, "1.00%", "0.40%", "0.39%", "9.60"]

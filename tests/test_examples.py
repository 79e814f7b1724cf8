"""Every program in examples/ is run, and says what it should."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import lsmkv
from lsmkv.testing import CrashState, RecordingEnv, explore

EXAMPLES = Path(__file__).parents[1] / "examples"

PUBLIC = {
    *("lsmkv", "lsmkv.aio", "lsmkv.bulk", "lsmkv.indexeddb", "lsmkv.mapping", "lsmkv.plyvel"),
    *("lsmkv.shards", "lsmkv.testing"),
}


HOME = str(Path(lsmkv.__file__).parents[1])


def run(name: str, directory: Path, *arguments: str | Path) -> str:
    """An example's output, run as a user starts it, where it may leave files behind."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name), *map(str, arguments)],
        cwd=directory,
        env=os.environ | {"PYTHONPATH": HOME},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def load(name: str) -> Any:
    """An example as a module, for what a reader would copy from it."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def figures(text: str) -> list[int]:
    """The numbers in a text, without the commas."""
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", text)]


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_it_runs(name: str, tmp_path: Path) -> None:
    if name == "interop.py" and importlib.util.find_spec("plyvel") is None:
        pytest.skip("compares with plyvel")
    if "dask" in name:
        pytest.importorskip("distributed")
        pytest.importorskip("dask.dataframe")
    assert run(name, tmp_path)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_it_uses_the_public_api_alone(path: Path) -> None:
    modules = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "lsmkv":
            modules |= {f"lsmkv.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add(str(node.module))
    assert {module for module in modules if module.split(".")[0] == "lsmkv"} <= PUBLIC


def test_the_first_program_finds_what_it_left(tmp_path: Path) -> None:
    first = run("first_program.py", tmp_path)
    assert "runs before this one: 0\n" in first
    assert "owl: b'hoots at night'\ndodo: None\n" in first
    assert "carp now: None - before: b'lives long'\n" in first
    assert "runs before this one: 1\n" in run("first_program.py", tmp_path)


def test_a_damaged_store_comes_back_without_wrong_answers(tmp_path: Path) -> None:
    _, _, *lines = run("damaged_store.py", tmp_path).splitlines()
    assert len(lines) == 10
    for line in lines:
        damaged, _, lost, wrong = (int(x.replace(",", "")) for x in line.split()[-4:])
        assert damaged > 0
        if "log" in line:
            assert wrong <= 20  # what the damaged batches had changed
        else:
            assert wrong == 0
        if "footer" in line or "CURRENT" in line or "MANIFEST" in line:
            assert lost == 0


def test_the_filter_experiment_shows_what_filters_save(tmp_path: Path) -> None:
    _, *lines = run("filter_experiment.py", tmp_path).splitlines()
    without, *filtered = [[float(x) for x in re.findall(r"[\d.]+", line)] for line in lines]
    assert without == [0, pytest.approx(1, abs=0.01)]
    assert [bits for bits, *_ in filtered] == [2, 5, 10, 15]
    reads = [reads for _, reads, *_ in filtered]
    assert reads == sorted(reads, reverse=True)
    for _, reads_per_miss, measured, _ in filtered:
        assert reads_per_miss == pytest.approx(measured / 100, abs=0.01)
    for _, _, measured, textbook in filtered[:3]:
        assert measured == pytest.approx(textbook, rel=0.25)


def test_the_ordered_queue_gives_back_what_a_dead_worker_had(tmp_path: Path) -> None:
    lines = run("ordered_queue.py", tmp_path, tmp_path / "queue").splitlines()
    assert lines[0] == ("after the crash: ['send mail', 'index page'] and leased ['resize photo']")
    assert lines[1] == "given back at 210: 0 - at 231: 1"
    assert [line for line in lines if line.endswith("done: True")] == [
        "at 262: index page: done: True",
        "at 262: resize photo: done: True",
    ]
    assert sum(line.endswith("too late: False") for line in lines) == 3
    assert lines[-1] == "waiting: [] - failed: ['send mail']"


def test_the_ordered_queue_hands_each_job_to_one_thread() -> None:
    example = load("ordered_queue")
    with lsmkv.DB(":memory:") as db:
        queue = example.Queue(db)
        for number in range(60):
            queue.add(f"job {number:02d}", "", due=number)
        done: list[str] = []

        def work() -> None:
            while claim := queue.claim(1000):
                assert queue.finish(claim)
                done.append(claim.name)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(done) == [f"job {number:02d}" for number in range(60)]
        assert list(db) == []


def test_the_ordered_queue_loses_no_job_in_a_power_cut() -> None:
    example = load("ordered_queue")

    def workload(env: RecordingEnv) -> None:
        with lsmkv.DB("/queue", create_if_missing=True, env=env) as db:
            queue = example.Queue(db)
            for name in ("a", "b"):
                queue.add(name, "", due=0)
                env.note(f"added {name}")
            claim = queue.claim(0)
            queue.give_back(example.LEASE + 1)
            claim = queue.claim(0)
            env.note(f"finishing {claim.name}")
            assert queue.finish(claim)
            env.note(f"finished {claim.name}")

    def check(state: CrashState) -> None:
        with lsmkv.DB("/queue", create_if_missing=True, env=state.env) as db:
            queue = example.Queue(db)
            there = queue.names(b"waiting") + queue.names(b"leased")
        assert len(there) == len(set(there))
        for name in ("a", "b"):
            if f"finished {name}" in state.notes:
                assert name not in there
            elif f"added {name}" in state.notes and f"finishing {name}" not in state.notes:
                assert name in there

    report = explore(workload, check, points=40)
    assert report.states > 50
    assert not report.violations, str(report)


def test_a_time_series_skips_tables_and_forgets_old_days(tmp_path: Path) -> None:
    without, filtered, removed, left, last, size = run("time_series.py", tmp_path).splitlines()
    readings = 200 * 144
    found, blocks, skipped = figures(without.partition(":")[2])
    assert (found, skipped) == (readings, 0)
    assert figures(filtered)[0] == readings
    _, fewer, skipped = figures(filtered)
    assert blocks == fewer + skipped
    assert fewer < blocks / 2
    assert figures(removed) == [readings * 3 // 5]
    assert left == "sensors left: 80, the first sensor-003"
    assert last == f"sensor-004: 144 readings, the last ({5 * 86400 - 600}, {431400 % 97}.0)"
    assert 30 <= figures(size)[0] <= 50


def test_retention_removes_no_reading_of_its_border() -> None:
    example = load("time_series")
    with lsmkv.DB(":memory:", prefix_extractor=b":") as db:
        for sensor in ("a", "ab", "b"):
            for time in (8, 9, 10, 11):
                db.put(example.key(sensor, time), bytes(8))
        assert list(example.sensors(db)) == ["a", "ab", "b"]
        assert example.remove_before(db, 10) == 6
        for sensor in ("a", "ab", "b"):
            assert [time for time, _ in example.readings(db, sensor, 0, 99)] == [10, 11]
        assert example.remove_before(db, 99) == 6
        assert list(example.sensors(db)) == []


def test_the_search_finds_files_with_all_words_and_forgets_old_ones(tmp_path: Path) -> None:
    assert run("folder_search.py", tmp_path).splitlines() == [
        "store keeps honey (files read: 3, gone: 0)",
        "    4.21  bee.txt",
        "keeps store (files read: 0, gone: 0)",
        "    1.87  bee.txt",
        "    1.39  ant.txt",
        "    1.39  cat.txt",
        "keeps store (files read: 1, gone: 1)",
        "    2.20  ant.txt",
        "honey (files read: 0, gone: 0)",
        "    1.10  cat.txt",
    ]
    folder = tmp_path / "given" / "below"
    folder.mkdir(parents=True)
    (folder / "x.txt").write_text("Some WORDS", encoding="utf-8")
    given = run("folder_search.py", tmp_path, tmp_path / "given", tmp_path / "index", "words")
    assert given.splitlines()[1].endswith("below/x.txt")


def test_the_index_of_a_folder_that_was_emptied_is_empty(tmp_path: Path) -> None:
    example = load("folder_search")
    example.sample(tmp_path)
    with lsmkv.DB(":memory:") as db:
        index = example.Index(db, tmp_path)
        index.update()
        assert index.search("counsel no store no") == index.search("store no counsel")
        assert index.search("") == index.search("honey summer") == []
        for path in tmp_path.glob("*.txt"):
            path.unlink()
        assert index.update() == ([], ["ant.txt", "bee.txt", "cat.txt"])
        assert list(db) == []


def test_the_cache_asks_again_and_stays_within_its_bound(tmp_path: Path) -> None:
    assert run("http_cache.py", tmp_path, tmp_path / "pages").splitlines() == [
        "second 0: /a from the server; 400 bytes kept",
        "second 30: /a from the cache; 400 bytes kept",
        "second 50: /b from the server; 800 bytes kept",
        "second 70: /a from the cache, after a 304; 800 bytes kept",
        "second 80: /c from the server; 800 bytes kept",
        "second 90: /b from the server; 800 bytes kept",
        "second 95: /a from the server; 800 bytes kept",
    ]


def test_the_cache_keeps_a_page_whole_or_not_at_all() -> None:
    example = load("http_cache")
    with (
        lsmkv.DB(":memory:") as db,
        example.ThreadingHTTPServer(("127.0.0.1", 0), example.Pages) as server,
    ):
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        cache = example.Cache(db, most_bytes=1000)
        for now, page in enumerate("abcabcab"):
            body, _ = cache.get(f"{url}/{page}", now)
            assert body == f"/{page}".encode().ljust(400)
        kinds = [key.partition(b":")[0] for key, _ in db]
        assert kinds == [b"body"] * 2 + [b"meta"] * 2 + [b"time"] * 2
        assert cache.get(f"{url}/secret", 9)[1] == cache.get(f"{url}/secret", 9)[1] == "the server"
        assert cache.size() == 800
        small = example.Cache(db, most_bytes=300)
        assert small.get(f"{url}/d", 9)[1] == "the server"
        assert small.get(f"{url}/d", 9)[1] == "the server"
        server.shutdown()
        thread.join()

"""Every program in examples/ is run, and says what it should."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import json
import math
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from documents import load_script
from processes import run_python
from threads import run_threads

import lsmkv
from lsmkv.shared.system.local import SHARES
from lsmkv.testing import CrashState, RecordingEnv, explore, serving

EXAMPLES = Path(__file__).parents[1] / "examples"

SVG = "{http://www.w3.org/2000/svg}"
NOTEBOOK = EXAMPLES / "filter_experiment.ipynb"
OWN = EXAMPLES / "own_store.ipynb"
BESIDE = EXAMPLES / "notes_beside.ipynb"

PUBLIC = {
    *("lsmkv", "lsmkv.aio", "lsmkv.bulk", "lsmkv.indexeddb", "lsmkv.mapping", "lsmkv.plyvel"),
    *("lsmkv.plot", "lsmkv.shards", "lsmkv.testing", "lsmkv.cache.recipes"),
}


HOME = str(Path(lsmkv.__file__).parents[1])


def run(name: str, directory: Path, *arguments: str | Path) -> str:
    """An example's output, run as a user starts it, where it may leave files behind."""
    done = run_python("-W", "error", EXAMPLES / name, *arguments, cwd=directory, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def load(name: str) -> Any:
    """An example as a module, for what a reader would copy from it."""
    return load_script(EXAMPLES / f"{name}.py")


def quoted(name: str) -> list[str]:
    """The lines of an example's output that the README shows."""
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    _, _, section = page.partition(f"### [`{name}`]")
    section, _, _ = section.partition("\n### ")
    return [
        line
        for block in re.findall(r"(?ms)^```text\n(.*?)^```", section)
        for line in block.splitlines()
    ]


def figures(text: str) -> list[int]:
    """The numbers in a text, without the commas."""
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", text)]


@pytest.mark.parametrize(
    "name", sorted({path.name for path in EXAMPLES.glob("*.py")} - {"web_service.py"})
)  # the service runs until it is stopped, and has tests of its own
def test_it_runs(name: str, tmp_path: Path) -> None:
    if name == "interop.py" and importlib.util.find_spec("plyvel") is None:
        pytest.skip("compares with plyvel")
    if name in ("job_queue.py", "sessions.py"):
        pytest.importorskip("redis")
        pytest.importorskip("hiredis")
    if name == "web_workers.py":
        pytest.importorskip("gunicorn")
    if name == "background_jobs.py":
        pytest.importorskip("rq")
    if "django" in name:
        pytest.importorskip("django")
    if "dask" in name:
        pytest.importorskip("distributed")
        pytest.importorskip("dask.dataframe")
    said = run(name, tmp_path).splitlines()
    assert said
    for line in quoted(name):
        assert line in said


@pytest.mark.parametrize(
    "path", sorted([*EXAMPLES.glob("*.py"), NOTEBOOK, OWN, BESIDE]), ids=lambda path: path.name
)
def test_it_uses_the_public_api_alone(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = json.loads(source)["cells"]
        source = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    modules = set()
    for node in ast.walk(ast.parse(source)):
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


def test_the_job_queue_gives_each_late_job_back_once() -> None:
    redis = pytest.importorskip("redis")
    pytest.importorskip("hiredis")
    example = load("job_queue")
    jobs = [f"job {number}" for number in range(40)]
    with serving(":memory:") as server, contextlib.ExitStack() as ending:
        clients = [redis.Redis(port=server.port, decode_responses=True) for _ in range(4)]
        for client in clients:
            ending.callback(client.close)
        clients[0].sadd("workers", "worker")
        clients[0].rpush("taken:worker", *jobs)
        clients[0].zadd("deadlines", {f"worker {job}": 1 for job in jobs})
        found: list[int] = []

        def give_back(client: Any) -> Callable[[], None]:
            return lambda: found.append(example.give_back(client))

        assert run_threads(*map(give_back, clients)) == []
        assert sum(found) == len(jobs)
        assert sorted(clients[0].lrange("jobs", 0, -1)) == sorted(jobs)
        assert clients[0].llen("taken:worker") == 0


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

        assert run_threads(*[work] * 4) == []
        assert sorted(done) == [f"job {number:02d}" for number in range(60)]
        assert list(db) == []


def test_the_ordered_queue_hands_out_jobs_that_are_added_meanwhile() -> None:
    example = load("ordered_queue")
    names = [f"job {number:03d}" for number in range(200)]
    with lsmkv.DB(":memory:") as db:
        queue = example.Queue(db)
        done: list[str] = []
        over = threading.Event()

        def work() -> None:
            while True:
                last = over.is_set()
                while claim := queue.claim(1000):
                    assert queue.finish(claim)
                    done.append(claim.name)
                if last:
                    return

        with ThreadPoolExecutor(5) as pool:
            workers = [pool.submit(work) for _ in range(2)]
            # The later a job is added, the earlier it is due: each one is the first of all.
            adders = [
                pool.submit(
                    lambda at: [queue.add(names[n], "", 999 - n) for n in at], range(n, 200, 3)
                )
                for n in range(3)
            ]
            for adder in adders:
                adder.result()
            over.set()
            for worker in workers:
                worker.result()
        assert sorted(done) == names
        assert list(db) == []


def test_a_claim_costs_the_same_after_many_jobs(tmp_path: Path) -> None:
    example = load("ordered_queue")

    def blocks(db: lsmkv.DB) -> int:
        return db.stats().blocks_read + db.stats().block_cache_hits

    def cost(jobs: int) -> list[int]:
        """The data blocks that a claim and a look at the leases read, after so many jobs."""
        with lsmkv.DB(tmp_path / str(jobs), create_if_missing=True) as db:
            queue = example.Queue(db)
            with db.write_batch() as batch:
                for number in range(jobs):
                    batch.put(example.at(b"waiting", number, "job"), b'["", 0]')
            db.flush()
            for state in (b"waiting", b"leased"):  # as if all of them were claimed and finished
                with db.write_batch() as batch:
                    for number in range(jobs):
                        batch.delete(example.at(state, number, "job"))
            db.flush()
            for number in range(3):
                queue.add(f"job {number}", "", due=jobs)
            assert queue.claim(jobs).name == "job 0"
            assert queue.give_back(jobs) == 0
            before = blocks(db)
            assert queue.claim(jobs).name == "job 1"
            claimed = blocks(db)
            assert queue.give_back(jobs) == 0
            return [claimed - before, blocks(db) - claimed]

    assert max(cost(20_000)) <= 4
    assert max(cost(1_000)) <= 4


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


@pytest.mark.usefixtures("quick_switches")
def test_the_second_index_is_right_while_threads_change_the_same_people() -> None:
    example = load("second_index")
    with lsmkv.DB(":memory:") as db:

        def move(thread: int) -> None:
            for number in range(60):  # to a new city each time: no later move would repair an entry
                city = b"%d of %d" % (number, thread) if number % 5 else None
                example.save(db, b"p%d" % (number % 3), city)

        assert run_threads(*[lambda thread=thread: move(thread) for thread in range(4)]) == []
        assert example.check(db) == []
        people = list(db.iterator(prefix=b"people/"))
        for key, city in people:
            assert example.people_in(db, city) == [key[7:]]
        with pytest.raises(ValueError, match="a byte 0"):
            example.save(db, b"p", b"Bern\0")


def test_the_second_index_is_right_after_a_power_cut() -> None:
    example = load("second_index")

    def workload(env: RecordingEnv) -> None:
        with lsmkv.DB("/people", create_if_missing=True, env=env) as db:
            for city in (b"Oslo", b"Rome", None, b"Bern"):
                example.save(db, b"ada", city)

    def check(state: CrashState) -> None:
        with lsmkv.DB("/people", create_if_missing=True, env=state.env) as db:
            assert example.check(db) == []

    report = explore(workload, check, points=40)
    assert report.states > 20
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


def test_a_search_reads_the_files_of_its_words_alone(tmp_path: Path) -> None:
    example = load("folder_search")
    for number in range(40):
        (tmp_path / f"{number}.txt").write_text(f"common word{number}")
    with CountingDB(":memory:") as db:
        index = example.Index(db, tmp_path)
        index.update()
        before = db.entries
        assert [name for name, _ in index.search("word7")] == ["7.txt"]
        assert db.entries - before == 1


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
        assert list(db) == [(b"n", b"0")]


class CountingDB(lsmkv.DB):
    """Counts the entries that iterators yield."""

    entries = 0

    def iterator(self, **options: Any) -> Any:
        return Counted(self, super().iterator(**options))


class Counted:
    def __init__(self, db: CountingDB, entries: Any) -> None:
        self._db = db
        self._entries = entries

    def __enter__(self) -> Counted:
        return self

    def __exit__(self, *error: object) -> None:
        self._entries.close()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        entry = next(self._entries)
        self._db.entries += 1
        return entry


def test_the_cache_asks_again_and_stays_within_its_bound(tmp_path: Path) -> None:
    assert run("http_cache.py", tmp_path, tmp_path / "pages").splitlines() == [
        "second 0: /a from the server; 1 pages kept",
        "second 30: /a from the cache; 1 pages kept",
        "second 50: /b from the server; 2 pages kept",
        "second 70: /a from the cache, after a 304; 2 pages kept",
        "second 80: /c from the server; 2 pages kept",
        "second 90: /b from the server; 2 pages kept",
        "second 95: /a from the server; 2 pages kept",
    ]


@contextmanager
def pages(example: Any) -> Iterator[str]:
    """The URL of the cache's server, while the block runs."""
    with example.ThreadingHTTPServer(("127.0.0.1", 0), example.Pages) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_a_page_that_may_not_be_stored_is_not() -> None:
    example = load("http_cache")
    with lsmkv.Cache(shared=False) as cache, pages(example) as url:
        client = example.Client(cache, lambda: 1_700_000_000.0)
        for _ in range(2):
            body, source = client.get(f"{url}/secret")
            assert (body.rstrip(), source) == (b"/secret", "the server")
        assert len(cache) == 0
        assert client.get(f"{url}/a")[1] == "the server"
        assert client.get(f"{url}/a")[1] == "the cache"
        with pytest.raises(urllib.error.URLError):
            client.get("http://127.0.0.1:1/none")


def test_threads_that_get_pages_leave_a_whole_cache() -> None:
    example = load("http_cache")
    with (
        lsmkv.Cache(shared=False, size_limit=3000, eviction="least-recently-stored") as cache,
        pages(example) as url,
    ):
        client = example.Client(cache, lambda: 1_700_000_000.0)

        def browse(seed: int) -> None:
            rng = random.Random(seed)
            for _ in range(20):
                page = f"/{rng.randrange(12)}"
                assert client.get(url + page)[0].rstrip() == page.encode()

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(browse, range(4)))
        assert cache.check() == []
        assert len(cache) <= 6  # each step of culling removes up to ten


def test_each_prompt_is_paid_for_once(tmp_path: Path) -> None:
    assert run("llm_calls.py", tmp_path, tmp_path / "answers").splitlines() == [
        "16 questions of 8 threads: 2 calls, 2 answers",
        "2 questions of another process: 0 calls",
        "2 answers of small-2026 removed",
    ]


def test_pages_sessions_and_counters_of_django_are_in_the_cache(tmp_path: Path) -> None:
    pytest.importorskip("django")
    assert run("django_pages.py", tmp_path, tmp_path / "site").splitlines() == [
        "4 requests: 2 pages made, ['a', 'b']",
        "1 of 1 visits",
        "2 of 2 visits",
        "1 of 3 visits",
        "1 entry removed by its tag; menu: None",
    ]


def test_a_shelf_keeps_objects_in_order(tmp_path: Path) -> None:
    assert run("shelf.py", tmp_path, tmp_path).splitlines() == [
        "in order: ant, cow, wren",
        "the ant has 6 legs",
        "from b to d: ['cow']",
        "the cow says moo, moo",
        "no dodo: the shelf is open for reading",
        "as JSON: ['seeds', 'honeydew'] - 2 kept",
    ]
    with lsmkv.open(tmp_path / "json") as kept:
        assert kept["bee"] == b'{"legs": 6, "eats": ["nectar"]}'


def test_local_storage_is_read_and_not_touched(tmp_path: Path) -> None:
    example = load("local_storage")
    store = tmp_path / "leveldb"
    example.make_sample(store)
    before = {path.name: path.read_bytes() for path in store.iterdir()}
    lines = run("local_storage.py", tmp_path, store).splitlines()
    assert {path.name: path.read_bytes() for path in store.iterdir()} == before
    assert lines[:4] == [
        "version of the layout: 1",
        "https://example.org: 2 items",
        "    'color' = 'blue'",
        "    'name' = 'Ольга'",
    ]
    assert lines[5].endswith(" ...")
    assert lines[7] == r"    'id' = '\x1b[31m42'"
    assert run("local_storage.py", tmp_path).splitlines() == lines
    with lsmkv.DB(store):  # as a browser holds it
        one = run("local_storage.py", tmp_path, store, "https://example.org")
    assert one.splitlines() == lines[:4]
    with pytest.raises(ValueError, match="neither"):
        example.text(b"\x02what")


def test_a_filter_of_users_is_smaller_and_blind_to_fields(tmp_path: Path) -> None:
    lines = run("custom_filter.py", tmp_path, tmp_path).splitlines()[2:]
    assert [line[:18].strip() for line in lines] == [
        "LevelDB's, 10 bits",
        "by user, 10 bits",
        "by user, 40 bits",
    ]
    leveldb, small, large = ([float(x) for x in re.findall(r"[\d.]+", x[18:])] for x in lines)
    assert small[0] < leveldb[0] / 6
    assert large[0] < leveldb[0]
    for _, wrong, blocks, *_ in (leveldb, small, large):
        assert wrong / 100 == pytest.approx(blocks, abs=0.001)
    assert 0.3 < leveldb[1] < 2
    assert 0.3 < small[1] < 2
    assert large[1] < 0.05
    assert leveldb[3:] == [pytest.approx(0.9, abs=0.6), pytest.approx(0.009, abs=0.006)]
    assert small[3:] == large[3:] == [100, 1]


def test_everything_that_moves_over_arrives(tmp_path: Path) -> None:
    lines = run("moving_over.py", tmp_path).splitlines()
    if importlib.util.find_spec("plyvel") is not None:
        assert lines[0] == "plyvel: 1,000 pairs, all the same"
    assert lines[1:] == [
        "sqlite3: 8 pairs, all the same",
        "dbm: 1,000 pairs, all the same",
        "in Oslo: Bo",
        "in Oslo: Dora",
    ]
    example = load("moving_over")
    example.make_dbm(tmp_path / "old")
    given = run("moving_over.py", tmp_path, "dbm", tmp_path / "old", tmp_path / "new")
    assert given == "1,000 pairs, all the same\n"
    with lsmkv.DB(tmp_path / "new") as new:
        pairs = list(new)
        assert len(pairs) == 1000
        assert pairs[7] == (b"key 0007", b"value 7")


@pytest.mark.parametrize(
    "wrong", [[(b"a", b"1")], [(b"a", b"1"), (b"b", b"3")], [(b"a", b"1"), (b"c", b"2")]]
)
def test_what_does_not_arrive_is_noticed(wrong: list[tuple[bytes, bytes]], tmp_path: Path) -> None:
    example = load("moving_over")
    with lsmkv.open(tmp_path / "new", "c") as new:
        new.update({b"a": b"1", b"b": b"2"})
    assert example.compare(tmp_path / "new", [(b"a", b"1"), (b"b", b"2")]) == 2
    with pytest.raises(SystemExit, match=r"differs|instead of"):
        example.compare(tmp_path / "new", wrong)


def test_backups_are_as_of_one_moment(tmp_path: Path) -> None:
    taken, *lines = run("backup_while_writing.py", tmp_path, tmp_path).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["the bank", "the checkpoint", "the copy"]
    bank, checkpoint, copy = (figures(line)[0] for line in lines)
    assert 1000 <= checkpoint <= copy <= bank - 2000
    first, last = figures(taken)
    assert first <= copy <= last  # and not what was written while it was copied
    example = load("backup_while_writing")
    with lsmkv.DB(tmp_path / "copy") as db:
        assert example.verify(db) == copy
        content = dict(db)
    moved = content.pop(b"move:%09d" % (copy - 1))
    while moved.endswith(b" 0"):
        copy -= 1
        moved = content.pop(b"move:%09d" % (copy - 1))
    with pytest.raises(SystemExit, match="not"):
        example.verify(content.items())


def test_sessions_outlive_the_server_and_not_their_time(tmp_path: Path) -> None:
    pytest.importorskip("redis")
    pytest.importorskip("hiredis")
    expected = [
        "kept: True",
        "bob: {} - kept: False",
        "the server was restarted",
        "ann: {'cart': '3 apples', 'user': 'ann'}",
        "a wrong token: {}",
        "sessions ended: 2",
        "on the phone: {}",
    ]
    assert run("sessions.py", tmp_path).splitlines() == expected
    with serving(tmp_path / "sessions") as server:
        given = run("sessions.py", tmp_path, str(server.port)).splitlines()
    assert given == [line for line in expected if "restarted" not in line]


def test_background_jobs_survive_the_death_of_their_server(tmp_path: Path) -> None:
    pytest.importorskip("rq")
    pytest.importorskip("hiredis")
    results = " ".join(str(number) for number in range(1, 21))
    expected = [*quoted("background_jobs.py"), f"their results: {results}"]
    assert run("background_jobs.py", tmp_path, tmp_path / "queue").splitlines() == expected


def test_the_store_of_sessions_has_no_token() -> None:
    redis = pytest.importorskip("redis")
    pytest.importorskip("hiredis")
    example = load("sessions")
    with serving() as server, redis.Redis(port=server.port, decode_responses=True) as client:
        sessions = example.Sessions(client)
        token = sessions.begin("ann")
        brief = example.Sessions(client, lifetime=1).begin("ann")
        while client.exists(example.key(brief)):
            pass
        assert not sessions.keep(brief, "cart", "1 pear")
        assert not client.exists(example.key(brief))
        assert client.scard(example.of("ann")) == 2
        other = sessions.begin("ann")  # takes the one that expired out of the set
        assert client.scard(example.of("ann")) == 2
        for name in client.scan_iter():
            assert token not in name
        assert sessions.end_all("ann") == 2
        assert sessions.load(token) == sessions.load(other) == {}
        assert sessions.end_all("ann") == 0
        assert list(client.scan_iter()) == []


SHARES = pytest.mark.skipif(not SHARES, reason="this system shares no store")


@contextmanager
def web_service(*arguments: str | int | Path) -> Iterator[str]:
    """The URL of the service, which is started as a user does, and ended by Ctrl-C."""
    command = [sys.executable, "-W", "error", str(EXAMPLES / "web_service.py"), "--port", "0"]
    with subprocess.Popen(
        [*command, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": HOME},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
    ) as process:
        assert process.stderr is not None
        said = ""
        found = None
        while found is None or "startup complete" not in said:  # of the first of several workers
            line = process.stderr.readline()
            assert line, said
            said += line
            found = re.search(r"running on (http://([\d.]+):(\d+))", said)
        try:
            _wait_until_it_listens((found[2], int(found[3])), process)
            yield found[1]
        finally:
            process.send_signal(signal.SIGINT)
            rest = process.stderr.read()
            process.wait()
    assert "Application shutdown complete" in rest
    assert "Traceback" not in rest
    rest = re.sub(r"ResourceWarning: unclosed <socket", "", rest)  # uvicorn's, of several workers
    assert "Warning" not in rest


def _wait_until_it_listens(address: tuple[str, int], process: subprocess.Popen[str]) -> None:
    """A worker, one of several, says that it has started before it listens."""
    while True:
        try:
            socket.create_connection(address).close()
            return
        except ConnectionRefusedError:
            assert process.poll() is None
            time.sleep(0.01)


def request(url: str, method: str = "GET", body: bytes | None = None) -> tuple[int, bytes]:
    asked = urllib.request.Request(url, data=body, method=method)
    try:
        with urllib.request.urlopen(asked) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def test_the_web_service_keeps_notes(tmp_path: Path) -> None:
    pytest.importorskip("starlette")
    pytest.importorskip("uvicorn")
    with web_service(tmp_path / "notes") as url:
        for day in ("monday", "tuesday", "sunday"):
            assert request(f"{url}/notes/{day}", "PUT", day.encode()) == (200, b'{"changes":1}')
        page = request(f"{url}/notes?limit=2")
        assert page == (200, b'{"names":["monday","sunday"],"more":true}')
        page = request(f"{url}/notes?limit=2&after=sunday")
        assert page == (200, b'{"names":["tuesday"],"more":false}')
        assert request(f"{url}/notes/sunday", "DELETE") == (204, b"")
        assert request(f"{url}/notes/sunday") == (404, b"no such note\n")
        assert request(f"{url}/notes/long", "PUT", bytes(100_000))[0] == 413
        assert request(f"{url}/notes?limit=x")[0] == 400
    with web_service(tmp_path / "notes") as url:
        assert request(f"{url}/notes/monday") == (200, b"monday")
        assert request(f"{url}/notes/monday", "PUT", b"") == (200, b'{"changes":2}')


def test_the_web_service_counts_changes_that_meet(tmp_path: Path) -> None:
    pytest.importorskip("starlette")
    pytest.importorskip("uvicorn")
    with web_service() as url:
        with ThreadPoolExecutor(8) as pool:
            answers = list(
                pool.map(lambda text: request(f"{url}/notes/n", "PUT", text), [b"x"] * 40)
            )
        counted = sorted(json.loads(body)["changes"] for _, body in answers)
        assert counted == list(range(1, 41))


@SHARES
def test_the_workers_of_the_web_service_share_their_notes(tmp_path: Path) -> None:
    pytest.importorskip("starlette")
    pytest.importorskip("uvicorn")
    with web_service("--workers", 3, tmp_path / "notes") as url:
        with ThreadPoolExecutor(8) as pool:
            answers = list(
                pool.map(lambda text: request(f"{url}/notes/n", "PUT", text), [b"x"] * 60)
            )
        counted = sorted(json.loads(body)["changes"] for _, body in answers)
        assert counted == list(range(1, 61))
        with lsmkv.SharedDB(tmp_path / "notes", owner="process") as db:
            assert db.get(b"note:n") == b"x"
            db.put(b"note:n", b"y")
            assert all(request(f"{url}/notes/n") == (200, b"y") for _ in range(20))
    with lsmkv.SharedDB(tmp_path / "notes") as db:
        assert db.get(b"note:n") == b"y"


@SHARES
def test_a_notebook_reads_and_writes_what_the_service_has_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("starlette")
    pytest.importorskip("uvicorn")
    pytest.importorskip("ipykernel")
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    monkeypatch.setenv("PYTHONPATH", HOME)
    kept = nbformat.read(BESIDE, as_version=4)
    fresh = nbformat.read(BESIDE, as_version=4)
    with web_service("--workers", 2, tmp_path / "notes") as url:
        for day in ("monday", "tuesday"):
            assert request(f"{url}/notes/{day}", "PUT", day.encode())[0] == 200
        client = nbclient.NotebookClient(fresh, kernel_name="python3", timeout=None)
        client.execute(cwd=str(tmp_path))
        assert request(f"{url}/notes/saturday") == (200, b"from the notebook")
    assert printed(fresh.cells) == printed(kept.cells)


def printed(cells: Iterable[Any]) -> str:
    """All that a notebook's cells have printed."""
    return "".join(
        "".join(output["text"])
        for cell in cells
        for output in cell.get("outputs", [])
        if output["output_type"] == "stream"
    )


def pictures(cells: Iterable[Any]) -> list[list[str]]:
    """The words in each of a notebook's pictures, without the numbers on the axes."""
    return [
        [
            node.text
            for node in ElementTree.fromstring("".join(svg)).iter(f"{SVG}text")
            if node.text and re.search("[a-z]", node.text)
        ]
        for cell in cells
        for output in cell.get("outputs", [])
        if (svg := output.get("data", {}).get("image/svg+xml"))
    ]


@pytest.mark.parametrize(("notebook", "number"), [(NOTEBOOK, 2), (OWN, 1)])
def test_a_notebook_prints_and_draws_what_it_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, notebook: Path, number: int
) -> None:
    pytest.importorskip("ipykernel")
    pytest.importorskip("matplotlib")
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    monkeypatch.setenv("PYTHONPATH", HOME)
    kept = nbformat.read(notebook, as_version=4)
    fresh = nbformat.read(notebook, as_version=4)
    client = nbclient.NotebookClient(fresh, kernel_name="python3", timeout=None)
    client.execute(cwd=str(tmp_path))
    assert printed(fresh.cells) == printed(kept.cells)
    assert pictures(fresh.cells) == pictures(kept.cells)
    assert len(pictures(kept.cells)) == number


def test_a_store_of_ones_own_has_200_lines_and_saves_reads() -> None:
    cells = json.loads(OWN.read_text(encoding="utf-8"))["cells"]
    assert all(cell["metadata"] == {} for cell in cells)
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    lines = [line for cell in code for line in cell.splitlines() if line.strip()]
    assert len(lines) <= 200
    minutes = re.findall(r"(?m)^\| (\d+) \|", "".join(cells[0]["source"]))
    assert sum(map(int, minutes)) == 90
    found = [float(x) for x in re.findall(r"([\d.]+) blocks a Get", printed(cells))]
    assert found == sorted(found, reverse=True)
    assert found[0] > 7
    assert found[-1] < 0.6


def test_the_notebook_says_what_it_shows() -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert all(cell["metadata"] == {} for cell in cells)  # no times of execution
    lines = printed(cells).splitlines()
    rates = {
        what.strip(): [float(x) for x in re.findall(r"([\d.]+)%", line)]
        for line in lines[2:5]
        for what in [line[:27]]
    }
    names, counters, hashed = rates.values()
    formula = [100 * textbook_rate(bits) for bits in (2, 4, 6, 8, 10, 12, 14)]
    for measured in (names, hashed):
        assert measured[:5] == [pytest.approx(rate, rel=0.5) for rate in formula[:5]]
    assert counters[3] > counters[2]  # more often wrong with 8 bits than with 6
    assert all(wrong > 3 * rate for wrong, rate in zip(counters[4:], formula[4:], strict=True))
    wasted = [float(line.split()[-2]) for line in lines[5:]]
    assert wasted == sorted(wasted, reverse=True)
    assert wasted[0] == pytest.approx(0.5, abs=0.001)
    assert wasted[-1] < 0.002


def textbook_rate(bits: int) -> float:
    """The textbook's false-positive rate, with as many probes as LevelDB makes."""
    probes = lsmkv.BloomFilterPolicy(bits).probes
    return (1 - math.exp(-probes / bits)) ** probes


def test_the_readme_tells_of_every_example() -> None:
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    programs = {path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".ipynb")}
    assert set(re.findall(r"(?m)^### \[`(.*?)`\]\(\1\)$", page)) == programs
    for name in programs - {NOTEBOOK.name, OWN.name, BESIDE.name}:
        assert re.search(rf"(?m)^python examples/{name}", page), name

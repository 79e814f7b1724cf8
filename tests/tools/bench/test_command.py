"""``lsmkv bench``: what it takes, prints and leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import lsmkv
from lsmkv.tools.app import app
from lsmkv.tools.bench import command, report, runner
from lsmkv.tools.bench.engines import OWN, PEERS, is_installed
from lsmkv.tools.bench.runner import NAMES
from lsmkv.tools.bench.settings import Settings
from lsmkv.tools.bench.workloads import WORKLOADS

QUICK = ["--num", "300", "--rounds", "2"]
PEER = next(name for name in ("plyvel", "sqlite3") if is_installed(name))


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["bench", *arguments])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stores")


@pytest.fixture(scope="module")
def figures(place: Path) -> dict[str, Any]:
    """Every workload, lsmkv and a peer, two rounds."""
    done = invoke("--against", f"{PEER},dbm", *QUICK, "--histogram", "--dir", str(place), "--json")
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_json_tells_all(figures: dict[str, Any]) -> None:
    assert figures["lsmkv"] == lsmkv.__version__
    assert figures["compiled"] is lsmkv.COMPILED
    assert figures["rounds"] == 2
    assert Settings(**figures["settings"]) == Settings(num=300, histogram=True)
    assert figures["machine"]["cores"] == os.cpu_count()
    assert list(figures["engines"]) == [OWN, PEER, "dbm"]
    assert figures["engines"][OWN]["version"] == lsmkv.__version__
    assert list(figures["workloads"]) == list(WORKLOADS)
    assert figures["studies"] == {}
    for name, workload in figures["workloads"].items():
        own = workload["engines"][OWN]
        assert workload["ops"] > 0
        assert len(own["rounds"]) == 2
        assert own["micros"]["low"] == min(own["rounds"])
        assert own["micros"]["high"] == max(own["rounds"])
        assert own["micros"]["median"] == pytest.approx(sum(own["rounds"]) / 2)
        assert "ratio" not in own
        for peer in (PEER, "dbm"):
            summary = workload["engines"][peer]
            if "skipped" in summary:
                assert summary["skipped"]
                continue
            each = [a / b for a, b in zip(summary["rounds"], own["rounds"], strict=True)]
            assert summary["ratio"]["low"] == pytest.approx(min(each))
            assert summary["ratio"]["high"] == pytest.approx(max(each))
            assert summary["seen"].keys() == own["seen"].keys(), name
    skipped = {
        name for name, one in figures["workloads"].items() if "skipped" in one["engines"]["dbm"]
    }
    assert {"readseq", "readreverse", "seekrandom", "seek10", "compact"} <= skipped
    assert figures["workloads"]["readrandom"]["engines"][OWN]["histogram"]["count"] == 300
    assert figures["workloads"]["fillseq"]["engines"][OWN]["counters"]["writes"] == 300


def test_engines_see_the_same(figures: dict[str, Any]) -> None:
    for workload in figures["workloads"].values():
        seen = {
            json.dumps({k: v for k, v in one["seen"].items() if k != "levels_changed"})
            for one in workload["engines"].values()
            if "seen" in one
        }
        assert len(seen) == 1


def test_nothing_is_left(figures: dict[str, Any], place: Path) -> None:
    assert figures["rounds"] == 2
    assert list(place.iterdir()) == []


def test_the_table_is_80_columns_wide(figures: dict[str, Any]) -> None:
    lines = report.table(figures)
    assert max(map(len, lines)) <= 80
    head = next(line for line in lines if line.startswith("us/op"))
    assert head.split() == ["us/op", OWN, PEER, "ratio", "(spread)", "dbm", "ratio", "(spread)"]
    rows = {line.split()[0]: line.split() for line in lines if line.split()}
    assert set(WORKLOADS) <= set(rows)
    assert rows["readseq"][-2:] == ["-", "-"]
    median = figures["workloads"]["fillseq"]["engines"][OWN]["micros"]["median"]
    assert rows["fillseq"][1] == report.micros(median)


def test_everything_is_printed_with_histograms(figures: dict[str, Any]) -> None:
    text = "\n".join(report.lines(figures))
    assert f"lsmkv {lsmkv.__version__}" in text
    assert "300 entries of 16 + 100 bytes, snappy" in text
    assert "readrandom, lsmkv: microseconds an operation" in text
    assert "Count: 300  Average: " in text


def test_studies(tmp_path: Path) -> None:
    studies = [name for name in NAMES if name not in WORKLOADS]
    done = invoke(*studies, "--num", "300", "--dir", str(tmp_path), "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["workloads"] == {}
    assert set(found["studies"]) == set(studies)
    own = {name: by_engine[OWN] for name, by_engine in found["studies"].items()}
    assert own["sustained"]["ops"] == 300
    assert own["absent"]["bytes_written"] in (0, None)
    assert own["import"]["low"] <= own["import"]["milliseconds"] <= own["import"]["high"]
    if own["memory"]["peak"] is not None:
        assert 5e6 < own["memory"]["imported"] <= own["memory"]["filled"] <= own["memory"]["peak"]
    assert list(tmp_path.iterdir()) == []
    text = "\n".join(report.lines(found))
    for words in ("300 puts in", "a Get by entries", "on disk", "Gets of absent keys", "at most"):
        assert words in text


def test_names_choose_what_is_run() -> None:
    done = invoke("readseq", "fillseq", "readseq", *QUICK)
    assert done.exit_code == 0
    names = [line.split()[0] for line in done.stdout.splitlines()[-2:]]
    assert names == ["readseq", "fillseq"]


def test_a_missing_peer_is_reported_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "is_installed", lambda name: name == "dbm")
    done = invoke("fillseq", "--against", "all", *QUICK, "--json")
    assert done.exit_code == 0
    said = done.stderr.splitlines()
    assert len(said) == len(PEERS) - 1
    assert said[0].startswith("lsmkv: plyvel is not installed, and left out: pip install")
    found = json.loads(done.stdout)
    assert found["engines"]["plyvel"] == {"missing": True}
    assert list(found["workloads"]["fillseq"]["engines"]) == [OWN, "dbm"]


def test_peers_are_measured_from_a_checkout(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(lsmkv, "__file__", str(tmp_path / "lsmkv" / "__init__.py"))
    monkeypatch.chdir(tmp_path)
    done = invoke("fillseq", "--against", "dbm", *QUICK)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("lsmkv: peers are measured from a checkout of lsmkv: ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fillsequential"], "no such workload or study: fillsequential (there are fillseq "),
        (
            ["--against", "plyvel,redis"],
            "no such peer: redis (there are plyvel plyvel+crc rocksdict ",
        ),
        (["--against", OWN], "no such peer: lsmkv"),
        (["fillseq", "--dir", "no such directory"], "no such directory"),
        (["--num", "0"], "--num"),
        (["--threads", "0"], "--threads"),
        (["--compression", "zlib"], "--compression"),
    ],
)
def test_bad_arguments(arguments: list[str], words: str) -> None:
    done = invoke(*arguments)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert words in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="looks for the child in /proc")
def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    home = str(Path(lsmkv.__file__).parents[1])
    # Where SIGINT is ignored (in a shell's background job, say) a child would not hear it.
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from lsmkv.tools.cli import main\n"
        "sys.exit(main())"
    )
    arguments = ["bench", "--num", "1000000", "--dir", str(tmp_path)]
    with subprocess.Popen(
        [sys.executable, "-P", "-c", program, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": home},
    ) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while not list(tmp_path.glob("lsmkv-bench-*/lsmkv-*/store-1/CURRENT")):
            assert process.poll() is None
            time.sleep(0.01)
        (child,) = children.read_text().split()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert process.returncode == 130
    assert (out, err) == (b"", b"lsmkv: interrupted\n")
    assert list(tmp_path.iterdir()) == []
    assert not Path("/proc", child).exists()


def test_a_worker_ends_with_the_one_that_started_it(tmp_path: Path) -> None:
    """It ends when it reports its next step to a pipe that is closed."""
    with runner._started([sys.executable, "-P", "-m", "lsmkv.tools.bench.worker"]) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        job = runner.Job(OWN, str(tmp_path), Settings(num=20_000), ("fillseq",) * 100)
        process.stdin.write(job.to_json())
        process.stdin.close()
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) != 0

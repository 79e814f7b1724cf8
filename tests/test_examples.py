"""Every program in examples/ is run, and says what it should."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lsmkv

EXAMPLES = Path(__file__).parents[1] / "examples"

PUBLIC = {
    *("lsmkv", "lsmkv.aio", "lsmkv.bulk", "lsmkv.indexeddb", "lsmkv.mapping", "lsmkv.plyvel"),
    *("lsmkv.shards", "lsmkv.testing"),
}


def run(name: str, directory: Path) -> str:
    """An example's output, run as a user starts it, where it may leave files behind."""
    home = str(Path(lsmkv.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name)],
        cwd=directory,
        env=os.environ | {"PYTHONPATH": home},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


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

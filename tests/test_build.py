"""Which build is under test: the makefile says what it expects, so that none hides the other."""

from __future__ import annotations

import ast
import importlib
import importlib.machinery
import os
import pkgutil
import tomllib
from pathlib import Path

import pytest
from parsed import parsed
from processes import run_python

import lsmkv

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ROOMS = PROJECT["tool"]["lsmkv"]


def name_of(path: str) -> str:
    return f"lsmkv.{path.removesuffix('.py').replace('/', '.')}"


def modules_under(key: str) -> set[str]:
    """The full names of the modules, and of those in the folders, that a key names."""
    found = {name_of(path) for path in ROOMS[key] if path.endswith(".py")}
    for room in {name_of(path) for path in ROOMS[key]} - found:
        package = importlib.import_module(room)
        walked = pkgutil.walk_packages(package.__path__, f"{room}.")
        found |= {module.name for module in walked if not module.ispkg}
    return found


INTERPRETED = modules_under("interpreted")
"""What is left out of the compiled rooms."""


def modules_of_the_wings() -> list[str]:
    """Every module that setup.py hands to the compiler, by its full name."""
    return sorted(modules_under("compiled") - INTERPRETED)


def test_compiled_is_what_this_run_expects() -> None:
    expected = os.environ.get("LSMKV_EXPECT_COMPILED")
    if expected is not None:
        assert lsmkv.COMPILED is (expected == "1")


def test_the_wings_have_modules_at_every_depth() -> None:
    found = modules_of_the_wings()
    assert len(found) > 80
    assert {
        "lsmkv.engine.db.read.level_iterator",
        "lsmkv.engine.db.admin.ingest",
        "lsmkv.files.repair.plan",
    } <= {*found}


@pytest.mark.parametrize("name", modules_of_the_wings())
def test_every_module_of_the_wings_is_compiled_or_none_is(name: str) -> None:
    loader = importlib.import_module(name).__spec__.loader
    compiled = isinstance(loader, importlib.machinery.ExtensionFileLoader)
    interpreted = isinstance(loader, importlib.machinery.SourceFileLoader)
    assert (compiled, interpreted) == (lsmkv.COMPILED, not lsmkv.COMPILED)


def test_no_compiled_generator_has_something_to_end() -> None:
    """One of mypyc's is not closed when an interrupt drops it: its ``finally`` does not run."""
    package = Path(lsmkv.__path__[0])
    found = [
        f"{name}.{node.name}"
        for name in modules_of_the_wings()
        for node in ast.walk(parsed(package.joinpath(*name.split(".")[1:]).with_suffix(".py")))
        if isinstance(node, ast.FunctionDef)
        and any("contextmanager" in ast.unparse(one) for one in node.decorator_list)
    ]
    assert found == []


@pytest.mark.parametrize("name", sorted(INTERPRETED))
def test_what_must_never_be_compiled_is_not(name: str) -> None:
    loader = importlib.import_module(name).__spec__.loader
    assert isinstance(loader, importlib.machinery.SourceFileLoader)


def test_a_module_is_compiled_for_speed_or_for_size() -> None:
    fast, small = modules_under("one-unit"), modules_under("small")
    assert fast <= modules_under("compiled")
    assert not fast & small


@pytest.mark.parametrize("key", ["compiled", "interpreted"])
def test_a_room_that_is_not_there_ends_the_build(key: str, tmp_path: Path) -> None:
    pytest.importorskip("mypyc.build")
    rooms = {"compiled": [], "interpreted": [], key: ["nowhere"]}
    text = "".join(f"{name} = {value}\n" for name, value in rooms.items())
    (tmp_path / "pyproject.toml").write_text(f"[tool.lsmkv]\n{text}", encoding="utf-8")
    done = run_python(
        str(ROOT / "setup.py"), "build_ext", cwd=tmp_path, env={**os.environ, "LSMKV_MYPYC": "1"}
    )
    assert done.returncode != 0
    assert f"there is no {Path('lsmkv', 'nowhere')}" in done.stderr

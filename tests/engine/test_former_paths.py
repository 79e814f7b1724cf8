"""lsmkv.engine.former_paths: what was importable is, and public names are called as they were."""

from __future__ import annotations

import ast
import importlib
import pickle
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from processes import python_without_warnings

import lsmkv
from lsmkv.engine.former_paths import present_path

LIST = Path(__file__).parents[1] / "data" / "public-paths.txt"
PATHS = [line.split() for line in LIST.read_text(encoding="utf-8").splitlines()[1:]]
NEEDS = {
    "lsmkv.cache.aiocache": "aiocache",
    "lsmkv.cache.dogpile": "dogpile",
    "lsmkv.django": "django",
    "lsmkv.plot": "matplotlib",
    "lsmkv.server": "hiredis",
}
MOVED = {("lsmkv", "destroy_db"): "lsmkv.shared.destroying"}
"""It frees what processes that shared a store have left, so it went into another room."""


@pytest.mark.parametrize("face", sorted({face for face, _, _ in PATHS}))
def test_public_names_are_of_the_modules_that_they_were_of(face: str) -> None:
    if face in NEEDS and find_spec(NEEDS[face]) is None:
        pytest.skip(f"needs {NEEDS[face]}")
    names = [(name, module) for at, name, module in PATHS if at == face]
    assert names
    for name, module in names:
        found = getattr(importlib.import_module(face), name)
        assert found.__module__ == MOVED.get((face, name), module)
        assert getattr(importlib.import_module(found.__module__), found.__name__) is found


def test_a_public_module_that_moved_has_a_door() -> None:
    """It imports all names of the module that the path is at run time, and does nothing else."""
    package = Path(lsmkv.__path__[0])
    for face in sorted({face for face, _, _ in PATHS}):
        present = present_path(face)
        door = package.joinpath(*face.split(".")[1:]).with_suffix(".py")
        if present is None:
            continue
        *_, imports, names = ast.parse(door.read_text(encoding="utf-8")).body
        assert isinstance(imports, ast.ImportFrom)
        assert imports.module == present
        assert isinstance(names, ast.Assign)
        assert ast.literal_eval(names.value) == importlib.import_module(present).__all__
        assert {name.name for name in imports.names} == {*ast.literal_eval(names.value)}


def test_a_former_path_leads_to_the_same_module() -> None:
    former = importlib.import_module("lsmkv.db.tree.memtable")
    present = importlib.import_module("lsmkv.engine.db.tree.memtable")
    assert former is present
    assert present.__spec__ is not None
    assert present.__spec__.name == present.__name__ == "lsmkv.engine.db.tree.memtable"
    assert sys.modules["lsmkv.db"] is sys.modules["lsmkv.engine.db"]
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        importlib.import_module("lsmkv.db.no_such_module")
    with pytest.raises(AttributeError, match="no_such_module"):
        lsmkv.no_such_module  # noqa: B018


def test_modules_that_moved_out_of_a_room_that_moved() -> None:
    assert present_path("lsmkv.env.faulty") == "lsmkv.testing.faulty"
    assert present_path("lsmkv.env.local") == "lsmkv.engine.env.local"
    assert present_path("lsmkv.cache.cache") is None
    assert present_path("lsmkv.environment") is None


def test_a_former_path_is_imported_first_of_all() -> None:
    """Also as an attribute, and as a process does that unpickles what an older release wrote."""
    program = """
        import pickle, sys
        print(pickle.loads(b"clsmkv.errors\\nClosedError\\n."))
        print(pickle.loads(b"clsmkv.bulk.set_repair\\nSetRepair\\n."))
        import lsmkv
        print(lsmkv.errors.ClosedError, lsmkv.indexeddb.Date)
        import lsmkv.repair.plan
        print(lsmkv.repair.plan.__name__)
    """
    assert python_without_warnings(program).stdout.split("\n") == [
        "<class 'lsmkv.errors.ClosedError'>",
        "<class 'lsmkv.bulk.set_repair.SetRepair'>",
        "<class 'lsmkv.errors.ClosedError'> <class 'lsmkv.indexeddb.Date'>",
        "lsmkv.files.repair.plan",
        "",
    ]


def test_pickles_name_the_former_path() -> None:
    assert b"lsmkv.errors" in pickle.dumps(lsmkv.ClosedError("closed"))
    with lsmkv.DB(":memory:") as db:
        assert b"lsmkv.stats" in pickle.dumps(db.stats())

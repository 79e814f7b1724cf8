"""What type checkers make of lsmkv: ``typing/uses_everything.py`` says what they must."""

from __future__ import annotations

import ast
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lsmkv
import lsmkv.aio
import lsmkv.bulk
import lsmkv.mapping
import lsmkv.plyvel
import lsmkv.shards

ROOT = Path(__file__).parents[1]
USES = Path(__file__).parent / "typing" / "uses_everything.py"
PACKAGE = Path(lsmkv.__file__).parent
CLAIM = 'db.get(b"k"), bytes | None)'
WRONG = 'db.get(b"k"), bytes)'
METHOD = (property, classmethod, staticmethod)
FACES = {
    "awaiting": "lsmkv.aio",
    "awaiting_more": "lsmkv.aio",
    "caching_in_a_loop": "lsmkv.aio",
    "sharing_in_a_loop": "lsmkv.aio",
    "mapping": "lsmkv.mapping",
    "as_plyvel": "lsmkv.plyvel",
    "awaiting_shards": "lsmkv.aio",
    "building_shards": "lsmkv.bulk",
    "reading_shards": "lsmkv.shards",
    "reading_shard_records": "lsmkv.shards",
}
"""The functions that are about another door than ``lsmkv`` itself."""


def check_with_mypy(path: Path, scratch: Path) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("mypy")
    return subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--warn-unreachable"),
            *("--config-file", "", "--follow-imports", "silent", "--ignore-missing-imports"),
            *("--cache-dir", str(scratch / "cache"), str(path)),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )


def check_with_pyright(path: Path, scratch: Path) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("pyright")
    project = scratch / "pyrightconfig.json"
    settings = {
        "include": [os.path.relpath(path, scratch)],
        "extraPaths": [str(PACKAGE.parent)],
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "reportUnnecessaryTypeIgnoreComment": "error",
    }
    project.write_text(json.dumps(settings))
    return subprocess.run(
        [sys.executable, "-m", "pyright", "-p", str(project), "--pythonpath", sys.executable],
        capture_output=True,
        text=True,
        check=False,
        cwd=scratch,
        # No look-up of a newer release.
        env={**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
    )


@pytest.mark.parametrize(
    ("check", "complaint"),
    [(check_with_mypy, "[assert-type]"), (check_with_pyright, "reportAssertTypeFailure")],
    ids=["mypy", "pyright"],
)
def test_types_are_precise(
    check: Callable[[Path, Path], subprocess.CompletedProcess[str]], complaint: str, tmp_path: Path
) -> None:
    result = check(USES, tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr

    text = USES.read_text()
    assert CLAIM in text
    wrong = tmp_path / "wrong.py"
    wrong.write_text(text.replace(CLAIM, WRONG))
    result = check(wrong, tmp_path)
    assert result.returncode == 1, result.stdout + result.stderr
    assert complaint in result.stdout


def public_names(face: str) -> Iterator[str]:
    """The names in ``__all__``, and the public methods and properties of the module's classes.

    What another door defines belongs to that one.
    """
    module = importlib.import_module(face)
    for name in module.__all__:
        yield name
        member = getattr(module, name)
        if isinstance(member, type) and not issubclass(member, Exception):
            for kind in member.__mro__:
                if kind.__module__.startswith(face):
                    yield from (part for part in vars(kind) if is_method(kind, part))


def is_method(kind: type, name: str) -> bool:
    value = vars(kind)[name]
    return not name.startswith("_") and (callable(value) or isinstance(value, METHOD))


def names_in(nodes: list[ast.stmt]) -> set[str]:
    names: set[str] = set()
    for node in (inner for outer in nodes for inner in ast.walk(outer)):
        if isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.Name):
            names.add(node.id)
    return names


@pytest.mark.parametrize(
    "face",
    ["lsmkv", "lsmkv.aio", "lsmkv.bulk", "lsmkv.mapping", "lsmkv.plyvel", "lsmkv.shards"],
)
def test_the_file_uses_everything(face: str) -> None:
    """By their names, and each face in the functions that are about it."""
    about = [
        node
        for node in ast.parse(USES.read_text()).body
        if FACES.get(getattr(node, "name", ""), "lsmkv") == face
    ]
    assert sorted(set(public_names(face)) - names_in(about)) == []


def test_every_public_name_exists() -> None:
    for name in lsmkv.__all__:
        assert hasattr(lsmkv, name)

"""The tour names symbols of the source; every one of them must be there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOUR = ROOT / "docs" / "tour.md"
# Names that the tour mentions in code style but that are no definitions of the package.
NOT_SYMBOLS = {"None", "add"}


def defined_names() -> set[str]:
    """Every class, function and method of the package, methods as Class.method too."""
    names: set[str] = set()
    for path in (ROOT / "lsmkv").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                names.add(node.name)
                names |= {
                    f"{node.name}.{item.name}"
                    for item in node.body
                    if isinstance(item, ast.FunctionDef)
                }
            elif isinstance(node, ast.FunctionDef):
                names.add(node.name)
            elif isinstance(node, ast.Assign):
                names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def quoted() -> list[str]:
    """What the tour sets in code style."""
    return sorted(set(re.findall(r"`([^`\n]+)`", TOUR.read_text())))


@pytest.mark.parametrize("name", [name for name in quoted() if re.fullmatch(r"[\w.]+", name)])
def test_symbol_or_module_exists(name: str) -> None:
    if name in NOT_SYMBOLS:
        return
    if name.endswith(".py"):
        assert list((ROOT / "lsmkv").rglob(name)), f"no module {name}"
    else:
        assert name in defined_names(), f"the tour names {name}, which is gone"


@pytest.mark.parametrize("name", [name for name in quoted() if "/" in name])
def test_path_exists(name: str) -> None:
    assert (ROOT / name).exists() or (ROOT / "lsmkv" / name).exists(), f"no such path: {name}"


def test_the_tour_names_things() -> None:
    assert len(quoted()) > 40

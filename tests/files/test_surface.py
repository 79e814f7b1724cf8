"""What the module gives is its own: no class of the engine is handed on."""

from __future__ import annotations

import ast
import inspect
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lsmkv import files

OWN = ("lsmkv.files", "lsmkv.errors")
PUBLIC = [getattr(files, name) for name in files.__all__]
CLASSES = [one for one in PUBLIC if isinstance(one, type)]


def classes_in(hint: Any) -> Iterator[type]:
    """The classes that an annotation names, however deep."""
    if isinstance(hint, type) and not isinstance(hint, types.GenericAlias):
        yield hint
    for inner in typing.get_args(hint):
        yield from classes_in(inner)


def hints_of(owner: Any) -> Iterator[tuple[str, Any]]:
    """The annotations of a public function, or of a class's public fields, properties, methods."""
    if not isinstance(owner, type):
        if inspect.isfunction(owner):
            yield from typing.get_type_hints(owner).items()
        else:
            yield "alias", owner
        return
    for name, hint in typing.get_type_hints(owner).items():
        if not name.startswith("_"):
            yield name, hint
    for name, member in inspect.getmembers(owner):
        if name.startswith("_") and name != "__init__":
            continue
        function = member.fget if isinstance(member, property) else member
        if inspect.isfunction(function):
            for what, hint in typing.get_type_hints(function).items():
                yield f"{name}({what})", hint


@pytest.mark.parametrize("name", files.__all__)
def test_no_class_of_the_engine_is_in_a_signature_or_field(name: str) -> None:
    for what, hint in hints_of(getattr(files, name)):
        for found in classes_in(hint):
            if found.__module__.startswith("lsmkv"):
                assert found.__module__.startswith(OWN), f"{name}.{what}: {found}"


def test_the_rule_can_be_broken() -> None:
    class Leak:
        def handle(self) -> list[Path | None]: ...  # type: ignore[empty-body]

    assert Path in {one for _, hint in hints_of(Leak) for one in classes_in(hint)}


def test_each_public_class_is_the_modules_own() -> None:
    assert len(CLASSES) > 20
    assert {one.__module__.rpartition(".")[0] for one in CLASSES} == {"lsmkv.files"}


def test_records_cannot_be_changed() -> None:
    footer = files.parse_footer(bytes(40) + bytes.fromhex("57fb808b247547db"))
    with pytest.raises(AttributeError):
        footer.offset = 1  # type: ignore[misc]
    with pytest.raises(AttributeError):
        files.Span(1, 2).start = 3  # type: ignore[misc]


def test_the_modules_that_read_tables_and_filters_are_few() -> None:
    """What the engine has of blocks and filters is used in one module each."""
    folder = Path(str(files.__file__)).parent
    users: dict[str, set[str]] = {}
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                users.setdefault(node.module, set()).add(path.stem)
    assert users["lsmkv.engine.table.filter_block"] == {"filters"}
    assert users["lsmkv.engine.table.format"] == {"blocks", "tables"}
    assert not any(name.startswith("lsmkv.engine.db") for name in users)

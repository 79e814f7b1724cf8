"""A class as its source has it: the same as the class itself says where it is interpreted."""

from __future__ import annotations

import inspect
import sys
import types
from pathlib import Path

import pytest

import lsmkv
from lsmkv.engine.util.source import class_facts, field_docs

HANDLES = (lsmkv.DB, lsmkv.PrefixedDB, lsmkv.Snapshot, lsmkv.Transaction, lsmkv.WriteBatch)


@pytest.mark.parametrize("cls", HANDLES, ids=lambda cls: cls.__name__)
@pytest.mark.skipif(lsmkv.COMPILED, reason="the facts are all that a compiled class has")
def test_facts_are_what_an_interpreted_class_says(cls: type) -> None:
    facts = class_facts(cls.__module__, cls.__name__)
    assert facts.doc == inspect.getdoc(cls)
    functions = {name: member for name, member in vars(cls).items() if inspect.isfunction(member)}
    assert len(functions) > 5
    for name, function in functions.items():
        assert str(facts.signatures[name]) == str(inspect.signature(function))


def module_at(tmp_path: Path, source: str | None, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module as an extension is one, beside its source."""
    module = types.ModuleType("package.compiled")
    module.__file__ = str(tmp_path / "compiled.cpython-311.so")
    vars(module)["LIMIT"] = 7
    if source is not None:
        (tmp_path / "compiled.py").write_text(source, encoding="utf-8")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module.__name__


def test_every_kind_of_parameter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = '''class Every:
    """Of each
    kind."""

    def f(self, a, /, b: int = -1, c=LIMIT, *d: str, e, f: "x" = ("y", None), **g: Any) -> None:
        """Nothing."""
'''
    facts = class_facts(module_at(tmp_path, source, monkeypatch), "Every")
    assert facts.doc == "Of each\nkind."
    assert str(facts.signatures["f"]) == (
        "(self, a, /, b: 'int' = -1, c=7, *d: 'str', e, f: \"'x'\" = ('y', None), "
        "**g: 'Any') -> 'None'"
    )


def test_without_the_source_there_are_no_facts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = module_at(tmp_path, None, monkeypatch)
    assert field_docs(module, "Missing") == {}
    facts = class_facts(module, "Missing")
    assert facts.doc is None
    assert facts.signatures == {}


def test_the_fields_of_a_class_are_annotated_in_it_or_assigned_in_its_init(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = '''class Fields:
    """A class."""
    first: int
    """The
    first."""
    bare: int

    def __init__(self) -> None:
        super().__init__()
        self.second = 0
        """The second."""
        self.third: int = 0
        """The third."""
        print("no field")

    def method(self) -> None:
        self.other = 0
        """No field."""
'''
    assert field_docs(module_at(tmp_path, source, monkeypatch), "Fields") == {
        "first": "The\nfirst.",
        "second": "The second.",
        "third": "The third.",
    }

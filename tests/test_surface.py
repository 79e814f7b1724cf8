"""Every public name tells what it is, shows how it is used, and says what it raises and costs.

What is public is what ``__all__`` of ``lsmkv`` and of its faces (``lsmkv.plyvel``, ``lsmkv.aio``,
``lsmkv.mapping``) names, and of each class there the methods and properties without a leading
underscore.  What a class inherits from another one of lsmkv's is judged once, where it is written.
The rules:

* Each has a docstring; so have operators (``__len__``, ``__contains__``, ...).  A constant's is the
  string after it.
* Each function, method and property is *shown*: the code of a doctest uses its name (or, for what
  a user supplies, defines it).  The doctest stands in its own docstring, in that of its class, or
  in that of a public class that inherits it: one example of a few lines may show how several
  methods go together.  A class is shown by any doctest in its own docstring.
* Each class says in its docstring or in those of its methods what it raises and what it costs, or
  whose errors and costs it has; a function says so in its own.  Exceptions, and records that are
  read and never called, have neither.

The doctests are run with the rest of the suite: ``--doctest-modules`` over ``lsmkv``.  This test
reads the source, which is installed beside the compiled modules, so it says the same of both.
"""

from __future__ import annotations

import ast
import doctest
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from faces import FACES
from parsed import parsed

import lsmkv
from lsmkv.engine.former_paths import present_path

PACKAGE = Path(lsmkv.__file__).parent
OPERATORS = {
    *("__len__", "__bool__", "__contains__", "__getitem__", "__setitem__", "__delitem__"),
    *("__iter__", "__reversed__", "__next__", "__aiter__", "__anext__", "__sub__", "__str__"),
}
RECORDS = {
    *("LevelStats", "NameModel", "OptionArguments", "Options", "Report", "Tails", "Violation"),
    *("CommittedBatch", "Lease", "LeaseReport", "LeasedName", "TableArguments"),
    *("Limits", "ShardEntry", "ShardExplanation", "ShardsStats", "StoredFile"),
    *("BlockHandle", "BlockPlace", "Damage", "Edit", "Entry", "EntrySpans", "Field", "FileName"),
    *("FilterLayout", "Footer", "Fragment", "FuseShape", "InternalKey", "LogEnd", "LogRecord"),
    *("Operation", "Probe", "Span", "TableEntry", "TableFile", "Trailer", "Version"),
    *("SimulatedFailure", "SimulationReport"),
    *("Change", "PairChange", "Pruned", "ShardSurvey", "VersionSurvey"),
    *("Replay", "SettingReads", "TableReads"),
    *("CompactionUnderWay", "Owner", "ProcessFigures", "Published"),
}
"""Classes of fields or members alone."""
SAYS_ERRORS = re.compile(r"\b[Rr]aises?\b|\b\w+Error\b|\bErrors\b|errors and costs?\b")
SAYS_COST = re.compile(r"\b[Cc]osts?\b|\bO\(")

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef | ast.Assign | ast.AnnAssign


@dataclass(frozen=True)
class Found:
    """A definition, and the module that it stands in."""

    module: str
    node: Definition

    @property
    def name(self) -> str:
        return self.node.name if isinstance(self.node, Function | ast.ClassDef) else "a constant"

    @property
    def where(self) -> str:
        return f"{self.module}.{self.name}"


def source(module: str) -> ast.Module:
    path = PACKAGE.joinpath(*(present_path(module) or module).split(".")[1:])
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return parsed(path)


def statements(module: str) -> Iterator[ast.stmt]:
    """A module's statements, and what it imports for type checkers and, later, for users."""
    for node in source(module).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from node.body
        yield node


def find(module: str, name: str) -> Found | None:
    """What a dotted name means in a module: followed through imports; None if not lsmkv's own."""
    head, _, rest = name.partition(".")
    found: Found | None = None
    for node in statements(module):
        if isinstance(node, Function | ast.ClassDef) and node.name == head and not rest:
            found = Found(module, node)  # the last one: what comes before are overloads
        elif isinstance(node, ast.Assign | ast.AnnAssign) and not rest:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == head for target in targets):
                found = Found(module, node)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lsmkv"):
            assert node.module is not None
            for alias in node.names:
                if (alias.asname or alias.name) == head:
                    inner = f"{node.module}.{alias.name}"
                    found = find(inner, rest) if rest else find(node.module, alias.name)
    return found


def bases(found: Found) -> list[Found]:
    """The classes of lsmkv's own that a class derives from, however far up."""
    assert isinstance(found.node, ast.ClassDef)
    known: list[Found] = []
    for base in found.node.bases:
        bare = base.value if isinstance(base, ast.Subscript) else base
        parent = find(found.module, ast.unparse(bare))
        if parent is not None and isinstance(parent.node, ast.ClassDef):
            known += [parent, *bases(parent)]
    return known


def docstring(module: str, node: Definition) -> str:
    """A definition's docstring; for a constant, the string that follows it."""
    if isinstance(node, Function | ast.ClassDef):
        return ast.get_docstring(node) or ""
    body = source(module).body
    after = body[body.index(node) + 1]
    if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
        return str(after.value.value)
    return ""


def used_by_doctests(text: str) -> set[str]:
    """The names that the examples of a docstring use or define."""
    names: set[str] = set()
    for example in doctest.DocTestParser().get_examples(text):
        for node in ast.walk(ast.parse(example.source)):
            if isinstance(node, ast.Attribute):
                names.add(node.attr)
            elif isinstance(node, ast.Name):
                names.add(node.id)
            elif isinstance(node, Function | ast.ClassDef):
                names.add(node.name)
    return names


def members(node: ast.ClassDef) -> dict[str, Function]:
    """A class's methods and properties by name; of overloads and setters the last."""
    return {child.name: child for child in node.body if isinstance(child, Function)}


def public_names() -> Iterator[tuple[str, str]]:
    for module in FACES:
        for node in source(module).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                for name in ast.literal_eval(node.value):
                    yield module, name


def test_rarely_used_modules_are_imported_late() -> None:
    """Every public name is there, and what most programs never ask for costs them nothing."""
    code = (
        "import sys, lsmkv\n"
        "late = {'lsmkv.mapping', 'lsmkv.files.repair.repair', 'lsmkv.files.repair.job'}\n"
        "assert not late & set(sys.modules), late & set(sys.modules)\n"
        "assert set(lsmkv.__all__) <= set(dir(lsmkv))\n"
        "from lsmkv import *\n"
        "assert late <= set(sys.modules)\n"
        "assert repair_db.__module__ == 'lsmkv.repair.repair' and lsmkv.open is open\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        lsmkv.nonsense  # noqa: B018


@cache
def surface() -> dict[str, Found]:
    """Every public definition, and what the public classes inherit, by where it stands."""
    found: dict[str, Found] = {}
    for module, name in public_names():
        definition = find(module, name)
        assert definition is not None, f"{module}.__all__ names {name}, which it does not define"
        if isinstance(definition.node, Function | ast.ClassDef):
            found[definition.where] = definition
        else:
            found[f"{definition.module}.{name}"] = definition
        if isinstance(definition.node, ast.ClassDef):
            found |= {base.where: base for base in bases(definition)}
    return found


@cache
def classes() -> dict[str, Found]:
    return {
        where: found for where, found in surface().items() if isinstance(found.node, ast.ClassDef)
    }


def texts_that_may_show(owner: Found, name: str) -> list[str]:
    """The docstrings whose examples count for a method."""
    heirs = [
        found
        for found in classes().values()
        if any(base.where == owner.where for base in bases(found))
    ]
    assert isinstance(owner.node, ast.ClassDef)
    own = docstring(owner.module, members(owner.node)[name])
    return [own, *(docstring(found.module, found.node) for found in (owner, *heirs))]


def public_members() -> Iterator[tuple[Found, str, Function]]:
    for found in classes().values():
        assert isinstance(found.node, ast.ClassDef)
        for name, node in members(found.node).items():
            if not name.startswith("_"):
                yield found, name, node


def is_exception(found: Found) -> bool:
    return found.module == "lsmkv.engine.errors"


def without_docstring() -> list[str]:
    missing = [
        where for where, found in surface().items() if not docstring(found.module, found.node)
    ]
    for found in classes().values():
        assert isinstance(found.node, ast.ClassDef)
        for name, node in members(found.node).items():
            if (not name.startswith("_") or name in OPERATORS) and not ast.get_docstring(node):
                missing.append(f"{found.where}.{name}")
    return missing


def not_shown() -> list[str]:
    missing: list[str] = []
    for where, found in surface().items():
        used = used_by_doctests(docstring(found.module, found.node))
        if isinstance(found.node, Function) and found.name not in used:
            missing.append(where)
        if isinstance(found.node, ast.ClassDef) and is_public(found) and not used:
            missing.append(where)
    for owner, name, _ in public_members():
        texts = texts_that_may_show(owner, name)
        if not any(name in used_by_doctests(text) for text in texts):
            missing.append(f"{owner.where}.{name}")
    return missing


def is_public(found: Found) -> bool:
    """Whether an ``__all__`` names it: a class may also be there for what others inherit."""
    return any(find(module, name) == found for module, name in public_names())


def silent_about(says: re.Pattern[str]) -> list[str]:
    """Public classes and functions whose docstrings hold no such word."""
    silent: list[str] = []
    for where, found in surface().items():
        if is_exception(found) or not is_public(found) or found.name in RECORDS:
            continue
        if isinstance(found.node, Function | ast.ClassDef):
            texts = [docstring(found.module, found.node)]
            if isinstance(found.node, ast.ClassDef):
                texts += [ast.get_docstring(node) or "" for node in members(found.node).values()]
            if not any(says.search(text) for text in texts):
                silent.append(where)
    return silent


def test_every_public_name_is_found() -> None:
    assert len(surface()) > 50
    shown = {f"{owner.where}.{name}" for owner, name, _ in public_members()}
    assert len(shown) > 200
    assert {
        "lsmkv.engine.db.db.DB.get",
        # Inherited by Iterator and RawIterator.
        "lsmkv.engine.db.read.base_iterator.BaseIterator.close",
        "lsmkv.engine.db.handles.readable.Readable.get",  # by Snapshot and PrefixedDB
        "lsmkv.plyvel._Reading.get",  # by DB, PrefixedDB and Snapshot
        "lsmkv.aio.readable.Readable.get",  # by DB and Snapshot
        "lsmkv.engine.stats.Stats.blocks_read",
    } <= shown


def test_everything_has_a_docstring() -> None:
    assert without_docstring() == []


def test_everything_is_shown_by_a_doctest() -> None:
    assert not_shown() == []


def test_errors_are_stated() -> None:
    assert silent_about(SAYS_ERRORS) == []


def test_costs_are_stated() -> None:
    assert silent_about(SAYS_COST) == []


def test_doctests_are_run_with_the_suite() -> None:
    settings = Path(__file__).parents[1] / "pyproject.toml"
    pytest_settings = tomllib.loads(settings.read_text())["tool"]["pytest"]["ini_options"]
    assert "--doctest-modules" in pytest_settings["addopts"]
    assert "lsmkv" in pytest_settings["testpaths"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("No example: get, ``db.get``.", set()),
        (">>> db.get(1)", {"db", "get"}),
        (">>> class A:\n...     name = 'a'", {"A", "name"}),
        (">>> class A:\n...     def compare(self): ...", {"A", "compare"}),
    ],
)
def test_only_the_code_of_an_example_shows(text: str, names: set[str]) -> None:
    assert used_by_doctests(text) == names

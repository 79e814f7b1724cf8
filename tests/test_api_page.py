"""docs/reference/api.md names each option, method, property and public name, and nothing else.

What is there is read from the source, which is installed beside the compiled modules.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from documents import ROOT, table_rows

import lsmkv
from lsmkv.engine.db.read.iterator import IteratorArguments, RangeArguments
from lsmkv.engine.options import OPTIONS, make_options
from lsmkv.engine.options.shown import option_meanings

PAGE = ROOT / "docs" / "reference" / "api.md"
PACKAGE = Path(lsmkv.__file__).parent
UNITS = {"": 1, " KiB": 1024, " MiB": 1024 * 1024}
CLASSES: dict[str, type] = {
    "db": lsmkv.DB,
    "batch": lsmkv.WriteBatch,
    "snapshot": lsmkv.Snapshot,
    "iterator": lsmkv.Iterator,
    "raw": lsmkv.RawIterator,
    "batches": lsmkv.Batches,
    "committed": lsmkv.CommittedBatch,
    "part": lsmkv.PrefixedDB,
    "transaction": lsmkv.Transaction,
    "stats": lsmkv.Stats,
    "level": lsmkv.LevelStats,
}
"""What the page calls an object of each class."""
OPERATORS = {
    "key in {}": "__contains__",
    "iter({})": "__iter__",
    "next({})": "__next__",
    "len({})": "__len__",
    "with {}": "__enter__",
    "{} - before": "__sub__",
    "print({})": "__str__",
}
FOR_PLYVELS_SAKE = "verify_checksums"
"""Said once on the page, not in every signature."""

SPOKEN_OF = {"lsmkv", "with", "sync", "progress", FOR_PLYVELS_SAKE}
"""What may stand in backticks besides names of things."""
PUBLIC = {*lsmkv.__all__, "__version__"}
FACES = {
    *("aio", "bulk", "files", "filter_lab", "owner", "plot", "plyvel", "repair", "shards"),
    "testing",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


ITERATOR_DEFAULTS = {
    "reverse": False,
    "start": None,
    "stop": None,
    "include_start": True,
    "include_stop": False,
    "prefix": None,
    "limit": None,
    "include_key": True,
    "include_value": True,
    "fill_cache": True,
}
"""The keywords of ``iterator``, which are typed as one record."""


@cache
def definitions(module: str) -> dict[str, Any]:
    """A module's functions and classes by name; of overloads the last."""
    path = Path(str(sys.modules[module].__file__)).with_suffix("").with_suffix(".py")
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return {node.name: node for node in body if isinstance(node, Function | ast.ClassDef)}


def signature(node: Function) -> str:
    """As a user types it: without types, nor the object itself."""
    arguments = node.args
    for group in (arguments.posonlyargs, arguments.args):
        group[:] = [one for one in group if one.arg not in ("self", "cls")]
    shown = [
        (one, default)
        for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if one.arg != FOR_PLYVELS_SAKE
    ]
    arguments.kwonlyargs = [one for one, _ in shown]
    arguments.kw_defaults = [default for _, default in shown]
    for inner in ast.walk(arguments):
        if isinstance(inner, ast.arg):
            inner.annotation = None
    return ast.unparse(arguments)


def members(cls: type) -> dict[str, str | None]:
    """Methods with their signatures; properties, fields and public attributes with None."""
    found: dict[str, str | None] = {}
    for base in reversed(cls.__mro__):
        if not base.__module__.startswith("lsmkv."):
            continue
        for node in definitions(base.__module__)[base.__name__].body:
            if isinstance(node, Function):
                is_property = any("property" in ast.unparse(one) for one in node.decorator_list)
                found[node.name] = None if is_property else signature(node)
                if node.name == "__init__":
                    found |= dict.fromkeys(attributes(node))
            elif isinstance(node, ast.AnnAssign):
                found[ast.unparse(node.target)] = None
    for name, shown in found.items():
        if shown == "**arguments":  # typed as one record, of which this is the long form
            # Compiled, a record does not have what it inherits.
            known = {*RangeArguments.__annotations__, *IteratorArguments.__annotations__}
            assert {*ITERATOR_DEFAULTS, FOR_PLYVELS_SAKE} == known
            written_out = [f"{one}={default}" for one, default in ITERATOR_DEFAULTS.items()]
            found[name] = ", ".join(["*", *written_out])
    return found


def attributes(node: Function) -> Iterator[str]:
    for target in ast.walk(node):
        if (
            isinstance(target, ast.Attribute)
            and isinstance(target.ctx, ast.Store)
            and ast.unparse(target.value) == "self"
            and not target.attr.startswith("_")
        ):
            yield target.attr


def code(text: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`]+)`", text)


def option_rows(page: str) -> dict[str, list[str]]:
    """Each option of the page's table: its default, its meaning, and what LevelDB has."""
    found: dict[str, list[str]] = {}
    for cells in table_rows(page[page.index("\n## Options") : page.index("\n## DB")]):
        (name,) = code(cells[0])
        assert len(cells) == 4
        assert name not in found
        found[name] = cells[1:]
    return found


def true_default(name: str) -> Any:
    """What an option left out comes to."""
    if name == "bloom_filter_bits":
        policy = make_options().filter_policy
        assert isinstance(policy, lsmkv.BloomFilterPolicy)
        return policy.bits_per_key
    return OPTIONS[name].default


def stated_default(cell: str) -> Any:
    number = re.fullmatch(r"(\d+)( KiB| MiB|)", cell)
    if number is not None:
        return int(number[1]) * UNITS[number[2]]
    (literal,) = code(cell)
    return ast.literal_eval(literal)


def wrong_options(page: str) -> list[str]:
    """What is missing in the table of options, too much in it, or differs from the declaration."""
    stated = option_rows(page)
    wrong = sorted(set(stated) ^ set(OPTIONS))
    meanings = option_meanings()
    for name in set(stated) - set(wrong):
        default, meaning, leveldb = stated[name]
        said, true = stated_default(default), true_default(name)
        if (type(said), said) != (type(true), true):
            wrong.append(f"{name}: {said!r}, not {true!r}")
        declared = as_in_a_table(meanings[name])
        if without_links(meaning) != declared:
            wrong.append(f"{name}: {without_links(meaning)}\nthe declaration says: {declared}")
        if leveldb != OPTIONS[name].leveldb:
            wrong.append(f"{name}: in LevelDB {leveldb}, not {OPTIONS[name].leveldb}")
    return wrong


def without_links(text: str) -> str:
    """The text of a cell: links in brackets of their own left out, others reduced to their text."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r" \(\[[^\]]*\]\([^)]*\)\)", "", text))


def as_in_a_table(meaning: str) -> str:
    """An option's meaning as its cell has it."""
    text = " ".join(meaning.replace("``", "`").split()).removesuffix(".")
    return text[0].lower() + text[1:]


def wrong_members(page: str) -> list[str]:
    """Methods and properties that the tables lack, or do not show as they are."""
    true: dict[str, str] = {}
    for variable, cls in CLASSES.items():
        known = members(cls)
        for name, arguments in known.items():
            if not name.startswith("_"):
                call = "" if arguments is None else f"({arguments})"
                true[f"{variable}.{name}"] = f"{variable}.{name}{call}"
        for form, operator in OPERATORS.items():
            if operator in known:
                true[form.format(variable)] = form.format(variable)
    stated: dict[str, str] = {}
    for cells in table_rows(page[page.index("\n## DB") : page.index("\n## Everything else")]):
        for shown in code(cells[0]):
            key = re.sub(r"^(\w+\.\w+)\(.*\)$", r"\1", shown)
            assert key not in stated, shown
            stated[key] = shown
    return different(stated, true)


def wrong_names(page: str) -> list[str]:
    """Names of ``lsmkv`` that are public and that the page lacks, or does not show as they are."""
    true = {name: name for name in PUBLIC}
    rest = page[page.index("\n## Everything else") :]
    stated = dict.fromkeys(re.findall(r"`lsmkv\.(\w+)[`(]", rest))
    shown = {name: name for name in stated}
    for call, arguments in re.findall(r"`lsmkv\.(\w+)\((.*?)\)`", page):
        parsed = ast.parse(f"def f({arguments}): ...").body[0]
        assert isinstance(parsed, Function)
        if call in true and signature(parsed) != call_of(call):
            shown[call] = f"{call}({arguments})"
            true[call] = f"{call}({call_of(call)})"
    return different(shown, true)


def call_of(name: str) -> str:
    """The signature of a public function or class."""
    value = getattr(lsmkv, name)
    node = definitions(value.__module__)[value.__name__]
    if isinstance(node, Function):
        return signature(node)
    return members(value).get("__init__") or ""


def different(stated: dict[str, str], true: dict[str, str]) -> list[str]:
    return sorted(
        f"{stated.get(name)} on the page, {true.get(name)} in the code"
        for name in {*stated, *true}
        if stated.get(name) != true.get(name)
    )


def errors() -> list[type[Exception]]:
    public = [getattr(lsmkv, name) for name in lsmkv.__all__]
    return [one for one in public if isinstance(one, type) and issubclass(one, Exception)]


def wrong_errors(page: str) -> list[str]:
    """Errors that the table lacks, or derives from something else."""
    true = {
        error.__name__: ", ".join(base.__name__ for base in error.__bases__) for error in errors()
    }
    stated = {
        code(cells[0])[0].removeprefix("lsmkv."): ", ".join(code(cells[1]))
        for cells in table_rows(page[page.index("\n## Errors") :])
    }
    return different(stated, true)


def unknown_names(page: str) -> list[str]:
    """Names in backticks, anywhere outside of examples, that stand for nothing."""
    prose = re.sub(r"(?ms)^```.*?^```$", "", page)
    head, db, tail = prose.partition("\n## DB")
    prose = re.sub(r"(?m)\|[^|\n]*\|$", "|", head) + db + tail  # LevelDB's names left out
    known = {*lsmkv.__all__, *option_rows(page), *CLASSES, *SPOKEN_OF, *dir(builtins)}
    known |= {name for error in errors() for name in (*members(error), *dir(error))}
    unknown: list[str] = []
    for shown in code(prose):
        for dotted in re.findall(r"(?<![\w\"':./])[a-z]\w*(?:\.\w+)+", shown):
            owner, name, *_ = dotted.split(".")
            if owner in CLASSES and name not in members(CLASSES[owner]):
                unknown.append(dotted)
            if owner == "lsmkv" and name not in PUBLIC | FACES:
                unknown.append(dotted)
        if re.fullmatch(r"\w+=?", shown) and shown.rstrip("=") not in known:
            unknown.append(shown)
    return unknown


CHECKS = (wrong_options, wrong_members, wrong_names, wrong_errors, unknown_names)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_page_is_right(check: Any) -> None:
    assert check(PAGE.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_options_explain_themselves(name: str) -> None:
    """``help(lsmkv.Options)`` shows what each keyword means."""
    assert f"``{name}``:" in (lsmkv.Options.__doc__ or "")


@pytest.mark.parametrize(
    ("check", "there", "instead"),
    [
        (wrong_options, r"\| `seek_compaction` .*\n", ""),
        (wrong_options, r"`seek_compaction` \|", "`seek_compactions` |"),
        (wrong_options, r"`seek_compaction` \| `True`", "`seek_compaction` | `False`"),
        (wrong_options, r"`bloom_filter_bits` \| 10", "`bloom_filter_bits` | 12"),
        (wrong_options, r"`lru_cache_size` \| 32 MiB", "`lru_cache_size` | 4 MiB"),
        (wrong_options, r"\| creates the store if", "| creates the database if"),
        (wrong_options, r"`Comparator::Name` \|", "same |"),
        (wrong_options, r"`background` \| `\"auto\"`", '`background` | `"thread"`'),
        (wrong_members, r"\| `db\.may_contain.*\n", ""),
        (wrong_members, r"`db\.flush\(\)`", "`db.rotate()`"),
        (wrong_members, r"`db\.sync\(\)`", "`db.sync(wait=True)`"),
        (wrong_members, r"include_stop=False", "include_stop=True"),
        (wrong_members, r"`raw\.close\(\)`, ", ""),
        (wrong_members, r", `stats\.flush_bytes`", ""),
        (wrong_members, r"`len\(batch\)`, ", ""),
        (wrong_names, r"\| `lsmkv\.COMPILED.*\n", ""),
        (wrong_names, r"keep_stale=False", "keep_stale=True"),
        (wrong_names, r"`lsmkv\.destroy_db\(", "`lsmkv.remove_db("),
        (wrong_errors, r"\| `lsmkv\.ForkedError.*\n", ""),
        (wrong_errors, r"`Error`, `RuntimeError`", "`Error`"),
        (unknown_names, r"A `TableInfo`|a `TableInfo`", "a `TableInformation`"),
        (unknown_names, r"`db\.options` has", "`db.settings` has"),
    ],
)
def test_a_wrong_page_is_noticed(check: Any, there: str, instead: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    wrong, times = re.subn(there, instead, page, count=1)
    assert times == 1
    assert check(wrong) != []

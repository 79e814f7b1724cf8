"""docs/reference/cache-methods.md lists each method, property and argument of a cache."""

from __future__ import annotations

import ast
import collections
import inspect
from typing import Any

import pytest
from documents import ROOT, section, table_rows

import lsmkv
from lsmkv.cache import recipes

PAGE = (ROOT / "docs" / "reference" / "cache-methods.md").read_text(encoding="utf-8")
LISTED = section(PAGE, "Every method and argument")
ROWS = [(cells[0].strip("`"), cells[1:]) for cells in table_rows(LISTED)]
OBJECTS: dict[str, type] = {
    "cache": lsmkv.Cache,
    "lock": recipes.Lock,
    "rlock": recipes.RLock,
    "semaphore": recipes.BoundedSemaphore,
    "averager": recipes.Averager,
    "deque": recipes.Deque,
    "index": recipes.Index,
}
"""What the page calls an object of each class."""
OPERATORS = {
    "with cache": "__enter__",
    "cache[key]": "__getitem__",
    "cache[key] = value": "__setitem__",
    "del cache[key]": "__delitem__",
    "key in cache": "__contains__",
    "iter(cache)": "__iter__",
    "reversed(cache)": "__reversed__",
    "len(cache)": "__len__",
    "bool(cache)": "__bool__",
}
LIKE_BUILTINS: dict[str, type] = {"deque": collections.deque, "index": dict}
"""What the page refers to, instead of listing it."""
OF_ANY_OBJECT = {"__init__", "__exit__", "__reduce__", "__repr__"}


def parsed(call: str) -> tuple[str, str, str | None]:
    """The object or class, the name and the arguments of a call; "" for what stands alone."""
    name, bracket, arguments = call.partition("(")
    owner, _, member = name.rpartition(".")
    return owner, member, arguments.removesuffix(")") if bracket else None


def listed(owner: str) -> set[str]:
    """The members of an object, or of its class, that have a row."""
    names = {owner, OBJECTS[owner].__name__}
    calls = [parsed(call) for call, _ in ROWS if call not in OPERATORS]
    return {member for found, member, _ in calls if found in names}


def written(arguments: str) -> list[tuple[str, Any, str | None]]:
    """The names, kinds and defaults of arguments as the page has them."""
    scope: dict[str, Any] = {}
    exec(f"def call({arguments}): pass", scope)
    return described(scope["call"], set())


def described(function: Any, hidden: set[str]) -> list[tuple[str, Any, str | None]]:
    """The names, kinds and defaults of a function's parameters; ``...`` stands for the ``hidden``
    defaults, which have no literal."""
    found: list[tuple[str, Any, str | None]] = []
    for name, parameter in inspect.signature(function).parameters.items():
        default = None if parameter.default is parameter.empty else repr(parameter.default)
        found.append((name, parameter.kind, "Ellipsis" if name in hidden else default))
    return found


def without_literals(function: Any) -> set[str]:
    """The parameters whose default cannot be written down."""
    found: set[str] = set()
    for name, parameter in inspect.signature(function).parameters.items():
        try:
            ast.literal_eval(repr(parameter.default))
        except (SyntaxError, ValueError):
            if parameter.default is not parameter.empty:
                found.add(name)
    return found


@pytest.mark.parametrize("call", [call for call, _ in ROWS if call not in OPERATORS])
def test_a_row_has_the_arguments_that_there_are(call: str) -> None:
    owner, member, arguments = parsed(call)
    if not owner:
        target: Any = lsmkv.Cache if member == "Cache" else getattr(recipes, member)
    elif owner in OBJECTS:
        target = inspect.getattr_static(OBJECTS[owner], member)
        if isinstance(target, property):
            assert arguments is None, "a property"
            return
    else:
        target = getattr(getattr(recipes, owner), member)
    assert arguments is not None
    real = described(target, without_literals(target))
    assert written(arguments) == [one for one in real if one[0] != "self"]


@pytest.mark.parametrize("owner", OBJECTS)
def test_every_method_and_property_has_a_row(owner: str) -> None:
    public = {name for name in dir(OBJECTS[owner]) if not name.startswith("_")}
    alike = LIKE_BUILTINS.get(owner)
    assert listed(owner) <= public
    assert public - listed(owner) <= (set() if alike is None else set(dir(alike)))


def test_every_operator_and_recipe_has_a_row() -> None:
    parts = [kind for kind in lsmkv.Cache.__mro__ if kind is not object]
    methods = {name for kind in parts for name, one in vars(kind).items() if callable(one)}
    special = {name for name in methods if name.startswith("__")} - OF_ANY_OBJECT
    assert {OPERATORS[call] for call, _ in ROWS if call in OPERATORS} == special
    alone = [parsed(call) for call, _ in ROWS]
    names = {member for owner, member, arguments in alone if not owner and arguments is not None}
    assert names - {"iter", "reversed", "len", "bool"} == {"Cache", *recipes.__all__}


def test_each_row_says_what_it_does_and_the_cache_what_it_costs() -> None:
    assert len(ROWS) == len({call for call, _ in ROWS})
    for call, cells in ROWS:
        assert all(cells), call
        owner, member, arguments = parsed(call)
        is_method = owner == "cache" and arguments is not None and member != "reset"
        assert len(cells) == (2 if is_method or call in OPERATORS else len(cells)), call

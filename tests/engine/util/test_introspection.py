"""What the public names say of themselves is what their source says, interpreted and compiled.

The source is imported from a copy of the package without extensions, in another process, and what
it says there is compared with what is said here.  What is compiled differs from it in two points
that CPython sets for builtins: a native class shows parameters without annotations, and for a
special method that is a slot (``__init__``, ``__next__``, ...) CPython's own words.  mypyc sets a
third: a field of a ``NamedTuple`` shows the bare class of its type.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import pydoc
import re
import shutil
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from processes import run_python

import lsmkv
import lsmkv.plyvel


def public(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def bases_of(names: set[str]) -> set[str]:
    """The classes of the package that public ones derive from without being public."""
    classes = [value for value in map(public, names) if isinstance(value, type)]
    return {
        f"{base.__module__}.{base.__qualname__}"
        for cls in classes
        for base in cls.__mro__
        if base.__module__.startswith("lsmkv.") and base not in classes
    }


PUBLIC = {
    f"{module.__name__}.{name}"
    for module in (lsmkv, lsmkv.plyvel)
    for name in module.__all__
    if callable(getattr(module, name))
}
NAMES = sorted(PUBLIC | bases_of(PUBLIC))
every_name = pytest.mark.parametrize("name", NAMES)


def methods(cls: type) -> dict[str, Any]:
    """The functions and properties that a class itself defines, by name."""
    return {
        name: member
        for name, member in vars(cls).items()
        if not name.startswith("_") or (name.startswith("__") and name.endswith("__"))
        if callable(getattr(member, "__func__", member)) or isinstance(member, property)
        if not isinstance(member, type)
    }


def is_of_source(member: Any, cls: type) -> bool:
    """Not made by ``dataclass``, ``NamedTuple`` or ``Protocol``."""
    function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
    path = Path(sys.modules[cls.__module__].__file__ or "")
    return isinstance(function, types.FunctionType) and function.__code__.co_filename == str(path)


def steady(text: str) -> str:
    """Without addresses; a field's type as mypyc keeps it: ``tuple`` is all that is left of
    ``tuple[int, ...]``, and ``type`` of a union.
    """
    text = re.sub(r" at 0x[0-9a-f]+", " at 0x", text)
    text = re.sub(r"ForwardRef\('[^']* \| [^']*'\)", "type", text)
    return re.sub(r"ForwardRef\('(\w+)(?:\[[^']*\])?'\)", r"\1", text)


def parameters_of(signature: inspect.Signature) -> list[inspect.Parameter]:
    """Without annotations, and without ``self``, which a builtin takes by position alone."""
    return [
        parameter.replace(annotation=parameter.empty)
        for parameter in signature.parameters.values()
        if parameter.name != "self"
    ]


def signature_facts(value: Any) -> dict[str, Any]:
    """The signature as it is shown, the same without annotations, and how to call it."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):  # not callable; a builtin that is mute
        return {}
    parameters = parameters_of(signature)
    required = [
        parameter
        for parameter in parameters
        if parameter.default is parameter.empty
        and parameter.kind not in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}
    ]
    return {
        "signature": steady(str(signature)),
        "parameters": steady(str(inspect.Signature(parameters))),
        "by_position": sum(parameter.kind != parameter.KEYWORD_ONLY for parameter in required),
        "by_name": [p.name for p in required if p.kind == p.KEYWORD_ONLY],
        "required": [p.name for p in required if p.kind != p.POSITIONAL_ONLY],
        "takes_any": any(p.kind == p.VAR_KEYWORD for p in parameters),
    }


def help_of(value: Any) -> str:
    return steady(pydoc.plain(pydoc.render_doc(value)))


def members_in(text: str) -> str:
    """What the help on a class has of the methods and properties that the class defines; its own
    ``__dict__``, where it derives from a compiled class, is not one of them."""
    _, start, members = text.partition(" |  Methods defined here:")
    own_dict = r"Data descriptors defined here:\n \|  \n \|  __dict__"
    members = re.split(rf" \|  -+\n \|  (?:Data and other|{own_dict}|[\w ]+ inherited)", members)[0]
    return (start + members).rstrip(" |\n")


def facts_of_source() -> dict[str, Any]:
    """What every name says of itself; run where nothing is compiled."""
    facts: dict[str, Any] = {}
    for name in NAMES:
        value = public(name)
        facts[name] = {
            "doc": inspect.getdoc(value),
            "help": help_of(value),
            "qualname": value.__qualname__,
            "methods": {},
            **signature_facts(value),
        }
        if isinstance(value, type):
            for method, member in methods(value).items():
                if is_of_source(member, value):
                    facts[name]["methods"][method] = {
                        "doc": inspect.getdoc(member),
                        "qualname": f"{value.__qualname__}.{method}",
                        **signature_facts(getattr(value, method)),
                    }
    return facts


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The facts of the interpreted package."""
    folder = tmp_path_factory.mktemp("source")
    ignored = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    shutil.copytree(lsmkv.__path__[0], folder / "lsmkv", ignore=ignored)
    path = os.pathsep.join([str(folder), *sys.path])
    run = run_python("-P", __file__, env={**os.environ, "PYTHONPATH": path}, check=True)
    facts: dict[str, Any] = json.loads(run.stdout)
    assert facts.pop("package") == str(folder / "lsmkv")
    assert facts.pop("compiled") is False
    return facts


def is_native(value: Any) -> bool:
    """Whether mypyc made a builtin of it."""
    compiled = isinstance(value, types.BuiltinFunctionType)
    return "__mypyc_attrs__" in vars(value) if isinstance(value, type) else compiled


def is_slot(cls: type, method: str) -> bool:
    return isinstance(inspect.getattr_static(cls, method), types.WrapperDescriptorType)


def own_methods(source: dict[str, Any], name: str) -> dict[str, dict[str, Any]]:
    """The facts of the methods of a class; without those that CPython describes, as slots."""
    methods: dict[str, dict[str, Any]] = source[name]["methods"]
    cls = public(name)
    return {method: facts for method, facts in methods.items() if not is_slot(cls, method)}


def test_the_source_has_facts(source: dict[str, Any]) -> None:
    assert sorted(source) == NAMES
    get = source["lsmkv.DB"]["methods"]["get"]
    assert get["doc"].startswith("The value of ``key``, or ``default``.\n")
    assert get["parameters"] == "(key, default=None, *, verify_checksums=True, fill_cache=True)"
    assert get["required"] == ["key"]
    assert {"seek", "next", "__next__"} <= set(source["lsmkv.Iterator"]["methods"])
    assert sum(len(facts["methods"]) for facts in source.values()) > 200
    assert "  get(" in members_in(source["lsmkv.DB"]["help"])


@pytest.mark.skipif(not lsmkv.COMPILED, reason="a slot is compiled")
def test_few_methods_are_slots(source: dict[str, Any]) -> None:
    slots = {
        method
        for name in NAMES
        for method in source[name]["methods"].keys() - own_methods(source, name).keys()
    }
    names = ("eq", "hash", "init", "iter", "len", "next", "repr", "str")
    assert slots == {f"__{name}__" for name in names}


@every_name
def test_docstrings_are_those_of_the_source(source: dict[str, Any], name: str) -> None:
    value = public(name)
    assert inspect.getdoc(value) == source[name]["doc"]
    for method, facts in own_methods(source, name).items():
        assert inspect.getdoc(inspect.getattr_static(value, method)) == facts["doc"], method


@every_name
def test_signatures_are_those_of_the_source(source: dict[str, Any], name: str) -> None:
    value = public(name)
    shown = "parameters" if is_native(value) else "signature"
    assert signature_facts(value).get(shown) == source[name].get(shown)
    for method, facts in own_methods(source, name).items():
        assert signature_facts(getattr(value, method)).get(shown) == facts.get(shown), method


@every_name
def test_help_is_that_of_the_source(source: dict[str, Any], name: str) -> None:
    value = public(name)
    shown, expected = help_of(value), source[name]["help"]
    if not is_native(value):
        assert members_in(shown) == members_in(expected)
    docs = [source[name]["doc"], *(facts["doc"] for facts in own_methods(source, name).values())]
    lines = {line.strip(" |") for line in shown.splitlines()}
    for doc in docs:
        assert {line.strip(" |") for line in (doc or "").splitlines()} <= lines


@every_name
def test_functions_say_which_they_are(source: dict[str, Any], name: str) -> None:
    cls = public(name)
    for method, facts in own_methods(source, name).items():
        member = inspect.getattr_static(cls, method)
        if isinstance(member, property):
            continue
        if is_native(cls):
            assert member.__qualname__ == facts["qualname"]
        else:
            function = getattr(member, "__func__", member)
            assert steady(repr(function)) == f"<function {facts['qualname']} at 0x>"
            bound = types.MethodType(function, 0)
            assert repr(bound) == f"<bound method {facts['qualname']} of 0>"


def test_a_bound_method_says_whose_it_is() -> None:
    with lsmkv.DB(":memory:") as db:
        assert repr(db.get) == "<bound method DB.get of <lsmkv.DB ':memory:'>>"
        assert db.get.__name__ == "get"


def instance_of(cls: Any) -> Any:
    """An instance with whose methods no call succeeds, for want of the right arguments."""
    if cls is lsmkv.LRUCache:
        return cls(1)
    if cls is lsmkv.FixedPrefix:
        return cls(1)
    if cls is lsmkv.DelimitedPrefix:
        return cls(b":")
    if cls is lsmkv.RepairPlan:
        env = lsmkv.MemoryEnv()
        lsmkv.DB("store", create_if_missing=True, env=env).close()
        return lsmkv.plan_repair("store", env=env)
    if cls is lsmkv.TraceReader:
        env = lsmkv.MemoryEnv()
        lsmkv.DB("store", create_if_missing=True, env=env, trace="store/TRACE").close()
        return lsmkv.read_trace("store/TRACE", env=env)
    if issubclass(cls, tuple):
        return tuple.__new__(cls, [None] * len(cls._fields))
    return cls.__new__(cls)  # a compiled one of the others is made without arguments too


def calls_of(source: dict[str, Any], name: str) -> list[tuple[Any, dict[str, Any]]]:
    """A function, or a class and its methods, each with the facts of its arguments."""
    value = public(name)
    if not isinstance(value, type):
        return [(value, source[name])]
    if inspect.isabstract(value) or getattr(value, "_is_protocol", False):
        return []  # what users implement
    methods = own_methods(source, name)
    calls = [
        (getattr(instance_of(value), method), facts)
        for method, facts in methods.items()
        if method != "__init__" and "required" in facts
    ]
    if "__init__" in source[name]["methods"]:
        calls.append((value, source[name]["methods"]["__init__"]))
    return calls


@every_name
def test_errors_in_calls_name_function_and_parameter(source: dict[str, Any], name: str) -> None:
    for function, facts in calls_of(source, name):
        if facts["required"]:
            with pytest.raises(TypeError) as missing:
                function()
            assert f"{facts['qualname']}()" in str(missing.value)
            assert repr(facts["required"][0]) in str(missing.value)
        if not facts["takes_any"]:
            named = dict.fromkeys([*facts["by_name"], "no_such_argument"])
            with pytest.raises(TypeError) as unknown:
                function(*[None] * facts["by_position"], **named)
            text = str(unknown.value)
            assert f"{facts['qualname']}()" in text
            # mypyc counts first: where nothing is optional, there are too many.
            too_many = re.search(r"takes (at most|no|exactly) .*argument", text)
            assert "'no_such_argument'" in text or (lsmkv.COMPILED and too_many)


def test_errors_in_calls_are_tried(source: dict[str, Any]) -> None:
    tried = [facts["qualname"] for name in NAMES for _, facts in calls_of(source, name)]
    assert len(tried) > 200
    assert {"DB.put", "DB.get", "Iterator.seek", "BlockCache.put", "open"} <= set(tried)


if __name__ == "__main__":
    described = {**facts_of_source(), "package": lsmkv.__path__[0], "compiled": lsmkv.COMPILED}
    json.dump(described, sys.stdout)

"""Information from the source of a class: docstrings, and the signatures of its methods.

:mod:`lsmkv.engine.util.introspection` imports this when they are requested from a compiled class,
and never otherwise: ``inspect`` and ``ast`` would be a large part of the time that importing lsmkv
takes.  The source is the ``.py`` file that is installed next to the extension; it is parsed, not
run.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import linecache
import os.path
import sys
from typing import Any

_known: dict[tuple[str, str], ClassFacts] = {}


class ClassFacts:
    """A class as its source states it."""

    def __init__(self, doc: str | None, signatures: dict[str, inspect.Signature]) -> None:
        self.doc = doc
        self.signatures = signatures


def class_facts(module: str, name: str) -> ClassFacts:
    """The facts of a class at the top of a module; no docstring and no signatures if there is no
    source.
    """
    facts = _known.get((module, name))
    if facts is None:
        facts = _known[module, name] = _read(module, name)
    return facts


def _read(module: str, name: str) -> ClassFacts:
    for node in _tree(module).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            methods = [member for member in node.body if isinstance(member, ast.FunctionDef)]
            names = vars(sys.modules[module])
            signatures = {method.name: _signature(method, names) for method in methods}
            return ClassFacts(ast.get_docstring(node), signatures)
    return ClassFacts(None, {})


def _tree(module: str) -> ast.Module:
    """The source next to the extension, or of the module itself; empty if it does not exist."""
    extension = str(sys.modules[module].__file__)
    source = os.path.join(os.path.dirname(extension), module.rpartition(".")[2] + ".py")
    return ast.parse("".join(linecache.getlines(source)))


def _signature(function: ast.FunctionDef, names: dict[str, Any]) -> inspect.Signature:
    arguments = function.args
    positional = [
        *((argument, inspect.Parameter.POSITIONAL_ONLY) for argument in arguments.posonlyargs),
        *((argument, inspect.Parameter.POSITIONAL_OR_KEYWORD) for argument in arguments.args),
    ]
    required = len(positional) - len(arguments.defaults)
    defaults = [*[None] * required, *arguments.defaults]
    every: list[tuple[ast.arg | None, Any, ast.expr | None]] = [
        *((*pair, default) for pair, default in zip(positional, defaults, strict=True)),
        (arguments.vararg, inspect.Parameter.VAR_POSITIONAL, None),
        *(
            (argument, inspect.Parameter.KEYWORD_ONLY, default)
            for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        ),
        (arguments.kwarg, inspect.Parameter.VAR_KEYWORD, None),
    ]
    parameters = [
        inspect.Parameter(
            argument.arg,
            kind,
            default=_value(default, names),
            annotation=_annotation(argument.annotation),
        )
        for argument, kind, default in every
        if argument is not None
    ]
    return inspect.Signature(parameters, return_annotation=_annotation(function.returns))


def _value(default: ast.expr | None, names: dict[str, Any]) -> Any:
    """A literal, or the object that has this name in the module."""
    if default is None:
        return inspect.Parameter.empty
    return names[default.id] if isinstance(default, ast.Name) else ast.literal_eval(default)


def _annotation(node: ast.expr | None) -> Any:
    """A string, as ``from __future__ import annotations`` has it."""
    return inspect.Parameter.empty if node is None else ast.unparse(node)


def field_docs(module: str, name: str) -> dict[str, str]:
    """The docstrings below the fields of a class at the top of a module, by field; empty if there
    is no source.

    A field is annotated in the class, or assigned to ``self`` in its ``__init__``.
    """
    found: dict[str, str] = {}
    for node in _tree(module).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            for statements in (node.body, *_bodies_of_init(node)):
                for field, text in itertools.pairwise(statements):
                    name_of_field = _field(field)
                    if name_of_field and isinstance(text, ast.Expr):
                        found[name_of_field] = inspect.cleandoc(ast.literal_eval(text.value))
    return found


def _bodies_of_init(node: ast.ClassDef) -> list[list[ast.stmt]]:
    return [
        member.body
        for member in node.body
        if isinstance(member, ast.FunctionDef) and member.name == "__init__"
    ]


def _field(node: ast.stmt) -> str:
    """The field that a statement declares; empty if it declares none."""
    if isinstance(node, ast.AnnAssign):
        return ast.unparse(node.target).removeprefix("self.")
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
        return node.targets[0].attr
    return ""

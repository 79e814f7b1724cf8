"""Analysis of a student's file: its imports, and its resemblance to others.

Two files are compared by pieces of their syntax trees, whose names are folded: a copy with renamed
variables, other comments and another order of functions has the same pieces.  What the starter
holds does not count.  Nothing is run.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping

Fingerprint = frozenset[tuple[str, ...]]
"""Pieces of a file: nodes of its tree that follow each other."""

PIECE = 9
"""Nodes of a piece."""
ALIKE = 0.6
"""The share of the smaller file's pieces from which on two files are alike."""
ENOUGH = 60
"""Pieces.  Files with fewer are too short to compare: short functions have one natural form."""

_OPEN = ("__import__", "importlib", "exec", "eval", "open")
"""Names by which code may take what it does not import by name."""


def imported_beyond(path: str, starter: str) -> list[str]:
    """Return the imports from lsmkv beyond those of the starter, deliberate or not; sorted.

    A file that is no Python takes nothing.
    """
    taken = _taken(_read(path)) - _taken(ast.parse(starter))
    return sorted(taken)


def _taken(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names if _counts(one.name)}
        elif isinstance(node, ast.ImportFrom) and node.module and _counts(node.module):
            found |= {f"{node.module}.{one.name}" for one in node.names}
        elif isinstance(node, ast.Name) and node.id in _OPEN:
            found.add(node.id)
    return found


def _counts(module: str) -> bool:
    return module.partition(".")[0] in ("lsmkv", "importlib")


def fingerprint(path: str, starter: str) -> Fingerprint:
    """The pieces of a file that its starter lacks; none if it is no Python."""
    return _pieces(_read(path)) - _pieces(ast.parse(starter))


def alike(prints: Mapping[str, Fingerprint]) -> dict[str, list[tuple[str, float]]]:
    """For each name, the others that are alike, with the share of the smaller one's pieces."""
    found: dict[str, list[tuple[str, float]]] = {}
    names = [name for name, pieces in prints.items() if len(pieces) >= ENOUGH]
    for at, one in enumerate(names):
        for other in names[at + 1 :]:
            a, b = prints[one], prints[other]
            share = len(a & b) / min(len(a), len(b))
            if share >= ALIKE:
                found.setdefault(one, []).append((other, share))
                found.setdefault(other, []).append((one, share))
    return found


def _read(path: str) -> ast.Module:
    try:
        with open(path, "rb") as file:
            return ast.parse(file.read())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _pieces(tree: ast.Module) -> Fingerprint:
    found: set[tuple[str, ...]] = set()
    for part in tree.body:
        nodes = list(_nodes(part))
        found |= {tuple(nodes[at : at + PIECE]) for at in range(max(1, len(nodes) - PIECE + 1))}
    return frozenset(found)


def _nodes(node: ast.AST) -> Iterator[str]:
    """The nodes of a tree in order, without annotations and texts that only document."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    yield _word(node)
    for name, content in ast.iter_fields(node):
        if name in ("annotation", "returns", "ctx", "type_comment"):
            continue
        for child in content if isinstance(content, list) else [content]:
            if isinstance(child, ast.AST):
                yield from _nodes(child)


def _word(node: ast.AST) -> str:
    """A node without the names that a copier would change."""
    kind = type(node).__name__
    if isinstance(node, ast.Constant):
        return f"{kind} {node.value!r}"
    if isinstance(node, ast.Name) and hasattr(builtins, node.id):
        return f"{kind} {node.id}"
    if isinstance(node, ast.Attribute):
        return f"{kind} {node.attr}"
    return kind

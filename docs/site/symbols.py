"""Where each module, class, function, method and constant of lsmkv stands in the source.

The site links what pages and docstrings name.  The source is parsed and not imported, so that the
same answers come out of every environment.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Symbol:
    """A name of the package."""

    path: str
    """Dotted: ``lsmkv.engine.table.block.Block.get``."""
    file: str
    """From the root of the repository: ``lsmkv/engine/table/block.py``."""
    line: int
    """Counted from 1."""


@dataclass
class Symbols:
    """Every symbol below a directory, found by what a page calls it."""

    by_path: dict[str, Symbol] = field(default_factory=dict)
    _by_name: dict[str, list[Symbol]] = field(default_factory=dict)
    _bases: dict[str, list[str]] = field(default_factory=dict)
    _public: set[str] = field(default_factory=set)

    def add(self, symbol: Symbol) -> None:
        """Add a symbol under its path, its last name, and ``Class.method``.

        The first of two definitions with one path counts, which is that of the first overload.
        """
        if symbol.path in self.by_path:
            return
        self.by_path[symbol.path] = symbol
        parts = symbol.path.split(".")
        for at in range(1, len(parts)):
            self._by_name.setdefault(".".join(parts[at:]), []).append(symbol)

    def find(self, name: str, near: str = "") -> Symbol | None:
        """What ``name`` stands for in a page or docstring about ``near``, a dotted path.

        Of several that one is taken whose path begins as ``near`` does, for longest; then one in
        a module from which ``lsmkv`` itself imports.  None if there is none, or if that leaves two.
        """
        if name in self.by_path:
            return self.by_path[name]
        found = self._by_name.get(name, []) or self._inherited(name)
        if not found:
            inside = name.removeprefix("lsmkv.")  # a public name, which ``lsmkv`` imports
            return None if inside == name else self.find(inside, "lsmkv")
        order = {symbol: self._rank(symbol, near) for symbol in found}
        first, *others = sorted(found, key=order.__getitem__)
        return None if others and order[others[0]] == order[first] else first

    def _rank(self, symbol: Symbol, near: str) -> tuple[int, bool, int]:
        """The nearest symbol's is the least."""
        return -_shared(symbol.path, near), symbol.file not in self._public, _depth(symbol)

    def _inherited(self, name: str) -> list[Symbol]:
        """``Class.method`` where a base of the class has the method."""
        owner, dot, member = name.rpartition(".")
        if not dot:
            return []
        for base in self._bases.get(owner.rpartition(".")[2], []):
            found = self._by_name.get(f"{base}.{member}") or self._inherited(f"{base}.{member}")
            if found:
                return found
        return []

    def read(self, root: Path, directory: str) -> None:
        """Add what the modules below a directory of the repository define."""
        for path in sorted((root / directory).rglob("*.py")):
            file = path.relative_to(root).as_posix()
            module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            self.add(Symbol(module, file, 1))
            tree = ast.parse(path.read_text(encoding="utf-8"))
            if file == f"{directory}/__init__.py":
                imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
                modules = [node.module or "" for node in imports]
                self._public = {module.replace(".", "/") + ".py" for module in modules}
            for name, line in self._defined(tree):
                self.add(Symbol(f"{module}.{name}", file, line))

    def _defined(self, tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, int]]:
        for node in ast.iter_child_nodes(tree):
            if isinstance(node, ast.ClassDef):
                bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
                self._bases.setdefault(node.name, bases)
                yield prefix + node.name, node.lineno
                yield from self._defined(node, f"{prefix}{node.name}.")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield prefix + node.name, node.lineno
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                yield prefix + node.target.id, node.lineno
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        yield prefix + target.id, node.lineno
            elif isinstance(node, ast.If | ast.Try):
                yield from self._defined(node, prefix)


def _shared(path: str, near: str) -> int:
    """How many names two dotted paths begin with alike."""
    count = 0
    for one, other in zip(path.split("."), near.split("."), strict=False):
        if one != other:
            break
        count += 1
    return count


def _depth(symbol: Symbol) -> int:
    """Classes and functions before methods and fields, which have a class before their name."""
    return sum(name[:1].isupper() for name in symbol.path.split(".")[:-1])

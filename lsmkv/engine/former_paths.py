"""Former paths of modules, under which they can still be imported.

``lsmkv.errors`` is ``lsmkv.engine.errors``.  Public classes and functions keep the path of their
first release as their ``__module__``: pickles, tracebacks and alerts name them by it, and processes
of two releases understand each other.  Type checkers and readers find the public ones by *doors*,
one import each, such as ``lsmkv/errors.py``, which are never run.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

_FORMER: Final = {
    "lsmkv.testing.durable": "lsmkv.env.durable",
    "lsmkv.testing.faulty": "lsmkv.env.faulty",
    "lsmkv.testing.recording": "lsmkv.env.recording",
    **{
        f"lsmkv.engine.{name}": f"lsmkv.{name}"
        for name in (
            *("counters", "db", "env", "errors", "filter", "format", "indexeddb", "metrics"),
            *("options", "stats", "table", "util"),
        )
    },
    "lsmkv.files.exchange": "lsmkv.exchange",
    "lsmkv.files.programs": "lsmkv.programs",
    "lsmkv.files.repair": "lsmkv.repair",
    "lsmkv.shared.owner": "lsmkv.owner",
    "lsmkv.shards.building": "lsmkv.bulk",
    "lsmkv.adapters.aiocache": "lsmkv.cache.aiocache",
    "lsmkv.adapters.cachelib": "lsmkv.cache.cachelib",
    "lsmkv.adapters.django": "lsmkv.django",
    "lsmkv.adapters.dogpile": "lsmkv.cache.dogpile",
    "lsmkv.testing.pytest_plugin": "lsmkv.pytest_plugin",
    "lsmkv.tools.filter_lab": "lsmkv.filter_lab",
    "lsmkv.tools.plot": "lsmkv.plot",
}
_PRESENT: Final = {former: present for present, former in _FORMER.items()}


def _changed(paths: dict[str, str], name: str) -> str | None:
    """A path with its longest beginning in ``paths`` replaced; None if none is there."""
    start = name
    while start not in paths:
        start = start.rpartition(".")[0]
        if not start:
            return None
    return paths[start] + name[len(start) :]


def present_path(name: str) -> str | None:
    """Return the present path of a module with a former path; None for any other name."""
    return _changed(_PRESENT, name)


class FormerPaths:
    """Finds and loads modules by their former paths: the import system asks it first."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the import spec of a module; None if its path is not a former one."""
        if not name.startswith("lsmkv.") or present_path(name) is None:
            return None
        loader: Any = self
        return ModuleSpec(name, loader)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module itself, which is imported by its present path."""
        present = present_path(spec.name)
        assert present is not None
        module = importlib.import_module(present)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module has already run.  The import system has replaced its spec by that
        of this path."""
        spec = module.__spec__
        assert spec is not None
        module.__spec__ = spec.loader_state


def keep_paths(*values: Any) -> None:
    """Name public classes and functions by the paths of their modules' first release."""
    for value in values:
        if not hasattr(value, "__qualname__"):
            continue  # a constant
        present = value.__module__
        former = _changed(_FORMER, present)
        if former is not None:
            value.__module__ = former
            sys.modules.setdefault(former, sys.modules[present])


def install() -> None:
    """Let the import system find modules by their former paths."""
    finders: list[Any] = sys.meta_path
    finders.insert(0, FormerPaths())

"""What the methods of a handle need is imported when the handle is made, at the latest.

A program may change its root or its user then, or its release directory may be replaced: the files
of modules are out of reach.  A child process makes handles, loses all files, and uses every public
name of each handle, and of the handles that these return.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import pytest
from processes import run_python

import lsmkv
import lsmkv.shards.building

PROGRAM = Path(__file__).parent / "helpers" / "without_files.py"
MODULES = (
    *("lsmkv", "lsmkv.aio", "lsmkv.cache.recipes", "lsmkv.mapping", "lsmkv.plyvel"),
    "lsmkv.shards",
)
"""Where handles come from, and what they return."""
NO_HANDLES = {
    *("BinaryFusePolicy", "Bloom64Policy", "BloomFilterPolicy", "DelimitedPrefix", "FixedPrefix"),
    *("BlockCache", "BytewiseComparator", "LocalEnv", "MemoryEnv", "ReverseBytewiseComparator"),
    *("Comparator", "Directory", "Env", "FileLock", "FilterPolicy", "HashedFilterPolicy"),
    *("PrefixExtractor", "RandomAccessFile", "WritableFile"),
    "VersionDocument",
}
"""What handles are made with, and use themselves; and a plain value."""
PLAIN = (BaseException, dict, tuple)
SPECIAL = {
    "__contains__": "b'ant' in handle",
    "__iter__": "iter(handle)",
    "__next__": "next(handle, None)",
    "__aiter__": "aiter(handle)",
    "__anext__": "anext(handle, None)",
    "__len__": "len(handle)",
    "__repr__": "repr(handle)",
    "__reversed__": "reversed(handle)",
    "_repr_html_": "handle._repr_html_()",
}
ARGUMENTS = {
    "default": "None",
    "batch": "lsmkv.WriteBatch()",
    "files": "[directory + '/made.ldb']",
    "function": "lambda *given: b'six'",
    "index": "0",
    "iterable": "[b'ant']",
    "key": "b'ant'",
    "keys": "[b'ant']",
    "name": "'lsmkv.stats'",
    "other": "{}",
    "path": "directory + f'/copy{id(handle)}'",
    "prefix": "b'a'",
    "ranges": "[(b'a', b'b')]",
    "sequence": "0",
    "since": "0",
    "start": "b'a'",
    "stop": "b'b'",
    "tag": "b'red'",
    "target": "b'a'",
    "value": "b'six'",
    "values": "[b'six']",
}
"""What a call requires, by the name of the parameter."""
CALLS: dict[str, list[str]] = {
    "Averager.add": ["handle.add(5)"],
    "Cache.decr": ["handle.decr(b'count')"],
    "Cache.incr": ["handle.incr(b'count')"],
    "Cache.memoize": ["handle.memoize(lock=True)(len)(b'ant' * 99)"],
    "Cache.open": [],
    "Cache.read": ["handle.set(b'ant', b'six')", "handle.read(b'ant')"],
    "Cache.reset": ["handle.reset('size_limit', 1 << 30)"],
    "Index.pop": ["handle.setdefault(b'pop', 6)", "handle.pop(b'pop')"],
    "ShardIterator.next": ["handle.seek_to_start()", "handle.next()"],
    "lsmkv.plyvel.DB.get_property": ["handle.get_property(b'lsmkv.stats')"],
    "DB.batches": [
        "handle.put(b'ant', b'six')",
        "handle.batches(handle.snapshot().sequence - 1, timeout=0)",
    ],
    "DB.open": [],
    "lsmkv.aio.db.DB.batches": ["handle.put(b'ant', b'six')", "handle.batches(11)"],
    "lsmkv.aio.shared.SharedDB.batches": ["handle.put(b'ant', b'six')", "handle.batches(11)"],
    "lsmkv.db.db.DB.stats": ["handle.stats()", "handle.stats().levels.__getitem__(0)"],
    "Deque.fromcache": ["handle.fromcache(handle.cache, [b'six'])"],
    "Index.fromcache": ["handle.fromcache(handle.cache, ant=6)"],
    "Iterator.next": ["handle.seek_to_start()", "handle.next()"],
    "Iterator.prev": ["handle.seek_to_stop()", "handle.prev()"],
    "RawIterator.item": ["handle.seek_to_first()", "handle.item()"],
    "RawIterator.prev": ["handle.seek_to_last()", "handle.prev()"],
    "SharedDB.batches": [
        "handle.put(b'ant', b'six')",
        "handle.batches(handle.snapshot().sequence - 1, timeout=0)",
    ],
    "SharedDB.open": [],
    "Shards.open": [],
    "lsmkv.aio.snapshot.Snapshot.open": [],
    "WriteBatch.append": ["handle.append(lsmkv.WriteBatch())"],
}
"""The uses of a name that is not just called, as ``Class.name``."""
LAST = ("commit", "rollback", "clear", "fromcache", "close")


def uses_of_handles() -> dict[str, list[str]]:
    """The expressions that use each public name of each public class."""
    uses = {}
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            kind = getattr(module, name)
            if not isinstance(kind, type) or issubclass(kind, PLAIN):
                continue
            if kind.__name__ not in NO_HANDLES:
                uses[f"{kind.__module__}.{kind.__qualname__}"] = uses_of(kind)
    return uses


def uses_of(kind: type) -> list[str]:
    uses: list[str] = []
    names = [name for name in dir(kind) if name not in LAST]
    for name in [*names, *(name for name in LAST if hasattr(kind, name))]:
        if name in SPECIAL:
            if getattr(object, name, None) is not inspect.getattr_static(kind, name):
                uses.append(SPECIAL[name])
        elif not name.startswith("_"):
            exact = CALLS.get(f"{kind.__module__}.{kind.__name__}.{name}")
            calls = CALLS.get(f"{kind.__name__}.{name}") if exact is None else exact
            uses += [use_of(kind, name)] if calls is None else calls
    return uses


def use_of(kind: type, name: str) -> str:
    member = getattr(kind, name)
    if not callable(member):
        return f"handle.{name}"
    try:
        parameters = list(inspect.signature(member).parameters.values())
    except ValueError:  # of a built-in class
        parameters = []
    bound = isinstance(inspect.getattr_static(kind, name), classmethod | staticmethod)
    given = [
        ARGUMENTS.get(one.name, f"NONE_FOR_{one.name}")
        for one in parameters[0 if bound else 1 :]
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]
    return f"handle.{name}({', '.join(given)})"


HANDLES = {
    "a store": "import lsmkv; handles = [lsmkv.DB(directory + '/store')]",
    "other stores": """
import lsmkv, lsmkv.plyvel
path = directory + "/store"
handles = [
    lsmkv.DB(path + "2", read_only=True),
    lsmkv.plyvel.DB(path + "4"),
    lsmkv.open(path + "3", "w"),
    lsmkv.DB(path, publish_stats=True, trace=directory + "/new"),
    lsmkv.TableWriter(directory + "/new.ldb"),
    lsmkv.read_trace(directory + "/trace"),
    lsmkv.plan_repair(directory + "/damaged"),
]
""",
    "a damaged store": "import lsmkv; handles = [lsmkv.DB(directory + '/damaged')]",
    "a shared store": """
import lsmkv
owner, member, successor = [lsmkv.SharedDB(directory + "/store") for handle in range(3)]
handles = [member, owner, successor]
""",
    "a cache": """
import lsmkv
from lsmkv.cache.recipes import *
cache = lsmkv.Cache(directory + "/cache")
locks = [kind(cache, kind.__name__) for kind in (Lock, RLock, BoundedSemaphore, Averager)]
own = [Deque([b"six"], directory + "/deque"), Index(directory + "/index", ant=6)]
handles = [*locks, *own, cache]
""",
    "asyncio": """
import asyncio, lsmkv.aio
handles = [
    lsmkv.aio.open_db(directory + "/store"),
    lsmkv.aio.SharedDB(directory + "/store2").open(),
    lsmkv.aio.Cache(directory + "/cache").open(),
    lsmkv.aio.open_shards(directory + "/shards"),
]
""",
    "shards": "import lsmkv.shards; handles = [lsmkv.shards.open(directory + '/shards')]",
}
"""What makes the handles of a process."""
REFUSALS = {
    "other stores": "ReadOnlyError",
    "a damaged store": ("CorruptionError", "IteratorInvalidError"),
}
"""What the calls of some may raise."""
PROCESSES = {
    "lsmkv.aio.": "asyncio",
    "lsmkv.cache.": "a cache",
    "lsmkv.shards.": "shards",
    "lsmkv.shared.": "a shared store",
    **dict.fromkeys(("lsmkv.mapping.", "lsmkv.plyvel.", "lsmkv.repair."), "other stores"),
    **dict.fromkeys(("lsmkv.db.admin.", "lsmkv.db.observe."), "other stores"),
}
"""Where handles are used; the engine's own, with the first store."""
READ_LATE = {"open /engine/counters.py", "open /engine/stats.py"}
"""Sources, for the help of metrics, which is else the name in words."""


@pytest.mark.parametrize("what", HANDLES)
def test_a_handle_has_what_its_methods_need(tmp_path: Path, what: str) -> None:
    for name in ("store", "store2", "store3", "store4", "damaged"):
        make_store(tmp_path / name)
    for file in (tmp_path / "damaged").glob("*.ldb"):
        file.write_bytes(bytes(9) + file.read_bytes()[9:])
    with lsmkv.TableWriter(tmp_path / "made.ldb") as table:
        table.add(b"made", b"six")
    lsmkv.shards.building.build([(b"ant", b"six")], tmp_path / "shards")
    with lsmkv.DB(tmp_path / "traced", create_if_missing=True, trace=tmp_path / "trace") as db:
        db.put(b"ant", b"six")
    uses = uses_of_handles()
    plan = tmp_path / "plan"
    plan.write_text(repr((HANDLES[what], uses)), encoding="utf-8")
    done = run_python("-P", PROGRAM, tmp_path, plan)
    assert done.returncode == 0, done.stderr
    used, refused, failed = ast.literal_eval(done.stdout)
    assert set(refused) <= READ_LATE
    assert [one for one in failed if not one[1].startswith(REFUSALS.get(what, "none"))] == []
    assert {kind for kind in uses if process_of(kind) == what} <= set(used)


def process_of(kind: str) -> str:
    """The key in ``HANDLES`` of the process that uses this class."""
    return next((what for part, what in PROCESSES.items() if kind.startswith(part)), "a store")


def make_store(path: Path) -> None:
    with lsmkv.DB(path, create_if_missing=True) as db:
        for n in range(10):
            db.put(b"ant", b"%d" % n)
        db.flush()
        db.put(b"bee", b"six")

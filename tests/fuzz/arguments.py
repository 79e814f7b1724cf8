"""Calls with hostile arguments: ``arguments.py [--calls N] [--seed S] [--life L] [--verbose]``.

Every public callable of every public handle is found by introspection and called with what
:mod:`hostile` makes.  A call may return or raise whatever it likes, but it may not end the process,
hang, or raise ``SystemError``, which stands for a broken rule of the C API.  Afterwards the stores
that lived through it are opened again, and ``check`` and ``verify`` find nothing.

A *life* is a fresh set of stores and handles and about a hundred calls.  Its random numbers follow
from the seed and its number: ``--seed S --life L --verbose`` makes its calls again, and prints each
before it is made.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import faulthandler
import gc
import importlib
import inspect
import logging
import os
import random
import sys
import tempfile
import threading
import time
import traceback
import typing
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from hostile import Hostile, HostileError, HostileExit

import lsmkv
import lsmkv.aio
import lsmkv.files
import lsmkv.plyvel
from lsmkv import DB, MemoryEnv
from lsmkv.cache import recipes
from lsmkv.engine.db.read.iterator import IteratorArguments
from lsmkv.mapping import KeyValueMapping

CALLS_OF_A_LIFE = 100
LONGEST_CALL = 120.0
"""Seconds after which a call hangs: the process ends with the stack of each thread."""
FACES = (
    *("lsmkv", "lsmkv.aio", "lsmkv.cache.recipes", "lsmkv.files", "lsmkv.indexeddb"),
    *("lsmkv.mapping", "lsmkv.owner", "lsmkv.plyvel", "lsmkv.repair", "lsmkv.shards"),
)
"""Modules whose public names are called too."""
OPERATORS = (
    *("__bool__", "__call__", "__contains__", "__copy__", "__del__", "__delitem__", "__dir__"),
    *("__enter__", "__eq__", "__exit__", "__format__", "__ge__", "__getitem__", "__getstate__"),
    *("__hash__", "__init__", "__init_subclass__", "__ior__", "__iter__", "__len__", "__lt__"),
    *("__aenter__", "__aexit__", "__aiter__", "__anext__", "__await__", "__deepcopy__"),
    *("__next__", "__or__", "__reduce__", "__reduce_ex__", "__repr__", "__reversed__"),
    *("__setattr__", "__setitem__", "__setstate__", "__sizeof__", "__str__", "__sub__"),
)
WAITS = {"timeout", "patience", "lock_timeout", "limit", "recency", "deadline", "expire"}
"""Parameters that are times, which are always given, and short."""
WAITS_FOR_ITSELF = {
    ("Lock", "acquire"), ("Lock", "__enter__"), ("BoundedSemaphore", "acquire"),
    ("BoundedSemaphore", "__enter__"), ("RLock", "acquire"), ("RLock", "__enter__"),
    ("Cache", "transact"),
}  # fmt: skip
"""Methods that wait without a limit for what another call of the same thread may hold."""
SETTINGS = {
    table.__name__: typing.get_type_hints(table).keys()
    for table in (lsmkv.OptionArguments, lsmkv.TableArguments, IteratorArguments)
}
"""The keywords behind ``**options``, by the name of their type."""
READERS: dict[str, Any] = {
    ".ldb": lsmkv.files.Table, ".log": lsmkv.files.Log, "MANIFEST": lsmkv.files.Manifest,
    "CURRENT": lsmkv.files.Current,
}  # fmt: skip
FILES = (lsmkv.Env, lsmkv.Directory, lsmkv.RandomAccessFile, lsmkv.WritableFile, lsmkv.FileLock)
"""What a store returns of these is not called: it would take the files away under the store."""


class Fuzzer:
    """Makes calls, life by life, and notes what must not be."""

    def __init__(self, seed: int, verbose: bool = False) -> None:
        self.seed = seed
        self.calls = 0
        self.lives = 0
        self.returned = 0
        self.findings: list[str] = []
        self.called: set[str] = set()
        """``Class.method`` and names of functions."""
        self._verbose = verbose
        self._place = ""

    def run(self, calls: int, life: int = 0) -> None:
        """Begin with a life, and go on until so many calls were made."""
        report, sys.unraisablehook = sys.unraisablehook, self._unraisable
        excepthook, threading.excepthook = threading.excepthook, self._in_thread
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-4)
        here = os.getcwd()
        try:
            while self.calls < calls:
                with tempfile.TemporaryDirectory() as path:
                    os.chdir(path)  # any text may be taken for a path
                    try:
                        self._live(life, calls)
                    finally:
                        os.chdir(here)
                life += 1
                self.lives += 1
        finally:
            faulthandler.cancel_dump_traceback_later()
            sys.setswitchinterval(interval)
            sys.unraisablehook = report
            threading.excepthook = excepthook

    def _live(self, number: int, calls: int) -> None:
        life = Life(random.Random(f"{self.seed} {number}"), self)
        self._place = f"seed {self.seed}, life {number}"
        try:
            for _ in range(min(CALLS_OF_A_LIFE, calls - self.calls)):
                faulthandler.dump_traceback_later(LONGEST_CALL, exit=True, file=sys.__stderr__)
                self.calls += 1
                life.call()
        finally:
            self._place = f"seed {self.seed}, at the end of life {number}"
            self.attempt(f"{self._place}: closing", life.close)
        faulthandler.dump_traceback_later(LONGEST_CALL, exit=True, file=sys.__stderr__)
        try:
            life.judge()
        except Exception:
            self.findings.append(f"{self._place}: {traceback.format_exc()}")

    def attempt(self, what: str, call: Callable[[], Any]) -> Any:
        """Make a call; None for what it raised."""
        if self._verbose:
            print(f"{self._place}: {what}", flush=True)
        try:
            result = call()
            self.returned += 1
            return result
        except BaseException as error:
            self.judge(what, error)
            return None

    def judge(self, what: str, error: BaseException | None) -> None:
        """Note an error that stands for a fault of the engine, or of what compiled it."""
        unreachable = isinstance(error, RuntimeError) and "unreachable" in str(error)
        if isinstance(error, SystemError | UnboundLocalError) or unreachable:
            lines = "".join(traceback.format_exception(error))
            self.findings.append(f"{self._place}: {what}: {lines}")

    def _unraisable(self, what: Any) -> None:
        self.judge("in a finalizer", what.exc_value)

    def _in_thread(self, what: Any) -> None:
        self.judge("in a thread", what.exc_value)


class Life:
    """Stores, their handles, and calls of them."""

    def __init__(self, rng: random.Random, fuzzer: Fuzzer) -> None:
        self._rng = rng
        self._fuzzer = fuzzer
        self._depth = 0
        self.env = MemoryEnv(mapped_logs=rng.random() < 0.5)
        self.settings: dict[str, Any] = {
            "create_if_missing": True, "write_buffer_size": 3000, "block_size": 300,
            "lru_cache_size": rng.choice([0, 2000]), "max_file_size": 4000,
            "filter_layout": rng.choice(["block", "table", "both"]),
        }  # fmt: skip
        self.in_memory = DB("db", env=self.env, **self.settings)
        self.on_disk = self._shared() if rng.random() < 0.1 else DB("disk", **self.settings)
        self.cache = lsmkv.Cache("cache", shared=False, env=self.env)
        self.loop = asyncio.new_event_loop() if rng.random() < 0.1 else None
        self.handles: list[Any] = []
        self.hostile = Hostile(rng, self.act, lambda: self.handles)
        self._done = threading.Event()
        self._changer = threading.Thread(target=self._change, daemon=True)
        self._fill()
        self._changer.start()

    def _shared(self) -> Any:
        settings = {**self.settings, "background": "thread"}
        return lsmkv.SharedDB("disk", lock_timeout=5.0, **settings)

    def _fill(self) -> None:
        for db in (self.in_memory, self.on_disk):
            for number in range(60):
                db.put(b"k%d" % number, b"v" * (number % 40))
            db.flush()
            db.put(b"p:a", b"in memory")
            db.delete(b"k3")
        self.cache.set("k", [1, 2.5, "text", b"bytes"], tag="t")
        made: list[Any] = [self.in_memory, self.on_disk, self.cache, *self._parts_of_stores()]
        made += [self.hostile, *_others(), *self._files()]
        del made[made.index(self.hostile)]
        if self.loop is not None:
            made += self.loop.run_until_complete(self._asynchronous())
        self.handles = made

    def _parts_of_stores(self) -> list[Any]:
        found: list[Any] = []
        for db in (self.in_memory, self.on_disk):
            found += [
                db.iterator(), db.iterator(reverse=True, prefix=b"k"), db.raw_iterator(),
                db.snapshot(), db.snapshot().iterator(), db.transaction(), db.prefixed_db(b"p:"),
                db.prefixed_db(b"p:").iterator(), db.write_batch(), db.stats(), db.explain(b"k1"),
                db.tables()[0], db.batches(), KeyValueMapping(db), KeyValueMapping(db).items(),
                KeyValueMapping(db).keys(), KeyValueMapping(db).values(),
            ]  # fmt: skip
        found.append(next(self.in_memory.batches(self.in_memory.sequence - 2), None))
        found += [
            recipes.Deque.fromcache(self.cache, [1, 2]),
            recipes.Index.fromcache(self.cache, {"a": 1}),
            recipes.Averager(self.cache, "mean"), recipes.Lock(self.cache, "lock"),
            recipes.RLock(self.cache, "lock"), recipes.BoundedSemaphore(self.cache, "permits"),
        ]  # fmt: skip
        return found

    def _files(self) -> list[Any]:
        """Readers of a store's files, and a file system of no store."""
        with DB("files", create_if_missing=True, trace="trace", mapped_log=False) as db:
            db.put(b"k", b"v")
            db.flush()
            db.put(b"l", b"w")
        found: list[Any] = [lsmkv.files.StoreFiles("files"), lsmkv.read_trace("trace")]
        for name in sorted(os.listdir("files")):
            kind = READERS.get(os.path.splitext(name)[1] or name.split("-")[0])
            if kind is not None:
                found.append(kind(f"files/{name}"))
        for file in found[2:]:
            for read in ("records", "fragments", "edits", "entries", "data_blocks", "filters"):
                if hasattr(file, read):
                    found += list(getattr(file, read)())[:1]
        env = MemoryEnv()
        directory = env.open_directory("free", create=True)
        with directory.create("file") as file:
            file.append(b"content" * 9)
        found += [env, directory, directory.open("file"), directory.create("other")]
        writer = lsmkv.TableWriter("table.ldb", env=env)
        writer.add(b"a", b"1")
        return [*found, writer]

    async def _asynchronous(self) -> list[Any]:
        db: Any = await lsmkv.aio.open_db("aio", env=self.env, **self.settings)
        await db.put(b"k", b"v")
        snapshot = db.snapshot()
        return [db, snapshot, db.iterator(), db.prefixed_db(b"p:"), db.write_batch(),
                db.transaction(), db.batches()]  # fmt: skip

    # Calls

    def call(self) -> None:
        """Call one method or function, with arguments of any kind."""
        if self._rng.random() < 0.15:
            of = self._rng.choice(PUBLIC)
            name = of.__name__
            if self._rng.random() < 0.2 and isinstance(of, type):
                name, of = f"{name}.__new__", _bare(of)
            label = name
        else:
            handle = self._rng.choice(self.handles)
            name = self._rng.choice(members(type(handle)))
            label = f"{type(handle).__name__}.{name}"
            if (type(handle).__name__, name) in WAITS_FOR_ITSELF:
                return
            self._fuzzer.called.add(label)
            of = self._fuzzer.attempt(f"{label}, taken", lambda: getattr(handle, name))
        if not callable(of):
            return
        self._fuzzer.called.add(label)
        arguments, named = self._arguments_for(of)
        told = [*map(_brief, arguments), *(f"{key}={_brief(named[key])}" for key in named)]
        what = ascii(f"{label}({', '.join(told)})")[1:-1]
        self._take(self._fuzzer.attempt(what, lambda: of(*arguments, **named)))

    def _take(self, result: Any) -> None:
        """Let what was returned be a handle for the calls that follow."""
        if inspect.iscoroutine(result):
            if self.loop is None or self.loop.is_running():
                result.close()
                return
            loop, coroutine = self.loop, asyncio.wait_for(result, 5.0)
            result = self._fuzzer.attempt("awaiting it", lambda: loop.run_until_complete(coroutine))
        if not type(result).__module__.startswith("lsmkv") or isinstance(result, FILES):
            if not isinstance(result, Iterator):
                return
            result = self._fuzzer.attempt("its next", lambda: next(result, None))
        if type(result).__module__.startswith("lsmkv") and not isinstance(result, FILES):
            self.handles[self._rng.randrange(8, len(self.handles))] = result

    def _arguments_for(self, of: Any) -> tuple[list[Any], dict[str, Any]]:
        positional: list[Any] = []
        named: dict[str, Any] = {}
        try:
            parameters = list(inspect.signature(of).parameters.values())
        except (TypeError, ValueError):
            return [self.hostile.value() for _ in range(self._rng.randrange(3))], named
        if self._rng.random() < 0.05:  # too many, or too few
            return [self.hostile.value() for _ in range(self._rng.randrange(6))], named
        for parameter in parameters:
            kind, name = parameter.kind, parameter.name
            value = self.hostile.time() if name in WAITS else self.hostile.value()
            optional = parameter.default is not inspect.Parameter.empty
            if kind is inspect.Parameter.VAR_KEYWORD:
                for keyword in self._keywords(str(parameter.annotation)):
                    waits = keyword in WAITS
                    named[keyword] = self.hostile.time() if waits else self.hostile.value()
                if "OptionArguments" in str(parameter.annotation):
                    named.setdefault("lock_timeout", 0.0)
            elif kind is inspect.Parameter.VAR_POSITIONAL:
                if not named:
                    positional += [self.hostile.value() for _ in range(self._rng.randrange(3))]
            elif optional and name not in WAITS and self._rng.random() < 0.6:
                continue
            elif (
                kind is inspect.Parameter.KEYWORD_ONLY
                or (named and kind is not inspect.Parameter.POSITIONAL_ONLY)
                or (optional and kind is not inspect.Parameter.POSITIONAL_ONLY)
            ):
                named[name] = value
            else:
                positional.append(value)
        return positional, named

    def _keywords(self, annotation: str) -> list[str]:
        for name, keywords in SETTINGS.items():
            if name in annotation:
                return self._rng.sample(sorted(keywords), self._rng.randrange(3))
        return self._rng.sample(["prefix", "start", "tag", "self", "\ud800"], 1)

    # In the middle of calls

    def act(self) -> None:
        """What an argument does when one of its methods is called."""
        choice = self._rng.randrange(12)
        if self._depth > 2 or choice == 0:
            return
        self._depth += 1
        try:
            if choice <= 2:
                raise HostileError("an argument's")
            if choice == 3:
                raise HostileExit("an argument's")
            if choice == 4:
                self.hostile.change_buffers()
            elif choice == 5:
                gc.collect(self._rng.randrange(2))
            elif choice == 6:
                handle = self._rng.choice(self.handles)
                close = getattr(handle, "close", None)
                if callable(close):
                    self._take(self._fuzzer.attempt(f"{type(handle).__name__}.close()", close))
            elif choice == 7:
                db = self._rng.choice([self.in_memory, self.on_disk])
                for call in (db.flush, lambda: db.put(b"k1", b"nested"), lambda: list(db)[:3]):
                    self._fuzzer.attempt("of the store", call)
            elif choice == 8:
                time.sleep(0)  # others run
                self.handles[self._rng.randrange(8, len(self.handles))] = None
            else:
                self.call()
        finally:
            self._depth -= 1

    def _change(self) -> None:
        """In a thread of its own: with random numbers of its own, so that the calls stay the
        same."""
        rng = random.Random(1)
        while not self._done.wait(0.0005):
            for buffer in self.hostile.buffers:
                with contextlib.suppress(BufferError):
                    buffer[:] = b"k%d" % rng.randrange(99) * rng.randrange(50)

    # The end

    def close(self) -> None:
        """Close the stores, whatever became of their handles."""
        self._done.set()
        self._changer.join()
        self.handles.clear()
        for handle in (self.in_memory, self.on_disk, self.cache):
            type(handle).close(handle)
        if self.loop is not None:
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()
        gc.collect()

    def judge(self) -> None:
        """Raise if a store is not as sound as before."""
        for path, env in (("db", self.env), ("disk", None)):
            with DB(path, env=env, lock_timeout=5.0, create_if_missing=True) as db:
                db.check()
                assert db.verify() == [], f"damage in {path}"
                db.put(b"last", path.encode())
                assert db.get(b"last") == path.encode()
                assert sorted(db.iterator(include_value=False)) == list(dict(db))
        with lsmkv.Cache("cache", shared=False, env=self.env) as cache:
            assert cache.check() == []
            cache.set("last", 1)
            assert cache.get("last") == 1


def _others() -> list[Any]:
    """Handles that belong to no store."""
    bloom = lsmkv.BloomFilterPolicy(10)
    batch = lsmkv.WriteBatch()
    batch.put(b"k", b"v")
    cache: Any = lsmkv.BlockCache(1000)
    drop_in: Any = lsmkv.plyvel.DB(":memory:")
    return [
        bloom, lsmkv.Bloom64Policy(10), lsmkv.BinaryFusePolicy(), lsmkv.BytewiseComparator(),
        lsmkv.ReverseBytewiseComparator(), lsmkv.FixedPrefix(2), lsmkv.DelimitedPrefix(b":"),
        lsmkv.Options(), lsmkv.LocalEnv(), batch, cache, drop_in, drop_in.iterator(),
        drop_in.raw_iterator(), drop_in.snapshot(), drop_in.write_batch(),
        drop_in.prefixed_db(b"p"),
    ]  # fmt: skip


def _bare(of: type) -> Callable[..., Any]:
    """Makes an instance whose ``__init__`` was not called."""
    return lambda *_arguments, **_named: of.__new__(of)


def members(of: type) -> list[str]:
    """The public attributes of a class, and the operators that it has."""
    found = MEMBERS.get(of)
    if found is None:
        names = dir(of)
        found = [name for name in names if not name.startswith("_") or name in OPERATORS]
        MEMBERS[of] = found
    return found


MEMBERS: dict[type, list[str]] = {}


def _brief(value: Any) -> str:
    """An argument that is plain, or its type; no method of its own is called."""
    if type(value) in (int, float, bool, bytes, str, type(None)):
        return ascii(value)[:40]
    return f"<{type(value).__name__}>"


def public_callables() -> list[Any]:
    """Functions and classes of the public modules; a class's methods are those of its instances."""
    found: list[Any] = []
    for face in FACES:
        module: ModuleType = importlib.import_module(face)
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) and issubclass(value, (BaseException, *FILES)):
                continue
            if value not in found and (inspect.isclass(value) or inspect.isroutine(value)):
                found.append(value)
    return found


PUBLIC = public_callables()


def main() -> int:
    """Make the calls and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--life", type=int, default=0, help="the first one")
    parser.add_argument("--verbose", action="store_true", help="print each call before it is made")
    arguments = parser.parse_args()
    faulthandler.enable()
    warnings.simplefilter("ignore")
    logging.getLogger("lsmkv").setLevel(logging.CRITICAL + 1)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL + 1)
    mode = "compiled" if lsmkv.COMPILED else "pure"
    print(f"lsmkv {lsmkv.__version__}, {mode}; seed {arguments.seed}", flush=True)
    fuzzer = Fuzzer(arguments.seed, arguments.verbose)
    fuzzer.run(arguments.calls, arguments.life)
    for finding in fuzzer.findings[:20]:
        print(finding, flush=True)
    print(
        f"calls {fuzzer.calls:,}, lives {fuzzer.lives:,}, returned {fuzzer.returned:,}, "
        f"methods and functions {len(fuzzer.called):,}; findings: {len(fuzzer.findings)}"
    )
    return 1 if fuzzer.findings else 0


if __name__ == "__main__":
    sys.exit(main())

"""``import diskcache`` gives lsmkv's classes: a plugin of pytest, for diskcache's own tests.

What it adds to :class:`lsmkv.Cache` is what its constructor and its settings are called there: a
``Disk`` becomes a codec, and names of settings that have no counterpart are attributes that change
nothing.
"""

from __future__ import annotations

import json
import pickle
import sys
import zlib
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from diskcache_suite import HAS_MORE, LEFT_OUT, left_out

import lsmkv
from lsmkv.cache import memoizing, recipes
from lsmkv.cache.codecs import PickleCodec
from lsmkv.cache.recipes import limiting
from lsmkv.cache.settings import DEFAULTS

OTHER_SETTINGS: dict[str, Any] = {
    "tag_index": 0,
    "sqlite_auto_vacuum": 1,
    "sqlite_cache_size": 2**13,
    "sqlite_journal_mode": "wal",
    "sqlite_mmap_size": 2**26,
    "sqlite_synchronous": 1,
    "disk_min_file_size": 2**15,
    "disk_pickle_protocol": pickle.HIGHEST_PROTOCOL,
}
DEFAULT_SETTINGS = {**DEFAULTS, "eviction_policy": "least-recently-stored", **OTHER_SETTINGS}


class Constant(tuple[str]):
    """A constant that shows its name."""

    def __new__(cls, name: str) -> Constant:
        return tuple.__new__(cls, (name,))

    def __repr__(self) -> str:
        return self[0]


class Timeout(Exception):
    """What diskcache raises where it waits too long for SQLite; lsmkv never does."""


class Disk:
    """What diskcache calls the codec."""

    def __init__(self, directory: str, min_file_size: int = 0, pickle_protocol: int = 0) -> None:
        self.min_file_size = min_file_size
        self.pickle_protocol = pickle_protocol

    def codec(self) -> Any:
        """The codec that does what this disk does."""
        return PickleCodec(self.pickle_protocol)


class JSONDisk(Disk):
    """Values as compressed JSON."""

    def __init__(self, directory: str, compress_level: int = 1, **rest: int) -> None:
        super().__init__(directory, **rest)
        self.compress_level = compress_level

    def codec(self) -> Any:
        return JSONCodec(self.compress_level)


class JSONCodec:
    """The codec of :class:`JSONDisk`."""

    def __init__(self, level: int) -> None:
        self._level = level

    def encode(self, value: Any) -> bytes:
        return zlib.compress(json.dumps(value).encode(), self._level)

    def decode(self, data: bytes) -> Any:
        return json.loads(zlib.decompress(data))


class Cache(lsmkv.Cache):
    """:class:`lsmkv.Cache` with diskcache's constructor."""

    def __init__(
        self, directory: Any = None, timeout: float = 60, disk: Any = Disk, **settings: Any
    ) -> None:
        if not (isinstance(disk, type) and issubclass(disk, Disk)):
            raise ValueError("disk must be a subclass of Disk")
        others = OTHER_SETTINGS | {
            name: value for name, value in settings.items() if name not in DEFAULTS
        }
        of_disk = {name[5:]: value for name, value in others.items() if name.startswith("disk_")}
        self._disk = disk("", **of_disk)
        self.timeout = timeout
        for name, value in others.items():
            setattr(self, name, value)
        super().__init__(
            directory,
            codec=self._disk.codec(),
            recency=0,
            eviction=settings.get("eviction_policy", "least-recently-stored"),
            **{name: settings[name] for name in ("size_limit", "cull_limit") if name in settings},
            statistics=settings.get("statistics"),
        )

    @property
    def disk(self) -> Disk:
        """The disk, as it was made."""
        return self._disk

    def reset(self, name: str, *value: Any, update: bool = True) -> Any:
        """A setting; those without a counterpart are attributes."""
        if name not in OTHER_SETTINGS:
            return super().reset(name, *value)
        if value:
            setattr(self, name, value[0])
            if name.startswith("disk_"):
                setattr(self._disk, name[5:], value[0])
        return getattr(self, name)

    def create_tag_index(self) -> None:
        """There always is one."""
        self.reset("tag_index", 1)

    def drop_tag_index(self) -> None:
        """It stays."""
        self.reset("tag_index", 0)

    def __reduce__(self) -> Any:
        return Cache, (self.directory, self.timeout, type(self._disk))


class FanoutCache(Cache):
    """One cache, where diskcache has several for more writers."""

    def __init__(
        self,
        directory: Any = None,
        shards: int = 8,
        timeout: float = 0.01,
        disk: Any = Disk,
        **settings: Any,
    ) -> None:
        super().__init__(directory, timeout, disk, **settings)


def django_cache() -> type:
    """:class:`lsmkv.django.LsmkvCache` with diskcache's methods for an index that always is."""
    from lsmkv.django import LsmkvCache

    class DjangoCache(LsmkvCache):
        def create_tag_index(self) -> None:
            pass

        def drop_tag_index(self) -> None:
            pass

    return DjangoCache


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave out the tests that are listed."""
    listed = left_out(LEFT_OUT) | left_out(HAS_MORE)
    dropped = [item for item in items if item.nodeid in listed]
    config.hook.pytest_deselected(items=dropped)
    items[:] = [item for item in items if item.nodeid not in listed]


def pytest_configure() -> None:
    """Only where this is a plugin: a run of other tests that imports it keeps the names."""
    memoizing.own_name = limiting.own_name = local_name


def local_name(function: Any) -> str:
    """The name of a function of a test: lsmkv wants one to be given for those in functions."""
    return f"{function.__module__}.{function.__qualname__}"


def install() -> None:
    """Make this what ``import diskcache`` finds."""
    names: dict[str, Any] = {
        "Cache": Cache,
        "DEFAULT_SETTINGS": DEFAULT_SETTINGS,
        "Disk": Disk,
        "ENOVAL": Constant("ENOVAL"),
        "EVICTION_POLICY": {},
        "EmptyDirWarning": UserWarning,
        "FanoutCache": FanoutCache,
        "JSONDisk": JSONDisk,
        "Timeout": Timeout,
        "UNKNOWN": Constant("UNKNOWN"),
        "UnknownFileWarning": UserWarning,
    }
    package, core = ModuleType("diskcache"), ModuleType("diskcache.core")
    for module in (package, core):
        vars(module).update(names)
    vars(package).update(core=core, __path__=[], __version__="5.6.3")
    vars(package).update((name, getattr(recipes, name)) for name in recipes.__all__)
    if find_spec("django") is not None:
        vars(package).update(DjangoCache=django_cache())
    sys.modules["diskcache"] = package
    sys.modules["diskcache.core"] = core


install()

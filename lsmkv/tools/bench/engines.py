"""The engines that can be measured: lsmkv itself, and in a checkout its peers.

The peers' engines are no part of the package: ``tests/bench/lsmkv_peers`` has them.  It is looked
for in the checkout that this package is in, then in the current directory.  A process imports the
peer that it measures, and no other.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from typing import Any

import lsmkv
from lsmkv.tools.bench.leveldb import LevelDBEngine
from lsmkv.tools.bench.store import Engine

OWN = "lsmkv"
PEERS = ("plyvel", "plyvel+crc", "rocksdict", "lmdb", "sqlite3", "dbm")
"""The names that ``--against`` takes."""

_SHOWN_BY = {"sqlite3": "_sqlite3"}
"""The module to look for, where an engine's own module is there even if what it needs is not."""
_FOLDER = os.path.join("tests", "bench")
_PACKAGE = "lsmkv_peers"


class NoPeersError(lsmkv.Error):
    """A peer cannot be measured without a checkout of lsmkv, which has the peers' engines."""


def make_engine(name: str) -> Engine:
    """The engine of this name; ``ImportError`` if it is not installed."""
    if name == OWN:
        return LevelDBEngine(OWN)
    engine: Engine = _peers().ENGINES[name]()
    return engine


def module_of(name: str) -> str:
    """The module that an engine is for: plyvel+crc is plyvel.

    >>> module_of("plyvel+crc"), module_of("lmdb")
    ('plyvel', 'lmdb')
    """
    return name.partition("+")[0]


def is_installed(name: str) -> bool:
    """True if the module of an engine is installed.  It is not imported."""
    module = module_of(name)
    return importlib.util.find_spec(_SHOWN_BY.get(module, module)) is not None


def folder_of_peers() -> str:
    """The folder with the peers' engines; ``NoPeersError`` if there is none."""
    home = os.path.dirname(os.path.dirname(os.path.abspath(lsmkv.__file__)))
    for checkout in (home, os.getcwd()):
        folder = os.path.join(checkout, _FOLDER)
        if os.path.isdir(os.path.join(folder, _PACKAGE)):
            return folder
    raise NoPeersError(
        "peers are measured from a checkout of lsmkv: run this in one, with their engines in"
        f" {_FOLDER}"
    )


def _peers() -> Any:
    folder = folder_of_peers()
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module(_PACKAGE)

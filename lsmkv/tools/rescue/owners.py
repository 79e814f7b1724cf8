"""The owner of a store: by the names of its directory and of those around it, or by its keys.

=====================================  ============================================================
``Local Storage/leveldb`` and others   Chromium, what is built on it, or an Electron app
``*.indexeddb.leveldb``                the same: IndexedDB of the origin in the name
``db`` beside ``level.dat``            a world of Minecraft's Bedrock edition
``chainstate``, ``blocks/index``       Bitcoin Core
``chaindata``                          go-ethereum
=====================================  ============================================================
"""

from __future__ import annotations

import contextlib
import os
import re
import zipfile
from typing import Final, NamedTuple

from lsmkv import DB
from lsmkv.engine.indexeddb import IndexedDBComparator
from lsmkv.tools.decoded import program_of
from lsmkv.tools.foreign import open_foreign
from lsmkv.tools.rescue.finding import Found
from lsmkv.tools.text import printable

_INDEXED_DB: Final = ".indexeddb.leveldb"
_PROFILE: Final = re.compile(r"Default|Profile [0-9]+|Guest Profile|System Profile")
_BROWSERS: Final = {
    "chromium": "Chromium",
    "google-chrome": "Chrome",
    "chrome": "Chrome",
    "brave-browser": "Brave",
    "microsoft-edge": "Edge",
    "edge": "Edge",
    "vivaldi": "Vivaldi",
    "opera": "Opera",
}
_CHROMIUMS: Final = {
    "Session Storage",
    "Extension State",
    "Extension Rules",
    "Extension Scripts",
    "GCM Store",
    "Site Characteristics Database",
    "shared_proto_db",
    "Platform Notifications",
}
_CHROMIUM_ABOVE: Final = {
    "Local Extension Settings",
    "Sync Extension Settings",
    "Managed Extension Settings",
    "Sync Data",
    "Service Worker",
}
_PROGRAMS: Final = ("Chromium", "Minecraft", "Bitcoin Core", "geth")
_LONGEST_NAME: Final = 200

DELETES: Final = "it may replace a damaged database by an empty one"
WRITES: Final = "it may write to the damaged database"


class Owner(NamedTuple):
    """The program that a store belongs to."""

    program: str
    """Its name, in a sentence; "its program" if it is unknown."""
    words: str
    """A description of the store."""
    danger: str = WRITES
    """The consequence of starting the program while the store is damaged."""
    comparator: str | None = None
    """The order that such stores have, if it is not the bytewise one."""


UNKNOWN: Final = Owner("its program", "a LevelDB store of an unknown program")


def owner_of(found: Found) -> Owner:
    """The owner, by the names alone."""
    name, above = found.parts[-1], found.parts[-2] if len(found.parts) > 1 else ""
    if found.engine is not None:
        return Owner(found.engine, f"a database of {found.engine}, another engine")
    if found.is_shard_set:
        return Owner("its readers", "a shard set of lsmkv")
    if name.endswith(_INDEXED_DB):
        origin = re.sub(r"_[0-9]+$", "", name.removesuffix(_INDEXED_DB)).replace("_", "://", 1)
        return _chromium(found.parts[:-2], f"IndexedDB of {origin}", IndexedDBComparator.name)
    if (above, name) == ("Local Storage", "leveldb"):
        return _chromium(found.parts[:-2], "Local Storage")
    if name in _CHROMIUMS:
        return _chromium(found.parts[:-1], name)
    if above in _CHROMIUM_ABOVE:
        return _chromium(found.parts[:-2], f"{above}/{name}")
    if name == "db" and "level.dat" in found.siblings:
        world = _world_name(found)
        of = f" {world!r}" if world else ""
        return Owner("Minecraft", f"the world{of} of Minecraft's Bedrock edition")
    if name == "chainstate":
        return Owner("Bitcoin Core", "the chain state of Bitcoin Core")
    if (above, name) == ("blocks", "index"):
        return Owner("Bitcoin Core", "the index of blocks of Bitcoin Core")
    if name in ("chaindata", "lightchaindata") or above == "geth":
        return Owner("go-ethereum", f"{name} of go-ethereum")
    if "SHARED" in found.names:
        return Owner("the processes that share it", "a store that lsmkv shares among processes")
    return UNKNOWN


def owner_by_keys(path: str) -> Owner | None:
    """The owner of the sound store in ``path``, by its order and keys; None if unknown."""
    with DB(path, read_only=True) as db:
        found = program_of(db)
    if found is None:
        return None
    program = next((name for name in _PROGRAMS if name in found.name), UNKNOWN.program)
    danger = DELETES if program == "Chromium" else WRITES
    return Owner(program, f"{found.name}, by its keys", danger)


def _chromium(profile: tuple[str, ...], what: str, order: str | None = None) -> Owner:
    """A store in the profile of a browser, or in the folder of an Electron app."""
    name = profile[-1] if len(profile) > 1 else ""
    if _PROFILE.fullmatch(name):
        above = [part for part in profile[:-1] if part != "User Data"]
        folder = above[-1] if len(above) > 1 else ""
        program = _BROWSERS.get(folder.lower(), "the browser")
        return Owner(program, f"{what}, in {program}'s profile {name!r}", DELETES, order)
    if name and name != "storage":
        app = printable(name)
        return Owner(app, f"{what} of {app}: an Electron app, or a browser", DELETES, order)
    return Owner("the browser", f"{what} of Chromium, or of an Electron app", DELETES, order)


def _world_name(found: Found) -> str:
    """The name that the player gave to a world; empty if it cannot be read."""
    content = b""
    with contextlib.suppress(OSError, zipfile.BadZipFile, KeyError, RuntimeError):
        if found.archive is None:
            with open_foreign(os.path.join(*found.parts[:-1]), "levelname.txt") as file:
                content = file.read(_LONGEST_NAME)
        else:
            folder = found.inner.rpartition("/")[0]
            with (
                zipfile.ZipFile(found.archive) as archive,
                archive.open(f"{folder}/levelname.txt" if folder else "levelname.txt") as member,
            ):
                content = member.read(_LONGEST_NAME)
    return printable(content.decode("utf-8", "replace").strip())

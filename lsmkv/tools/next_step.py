"""The next command after a damaged store, and after a folder that holds none itself.

Messages of commands end in it (``console.py``), and ``lsmkv doctor`` names it.  Only the names in
directories are read here; ``lsmkv rescue`` reads the files.  Needs neither typer nor rich.
"""

from __future__ import annotations

import errno
import os
import shlex

from lsmkv.engine.errors import CorruptionError, NotFoundError
from lsmkv.engine.util.urls import is_url
from lsmkv.files import make_name, parse_name

_VERSIONS = "versions"
_OF_STORES = ("current", "manifest", "table", "log")
_DEPTH = 2
"""The depth of the search for stores below a folder: a browser's are one or two folders down."""
_MOST = 1000
"""Folders that are searched, at most."""


def holds_store(path: str) -> bool:
    """True if a directory holds files of a store; ``OSError`` if it cannot be listed."""
    parsed = map(parse_name, os.listdir(path))
    return any(one is not None and one.kind in _OF_STORES for one in parsed)


def is_set_directory(path: str) -> bool:
    """True if a directory is a shard set: it has versions, and no store."""
    return os.path.isdir(os.path.join(path, _VERSIONS)) and not os.path.lexists(
        os.path.join(path, make_name("current"))
    )


def stores_below(path: str) -> list[str]:
    """The stores in the folders of a directory, and in theirs.  Links are not followed."""
    found: list[str] = []
    folders, searched = [path], 0
    for _ in range(_DEPTH):
        below: list[str] = []
        for folder in folders:
            below += _folders_in(folder)
        folders = []
        for folder in below[: _MOST - searched]:
            searched += 1
            try:
                (found if holds_store(folder) else folders).append(os.path.normpath(folder))
            except OSError:
                continue
    return sorted(found)


def _folders_in(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return sorted(one.path for one in entries if one.is_dir(follow_symlinks=False))
    except OSError:
        return []


def command_line(*words: str) -> str:
    """A command, as it is typed in a shell of this system."""
    if os.name == "nt":
        return " ".join(f'"{word}"' if " " in word else word for word in words)
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    """A word for a POSIX shell, which puts the home directory in place of a first ``~``."""
    home, slash, rest = word.partition("/")
    return f"~/{shlex.quote(rest)}" if home == "~" and slash and rest else shlex.quote(word)


def rescue_command(path: str) -> str:
    """The command that gets a damaged store back."""
    return command_line("lsmkv", "rescue", path)


def next_step(error: Exception, where: str | None, command: str) -> str:
    """Return the advice that ends the message of ``error``; empty if there is none.

    ``where`` is the argument that ``command`` reads, if that is known.
    """
    if command == "rescue":
        return ""
    if isinstance(error, NotFoundError):
        return _after_not_found(_text(error.filename))
    path: str | None = None
    if isinstance(error, CorruptionError):
        path = error.path
    elif isinstance(error, OSError) and error.errno == errno.EIO:  # a bad sector
        path = _text(error.filename)
    if path is None:
        return ""
    if where is not None and (is_url(where) or is_set_directory(where)):
        return "" if command == "verify" else f"; next: {command_line('lsmkv', 'verify', where)}"
    return step_to_rescue(path)


def step_to_rescue(path: str) -> str:
    """The end of a message on damage in the store that ``path`` is in; empty if it is in none."""
    store = _store_of(path)
    return "" if store is None else f"; next: {rescue_command(store)}"


def _after_not_found(path: str | None) -> str:
    try:
        if path and holds_store(path):  # but no CURRENT
            return f"; next: {rescue_command(path)}"
    except OSError:
        return ""
    if not path:
        return ""
    below = stores_below(path)
    if not below:
        return ""
    others = f" and {len(below) - 1:,} more" if len(below) > 1 else ""
    return f"; there is one in {below[0]}{others}"


def _store_of(path: str) -> str | None:
    """The store that a path is in, or leads to: its directory."""
    folder = os.path.dirname(path)
    for place in (path, folder, os.path.dirname(folder)):  # a file may be in its lost/
        try:
            if place and holds_store(place):
                return place
        except OSError:
            continue
    return None


def _text(filename: object) -> str | None:
    return os.fsdecode(filename) if isinstance(filename, (str, bytes)) else None

"""Finds the stores below a folder or in a zip, by the names of their files.

Nothing is written.  Links to directories are not followed.  Only the members of a zip that belong
to a store are unpacked, under names of the store's own files, and never more bytes than the zip's
directory states, which are compared with the free space first.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from lsmkv.files import foreign_engine, parse_name
from lsmkv.tools.arguments import is_shard_set

ARCHIVES: Final = (".zip", ".mcworld", ".mctemplate", ".mcpack")
LOST: Final = "lost"
_DATA: Final = ("manifest", "table", "log")
_NUMBERED: Final = re.compile(r"[0-9]{6,20}\.(?:log|ldb|sst)|MANIFEST-[0-9]{6,20}")
_CHUNK: Final = 1 << 20
_TOO_LARGE: Final = "it does not fit on the disk of the new directory"


class Found(NamedTuple):
    """A directory that holds a store, or remains of one."""

    place: str
    """Its path below the searched place, with ``/``; empty for the searched place itself."""
    parts: tuple[str, ...]
    """Its absolute path, name by name; in a zip, the zip's path and that in it."""
    archive: str | None
    """The zip that it is in."""
    names: tuple[str, ...]
    """The names of the files and directories in it."""
    siblings: tuple[str, ...]
    """Those in the directory above it."""
    engine: str | None
    """The other engine whose database it is; None if it may be LevelDB's."""
    is_shard_set: bool = False

    @property
    def path(self) -> str:
        """Its path in the file system, or the zip's."""
        return os.path.join(*self.parts) if self.archive is None else self.archive

    @property
    def inner(self) -> str:
        """Its path in the zip."""
        assert self.archive is not None
        return "/".join(self.parts[len(_parts_of(self.archive)) :])


class Searched(NamedTuple):
    """The result of a search."""

    path: str
    """The absolute path that was searched: a folder, or a zip."""
    found: list[Found]
    unread: list[str]
    """Directories and zips that could not be read, each with the reason."""


def search(path: str, report: Callable[[int], None]) -> Searched:
    """Find all stores below ``path``: a folder, a zip, or a file of a store.

    ``report`` is called with the directories seen.  ``OSError`` if ``path`` cannot be read,
    ``ValueError`` if it is a file of another kind.
    """
    where = os.path.abspath(path)
    if not os.path.isdir(where):
        with open(where, "rb"):  # so that an error is about what was given
            pass
        if zipfile.is_zipfile(where):
            searched = Searched(where, [], [])
            searched.found.extend(_in_archive(where, ""))
            return searched
        if parse_name(os.path.basename(where)) is None:
            raise ValueError(f"{path} is neither a folder nor a zip")
        where = os.path.dirname(where)
    searched = Searched(where, [], [])
    _search_folder(searched, report)
    return searched


def _search_folder(searched: Searched, report: Callable[[int], None]) -> None:
    waiting: list[tuple[str, tuple[str, ...]]] = [("", _names_above(searched.path))]
    while waiting:
        place, siblings = waiting.pop()
        path = os.path.join(searched.path, *place.split("/")) if place else searched.path
        try:
            with os.scandir(path) as entries:
                inside = sorted(entries, key=lambda entry: entry.name, reverse=True)
        except OSError as error:
            if not place:
                raise
            searched.unread.append(f"{path}: {error.strerror}")
            continue
        report(1)
        names = tuple(entry.name for entry in reversed(inside))
        holder = _holder(place, _parts_of(path), None, names, siblings)
        if is_shard_set(path):
            parts = _parts_of(path)
            searched.found.append(Found(place, parts, None, names, siblings, None, True))
            continue
        if holder is not None:
            searched.found.append(holder)
            if holder.engine is not None:
                continue
        for entry in inside:
            below = f"{place}/{entry.name}" if place else entry.name
            if entry.is_dir(follow_symlinks=False):
                if holder is None or entry.name != LOST:
                    waiting.append((below, names))
            elif entry.name.lower().endswith(ARCHIVES) and entry.is_file(follow_symlinks=False):
                try:
                    searched.found.extend(_in_archive(entry.path, below))
                except OSError as error:
                    searched.unread.append(f"{entry.path}: {error.strerror}")
                except zipfile.BadZipFile as error:
                    searched.unread.append(f"{entry.path}: {error}")


def _in_archive(path: str, place: str) -> Iterator[Found]:
    with zipfile.ZipFile(path) as archive:
        folders: dict[tuple[str, ...], dict[str, None]] = {(): {}}
        for member in archive.infolist():
            parts = _safe_parts(member)
            for depth in range(len(parts or ())):
                assert parts is not None
                folders.setdefault(parts[:depth], {})[parts[depth]] = None
    for folder, names in folders.items():
        if folder[-1:] == (LOST,) and _is_store(tuple(folders[folder[:-1]])):
            continue
        above = tuple(folders[folder[:-1]]) if folder else ()
        below = "/".join([place, *folder] if place else folder)
        parts = (*_parts_of(path), *folder)
        holder = _holder(below, parts, path, tuple(names), above)
        if holder is not None:
            yield holder


def _holder(
    place: str,
    parts: tuple[str, ...],
    archive: str | None,
    names: tuple[str, ...],
    siblings: tuple[str, ...],
) -> Found | None:
    engine = foreign_engine(names)
    if not _is_store(names) and (engine is None or not {"CURRENT", "IDENTITY"} & set(names)):
        return None
    return Found(place, parts, archive, names, siblings, engine)


def _is_store(names: tuple[str, ...]) -> bool:
    return "CURRENT" in names or any(map(_NUMBERED.fullmatch, names))


def _parts_of(path: str) -> tuple[str, ...]:
    """The absolute path, name by name; the first is its root."""
    root, rest = os.path.splitdrive(path)
    return (root + os.sep, *(name for name in rest.split(os.sep) if name))


def _names_above(path: str) -> tuple[str, ...]:
    try:
        return tuple(sorted(os.listdir(os.path.dirname(path))))
    except OSError:
        return ()


# Unpacking


def unpack(found: Found, target: str, report: Callable[[int, int], None]) -> list[str]:
    """Unpack a store of a zip into the new directory ``target``; returns remarks.

    A member that is damaged is unpacked as far as it can be read.  ``report`` is called with the
    bytes done and the total.
    """
    assert found.archive is not None
    remarks: list[str] = []
    inner = tuple(found.inner.split("/")) if found.inner else ()
    with zipfile.ZipFile(found.archive) as archive:
        chosen: dict[tuple[str, ...], zipfile.ZipInfo] = {}
        for member in archive.infolist():
            parts = _safe_parts(member)
            if parts is not None and not member.is_dir() and parts[: len(inner)] == inner:
                below = parts[len(inner) :]
                if _is_stores(below):
                    chosen[below] = member
        total = sum(member.file_size for member in chosen.values())
        os.makedirs(target)
        if total > shutil.disk_usage(target).free:
            raise OSError(errno.ENOSPC, _TOO_LARGE, found.archive)
        done = 0
        for below, member in chosen.items():
            os.makedirs(os.path.join(target, *below[:-1]), exist_ok=True)
            with open(os.path.join(target, *below), "xb") as out:
                try:
                    with archive.open(member) as data:
                        left = member.file_size
                        while left > 0 and (piece := data.read(min(_CHUNK, left))):
                            out.write(piece)
                            left -= len(piece)
                            done += len(piece)
                            report(done, total)
                except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
                    remarks.append(f"{'/'.join(below)} is damaged in the zip: {error}")
                except RuntimeError:  # zipfile's, for want of a password
                    raise ValueError(f"{found.archive} is encrypted: unpack it first") from None
    return remarks


def _is_stores(below: tuple[str, ...]) -> bool:
    """True for the path of a file of a store, in its directory."""
    if len(below) == 2 and below[0] == LOST:
        below = below[1:]
    return len(below) == 1 and parse_name(below[0]) is not None


def _safe_parts(member: zipfile.ZipInfo) -> tuple[str, ...] | None:
    """The path of a member, name by name; None if it leads elsewhere, or is a link."""
    parts = tuple(member.filename.removesuffix("/").split("/"))
    odd = any(name in ("", ".", "..") or set(name) & set("\\:\0") for name in parts)
    return None if odd or stat.S_ISLNK(member.external_attr >> 16) else parts

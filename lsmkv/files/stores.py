"""The directory of a store, and the files in it."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import Protocol, Self

from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.errors import NotFoundError
from lsmkv.engine.format.filenames import CURRENT
from lsmkv.engine.format.foreign import engine_of, refuse_foreign
from lsmkv.files.names import FileKind, parse_current, parse_name
from lsmkv.files.readable import FileSource, OpenFile, Readable

_CONTENT: tuple[FileKind, ...] = ("current", "manifest", "log", "table")
_LONGEST = 64  # bytes of a CURRENT


class Folder(Protocol):
    """A directory of files; the directories of lsmkv's environments are such objects.

    >>> class Files(dict):
    ...     path = "in a dictionary"
    ...     def names(self): return list(self)
    ...     def exists(self, name): return name in self
    ...     def open(self, name): raise FileNotFoundError(name)
    ...     def close(self): ...
    >>> StoreFiles(Files({"CURRENT": b"", "000003.log": b""})).names()
    ['CURRENT', '000003.log']
    """

    @property
    def path(self) -> str:
        """Its path, for messages."""
        ...

    def names(self) -> list[str]:
        """The names in it, in no particular order."""
        ...

    def exists(self, name: str, /) -> bool:
        """Return True if it has this name."""
        ...

    def open(self, name: str, /) -> Readable:
        """One of its files.  Raises ``OSError``.  The cost depends on the object."""
        ...

    def close(self) -> None:
        """Release what it holds."""
        ...


def foreign_engine(names: Sequence[str]) -> str | None:
    """The engine that has files of these names in its directory, if it is not LevelDB: RocksDB,
    Pebble, or Riak's.

    A user's file in a store may have such a name, so a store that can be opened is not one of
    theirs.  Raises nothing.  O(names).

    >>> foreign_engine(["CURRENT", "IDENTITY", "OPTIONS-000007"])
    'RocksDB'
    >>> foreign_engine(["CURRENT", "MANIFEST-000004"]) is None
    True
    """
    return engine_of(list(names))


class Current(OpenFile):
    """CURRENT: the name of the MANIFEST in force, and a newline.

    Opening and reading raise ``OSError``.  Costs one read of 64 bytes.

    >>> with Current(b"MANIFEST-000004\\n") as current:
    ...     current.manifest
    'MANIFEST-000004'
    """

    def __init__(self, source: FileSource) -> None:
        """``source`` is a path, the bytes of CURRENT, or a :class:`Readable`."""
        super().__init__(source)

    @property
    def manifest(self) -> str | None:
        """The name of that MANIFEST; None for any other content."""
        return parse_current(self.read(0, _LONGEST)) if self.size <= _LONGEST else None


class StoreFiles:
    """The files of a store's directory, which may be damaged, or in use by a process.

    Nothing is written, and no lock is taken.  All calls raise ``OSError``; each costs one system
    call or two.

    >>> import lsmkv
    >>> env = lsmkv.MemoryEnv()
    >>> with lsmkv.DB("store", create_if_missing=True, env=env) as db:
    ...     db.put(b"k", b"v")
    >>> with StoreFiles(env.open_directory("store")) as files:
    ...     files.names(), files.manifest_in_force(), files.path
    ...     files.open("CURRENT").size, files.exists("000007.ldb")
    (['CURRENT', 'MANIFEST-000004', '000003.log'], 'MANIFEST-000004', 'store')
    (16, False)
    >>> files.close()
    """

    def __init__(self, source: str | os.PathLike[str] | Folder) -> None:
        """``source`` is the directory's path, or a :class:`Folder`."""
        self._folder: Folder
        if isinstance(source, (str, os.PathLike)):
            self._folder = LocalEnv().open_directory(os.fspath(source))
        else:
            self._folder = source

    @property
    def path(self) -> str:
        """The directory's path."""
        return self._folder.path

    def names(self) -> list[str]:
        """The files that hold a store's content: CURRENT, MANIFESTs, then logs and tables by
        number.

        :class:`~lsmkv.ForeignFormatError` for another engine's database, by the names of its files;
        :class:`~lsmkv.NotFoundError` if there is no file of a store.
        """
        names = self._folder.names()
        refuse_foreign(self.path, names)
        ours = sorted((place, name) for name in names if (place := _place(name)) is not None)
        if not ours:
            raise NotFoundError(errno.ENOENT, "no database here", self.path)
        return [name for _, name in ours]

    def exists(self, name: str) -> bool:
        """Return True if the directory has this name."""
        return self._folder.exists(name)

    def open(self, name: str) -> Readable:
        """A file of the directory, for reading; the caller closes it."""
        return self._folder.open(name)

    def manifest_in_force(self) -> str | None:
        """The name of the MANIFEST that CURRENT names; None if it names none."""
        with Current(self.open(CURRENT)) as current:
            return current.manifest

    def close(self) -> None:
        """Close the directory.  A second close has no effect."""
        self._folder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<lsmkv.files.StoreFiles {self.path!r}>"


def _place(name: str) -> tuple[int, int] | None:
    """The sort key of a file that holds content; None for any other file."""
    parsed = parse_name(name)
    if parsed is None or parsed.kind not in _CONTENT:
        return None
    return min(_CONTENT.index(parsed.kind), 2), parsed.number

"""Libraries of functions: FUNCTION LOAD keeps one, and FCALL calls what it registers.

They are records of the store, and so survive a restart, FLUSHALL and SCRIPT FLUSH.  All libraries
are in memory as well.  The record under ``LIBRARY`` alone is a number that every change raises: if
it is another one, because a change was undone or another process has written, they are read again.

A library is run when it is loaded.  What it registers comes back as text, since its interpreter may
be another process: for each function ``name flags length description``, with a blank after each of
the first three, and ``-`` as length of no description.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from lsmkv.server.encoding import LIBRARY, U32, U64, successor
from lsmkv.server.keyspace import Keyspace
from lsmkv.server.options import in_error
from lsmkv.server.quoting import split_words
from lsmkv.server.resp import CommandError
from lsmkv.server.sources import Script, sha_of

FLAGS: Final = ("no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys")
"""The flags of a function, the lowest bit first."""
_INVALID: Final = "ERR Error registering functions: invalid text"
_LONGEST_LINE: Final = 64 * 1024
"""Bytes of a first line."""
_NAME: Final = re.compile(rb"[A-Za-z0-9_]+")
_MOST_DIGITS: Final = 9
"""Digits that a number may have."""


class Function(NamedTuple):
    """A function of a library."""

    name: bytes
    flags: tuple[str, ...]
    description: bytes | None


class Library(Script):
    """A library: the script that registers its functions."""

    is_library = True

    def __init__(self, source: bytes, registered: bytes | None = None) -> None:
        """Read the first line.  Raises :class:`CommandError` if it is invalid."""
        super().__init__(sha_of(source), source)
        self.name = _name_in(source)
        self.functions: list[Function] = []
        self.registered = b""
        """The functions that it registered, as text."""
        if registered is not None:
            self.register(registered)

    def register(self, registered: bytes) -> None:
        """Take the functions that it registered.  Raises :class:`CommandError` if they are
        invalid."""
        at, self.registered = 0, registered
        self.functions = []
        while at < len(registered):
            name, at = _word(registered, at)
            bits, at = _word(registered, at)
            size, at = _word(registered, at)
            end = at if size == b"-" else at + _number(size)
            if _NAME.fullmatch(name) is None or end > len(registered):
                raise CommandError(_INVALID)
            mask = _number(bits)
            if mask >> len(FLAGS):
                raise CommandError(_INVALID)
            flags = tuple(flag for bit, flag in enumerate(FLAGS) if mask >> bit & 1)
            text = None if size == b"-" else registered[at:end]
            self.functions.append(Function(name, flags, text))
            at = end
        if len({one.name.lower() for one in self.functions}) != len(self.functions):
            raise CommandError("ERR Function already exists in the library")
        if not self.functions:
            raise CommandError("ERR No functions registered")

    def encode(self) -> bytes:
        """Its record."""
        return U32.pack(len(self.registered)) + self.registered + self.source

    @classmethod
    def decode(cls, record: bytes) -> Library:
        """The library of a record.  Raises :class:`CommandError` if there is none in it."""
        end = 4 + int.from_bytes(record[:4], "big")
        if end > len(record):
            raise CommandError("ERR Error registering functions: invalid record")
        return cls(record[end:], record[4:end])


def _word(text: bytes, at: int) -> tuple[bytes, int]:
    """The word that begins at a position, and the position after the space that ends it."""
    end = text.find(b" ", at)
    if end < 0:
        raise CommandError(_INVALID)
    return text[at:end], end + 1


def _number(word: bytes) -> int:
    if not word.isdigit() or len(word) > _MOST_DIGITS or (word[:1] == b"0" and word != b"0"):
        raise CommandError(_INVALID)
    return int(word)


def _name_in(source: bytes) -> bytes:
    """The name in the first line, ``#!lua name=NAME``."""
    if not source.startswith(b"#!"):
        raise CommandError("ERR Missing library metadata")
    line, mark, _ = source[:_LONGEST_LINE].partition(b"\n")
    try:
        words = split_words(line)
    except ValueError:
        words = []
    if not mark or not words:
        raise CommandError("ERR Invalid library metadata")
    name = None
    for word in words[1:]:
        if word[:5].lower() != b"name=":
            raise CommandError(f"ERR Invalid metadata value given: {in_error(word)}")
        if name is not None:
            raise CommandError("ERR Invalid metadata value, name argument was given multiple times")
        name = word[5:]
    if name is None:
        raise CommandError("ERR Library name was not given")
    if not _NAME.fullmatch(name):
        raise CommandError(
            "ERR Library names can only contain letters, numbers, or underscores(_) and must be at"
            " least one character long"
        )
    if words[0][2:].lower() != b"lua":
        raise CommandError(f"ERR Engine '{in_error(words[0][2:])}' not found")
    return name


class Functions:
    """The libraries of a store."""

    def __init__(self, space: Keyspace) -> None:
        self._space = space
        self._change = b""
        """The record of changes when they were read."""
        self.libraries: dict[bytes, Library] = {}
        """By their names."""
        self._functions: dict[bytes, tuple[Library, Function]] = {}
        """The functions with their libraries, by their names in lower case."""

    def __len__(self) -> int:
        """The number of functions."""
        return len(self._functions)

    @property
    def size(self) -> int:
        """The bytes of the libraries."""
        return sum(len(one.source) + len(one.registered) for one in self.libraries.values())

    def refresh(self) -> None:
        """Read the libraries, if they have changed.  One Get."""
        change = self._space.records.get(LIBRARY) or b""
        if change == self._change:
            return
        self.libraries, self._functions = {}, {}
        for name, record in self._space.records.scan(LIBRARY, successor(LIBRARY)):
            if name != LIBRARY:
                self._take(Library.decode(record))
        self._change = change

    def _take(self, library: Library) -> None:
        self.libraries[library.name] = library
        for one in library.functions:
            self._functions[one.name.lower()] = library, one

    def find(self, name: bytes) -> tuple[Library, Function] | None:
        """The function with this name, in any case, and its library."""
        self.refresh()
        return self._functions.get(name.lower())

    def replace(self, removed: set[bytes], added: list[Library]) -> None:
        """Remove libraries by their names, then add some, all or nothing.

        Raises :class:`CommandError` if two functions have the same name.
        """
        self.refresh()
        left = {name: one for name, one in self.libraries.items() if name not in removed}
        names = {name for name, (one, _) in self._functions.items() if one.name in left}
        for library in added:
            for one in library.functions:
                if one.name.lower() in names:
                    raise CommandError(f"ERR Function {one.name.decode()} already exists")
                names.add(one.name.lower())
        records = self._space.records
        for name in removed:
            records.delete(LIBRARY + name)
        for library in added:
            records.put(LIBRARY + library.name, library.encode())
        change = U64.pack(int.from_bytes(self._change, "big") + 1)
        records.put(LIBRARY, change)
        self.libraries, self._functions = {}, {}
        for library in [*left.values(), *added]:
            self._take(library)
        self._change = change

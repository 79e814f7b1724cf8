"""The sources of scripts, by their SHA-1.

They are records of the store, and so survive a restart.  ``SCRIPT LOAD`` keeps a script until
``SCRIPT FLUSH``; of those that only came with ``EVAL`` the last 500 are kept, as in Redis 7.4:
programs that put values into the text of a script would otherwise fill the store.
"""

from __future__ import annotations

import hashlib
from typing import Final

from lsmkv.server.encoding import SCRIPT, successor
from lsmkv.server.keyspace import Keyspace
from lsmkv.server.resp import CommandError

MOST_EVALUATED: Final = 500
_MOST_IN_MEMORY: Final = 10_000
_LOADED: Final = b"l"
_EVALUATED: Final = b"e"
_PARSED_FLAGS: Final = {
    b"no-writes": "readonly",
    b"allow-oom": "",
    b"allow-stale": "",
    b"no-cluster": "",
    b"allow-cross-slot-keys": "",
}


class Script:
    """A script."""

    is_library: bool = False

    def __init__(self, sha: bytes, source: bytes) -> None:
        self.sha = sha
        """40 hexadecimal digits."""
        self.source = source
        self.only_reads = False
        """True if its first line says ``flags=no-writes``."""

    @property
    def body(self) -> bytes:
        """The compiled text: the source without ``#!lua``, and with the same line numbers."""
        if not self.source.startswith(b"#!"):
            return self.source
        return b"\n" + self.source.partition(b"\n")[2]

    def parse_first_line(self) -> None:
        """Read a first line that begins with ``#!``.  Raises :class:`CommandError`."""
        if not self.source.startswith(b"#!"):
            return
        line, mark, _ = self.source.partition(b"\n")
        if not mark:
            raise CommandError("ERR Invalid script shebang")
        engine, *options = line.split()
        if engine != b"#!lua":
            raise CommandError(f"ERR Unexpected engine in script shebang: {_shown(engine)}")
        for option in options:
            name, _, value = option.partition(b"=")
            if name != b"flags":
                raise CommandError(f"ERR Unknown lua shebang option: {_shown(option)}")
            for flag in filter(None, value.split(b",")):
                if flag not in _PARSED_FLAGS:
                    raise CommandError(f"ERR Unexpected flag in script shebang: {_shown(flag)}")
                if _PARSED_FLAGS[flag]:
                    self.only_reads = True


def sha_of(source: bytes) -> bytes:
    """The SHA-1 of a script, in hexadecimal digits."""
    return hashlib.sha1(source, usedforsecurity=False).hexdigest().encode()


def _shown(word: bytes) -> str:
    return word.decode("utf-8", "surrogateescape")


class Sources:
    """The scripts of a store.  Those that were used are in memory as well."""

    def __init__(self, space: Keyspace) -> None:
        self._space = space
        self._scripts: dict[bytes, Script] = {}
        self._evaluated: dict[bytes, None] | None = None
        """The SHA-1 of scripts that came with EVAL, oldest first; None until they are looked up."""

    def __len__(self) -> int:
        """The number of scripts in memory."""
        return len(self._scripts)

    @property
    def size(self) -> int:
        """The bytes of the scripts in memory."""
        return sum(len(one.source) for one in self._scripts.values())

    def find(self, sha: bytes) -> Script | None:
        """The script with this SHA-1 in hexadecimal digits, or None.  At most one Get."""
        script = self._scripts.get(sha)
        if script is not None:
            return script
        if len(sha) != 40:
            return None
        sha = sha.lower()
        script = self._scripts.get(sha)
        if script is None:
            stored = self._space.records.get(SCRIPT + sha)
            if stored is None:
                return None
            script = self._scripts[sha] = self._new(sha, stored[1:])
        return script

    def of_source(self, source: bytes) -> Script:
        """The script with this source, which may be new.  Raises :class:`CommandError` for an
        invalid first line."""
        sha = sha_of(source)
        return self.find(sha) or self._new(sha, source)

    def _new(self, sha: bytes, source: bytes) -> Script:
        script = Script(sha, source)
        script.parse_first_line()
        return script

    def has(self, script: Script) -> bool:
        """True if a script is known."""
        return script.sha in self._scripts

    def add(self, script: Script, loaded: bool) -> None:
        """Keep a script that compiles.  A store that takes no writes does not store it."""
        sha, space = script.sha, self._space
        self._scripts[sha] = script
        if len(self._scripts) > _MOST_IN_MEMORY:
            del self._scripts[next(iter(self._scripts))]
        if not space.writable or space.failing:
            return
        stored = space.records.get(SCRIPT + sha)
        if stored is not None and (stored[:1] == _LOADED or not loaded):
            return
        evaluated = self._evaluated
        if evaluated is None:
            evaluated = self._evaluated = self._stored_evaluated()
        if loaded:
            evaluated.pop(sha, None)
        elif sha not in evaluated:
            evaluated[sha] = None
            if len(evaluated) > MOST_EVALUATED:
                self._forget(next(iter(evaluated)))
        mark = _LOADED if loaded else _EVALUATED
        space.records.put(SCRIPT + sha, mark + script.source)
        space.keep()

    def _stored_evaluated(self) -> dict[bytes, None]:
        found = self._space.records.scan(SCRIPT, successor(SCRIPT))
        return {name[len(SCRIPT) :]: None for name, record in found if record[:1] == _EVALUATED}

    def _forget(self, sha: bytes) -> None:
        assert self._evaluated is not None
        del self._evaluated[sha]
        self._scripts.pop(sha, None)
        self._space.records.delete(SCRIPT + sha)

    def clear(self) -> None:
        """Remove all scripts."""
        space = self._space
        if space.writable:
            for name, _ in list(space.records.scan(SCRIPT, successor(SCRIPT))):
                space.records.delete(name)
        self._scripts.clear()
        self._evaluated = None

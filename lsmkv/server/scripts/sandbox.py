"""A Lua interpreter for scripts, and how values pass to it and back.

Lua runs in the process.  ``lua/sandbox.lua`` has what a script can reach; no Python object is
among it.  A script gets copies of values, and calls functions of Lua, which call the methods below.
These never raise: an exception would reach the script as an object.

Memory is bounded by Lua's allocator.  If it refused memory while lupa passes a value to Lua,
outside of any Lua function, the process would end.  So there is always room for what is passed: a
value without room ends the script.
"""

from __future__ import annotations

import hashlib
import importlib.resources
from time import perf_counter
from typing import Any, Final, Protocol

from lsmkv.server.resp import (
    NULL_ARRAY,
    ByKey,
    CommandError,
    Encoded,
    Members,
    Pairs,
    Push,
    Reply,
    Simple,
    Verbatim,
    format_double,
)
from lsmkv.server.scripts.frames import with_frames

_RESERVE: Final = 256 * 1024
"""Bytes that lupa and the sandbox may need for a call, apart from its values."""
_EACH: Final = 96
"""Bytes for a value in a table, apart from its own."""
_FEW: Final = 200
"""Values that are passed as arguments; the stack of Lua has room for some thousands."""
_MOST: Final = 2.0**63
_STATUS: Final = 1
_ERROR: Final = 2
_NULL: Final = 3
_NO_MEMORY: Final = 3
_STOP: Final = 4
_LOOK: Final = 5
_CHUNKS: Final = (
    "bit",
    "bytecode",
    "cjson",
    "cmsgpack",
    "ieee",
    "patterns",
    "replies",
    "struct",
    "tables",
)
_STEPS: Final = 5000
"""Instructions between two looks at the time; as in ``sandbox.lua``."""
_FEW_STEPS: Final = 20
"""Those after a look that came late."""
_LATE: Final = 0.05
"""Seconds."""
_MUCH: Final = 4 << 20
"""Bytes in Lua of which one copy takes a millisecond.  With more, the looks are more frequent."""
_LONGEST: Final = 512 << 10
"""Bytes of a script: its tokens are counted in the loop's thread."""
_GARBAGE: Final = 16 << 20
"""Bytes that may be left to Lua's own collector, which needs no pause."""
_LARGE: Final = 1 << 20
"""Bytes of a value after which the memory is looked at."""
_NEEDED = (
    "ERR scripts need lupa, which is not installed: pip install lupa, or '.[server]' in lsmkv's"
    " checkout ({error})"
)


class Stopped(Exception):
    """The script must end: a command is not run."""


class Commands(Protocol):
    """Runs the commands of a script."""

    def run(self, words: list[bytes]) -> Reply:
        """Run a command.  Raises :class:`CommandError` or :class:`Stopped`."""

    def must_stop(self) -> bool:
        """True if the script must end."""

    def set_resp3(self, resp3: bool) -> None:
        """Choose the version of RESP in which replies come."""

    @property
    def resp3(self) -> bool:
        """True if replies come in RESP3."""

    def log(self, level: int, text: bytes) -> None:
        """Log a message of a script."""

    def permits(self, words: list[bytes]) -> bool | None:
        """True if a command may run; None if there is no such command."""


class ScriptError(Exception):
    """A script has ended with an error: its text, which ends with the place."""


class OutOfMemory(ScriptError):
    """A script has needed more memory than it may have."""


class Sandbox:
    """An interpreter."""

    def __init__(self, commands: Commands, version: str) -> None:
        """Start an interpreter.  Raises :class:`CommandError` if lupa is not installed."""
        try:
            from lupa.lua51 import LuaRuntime  # noqa: PLC0415 - needed for scripts alone
        except ImportError as error:
            raise CommandError(_NEEDED.format(error=error)) from None
        self._commands = commands
        self._limit = 0
        """The bytes that Lua may have during this script."""
        self._exhausted = False
        """True if a script has exceeded the memory limit."""
        self._failure: BaseException | None = None
        """The exception that a method below has raised."""
        self._looked = 0.0
        """The time at which :meth:`_must_stop` last asked, by ``perf_counter``."""
        self._steps = _STEPS
        self._lua: Any = LuaRuntime(
            encoding=None,
            attribute_filter=_refuse,
            register_eval=False,
            register_builtins=False,
            unpack_returned_tuples=True,
            max_memory=0,
        )
        chunks = {name.encode(): self._load(name, "=library") for name in _CHUNKS}
        major, minor, patch = [int(one) for one in version.split(".")]
        functions = self._load("sandbox", "=sandbox")(
            self._command,
            self._must_stop,
            self._sha1,
            self._log,
            self._permits,
            version.encode(),
            _LONGEST,
            major << 16 | minor << 8 | patch,
            self._lua.table_from(chunks),
        )
        self._run: Any = functions[0]
        self._run_with: Any = functions[1]
        self._compile: Any = functions[2]
        self._clean: Any = functions[3]
        self._set_step: Any = functions[4]
        self._choose: Any = functions[5]
        self._usual = self.memory
        """The bytes that it has without scripts."""

    def _load(self, name: str, chunk: str) -> Any:
        path = importlib.resources.files("lsmkv.server.scripts").joinpath("lua", f"{name}.lua")
        return self._lua.compile(path.read_bytes(), name=chunk)

    @property
    def memory(self) -> int:
        """The bytes that Lua has."""
        used: int = self._lua.get_memory_used(total=True)
        return used

    def compile(self, source: bytes, is_library: bool = False) -> Any:
        """Compile a script, or a library of functions.  Raises :class:`ScriptError` with what is
        wrong."""
        self._lua.set_max_memory(0)  # nothing that comes from here may lack memory
        if len(source) <= _LONGEST:
            source = with_frames(source)
        compiled: tuple[Any, bytes | None] = self._compile(source, is_library)
        if compiled[0] is None:
            raise ScriptError(_text(compiled[1]))
        return compiled[0]

    def run(
        self,
        function: Any,
        keys: list[bytes],
        arguments: list[bytes],
        resp3: bool,
        memory: int,
        called: bytes | None = None,
    ) -> Reply:
        """Run a compiled script, with at most ``memory`` bytes for itself.

        If it is a library, its function ``called`` runs; or, if that is empty, the library itself,
        which then returns what it registers.

        Returns its reply, in RESP3 or RESP2.  Raises :class:`ScriptError`, and
        :class:`OutOfMemory` if that is the cause.
        """
        lua = self._lua
        size = _RESERVE
        for word in keys:
            size += len(word) + _EACH
        for word in arguments:
            size += len(word) + _EACH
        used = lua.get_memory_used(total=True)
        if used > self._usual + max(memory // 2, _GARBAGE):
            lua.gccollect()
            used = lua.get_memory_used(total=True)
        if called is not None:
            self._choose(called)
        self._limit = used + size + memory
        self._exhausted = False
        self._steps, self._looked = _STEPS, perf_counter()
        if size > _MUCH:
            self._steps = _FEW_STEPS
            self._set_step(_FEW_STEPS)
        lua.set_max_memory(self._limit, total=True)
        try:
            if len(keys) + len(arguments) <= _FEW:
                found = self._run(function, resp3, len(keys), *keys, *arguments)
            else:
                tables = lua.table_from(keys), lua.table_from(arguments)
                found = self._run_with(function, resp3, *tables)
        except Exception as error:  # lupa's: there was no memory outside of the script
            text = str(error) or "not enough memory"
            found = (f"ERR {text}".encode("utf-8", "surrogateescape"), _ERROR)
            lua.set_max_memory(0)
            self._clean()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if self._exhausted or (type(found) is tuple and found[1] == _NO_MEMORY):
            raise OutOfMemory("ERR not enough memory")
        return _reply(found)

    # Called from Lua

    def _command(self, *words: Any) -> Any:
        try:
            if self._lacks(0):
                return None, _STOP
            first = words[0]
            if type(first) is bool:
                self._commands.set_resp3(first)
                return None
            if type(first) is not bytes:  # a table of more words than Lua passes as arguments
                words = tuple(first[at] for at in range(1, len(first) + 1))
            reply = self._commands.run(list(words))
            kind = type(reply)
            if kind is int:
                return reply
            if kind is bytes:
                if self._lacks(len(reply)):
                    return None, _STOP
                return reply if len(reply) < _LARGE else (reply, _LOOK)
            if self._lacks(_size_of(reply)):
                return None, _STOP
            return self._to_lua(reply)
        except CommandError as problem:
            return str(problem).encode("utf-8", "surrogateescape"), _ERROR
        except Stopped:
            return None, _STOP
        except BaseException as problem:
            self._failure = problem
            return None, _STOP

    def _must_stop(self) -> bool | int:
        """Return True if the script must end; otherwise False, or the number of instructions until
        the next question if that changes."""
        try:
            if self._failure is not None or self._exhausted or self._commands.must_stop():
                return True
            now = perf_counter()
            steps = _FEW_STEPS
            if now - self._looked < _LATE:
                used = self._lua.get_memory_used(total=True) - self._usual
                steps = _STEPS if used < _MUCH else _STEPS >> (used // _MUCH).bit_length()
            self._looked = now
            if steps == self._steps:
                return False
            self._steps = steps
            return steps
        except BaseException as problem:
            self._failure = problem
            return True

    def _sha1(self, text: bytes) -> Any:
        try:
            self._lacks(0)
            return hashlib.sha1(text, usedforsecurity=False).hexdigest().encode()
        except BaseException as problem:
            self._failure = problem
            return b""

    def _log(self, level: int, text: bytes) -> None:
        try:
            self._commands.log(level, text)
        except BaseException as problem:
            self._failure = problem

    def _permits(self, *words: bytes) -> bool | None:
        try:
            return self._commands.permits(list(words))
        except BaseException as problem:
            self._failure = problem
            return False

    def _lacks(self, size: int) -> bool:
        """True if Lua has no room for a value.  Then the script ends, and the limit is raised to
        cover that."""
        used = self._lua.get_memory_used(total=True)
        if used + size + _RESERVE <= self._limit:
            return False
        self._exhausted = True
        self._lua.set_max_memory(used + 2 * _RESERVE, total=True)
        return True

    # Replies, to Lua

    def _to_lua(self, reply: Reply) -> Any:
        """A reply as what Lua gets: a value, or a value and what it is."""
        if isinstance(reply, CommandError):
            return str(reply).encode("utf-8", "surrogateescape"), _ERROR
        if isinstance(reply, Simple):
            return reply.encode(), _STATUS
        if type(reply) is Encoded:
            return bytes(reply)[1:-2], _STATUS
        resp3 = self._commands.resp3
        if reply is None or reply is NULL_ARRAY:
            return (None, _NULL) if resp3 else False
        return self._value(reply, resp3)

    def _value(self, reply: Reply, resp3: bool) -> Any:
        """A value that may stand in a table."""
        kind = type(reply)
        if kind is bytes or kind is int:
            return reply
        if reply is None or reply is NULL_ARRAY:
            return None if resp3 else False
        table = self._lua.table_from
        if kind is list or kind is tuple or kind is Push:
            return table([self._value(one, resp3) for one in reply])
        if kind is bool:
            return reply if resp3 else int(reply)
        if kind is float:
            return table({b"double": reply}) if resp3 else format_double(reply)
        if kind is Members:
            if not resp3:
                return table([self._value(one, resp3) for one in reply])
            return table({b"set": table({self._value(one, resp3): True for one in reply})})
        if kind is dict:
            if not resp3:
                flat = [part for pair in reply.items() for part in pair]
                return table([self._value(one, resp3) for one in flat])
            pairs = {
                self._value(key, resp3): self._value(value, resp3) for key, value in reply.items()
            }
            return table({b"map": table(pairs)})
        if kind is ByKey:
            if resp3:
                pairs = {self._value(key, True): self._value(value, True) for key, value in reply}
                return table({b"map": table(pairs)})
            return table([self._value(list(pair), False) for pair in reply])
        if kind is Pairs:
            if resp3:
                return table([self._value(list(pair), resp3) for pair in reply])
            return table([self._value(one, resp3) for pair in reply for one in pair])
        if kind is Verbatim:
            if not resp3:
                return bytes(reply)
            parts = {b"string": bytes(reply), b"format": b"txt"}
            return table({b"verbatim_string": table(parts)})
        if isinstance(reply, Simple):
            return table({b"ok": reply.encode()})
        if kind is Encoded:
            return table({b"ok": bytes(reply)[1:-2]})
        if isinstance(reply, CommandError):
            return table({b"err": str(reply).encode("utf-8", "surrogateescape")})
        raise TypeError(f"no reply: {reply!r}")


def _refuse(*unused: object) -> str:
    """lupa's filter of attributes: no script may look at a Python object."""
    raise AttributeError("scripts have no access to Python")


def _size_of(reply: Reply) -> int:
    """An upper bound for the bytes that a reply takes in Lua."""
    kind = type(reply)
    if kind is bytes or kind is Encoded or kind is Verbatim:
        return _EACH + len(reply)
    if kind is list or kind is tuple or kind is Members or kind is Push:
        size = 4 * _EACH
        for one in reply:
            size += _EACH + (len(one) if type(one) is bytes else _size_of(one))
        return size
    if kind is dict:
        return 4 * _EACH + sum(
            2 * _EACH + _size_of(key) + _size_of(value) for key, value in reply.items()
        )
    if kind is Pairs or kind is ByKey:
        return 4 * _EACH + sum(4 * _EACH + _size_of(one) + _size_of(other) for one, other in reply)
    if isinstance(reply, str):
        return 4 * _EACH + 4 * len(reply)
    if isinstance(reply, CommandError):
        return 4 * _EACH + 4 * len(str(reply))
    return 4 * _EACH


def _reply(found: Any) -> Reply:
    """The reply that a script has returned, as the sandbox passes it on."""
    if found is None or found is False:
        return None
    if found is True:
        return 1
    kind = type(found)
    if kind is bytes:
        return found
    if kind is int:
        return found
    if kind is float:
        return int(found) if -_MOST <= found < _MOST else -(2**63)
    if found[1] == 1:
        return Encoded(found[0])
    text = _text(found[0])
    if len(found) > 2 and found[2] is not None:
        raise ScriptError(text, _text(found[2]))
    raise ScriptError(text)


def _text(value: Any) -> str:
    return bytes(value).decode("utf-8", "surrogateescape")

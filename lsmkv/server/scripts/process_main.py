"""The process that scripts run in: an interpreter of Lua whose commands the server runs.

``process.py`` is the server's end, and describes the messages.  The process imports little, so that
it starts fast.  It has no descriptor but its socket, and may open no file, start no process and
take no more memory than its scripts may have.  It ends when the server does, even if the server is
killed while a script runs.
"""

from __future__ import annotations

import pickle
from typing import Any, Final

from lsmkv.server.resp import CommandError, Reply, encode
from lsmkv.server.scripts.sandbox import Sandbox, ScriptError
from lsmkv.shared.system.attached import connection, give_up, leave

NO_MEMORY: Final = 65
"""The status with which the process ends if there is no memory, apart from Lua's."""


_OF_SCRIPTS: Final = 4
"""Arguments of a message that runs a script; for a library there is one more."""


class _Server:
    """The server, which runs the commands of a script."""

    def __init__(self) -> None:
        self._connection, self._input = connection()
        self.resp3 = False

    def receive(self) -> Any:
        """The server's next message.  Raises ``EOFError``."""
        return pickle.load(self._input)

    def send(self, *words: bytes) -> None:
        """Send a message."""
        self._connection.sendall(encode(words))

    def run(self, words: list[bytes]) -> Reply:
        """Run a command.  Raises :class:`CommandError`."""
        self.send(b"call", *words)
        reply = self.receive()
        if isinstance(reply, CommandError):
            raise reply
        return reply

    def must_stop(self) -> bool:
        """Return False: the server ends the process instead of stopping a script."""
        return False

    def set_resp3(self, resp3: bool) -> None:
        """Choose the version of RESP in which replies come."""
        self.resp3 = resp3
        self.send(b"resp3", b"%d" % resp3)

    def log(self, level: int, text: bytes) -> None:
        """Log a message of a script."""
        self.send(b"log", b"%d" % level, text)

    def permits(self, words: list[bytes]) -> bool | None:
        """True if the caller's user may run a command; None if there is no such command."""
        self.send(b"permits", *words)
        permitted: bool | None = self.receive()
        return permitted


class _Host:
    """Carries out the server's requests."""

    def __init__(self, server: _Server) -> None:
        """Start the interpreter."""
        self._server = server
        self._scripts: dict[bytes, Any] = {}
        self._sandbox: Sandbox | None = None
        self._problem = b""
        version, memory = server.receive()
        try:
            self._sandbox = Sandbox(server, version)
        except CommandError as error:
            self._problem = _encoded(str(error))
        give_up(2 * memory)  # of Lua, and of what passes between it and the server

    def serve(self) -> None:
        """Run scripts, one after the other."""
        while True:
            verb, sha, source, *arguments = self._server.receive()
            is_library = len(arguments) > _OF_SCRIPTS
            if (source is None or self._compiles(sha, source, is_library)) and verb == "run":
                self._run(sha, *arguments)

    def _compiles(self, sha: bytes, source: bytes, is_library: bool) -> bool:
        if self._sandbox is None:
            self._server.send(b"failed", self._problem)
            return False
        try:
            self._scripts[sha] = self._sandbox.compile(source, is_library)
        except ScriptError as error:
            self._server.send(b"refused", _encoded(str(error)))
            return False
        self._server.send(b"compiled")
        return True

    def _run(
        self,
        sha: bytes,
        keys: list[bytes],
        arguments: list[bytes],
        resp3: bool,
        memory: int,
        called: bytes | None = None,
    ) -> None:
        sandbox, server = self._sandbox, self._server
        assert sandbox is not None
        server.resp3 = False
        try:
            reply = sandbox.run(self._scripts[sha], keys, arguments, resp3, memory, called)
        except ScriptError as error:
            server.send(b"failed", *map(_encoded, error.args))
        else:
            server.send(b"done", encode(reply, resp3), b"%d" % sandbox.memory)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def main() -> None:
    """Run scripts until the server closes the connection, or ends."""
    status = 1
    try:
        _Host(_Server()).serve()
    except MemoryError:
        status = NO_MEMORY
    except (EOFError, OSError):
        status = 0
    finally:
        leave(status)

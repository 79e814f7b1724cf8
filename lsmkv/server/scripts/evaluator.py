"""Runs scripts: short ones in the loop, and longer ones in a thread while the loop continues.

A script is atomic.  It begins in the loop's thread, where most end within microseconds.  One that
takes longer than ``IN_LOOP`` is stopped there, all that it did is undone, and it begins again in a
separate thread.  Nobody has seen the first attempt: its writes are not in the store, its
messages are held back, and no other command has run.  Until the script ends, the loop runs no
command, so that the thread has the keyspace to itself, and no tick is written.  The other clients
wait; after ``lua-time-limit`` they are answered with BUSY.

Writes before an error stay, as in Redis.  They become part of the record of the tick in which the
script ends.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from typing import Final

from lsmkv.engine.errors import Error
from lsmkv.server.admission import denied
from lsmkv.server.command import Command
from lsmkv.server.info import REDIS_VERSION
from lsmkv.server.resp import (
    NO_REPLY,
    CommandError,
    Encoded,
    Reply,
    busy_error,
    full_error,
    read_only_error,
)
from lsmkv.server.scripts.sandbox import OutOfMemory, Sandbox, ScriptError, Stopped
from lsmkv.server.session import Evaluation, Scripts, Service, Session
from lsmkv.server.sources import Script

_log = logging.getLogger("lsmkv.server.scripts")
IN_LOOP: Final = 0.02
"""Seconds that a script may take in the loop's thread."""
_MEMORY_IN_LOOP: Final = 4 << 20
"""Bytes that it may have there, so that no step of it takes long."""
LOADING: Final = 0.5
"""Seconds that a library may take to register its functions, all of them in the loop's thread."""
GARBAGE: Final = 16 << 20
"""Bytes that an interpreter may have besides those of a script."""
_LEVELS: Final = (logging.DEBUG, logging.DEBUG, logging.INFO, logging.WARNING)
MOST_COMPILED: Final = 1000
"""Scripts that are kept compiled."""
_DENIED: Final = {
    "command": "can't run this command or subcommand",
    "key": "can't access at least one of the keys mentioned in the command arguments",
    "channel": "can't publish to the channel mentioned in the command",
}
_SHUTTING_DOWN: Final = "ERR The server is shutting down, and the script was ended"


class Evaluator(Scripts):
    """Runs the scripts of a server, one after the other, in this process."""

    undoes: bool = False
    """True if the writes of a killed script are undone; otherwise a script that wrote is not
    killed."""

    def __init__(self, service: Service) -> None:
        super().__init__()
        self._service = service
        self._space = service.space
        self._session = Session(service, 0, "lua")
        """The client that commands of scripts come from."""
        self._session.of_scripts = True
        self._session.running = True  # so that none of them blocks
        self._sandbox: Sandbox | None = None
        self._compiled: dict[bytes, object] = {}
        self._now: Evaluation | None = None
        """The script that runs, in any thread."""
        self._ended: asyncio.Event | None = None

    @property
    def memory(self) -> int:
        """The bytes that the interpreter has; 0 while it runs."""
        return 0 if self._sandbox is None or self._now is not None else self._sandbox.memory

    def forget(self) -> None:
        """Forget all compiled scripts, and start with a new interpreter."""
        if self._now is None:
            self._compiled.clear()
            self._sandbox = None

    def _compile(self, script: Script) -> object:
        """Compile a script, unless it is.  Raises :class:`CommandError` if it is invalid."""
        function = self._compiled.get(script.sha)
        if function is None:
            if self._sandbox is None:
                self._sandbox = Sandbox(self, REDIS_VERSION)
            try:
                function = self._sandbox.compile(script.body, script.is_library)
            except ScriptError as error:
                raise invalid(script, str(error)) from None
            if len(self._compiled) >= MOST_COMPILED:
                del self._compiled[next(iter(self._compiled))]
            self._compiled[script.sha] = function
        return function

    def evaluate(self, evaluation: Evaluation) -> Reply:
        script = evaluation.script
        self._check_allowed(script)
        if self.memory > self._service.settings.script_memory + GARBAGE:
            self.forget()  # libraries have kept too much
        self._compile(script)
        self._keep_source(evaluation)
        if evaluation.only_loads:
            return script.sha
        seconds = LOADING if evaluation.registers else IN_LOOP
        evaluation.deadline = time.perf_counter() + seconds  # its compilation may have started Lua
        reply = self._attempt(evaluation)
        if not evaluation.late or evaluation.registers:
            return self._done(evaluation, reply)
        self._undo(evaluation)
        evaluation.deadline = math.inf
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # there is no loop that could continue
            return self._done(evaluation, self._attempt(evaluation))
        if not evaluation.session.running:
            self._service.commit()  # what came before is written and answered now
        self._leave_loop(evaluation, loop)
        return NO_REPLY

    def _check_allowed(self, script: Script) -> None:
        """Raise :class:`CommandError` for a script that may not run."""
        allowed, sha = self._service.settings.scripts.allowed, script.sha
        if allowed is not None and sha not in allowed:
            reason = f"the list lacks {sha.decode()}" if allowed else "they are off"
            raise CommandError(f"NOPERM This server refuses scripts (--scripts): {reason}")

    def _keep_source(self, evaluation: Evaluation) -> None:
        """Keep the source of a script that compiles."""
        sources = self._service.sources
        if evaluation.script.is_library:
            return
        if evaluation.only_loads or not sources.has(evaluation.script):
            sources.add(evaluation.script, loaded=evaluation.only_loads)

    def _done(self, evaluation: Evaluation, reply: Reply) -> Reply:
        self._tell(evaluation)
        self._note_error(self._command(evaluation), reply)
        return reply

    def _note_error(self, found: Command, reply: Reply) -> None:
        """Count the error that a script has ended with, or has returned."""
        if isinstance(reply, Encoded) and reply[:1] == b"-":
            reply = CommandError(reply[1:].decode("utf-8", "replace"))
        if isinstance(reply, CommandError):
            found.failed += 1
            self._service.errors.note(str(reply))

    def _command(self, evaluation: Evaluation) -> Command:
        """The command that runs a script: EVAL or a variant of it."""
        found = self._service.command_of(evaluation.request)
        assert found is not None
        return found

    def _begin(self, evaluation: Evaluation) -> None:
        """Prepare the commands of a script."""
        session = self._session
        session.database = evaluation.session.database
        session.resp3 = False
        session.user, session.limited = evaluation.session.user, evaluation.session.limited
        evaluation.ready = len(self._space.ready)
        self._service.deferred = []
        self._now = evaluation

    def _undo(self, evaluation: Evaluation) -> None:
        """Undo what a script has done since :meth:`_begin`."""
        self._space.undo()
        del self._space.ready[evaluation.ready :]
        self._service.deferred = None
        evaluation.late = evaluation.wrote = False
        evaluation.lines.clear()
        evaluation.shown.clear()

    def _attempt(self, evaluation: Evaluation) -> Reply:
        """Run a script in this thread.  Errors are replies."""
        assert self._sandbox is not None
        self._begin(evaluation)
        memory = self._service.settings.script_memory
        if evaluation.deadline < math.inf and not evaluation.registers:
            memory = min(memory, _MEMORY_IN_LOOP)
        try:
            return self._sandbox.run(
                self._compile(evaluation.script),
                evaluation.keys,
                evaluation.arguments,
                evaluation.session.resp3,
                memory,
                evaluation.function,
            )
        except ScriptError as error:
            if type(error) is OutOfMemory and memory < self._service.settings.script_memory:
                evaluation.late = True
            return self._error(evaluation, error)
        except BaseException:  # an error in the server itself: as in any command, nothing stays
            self._undo(evaluation)
            raise
        finally:
            self._now = None

    def _error(self, evaluation: Evaluation, error: ScriptError) -> CommandError:
        """The reply of a script that has ended with an error."""
        text = str(error.args[0])
        if evaluation.registers:
            return unregistered("ERR FUNCTION LOAD timeout" if evaluation.late else text)
        if evaluation.killed and not evaluation.abandoned and not self.undoes:
            self.killed += 1
            text = "ERR Script killed by user with SCRIPT KILL..."
        if len(error.args) > 1:
            text = f"{text} script: {evaluation.name}, on {error.args[1]}."
        return CommandError(text)

    def _tell(self, evaluation: Evaluation) -> None:
        """Send the messages of a script that has ended, and show its commands."""
        service = self._service
        messages, service.deferred = service.deferred, None
        if messages:
            executing = service.executing
            service.executing = executing or evaluation.wrote
            for session, message in messages:
                session.push(message)
            service.executing = executing
        for level, text in evaluation.lines:
            write_line(level, text)
        if evaluation.shown and service.monitors:
            for found, request in evaluation.shown:
                service.show(self._session, found, request)

    # In a thread

    def _leave_loop(self, evaluation: Evaluation, loop: asyncio.AbstractEventLoop) -> None:
        """Continue in a thread, in the next tick: this command has to return first."""
        service = self._service
        evaluation.in_thread = evaluation.session.evaluating = True
        service.begin_busy(evaluation)
        self._ended = asyncio.Event()
        limit = service.settings.script_time_limit
        if limit:
            loop.call_later(limit / 1000, self._pass_limit, evaluation)
        service.schedule(lambda: self._start(evaluation, loop))

    def _start(self, evaluation: Evaluation, loop: asyncio.AbstractEventLoop) -> None:
        def run() -> None:
            reply: Reply
            try:
                reply = self._attempt(evaluation)
            except Exception:
                _log.exception("a script failed")
                reply = CommandError("ERR internal error: the server's log has the details")
            try:
                loop.call_soon_threadsafe(self._end, evaluation, reply)
            except RuntimeError:
                pass  # the loop was closed before the script could be ended

        threading.Thread(target=run, name="lsmkv script", daemon=True).start()

    def _pass_limit(self, evaluation: Evaluation) -> None:
        if self._service.busy is evaluation:
            evaluation.over_limit = True
            _log.warning(
                "the script %s has run for %d ms: other clients are answered with BUSY; %s"
                " KILL ends %s",
                evaluation.name,
                self._service.settings.script_time_limit,
                "FUNCTION" if evaluation.script.is_library else "SCRIPT",
                "it" if self.undoes else "a script that has not written",
            )
            self._service.release_held_back()

    def _end(self, evaluation: Evaluation, reply: Reply) -> None:
        """Finish a script that has ended in a thread."""
        if self._ended is not None:
            self._ended.set()
        seconds = time.perf_counter() - evaluation.started
        service, found = self._service, self._command(evaluation)
        if evaluation.abandoned:
            reply = CommandError(_SHUTTING_DOWN)
            service.deferred = None
        else:
            self._tell(evaluation)
        found.add_time(int(seconds * 1e9))
        self._note_error(found, reply)
        if seconds * 1e6 >= service.slow.threshold >= 0:
            session = evaluation.session
            service.slow.add(evaluation.request, seconds, session.address, session.name)
        service.end_busy(evaluation, reply)

    async def abandon(self) -> None:
        """End the script that runs in a thread, and drop what it wrote: the server ends."""
        evaluation = self._service.busy
        if evaluation is not None and self._ended is not None:
            evaluation.abandoned = True
            self._stop(evaluation)
            try:
                await asyncio.wait_for(self._ended.wait(), 10)
            except TimeoutError:
                _log.error("a script could not be ended")

    def kill(self, function: bool = False) -> None:
        """SCRIPT KILL, or FUNCTION KILL.  Raises :class:`CommandError` if there is nothing that it
        can end."""
        evaluation = self._service.busy
        if evaluation is None:
            raise CommandError("NOTBUSY No scripts in execution right now.")
        if evaluation.wrote and not self.undoes:
            raise CommandError(
                "UNKILLABLE Sorry the script already executed write commands against the dataset."
                " You can either wait the script termination or kill the server in a hard way using"
                " the SHUTDOWN NOSAVE command."
            )
        if evaluation.script.is_library != function:
            raise busy_error(evaluation.script.is_library)
        self._stop(evaluation)

    def _stop(self, evaluation: Evaluation) -> None:
        """Make a script end that runs in a thread."""
        evaluation.killed = True

    def close(self) -> str:
        """End with the server.  Returns an empty text."""
        return ""

    # Called by the script

    def must_stop(self) -> bool:
        """True if the script must end."""
        evaluation = self._now
        if evaluation is None:  # a script is compiled
            return False
        if evaluation.killed or evaluation.late:
            return True
        if time.perf_counter() > evaluation.deadline:
            evaluation.late = True
        return evaluation.late

    def set_resp3(self, resp3: bool) -> None:
        """``redis.setresp``."""
        self._session.resp3 = resp3

    @property
    def resp3(self) -> bool:
        """True if replies come in RESP3."""
        return self._session.resp3

    def log(self, level: int, text: bytes) -> None:
        """``redis.log``."""
        evaluation = self._now
        assert evaluation is not None
        if evaluation.in_thread:
            write_line(level, text)
        else:
            evaluation.lines.append((level, text))

    def permits(self, words: list[bytes]) -> bool | None:
        """True if the caller's user may run a command; None if there is no such command."""
        evaluation, found = self._now, self._service.command_of(words)
        if found is None or (found.subcommands and len(words) > 1):
            return None
        return evaluation is None or evaluation.session.user.denial(found, words) is None

    def run(self, words: list[bytes]) -> Reply:
        """Run a command of a script.  It is undone alone if it fails."""
        evaluation, session = self._now, self._session
        assert evaluation is not None
        started = time.perf_counter_ns()
        if evaluation.killed or started > evaluation.deadline * 1e9:
            evaluation.late = not evaluation.killed
            raise Stopped
        found = self._find(words, evaluation)
        space = self._space
        if space.failing:
            space.reading = "readonly" in found.flags
        space.counting = found.looks_up
        mark = space.mark()
        try:
            if space.stale:
                space.recover()
            reply = found.handler(session, words)
        except CommandError:
            space.undo(mark)
            found.failed += 1
            raise
        except Error as failure:
            space.undo(mark)
            found.failed += 1
            _log.error("%s: %s", found.name, failure)
            raise CommandError(f"ERR {type(failure).__name__}: {failure}") from None
        except Exception:
            space.undo(mark)
            found.failed += 1
            raise
        finally:
            space.reading = space.counting = False
            found.note_call(time.perf_counter_ns() - started)
            self._service.commands += 1
        if self._service.monitors:
            evaluation.shown.append((found, words))
        return None if reply is NO_REPLY else reply

    def _find(self, words: list[bytes], evaluation: Evaluation) -> Command:
        """The command that a script calls.  Raises :class:`CommandError` if the call is not
        allowed."""
        service = self._service
        found = service.table.get(words[0])
        if found is None or found.subcommands:
            found = service.command_of(words)
            if found is None or (found.subcommands and len(words) > 1):
                raise CommandError("ERR Unknown Redis command called from script")
        if not found.accepts(len(words)):
            raise CommandError("ERR Wrong number of args calling Redis command from script")
        if found.noscript:
            raise CommandError("ERR This Redis command is not allowed from script")
        if evaluation.session.limited:
            reason = denied(evaluation.session, found, words, "lua")
            if reason:
                raise CommandError(f"ERR The user executing the script {_DENIED[reason]}")
        if found.may_write and evaluation.only_reads:
            raise CommandError("ERR Write commands are not allowed from read-only scripts.")
        if found.writes:
            if not self._space.writable:
                raise read_only_error()
            if service.full and "denyoom" in found.properties.flags:
                raise full_error()
            evaluation.wrote = True
        return found


def invalid(script: Script, text: str) -> CommandError:
    """The reply to a script that cannot be compiled."""
    what = "function" if script.is_library else "script (new function)"
    return CommandError(f"ERR Error compiling {what}: {text}")


def unregistered(text: str) -> CommandError:
    """The reply to a library that fails while it is loaded."""
    return CommandError(f"ERR Error registering functions: {text}")


def write_line(level: int, text: bytes) -> None:
    """Log a message of a script."""
    _log.log(_LEVELS[level], "%s", text.decode("utf-8", "backslashreplace"))

"""Runs scripts in a separate process: ``--scripts process``.

The process has the interpreter, and asks for each command of a script, which runs here.  A script
begins in the loop's thread, which waits for the process.  If it takes longer than ``IN_LOOP``, it
continues in a thread.

A script can always be ended, which undoes everything that it wrote: by SCRIPT KILL, after
``script-max-time``, and if it ends its process.  The next script gets a new process.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from typing import Any, Final

from lsmkv.server.info import REDIS_VERSION
from lsmkv.server.resp import NO_REPLY, CommandError, Encoded, Reply
from lsmkv.server.scripts.evaluator import (
    GARBAGE,
    IN_LOOP,
    LOADING,
    MOST_COMPILED,
    Evaluator,
    invalid,
    unregistered,
    write_line,
)
from lsmkv.server.scripts.process import ProcessEnded, ScriptProcess, is_one_reply
from lsmkv.server.scripts.sandbox import ScriptError, Stopped
from lsmkv.server.session import Evaluation, Service
from lsmkv.server.sources import Script

_log = logging.getLogger("lsmkv.server.scripts")
_LEVELS: Final = (b"0", b"1", b"2", b"3")
_LONGEST_NUMBER: Final = 15
"""Digits."""
_CLOSED: Final = "it has closed its connection"
_STRANGE: Final = "it has broken the protocol"


class IsolatedEvaluator(Evaluator):
    """Runs the scripts of a server, one after the other, in another process."""

    undoes = True

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self._process: ScriptProcess | None = None
        self._memory = 0

    @property
    def memory(self) -> int:
        """The bytes that the interpreter had after the last script."""
        return self._memory

    @property
    def pid(self) -> int:
        process = self._process
        return 0 if process is None else process.pid

    def forget(self) -> None:
        if self._now is None:
            self.close()

    def close(self) -> str:
        """End the process.  Returns why it has ended, if it was before."""
        process, self._process = self._process, None
        self._compiled.clear()
        self._memory = 0
        return "" if process is None else process.close()

    def evaluate(self, evaluation: Evaluation) -> Reply:
        script = evaluation.script
        self._check_allowed(script)
        self._prepare_process(script)
        evaluation.compiled = script.sha in self._compiled
        if evaluation.compiled:
            self._keep_source(evaluation)
            if evaluation.only_loads:
                return script.sha
            if evaluation.registers:
                evaluation.deadline = time.perf_counter() + LOADING
        self._begin(evaluation)
        deadline = math.inf if evaluation.registers else evaluation.started + IN_LOOP
        reply = self._go_on(evaluation, deadline, self._request(evaluation))
        if reply is not NO_REPLY:
            return self._done(evaluation, reply)
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # there is no loop that could continue
            return self._done(evaluation, self._attempt(evaluation))
        self._leave_loop(evaluation, loop)
        return NO_REPLY

    def _attempt(self, evaluation: Evaluation) -> Reply:
        return self._go_on(evaluation, math.inf)

    def _prepare_process(self, script: Script) -> None:
        """Have a process with room for a script.  Raises :class:`CommandError`."""
        settings, process = self._service.settings, self._process
        is_full = len(self._compiled) >= MOST_COMPILED and script.sha not in self._compiled
        is_full = is_full or self._memory > settings.script_memory + GARBAGE
        if process is not None:
            if not is_full and process.memory == settings.script_memory and process.is_idle():
                return
            self.close()
        try:
            self._process = ScriptProcess(
                REDIS_VERSION, settings.script_memory, settings.query_buffer_limit
            )
        except (OSError, NotImplementedError) as error:
            raise CommandError(f"ERR no process for scripts could be started: {error}") from None

    def _request(self, evaluation: Evaluation) -> Any:
        """The message that asks the process for a script."""
        script, memory = evaluation.script, self._service.settings.script_memory
        source = None if evaluation.compiled else script.body
        if evaluation.only_loads:
            return "load", script.sha, source
        resp3 = evaluation.session.resp3
        found = "run", script.sha, source, evaluation.keys, evaluation.arguments, resp3, memory
        return found if evaluation.function is None else (*found, evaluation.function)

    def _go_on(self, evaluation: Evaluation, deadline: float, request: Any = None) -> Reply:
        """Answer the process until the script ends, in this thread.  Errors are replies.

        Returns ``NO_REPLY`` at the deadline, of ``time.perf_counter``.
        """
        process, most = self._process, self._service.settings.script_time
        assert process is not None
        whole = evaluation.started + most / 1000 if most else math.inf
        try:
            if request is not None:
                process.send(request)
                if not evaluation.session.running:
                    self._service.commit()  # what came before it, while the process works
            while True:
                now = time.perf_counter()
                end = min(whole, evaluation.deadline)
                if now >= end:
                    return self._fail(evaluation, f"script-max-time is {most} ms")
                if now >= deadline:
                    return NO_REPLY
                message = process.receive(min(deadline, end))
                if message is not None:
                    reply = self._answered(evaluation, process, message)
                    if reply is not NO_REPLY:
                        self._now = None
                        return reply
        except (ProcessEnded, Stopped) as error:
            return self._fail(evaluation, "", str(error))
        except BaseException:  # an error in the server itself
            self._give_up(evaluation)
            raise

    def _answered(
        self, evaluation: Evaluation, process: ScriptProcess, message: list[bytes]
    ) -> Reply:
        """Do what a message asks for.  Returns the reply of the script if it has ended."""
        verb, count = message[0], len(message)
        if verb == b"call" and count > 1 and evaluation.compiled:
            answer: Reply
            try:
                answer = self.run(message[1:])
            except CommandError as error:
                answer = error
            process.send(answer)
        elif verb == b"done" and count == 3 and is_one_reply(message[1]):
            if not message[2].isdigit() or len(message[2]) > _LONGEST_NUMBER:
                raise ProcessEnded(_STRANGE)
            self._memory = int(message[2])
            if evaluation.registers:
                return message[1].partition(b"\r\n")[2][:-2]
            return Encoded(message[1])
        elif verb == b"failed" and count in (2, 3):
            return self._error(evaluation, ScriptError(*map(_text, message[1:])))
        elif verb == b"compiled" and not evaluation.compiled:
            evaluation.compiled = True
            self._compiled[evaluation.script.sha] = None
            self._keep_source(evaluation)
            if evaluation.only_loads:
                return evaluation.script.sha
            if evaluation.registers:
                evaluation.deadline = time.perf_counter() + LOADING
        elif verb == b"refused" and count == 2:
            return invalid(evaluation.script, _text(message[1]))
        elif verb == b"permits" and count > 1:
            process.send(self.permits(message[1:]))
        elif verb == b"resp3" and count == 2:
            self.set_resp3(message[1] == b"1")
        elif verb == b"log" and count == 3 and message[1] in _LEVELS:
            write_line(int(message[1]), message[2])
        else:
            raise ProcessEnded(_STRANGE)
        return NO_REPLY

    def _give_up(self, evaluation: Evaluation) -> str:
        """End the process, and undo what the script wrote.  Returns as :meth:`close`."""
        reason = self.close()
        self._undo(evaluation)
        self._now = None
        evaluation.undone = True
        return reason

    def _fail(self, evaluation: Evaluation, limit: str, reason: str = "") -> CommandError:
        """Give up a script that exceeds a limit, or else has ended its process.  Returns its
        reply."""
        ended = self._give_up(evaluation)
        if evaluation.killed:
            self.killed += 1
            text = "ERR Script killed by user with SCRIPT KILL..."
        elif limit:
            self.killed += 1
            text = f"ERR Script killed: {limit}, and what it wrote was undone."
        else:
            self.crashed += 1
            text = f"ERR The script has ended its process ({reason or ended or _CLOSED})."
            text += " What it wrote was undone."
        if not evaluation.killed:
            _log.error("%s script: %s", text.removeprefix("ERR "), evaluation.name)
        if evaluation.registers:
            return unregistered("ERR FUNCTION LOAD timeout" if limit else text)
        return CommandError(f"{text} script: {evaluation.name}.")

    def _stop(self, evaluation: Evaluation) -> None:
        super()._stop(evaluation)
        if self._process is not None:
            self._process.interrupt()

    def _end(self, evaluation: Evaluation, reply: Reply) -> None:
        if evaluation.killed and not evaluation.undone:  # its thread had just ended
            reply = self._fail(evaluation, "")
        super()._end(evaluation, reply)


def _text(word: bytes) -> str:
    return word.decode("utf-8", "surrogateescape")

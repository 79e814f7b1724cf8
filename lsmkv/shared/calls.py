"""Calls of members, at the owner: :class:`Calls` runs each in its own thread.

A call may take long, as a compaction does, while the listener's thread goes on.  It hears
nothing from a member whose call runs: the call's thread alone sends to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from lsmkv.engine.errors import ClosedError
from lsmkv.engine.util.threads import start_new_thread
from lsmkv.shared.frames import LEAVING, PROGRESS, RESULT, error_frame, frame, json_frame
from lsmkv.shared.group_commit import MemberConnection
from lsmkv.shared.system.sockets import NO_SIGNAL

RunMethod = Callable[[str, dict[str, Any], Callable[..., None]], Any]
"""Runs a method of the handle for a member: its name, its arguments, and what is called
with the progress."""


class Calls:
    """The calls that run.  The listener's thread calls every method but :meth:`stop`."""

    def __init__(self, polling: Any, run_method: RunMethod, wake: Callable[[], None]) -> None:
        """``wake`` lets the listener's thread look at :meth:`finished`."""
        self._polling = polling
        self._run_method = run_method
        self._wake = wake
        self._finished: list[MemberConnection] = []
        self._stopping = False

    def start(self, member: MemberConnection, request: int, call: dict[str, Any]) -> None:
        """Run a method; ``RuntimeError`` if there can be no more threads."""
        member.busy = True
        member.call = request
        try:
            start_new_thread(self._run, (member, request, call))
        except RuntimeError:
            member.busy = False
            raise

    def finished(self) -> Iterator[MemberConnection]:
        """Yield the members whose calls are over, each once."""
        while self._finished:
            member = self._finished.pop()
            member.busy = member.asked = False
            yield member

    def runs(self, member: MemberConnection) -> bool:
        """Return True if a call is running and its thread still has to send the answer."""
        return member.busy and member not in self._finished

    def stop(self) -> None:
        """End each call when it next reports its progress.  Connections of those that run are
        closed by their threads from now on."""
        self._stopping = True

    def _run(self, member: MemberConnection, request: int, call: dict[str, Any]) -> None:
        socket = member.socket

        def tell(*arguments: Any) -> None:
            if self._stopping:
                raise ClosedError("the database is closed")
            message = json_frame(PROGRESS, request, {"arguments": list(arguments)})
            _send_all(self._polling, socket, message, True)

        try:
            try:
                arguments = call.get("arguments", {})
                if "ends" in call:
                    arguments = arguments | {"ends": call["ends"]}
                result = self._run_method(str(call.get("method")), arguments, tell)
                answer = json_frame(RESULT, request, {"result": result})
            except ClosedError:
                answer = frame(LEAVING, request)
            except Exception as error:
                answer = error_frame(request, error)
            try:
                _send_all(self._polling, socket, answer, False)
            except OSError:
                pass  # the member has gone, as the listener's thread will see
        finally:
            self._finished.append(member)
            self._wake()
            if self._stopping and member.call == request:  # else it makes another one already
                socket.close()


def _send_all(polling: Any, socket: Any, content: bytes, may_drop: bool) -> None:
    """Send everything through a socket that does not block, from a thread that may wait.

    What may be dropped is, if there is no room for its first byte: its reader is slow or stopped.
    """
    poll = polling.poll()
    poll.register(socket.fileno(), polling.POLLOUT)
    at = 0
    while at < len(content):
        try:
            at += socket.send(content[at:], NO_SIGNAL)
        except BlockingIOError:
            if may_drop and at == 0:
                return
            poll.poll()

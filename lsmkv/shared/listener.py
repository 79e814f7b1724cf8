"""The owner's half of the connections: :class:`Listener`, a thread that carries out requests.

One thread serves all members.  What has come in meanwhile from all of them is committed as one
batch, with one write of the log and at most one sync.  Requests that may take long, calls of a
method, have a thread each (``calls.py``).

A request is not begun if its sender has hung up before it was read: the sender relies on that
(``frames.py``).  Each wait for requests says who has.  Only for a request that may be old, since
this process was stopped or busy meanwhile, the system is asked once more after it was read.
"""

from __future__ import annotations

import errno
import os
import struct
import time
from _operator import _compare_digest as compare_digest  # hmac's, without what hmac imports
from typing import Any

from lsmkv.engine.db.handles.named_leases import NEVER
from lsmkv.engine.db.tree.store import Store
from lsmkv.engine.db.write.writer import Writer
from lsmkv.engine.errors import ClosedError, ComparatorMismatchError, CorruptionError, Error
from lsmkv.engine.util.signals import deferred
from lsmkv.engine.util.threads import get_ident, new_lock, pause, start_new_thread
from lsmkv.shared.calls import Calls, RunMethod
from lsmkv.shared.frames import (
    BEGIN,
    CALL,
    COMMIT,
    DONE,
    END,
    GREETING,
    HEADER,
    HELLO,
    HOLD,
    LEAST_PATIENCE,
    LEAVING,
    NOT_ANSWERED,
    NUMBER,
    NUMBERS,
    PROTOCOL,
    READY,
    RELEASE,
    REVISION,
    TURN,
    TURN_OVER,
    WAIT,
    WRITE,
    CommitRequest,
    check_request,
    decoded,
    error_frame,
    frame,
    json_frame,
)
from lsmkv.shared.group_commit import GroupCommit, MemberConnection, MemberWrite
from lsmkv.shared.named_leases import OwnerLeases
from lsmkv.shared.publishing import Publishing
from lsmkv.shared.system import release
from lsmkv.shared.system.shared_page import SEQUENCE, SLOTS
from lsmkv.shared.system.sockets import NO_SIGNAL
from lsmkv.shared.system.system import System
from lsmkv.shared.transactions import OwnerTransactions
from lsmkv.shared.turns import OwnerTurns

_CHUNK = 1 << 18
_READY = 8192
"""Bytes: more than a READY has."""
_MOST_EVENTS = 256
_MOMENT = 0.01
"""Seconds, in which others may give up a descriptor."""
_SOON = LEAST_PATIENCE / 2
"""Seconds: a request that is not older was certainly not withdrawn."""
_UNPROVED = (
    "the owner answers only processes that can read the store's directory, and this one has not"
    " proved that it can: its release of lsmkv may be unable to"
)
_LONGEST_SLEEP = 3600.0
"""Seconds: a member says for how long it waits, and the system takes no more than some weeks."""


class Listener:
    """Serves the members of one epoch.  Call order: ``start stop``."""

    def __init__(
        self,
        system: System,
        store: Store,
        writer: Writer,
        publishing: Publishing,
        names: dict[str, str],
        options: dict[str, Any],
        run_method: RunMethod,
        only_owns: bool,
    ) -> None:
        """``names`` are those of what a member's options must agree with, ``options`` what members
        are sent of the owner's; ``only_owns`` is whether this process does nothing but own the
        store."""
        sockets: Any = system.sockets
        self._sockets = sockets
        self._store = store
        self._publishing = publishing
        self._group = GroupCommit(
            *(writer, publishing, store.info_log, store.counters),
            *(self._answer, sockets.end),
        )
        self._names = names
        self.options = options
        """The owner's options, as members get them."""
        self.only_owns = only_owns
        """True if this process does nothing but own the store."""
        self._proofs = publishing.file.proofs()
        self._members: dict[int, MemberConnection] = {}  # by descriptor
        self._free_slots = list(range(SLOTS - 1, -1, -1))
        self._ident = 0
        self._waiting: list[tuple[MemberConnection, int, int, float]] = []
        self._stopping = False
        self._since = 0.0
        """No request that is read now was there at that time; 0.0 if that is not known."""
        self._transactions = OwnerTransactions(store, self._group, self._send, self._answer)
        self._ended = new_lock()
        self._listening = publishing.listening
        self._buffer = memoryview(bytearray(_CHUNK))  # where the thread receives
        self._poll = sockets.polling.epoll()
        self._gone: int = sockets.polling.EPOLLRDHUP
        self._events: int = sockets.polling.EPOLLIN | self._gone
        self._alarm = sockets.Alarm()
        self._calls = Calls(sockets.polling, run_method, self._alarm.ring)
        self._reserve = sockets.ReserveDescriptor()
        self._poll.register(self._listening.fileno(), sockets.polling.EPOLLIN)
        self._poll.register(self._alarm.fd, sockets.polling.EPOLLIN)
        publishing.wake = self._alarm.ring
        self.leases = OwnerLeases(publishing.file, self._alarm.ring)
        """Leases with names: the owner's threads ask its queue."""
        publishing.names = self.leases.queue.names
        self.turns = OwnerTurns(publishing.page, self._alarm.ring)
        """The queue of ``run`` and ``update``, for the owner's threads as well."""

    @property
    def members(self) -> list[int]:
        """The process ids of the connected members, each once, in order."""
        members = list(self._members.values())
        return sorted({one.pid for one in members if one.greeted and not one.visits})

    def start(self) -> None:
        """Serve from now on; ``RuntimeError`` if there can be no more threads."""
        self._ended.acquire()
        try:
            start_new_thread(self._serve, ())
        except BaseException:
            self._ended.release()
            self._close()
            raise

    def stop(self) -> None:
        """Carry out what has come in, and close the connections.  If a signal's handler ends the
        wait, another call goes on with it.

        On its own thread, which may run a finalizer or a close that was asked for, it does not
        wait: the thread ends after this turn.
        """
        if not self._stopping:
            self._stopping = True
            self._calls.stop()
            self._alarm.ring()
        if get_ident() != self._ident:
            deferred.wait_for(self._ended)

    def close_in_child(self) -> None:
        """In a forked child: close the descriptors; the sockets close themselves there."""
        self._stopping = True
        self._poll.close()
        self._alarm.close()
        self._reserve.close()

    # The thread

    def _serve(self) -> None:
        self._ident = self.turns.thread = get_ident()
        try:
            while not self._stopping:
                self._turn()
        except Exception as error:
            self._store.info_log.warn(f"Members are not served any more: {error!r}")
        finally:
            self._close()
            self._ended.release()

    def _turn(self) -> None:
        """Wait for requests, and carry out those that have come."""
        since = time.monotonic()
        found = self._poll.poll(self._patience(), _MOST_EVENTS)
        for fd, events in found:
            if fd == self._alarm.fd:
                self._alarm.quiet()
                if self._hear_again():
                    since = 0.0
            elif fd == self._listening.fileno():
                self._accept()
            else:
                member = self._members.get(fd)
                if member is not None and events & self._gone:
                    self._drop(member)
                elif member is not None:
                    self._receive(member)
        self._since = since if len(found) < _MOST_EVENTS else 0.0
        self._group.commit_all()
        if self._waiting:
            self._answer_waiting()
        for wish in self.leases.answers():
            self._send(wish.member, wish.answer)
        for member, request, left in self.turns.answers():
            self._send(member, frame(DONE, request, NUMBER.pack(left)))

    def _patience(self) -> float:
        seconds = min(self.leases.seconds(), self.turns.seconds())
        if self._waiting:
            first = min(until for _, _, _, until in self._waiting)
            seconds = min(seconds, max(0.0, first - time.monotonic()))
        elif seconds == NEVER:
            return -1.0
        return min(_LONGEST_SLEEP, seconds)

    def _accept(self) -> None:
        while True:
            try:
                socket = self._sockets.accept(self._listening)
            except OSError:
                self._turn_away()
                return
            if socket is None:
                return
            if not self._free_slots:
                self._refuse(socket, Error(f"the owner has {SLOTS:,} connections already"))
                continue
            if self._sockets.is_scarce(socket):
                self._refuse(socket, _out_of_descriptors())
                continue
            slot = self._free_slots.pop()
            self._publishing.page.clear(slot)
            try:
                member = MemberConnection(socket, slot, self._sockets.peer(socket)[0])
                self._poll.register(socket.fileno(), self._events)
            except OSError:
                self._free_slots.append(slot)
                socket.close()
                continue
            self._members[socket.fileno()] = member

    def _refuse(self, socket: Any, reason: Exception) -> None:
        try:
            socket.send(error_frame(0, reason), NO_SIGNAL)
        except OSError:
            pass
        socket.close()

    def _turn_away(self) -> None:
        """Without a free descriptor, accept one connection to say so."""
        self._reserve.close()
        try:
            socket = self._sockets.accept(self._listening)
            if socket is not None:
                self._refuse(socket, _out_of_descriptors())
            self._reserve.renew()
        except OSError:
            pause(_MOMENT)  # other threads have taken it; the connection waits

    def _receive(self, member: MemberConnection) -> None:
        try:
            if member.welcome and not member.greeted:
                size = self._receive_ready(member)
            else:
                size = member.socket.recv_into(self._buffer)
        except BlockingIOError:
            return
        except OSError:
            size = 0
        if size == 0:
            self._drop(member)
            return
        old = len(member.received) > 0 or time.monotonic() - self._since > _SOON
        if old and self._sockets.has_hung_up(member.socket):
            self._drop(member)
            return
        data = bytes(self._buffer[:size])
        if member.missing > size:
            member.received.append(data)
            member.missing -= size
            return
        if member.received:
            member.received.append(data)
            data = b"".join(member.received)
            member.received.clear()
        member.missing = 0
        at = 0
        request = 0
        try:
            while len(data) - at >= HEADER.size and not member.busy:
                size, kind, request = HEADER.unpack_from(data, at)
                check_request(size, kind, member.greeted)
                if member.asked:
                    raise CorruptionError("a request before the answer to the last one")
                begin = at + HEADER.size
                member.missing = max(0, begin + size - len(data))
                if member.missing > 0:
                    break
                at = begin + size
                member.asked = kind not in NOT_ANSWERED
                self._carry_out(member, kind, request, data, begin, at)
        except Exception as error:
            self._fail(member, request, error)
            return
        if at < len(data):
            member.received.append(data[at:])

    def _receive_ready(self, member: MemberConnection) -> int:
        """Receive data, perhaps with a descriptor; returns the number of bytes."""
        content, fd = self._sockets.receive_with(member.socket, _READY)
        if fd >= 0:
            if member.passed >= 0:
                self._publishing.counts.refuse(member.passed)
            member.passed = fd
        self._buffer[: len(content)] = content
        return len(content)

    def _fail(self, member: MemberConnection, request: int, error: Exception) -> None:
        """End the connection of a member that has sent what it must not, and say why."""
        if not isinstance(error, CorruptionError | struct.error):
            self._store.info_log.warn(f"A member's request failed: {error!r}")
        self._group.commit_all()  # what it has sent before has its slot, which is about to be free
        self._send(member, error_frame(request, error))
        self._drop(member)

    def _drop(self, member: MemberConnection) -> None:
        """Forget a member that has gone."""
        fd = member.socket.fileno()
        if self._members.pop(fd, None) is None:
            return
        self._poll.unregister(fd)
        self._release(member)
        if member.greeted:
            try:
                self._publishing.file.note_member(member.slot, 0, 0)
            except OSError:
                pass  # on a full disk: no other page is taken for this one, which has its token
        self._free_slots.append(member.slot)
        self._waiting = [one for one in self._waiting if one[0] is not member]

    def _release(self, member: MemberConnection) -> None:
        self._transactions.end_all(member)
        self.leases.end(member)
        self.turns.end(member)
        self._publishing.counts.end(member.slot)
        fd, member.passed = member.passed, -1
        if fd >= 0:
            self._publishing.counts.refuse(fd)
        member.socket.close()

    def _send(self, member: MemberConnection, content: bytes) -> None:
        """Send an answer.  A member sends nothing more before it has it, so there is room, unless
        it never reads: then it is dropped."""
        member.asked = False
        try:
            if member.socket.send(content, NO_SIGNAL) < len(content):
                raise BlockingIOError
        except OSError:
            self._drop(member)

    # Requests

    def _carry_out(
        self, member: MemberConnection, kind: int, request: int, data: bytes, begin: int, end: int
    ) -> None:
        """Carry out the request whose content is ``data[begin:end]``."""
        if kind == WRITE:
            sync = data[begin : begin + 1] == b"\1"
            self._group.add(MemberWrite(member, request, sync, data, begin + 1, end))
            return
        content = data[begin:end]
        if kind == HELLO:
            self._greet(member, request, decoded(content))
        elif kind == READY:
            self._note_member(member, request, decoded(content))
        elif kind == BEGIN:
            for (number,) in NUMBER.iter_unpack(content):
                self._transactions.end(number)
            self._transactions.begin(member, request)
        elif kind == END:
            self._transactions.end(NUMBER.unpack(content)[0])
        elif kind == COMMIT:
            self._group.commit_all()
            self._transactions.commit(member, request, CommitRequest(content))
        elif kind == WAIT:
            sequence, milliseconds = NUMBERS.unpack(content)
            until = time.monotonic() + milliseconds / 1000
            self._publishing.waiting = True
            self._waiting.append((member, request, sequence, until))
        elif kind == CALL:
            self._call(member, request, decoded(content))
        elif kind == HOLD:
            self.leases.ask(member, request, decoded(content))
        elif kind == RELEASE:
            held = 1 if self.leases.end(member) else 0
            self._send(member, frame(DONE, request, NUMBER.pack(held)))
        elif kind == TURN:
            self.turns.ask(member, request, content)
        elif kind == TURN_OVER:
            self.turns.end(member)

    def _greet(self, member: MemberConnection, request: int, hello: dict[str, Any]) -> None:
        """Answer a process that wants to join."""
        if hello.get("protocol") != PROTOCOL:
            reason = (
                f"the owner speaks protocol {PROTOCOL}, not {hello.get('protocol')}: it runs"
                " another release of lsmkv"
            )
            self._send(member, error_frame(request, Error(reason)))
            return
        if not self._proves(member, hello.get("proof")):
            self._send(member, error_frame(request, Error(_UNPROVED)))
            return
        names = hello.get("names")
        member.visits = names == {}
        for what, name in () if member.visits else self._names.items():
            given = names.get(what) if isinstance(names, dict) else None
            if given != name and (given is not None or what != "comparator"):
                self._send(member, error_frame(request, self._refusal(what, name, given)))
                return
        member.welcome = True
        member.asked = False
        publishing = self._publishing
        greeting = {
            "epoch": publishing.head.epoch,
            "slot": member.slot,
            "pid": os.getpid(),
            "file": publishing.file.inode(),
            "only_owns": self.only_owns,
            "revision": REVISION,
            "release": release.RELEASE,
            "options": self.options,
            "counts": publishing.counts.wanted,
            "proof": None if self._proofs is None else self._proofs.of_owner,
        }
        message = json_frame(GREETING, request, greeting)
        try:
            self._sockets.send_with(member.socket, message, publishing.reading)
        except OSError:
            self._drop(member)

    def _proves(self, member: MemberConnection, proof: object) -> bool:
        """Return True if a process can read ``SHARED``: it knows its content, or, if its release
        does not know the proof, has the file open."""
        if isinstance(proof, str) and self._proofs is not None:
            return bool(compare_digest(proof.encode(), self._proofs.of_member.encode()))
        return self._publishing.file.is_open_in(member.pid)

    def _refusal(self, what: str, name: str, given: object) -> Error:
        """The error of a process whose option has another name than the owner's."""
        if what == "comparator":
            return ComparatorMismatchError(self._store.directory.path, name, str(given))
        return Error(f"the store is shared with the {what} {name!r}, not {given!r}")

    def _note_member(self, member: MemberConnection, request: int, ready: dict[str, Any]) -> None:
        """Note where a member holds the page, before it is answered."""
        fd = ready.get("descriptor")
        if not member.welcome or not isinstance(fd, int):
            raise CorruptionError("a member has not sent its descriptor of the page")
        self._publishing.file.note_member(member.slot, member.pid, fd)
        member.greeted = True
        fd, member.passed = member.passed, -1
        if fd >= 0:
            self._publishing.counts.add(member.slot, member.pid, fd, ready.get("counts"))
        self._send(member, frame(DONE, request, NUMBER.pack(0)))

    def _answer(self, member: MemberConnection, request: int, error: BaseException) -> None:
        """Say why a request was not carried out."""
        if isinstance(error, ClosedError):
            self._send(member, frame(LEAVING, request))
        else:
            self._send(member, error_frame(request, error))

    # Waiting for a change

    def _answer_waiting(self) -> None:
        last = self._publishing.page.words[SEQUENCE]
        now = time.monotonic()
        left: list[tuple[MemberConnection, int, int, float]] = []
        due: list[tuple[MemberConnection, int]] = []
        for member, request, sequence, until in self._waiting:
            if last > sequence or now >= until:
                due.append((member, request))
            else:
                left.append((member, request, sequence, until))
        self._waiting = left
        self._publishing.waiting = bool(left)
        for member, request in due:
            self._send(member, frame(DONE, request, NUMBER.pack(last)))

    # Calls

    def _call(self, member: MemberConnection, request: int, call: dict[str, Any]) -> None:
        """Run a call of a member, and read nothing from it until the call is over."""
        self._poll.unregister(member.socket.fileno())
        try:
            self._calls.start(member, request, call)
        except RuntimeError as error:
            self._poll.register(member.socket.fileno(), self._events)
            self._send(member, error_frame(request, error))

    def _hear_again(self) -> bool:
        """Read again from members whose calls are over.  Returns True if there are any."""
        heard = False
        for member in self._calls.finished():
            heard = True
            if member.socket.fileno() in self._members:
                self._poll.register(member.socket.fileno(), self._events)
                if member.received:
                    early = CorruptionError("a request before the answer to the last one")
                    self._fail(member, 0, early)
        return heard

    def _close(self) -> None:
        self._publishing.wake = None
        self.leases.close()
        self.turns.close()
        self._calls.stop()
        for member in list(self._members.values()):
            if self._calls.runs(member):
                # Its thread sends the answer, and closes it.
                self._sockets.end_requests(member.socket)
            else:
                self._release(member)
        self._members.clear()
        self._listening.close()
        self._poll.close()
        self._alarm.close()
        self._reserve.close()


def _out_of_descriptors() -> OSError:
    reason = "the owner's process has no free descriptors for connections"
    return OSError(errno.EMFILE, reason)

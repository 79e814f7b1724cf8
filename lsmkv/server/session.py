"""The state of a client, apart from its socket."""

from __future__ import annotations

import math
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

from lsmkv.engine.db.db import DB
from lsmkv.engine.env.process_memory import resident
from lsmkv.server.acl import User
from lsmkv.server.acl_log import AclLog
from lsmkv.server.blocking import Wait, Waits
from lsmkv.server.command import Command, Table
from lsmkv.server.cursors import Cursors
from lsmkv.server.database import Database
from lsmkv.server.errors import Errors
from lsmkv.server.functions import Functions
from lsmkv.server.keyspace import Keyspace
from lsmkv.server.latency import Latencies
from lsmkv.server.pause import Pause
from lsmkv.server.pubsub import Channels
from lsmkv.server.rates import Rates, Totals
from lsmkv.server.resp import Push, Reply, Simple, encode
from lsmkv.server.saves import Saves
from lsmkv.server.settings import Settings
from lsmkv.server.slowlog import SlowLog
from lsmkv.server.sources import Script, Sources
from lsmkv.server.users import Users


class Service(ABC):
    """State shared by all sessions: the store, the clients, the counters.

    :class:`Engine` runs the commands.
    """

    scripts: Scripts
    """Runs scripts.  The engine sets it."""

    def __init__(self, db: DB, space: Keyspace, table: Table, settings: Settings) -> None:
        self.db = db
        self.space = space
        self.table = table
        self.settings = settings
        self.users = Users(table, settings)
        self._password = settings.password
        self.acl_log = AclLog(settings)
        self.sessions: dict[int, Session] = {}
        self.channels = Channels()
        self.waits = Waits(space)
        self.pause = Pause()
        self.cursors = Cursors(space)
        self.sources = Sources(space)
        self.functions = Functions(space)
        if b"FCALL" in table:  # otherwise any record may be a client's
            self.functions.refresh()
        self.slow = SlowLog(settings)
        self.latencies = Latencies()
        self.errors = Errors()
        self.rates = Rates()
        self.monitors: set[Session] = set()
        self.started = time.time()
        self.first_memory = resident()
        """The memory of the process when the service started, in bytes."""
        self.saves = Saves()
        self.run_id = secrets.token_hex(20)
        """Distinguishes one run of a server from all others."""
        self.connections = 0
        self.refused_connections = 0
        self.commands = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.failure = ""
        """The reason for which the last tick could not be written; empty after a success."""
        self.executing = False
        """True while a transaction that writes runs: its messages are not sent if it fails."""
        self.full = False
        """True while commands that make the store grow are refused: it exceeds ``max-disk``."""
        self.busy: Evaluation | None = None
        """The script that runs in a thread.  Until it ends no command runs, and no tick is written.
        """
        self._apply_settings()
        settings.on_change.append(self._apply_settings)
        space.events.send = self.announce
        self.deferred: list[tuple[Session, list[Reply]]] | None = None
        """The messages that a script has sent, while one runs: they leave when it ends."""
        self.on_shutdown: Callable[[], None] = _nothing
        self.schedule: Callable[[Callable[[], None]], object] = _call
        """Schedules a call of a function in the next tick."""

    def _apply_settings(self) -> None:
        settings = self.settings
        self.space.events.select(settings.events)
        if settings.password != self._password:
            self._password = settings.password
            self.users.set_password(settings.password)
            self.apply_rights()

    @property
    def totals(self) -> Totals:
        """Commands that ran, bytes received and sent: what ``rates`` samples."""
        return self.commands, self.bytes_in, self.bytes_out

    def announce(self, channel: bytes, message: bytes) -> None:
        """Publish what has happened to a key.  It is sent if the tick's changes are written."""
        executing, self.executing = self.executing, True
        self.channels.publish(channel, message)
        self.executing = executing

    def apply_rights(self) -> None:
        """Apply a change of users to their sessions."""
        for session in self.sessions.values():
            session.apply_rights()

    @abstractmethod
    def touch(self, session: Session) -> None:
        """Note that the session has output again."""

    @abstractmethod
    def fail(self, what: str, error: BaseException) -> None:
        """Note why writes are not in the log, or not durable."""

    @property
    @abstractmethod
    def syncing(self) -> bool:
        """True if replies wait for a sync."""

    @abstractmethod
    def pause_clients(self, seconds: float, everything: bool) -> None:
        """Delay requests: all, or those that write."""

    @abstractmethod
    def end_pause(self) -> None:
        """Run the requests that have waited."""

    @abstractmethod
    def commit(self) -> None:
        """Write the tick's changes, then release its replies.  If nothing was written, they are
        errors."""

    @abstractmethod
    def run(self, session: Session, request: list[bytes]) -> None:
        """Run a request, or queue it in a transaction.  Its reply is then in the session."""

    @abstractmethod
    def call(self, session: Session, found: Command, request: list[bytes]) -> Reply:
        """Run a command, all or nothing.  Returns its reply or a :class:`CommandError`."""

    @abstractmethod
    def answer(self, session: Session, found: Command, request: list[bytes]) -> None:
        """Run a command and answer it.  Note how to answer if the tick's writes fail."""

    @abstractmethod
    def command_of(self, request: list[bytes]) -> Command | None:
        """Find the command that a request names."""

    def is_busy(self) -> bool:
        """True if a script runs in a thread.

        For code that asks before and after a call: type checkers take :attr:`busy` for unchanged,
        and so would compiled code.
        """
        return self.busy is not None

    @abstractmethod
    def begin_busy(self, evaluation: Evaluation) -> None:
        """Note that a script continues in a thread."""

    @abstractmethod
    def end_busy(self, evaluation: Evaluation, reply: Reply) -> None:
        """Answer a script that has ended in a thread, and continue."""

    @abstractmethod
    def release_held_back(self) -> None:
        """Resume the clients whose requests wait for the end of a script."""

    @abstractmethod
    def show(self, session: Session, found: Command, request: list[bytes]) -> None:
        """Show a command that ran to the clients that monitor, unless it is an admin command, or
        shows itself."""

    @abstractmethod
    def show_request(self, session: Session, request: list[bytes]) -> None:
        """Show a request to the clients that monitor."""

    @abstractmethod
    def close_session(self, session: Session) -> None:
        """Close a session whose connection is gone or must go.  A second call has no effect."""


class Scripts(ABC):
    """Runs the scripts of a server, one after the other."""

    def __init__(self) -> None:
        self.killed = 0
        """Scripts that SCRIPT KILL or ``script-max-time`` has ended."""
        self.crashed = 0
        """Scripts that have ended the process that they ran in."""

    @abstractmethod
    def evaluate(self, evaluation: Evaluation) -> Reply:
        """Compile a script, keep its source, and run it unless it is only loaded.

        Returns its reply, or ``NO_REPLY`` if it continues in a thread.  Raises
        :class:`CommandError` for an invalid script.
        """

    @abstractmethod
    def kill(self, function: bool = False) -> None:
        """End the script, or the function, that runs.  Raises :class:`CommandError` if that is
        impossible."""

    @abstractmethod
    def forget(self) -> None:
        """Forget all compiled scripts, and start with a new interpreter."""

    @property
    @abstractmethod
    def memory(self) -> int:
        """The bytes that the interpreter has."""

    @property
    def pid(self) -> int:
        """The process id of the interpreter if it runs in a separate process; otherwise 0."""
        return 0


class Reread(NamedTuple):
    """A read that has seen writes of its tick.  It runs again if they fail."""

    at: int
    """The index in the session's ``out`` of its answer."""
    found: Command
    request: list[bytes]
    database: Database
    resp3: bool


class Session:
    """A client: its selected database, its transaction, its subscriptions.

    It is the first argument of every command.
    """

    def __init__(self, service: Service, number: int, address: str = "", local: str = "") -> None:
        self.service = service
        self.space: Keyspace = service.space
        self.database: Database = service.space.databases[0]
        self.id = number
        self.address = address
        self.local_address = local
        self.name = b""
        self.library: dict[str, bytes] = {"lib-name": b"", "lib-ver": b""}
        self.resp3 = False
        self.user = service.users.default
        self.authenticated = self.user.open
        self.limited = False
        """True if it must authenticate first, or its user may not do everything."""
        self.apply_rights()
        self.created = time.monotonic()
        self.last_active = self.created
        self.last_command: Command | None = None
        """Its last command; None if that was unknown."""
        self.queued: list[tuple[Command, list[bytes]]] | None = None
        """The commands of a transaction, between MULTI and EXEC."""
        self.queued_size = 0
        """The memory that they take, in bytes."""
        self.refused = False
        """True if a command could not be queued.  Then EXEC runs none."""
        self.running = False
        """True while EXEC runs them.  Then no command blocks."""
        self.of_scripts = False
        """True if it runs the commands of scripts."""
        self.watching: set[tuple[int, bytes]] = set()
        self.changed = False
        """True if a key that it watches has changed."""
        self.subscriptions: list[set[bytes]] = [set(), set(), set()]
        """The names of channels, patterns and shard channels: see ``pubsub.py``."""
        self.monitoring = False
        self.wait: Wait | None = None
        """The wait that blocks it, if any."""
        self.postponed = False
        """True while its request waits for the end of a pause, for a key or for its string to be
        written, or runs in a thread."""
        self.evaluating = False
        """True while its script runs in a thread."""
        self.after_script: Callable[[], None] = _nothing
        """Continues its transaction when that script has ended."""
        self.silent = False
        """CLIENT REPLY OFF."""
        self.skips = 0
        """CLIENT REPLY SKIP: 1 while the command runs that is not answered, 2 before that."""
        self.no_evict = False
        """CLIENT NO-EVICT, shown by CLIENT LIST.  No client is ever evicted."""
        self.closing = False
        """True if its connection is closed once its replies are sent."""
        self.gone = False
        """True if its connection is lost or cut.  Nothing more is sent."""
        self.out: list[bytes] = []
        """Replies and pushes of this tick."""
        self.out_size = 0
        self.unwritten: list[int] = []
        """The indexes in ``out`` of replies to commands that write in this tick."""
        self.rereads: list[Reread] = []
        """Reads that have seen what the tick writes."""
        self.transactional: list[int] = []
        """The indexes in ``out`` of output that is sent only if a transaction is written."""
        self.held = 0
        """The number of batches of its replies that wait for a sync."""
        self.held_size = 0
        """Their bytes."""
        self.on_unblocked: Callable[[], None] = _nothing
        """Called when it no longer waits, so further requests may run."""
        self.send: Callable[[bytes], None] = _drop
        """Passes bytes to the connection."""
        self.disconnect: Callable[[], None] = _nothing
        """Closes the connection immediately."""
        self.hang_up: Callable[[], None] = _nothing
        """Closes the connection once everything is sent."""
        self.descriptor = -1
        """The file descriptor of its socket, for CLIENT LIST."""
        self.unread: Callable[[], int] = _zero
        """The bytes of received requests that have not run."""

    def announce(self, kind: str, name: str, key: bytes) -> None:
        """Note an event of a class about a key: see ``events.py``."""
        self.space.announce(kind, name, self.database, key)

    def reply(self, reply: Reply) -> None:
        """Answer a command."""
        if not self.silent and not self.skips & 1:
            self.write(encode(reply, self.resp3))

    def confirm(self, message: list[Reply]) -> None:
        """Answer a command with a push, whatever CLIENT REPLY says."""
        self.write(encode(Push(message), self.resp3))

    def reply_to_write(self, reply: Reply) -> None:
        """Answer a command that waited, and has written in this tick."""
        if not self.silent and not self.skips & 1:
            self.write_reply(encode(reply, self.resp3))

    def write_reply(self, data: bytes) -> None:
        """Answer, with an encoded reply, a command that has written in this tick."""
        at = len(self.out)
        self.write(data)
        if len(self.out) > at:
            self.unwritten.append(at)

    def push(self, message: list[Reply]) -> None:
        """Send a message that answers no command."""
        if self.gone:
            return
        if self.service.deferred is not None:
            self.service.deferred.append((self, message))
            return
        if self.service.executing:
            self.transactional.append(len(self.out))
        self.write(encode(Push(message), self.resp3))
        self._cut_if_behind()

    def show(self, line: str) -> None:
        """Send a line of MONITOR."""
        self.reply(Simple(line))
        self._cut_if_behind()

    def write(self, data: bytes) -> None:
        """Send an encoded reply."""
        if self.gone:
            return
        if not self.out:
            self.service.touch(self)
        self.out.append(data)
        self.out_size += len(data)

    def answer_as_one(self, start: int) -> None:
        """``out`` from ``start`` on answers a transaction that writes.  It fails as a whole."""
        if len(self.out) > start:
            self.unwritten.append(start)
            self.transactional.extend(range(start + 1, len(self.out)))

    def _cut_if_behind(self) -> None:
        """Disconnect a subscriber if more output waits for it than is allowed."""
        limit = self.service.settings.pubsub_limit
        if 0 < limit < self.unsent and not self.gone:
            self.cut()

    def cut(self) -> None:
        """Disconnect, and drop the output."""
        self.closing = self.gone = True
        self.forget_output()
        self.disconnect()

    def leave(self) -> None:
        """Drop the references in both directions, once its connection is lost."""
        self.closing = self.gone = True
        self.forget_output()
        self.send = _drop
        self.disconnect = self.hang_up = self.on_unblocked = _nothing
        self.unread = _zero

    @property
    def unsent(self) -> int:
        """The bytes of replies that the connection does not have yet."""
        return self.out_size + self.held_size

    def take_output(self) -> bytes:
        """Take the output that is to be sent."""
        data = self.out[0] if len(self.out) == 1 else b"".join(self.out)
        self.forget_output()
        return data

    def forget_output(self) -> None:
        """Drop the output."""
        self.out.clear()
        self.out_size = 0
        if self.unwritten:
            self.unwritten.clear()
        if self.rereads:
            self.rereads.clear()
        if self.transactional:
            self.transactional.clear()

    def close(self) -> None:
        """Run no further request, and close the connection once its replies are sent."""
        self.closing = True
        if not self.out and not self.held:
            self.hang_up()

    def replace_output(self, at: int, data: bytes) -> None:
        """Replace one entry of ``out``."""
        self.out_size += len(data) - len(self.out[at])
        self.out[at] = data

    def become(self, user: User, authenticated: bool = True) -> None:
        """Act for another user from now on."""
        self.user = user
        self.authenticated = authenticated
        self.apply_rights()

    def apply_rights(self) -> None:
        """Apply a change of its user."""
        self.limited = self.must_authenticate or not self.user.unlimited

    def reads_all_keys(self, request: list[bytes]) -> bool:
        """True if a request of its user may read any key, including those that it does not name."""
        if not self.limited:
            return True
        found = self.service.command_of(request)
        return found is not None and self.user.reads_all_keys(found, request)

    @property
    def must_authenticate(self) -> bool:
        """True if only commands such as AUTH run."""
        return not self.authenticated and not self.service.users.default.open

    @property
    def restricted(self) -> bool:
        """True if some commands do not run immediately: before AUTH, for a user that may not do
        everything, in a transaction, or while subscribed."""
        return self.queued is not None or self.limited or self.subscribed or self.monitoring

    @property
    def subscribed(self) -> bool:
        return any(self.subscriptions)

    def mark_changed(self) -> None:
        """Note that a key that it watches has changed."""
        self.changed = True

    def unwatch(self) -> None:
        """Stop watching keys."""
        for place in self.watching:
            calls = self.space.watched.get(place)
            if calls is not None:
                calls.discard(self.mark_changed)
                if not calls:
                    del self.space.watched[place]
        self.watching.clear()
        self.changed = False

    def leave_transaction(self) -> None:
        """Forget the queued commands, and stop watching keys."""
        self.queued = None
        self.queued_size = 0
        self.refused = False
        self.unwatch()


class Evaluation:
    """A script that runs."""

    def __init__(
        self,
        session: Session,
        request: list[bytes],
        script: Script,
        keys: list[bytes],
        arguments: list[bytes],
        only_reads: bool,
        only_loads: bool = False,
        function: bytes | None = None,
    ) -> None:
        self.session = session
        self.request = request
        self.script = script
        self.keys = keys
        self.arguments = arguments
        self.only_reads = only_reads
        self.only_loads = only_loads
        """SCRIPT LOAD: it is compiled and kept, and does not run."""
        self.function = function
        """The function of a library that is called; empty if the library itself runs."""
        self.registers = function == b""
        """FUNCTION LOAD: a library runs, to register its functions."""
        self.name = (function or script.sha).decode()
        """Its name in errors: a function's name, or the SHA-1 of a script."""
        self.started = time.perf_counter()
        self.deadline = math.inf
        """The time at which the attempt in the loop ends."""
        self.late = False
        """True if it was stopped at its deadline."""
        self.wrote = False
        """True if it has run a command that writes."""
        self.killed = False
        """SCRIPT KILL, or the server ends."""
        self.abandoned = False
        """True if the server is stopping; nothing of it is written."""
        self.in_thread = False
        self.compiled = False
        """True if its process has compiled it, which precedes everything else that it does."""
        self.undone = False
        """True if its writes were undone: it was killed, or its process has ended."""
        self.ready = 0
        """The number of keys awaited by clients that had changed before it."""
        self.over_limit = False
        """True if it has taken longer than ``lua-time-limit``."""
        self.lines: list[tuple[int, bytes]] = []
        """Lines that it logged in the loop's thread."""
        self.shown: list[tuple[Command, list[bytes]]] = []
        """Its commands, for clients that monitor."""


def _nothing() -> None:
    pass


def _zero() -> int:
    return 0


def _call(callback: Callable[[], None]) -> None:
    callback()


def _drop(data: bytes) -> None:
    pass

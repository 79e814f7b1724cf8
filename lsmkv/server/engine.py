"""Runs commands, and writes the changes of each tick of the loop as one record.

``Engine`` knows no sockets.  Connections give it requests, and send the sessions' ``out`` when the
engine allows it: after the write, and with ``appendfsync always`` after the sync.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from functools import partial

from lsmkv.engine.db.db import DB
from lsmkv.engine.db.observe.histogram import Histogram
from lsmkv.engine.errors import Error
from lsmkv.server.admission import check_allowed, unknown_command
from lsmkv.server.command import Command, Table
from lsmkv.server.eviction import Eviction
from lsmkv.server.keyspace import Keyspace
from lsmkv.server.long_reads import LongReads
from lsmkv.server.long_writes import LongWrites, changes_keys
from lsmkv.server.quoting import quoted
from lsmkv.server.records import TooLong
from lsmkv.server.resp import NO_REPLY, QUEUED, CommandError, Reply, encode
from lsmkv.server.scripts.evaluator import Evaluator
from lsmkv.server.scripts.isolated import IsolatedEvaluator
from lsmkv.server.session import Evaluation, Reread, Service, Session
from lsmkv.server.settings import Settings
from lsmkv.server.slowlog import without_secrets
from lsmkv.server.staging import Staging
from lsmkv.server.string_value import NotStaged
from lsmkv.server.syncing import Syncs

_log = logging.getLogger("lsmkv.server")
_NOT_WRITTEN = "MISCONF Errors writing to the log of the store: {}"
_STEP = 200
"""Keys that expire, or records that are swept, in one step of the background work."""
_PAUSE = 0.002
"""Seconds between two steps."""
_LONGEST_TIMER = 86_400.0
"""Seconds."""
_ONE_ARGUMENT = 49
"""Overhead of an argument in memory, in bytes."""
_INTERNAL = "ERR internal error: the server's log has the details"
_SECURITY = (
    "POST or Host: was sent by %s: a web page can make a browser send commands to this server; "
    "the connection is closed"
)
_QUIET = 60.0
"""Each kind of trouble is logged at most once in this many seconds."""


class Engine(Service):
    """The commands of one store.

    Call order: ``(run* commit)*``; ``run`` asks for the call of ``commit`` itself, by
    ``schedule``, which ``Server`` gives the loop's ``call_soon``.
    """

    def __init__(self, db: DB, space: Keyspace, table: Table, settings: Settings) -> None:
        super().__init__(db, space, table, settings)
        self._writable = space.writable
        """True if every command that writes may run."""
        self._scheduled = False
        self._touched: list[Session] = []
        writable, saves = space.writable, self.saves
        self.syncs = Syncs(db, settings, writable, self._send, self._fail_to_sync, saves)
        self._logged: dict[str, float] = {}
        """The time at which each kind of trouble was last logged."""
        isolated = settings.scripts.name == "process"
        self.evaluator: Evaluator = IsolatedEvaluator(self) if isolated else Evaluator(self)
        self.scripts = self.evaluator
        self.reads = LongReads(self)
        self.writes = LongWrites(self)
        self.eviction = Eviction(space, settings)
        settings.on_change.append(self.eviction.apply_settings)
        self.staging = Staging(self)
        self._held_back: dict[Session, None] = {}
        """Clients whose requests wait for the end of a script."""
        self._withheld: list[Session] = []
        """Clients that are answered when the transaction of a script has ended."""

    # Sessions

    def open_session(self, address: str = "", local: str = "") -> Session:
        """Open a session for a new connection."""
        self.connections += 1
        session = Session(self, self.connections, address, local)
        self.sessions[session.id] = session
        _log.debug("connected", extra=_of(session))
        return session

    def close_session(self, session: Session) -> None:
        """Close a session whose connection is gone or must go.  A second call has no effect."""
        if self.sessions.pop(session.id, None) is not None:
            _log.debug("disconnected", extra=_of(session))
        self.waits.remove(session)
        self.pause.remove(session)
        self.reads.cancel(session)
        self.channels.leave_all(session)
        session.leave_transaction()
        self.monitors.discard(session)
        self._held_back.pop(session, None)
        session.leave()
        if session.held:
            self.syncs.drop(session)

    def touch(self, session: Session) -> None:
        """Note that the session has output again."""
        self._touched.append(session)
        self._commit_soon()

    def _commit_soon(self) -> None:
        """Schedule a commit at the end of the tick, once."""
        if not self._scheduled:
            self._scheduled = True
            self.schedule(self.commit)

    # Running

    def run(self, session: Session, request: list[bytes]) -> None:
        """Run a request, or queue it in a transaction.  Its reply is then in the session."""
        found = self.table.get(request[0])
        if found is None or found.subcommands:
            found = self.command_of(request)
        session.last_command = found
        if (
            found is None
            or session.restricted
            or (found.writes and not self._writable)
            or not found.accepts(len(request))
            or (found.subcommands and len(request) > 1)
            or self.pause.active
            or self.writes.active
            or self.is_busy()
        ):
            found = self._checked(session, found, request)
            if found is None:
                if not session.postponed:
                    session.skips >>= 1
                return
            if self.is_busy():
                self._run_while_busy(session, found, request)
                return
        self.space.records.touched = False
        if not session.skips and not session.silent:
            if found.gives_way:
                self.space.records.deadline = time.perf_counter() + self.reads.in_loop
            elif found.stages:
                self.space.may_stage = not self.staging.resuming
        self.answer(session, found, request)
        if self.monitors:
            self.show(session, found, request)
        if self.is_busy():
            return  # the script of this request continues in a thread
        if session.skips and session.wait is None:
            session.skips >>= 1
        if self.space.ready:
            self.waits.serve()
        if self.space.has_changes:
            self._commit_soon()

    def answer(self, session: Session, found: Command, request: list[bytes]) -> None:
        """Run a command and answer it.  Note how to answer if the tick's writes fail."""
        closing = session.closing  # killed by CLIENT KILL in a transaction, which is answered last
        reply = self.call(session, found, request)
        if reply is NO_REPLY or closing:
            return
        at = len(session.out)
        try:
            session.reply(reply)
        except Exception:
            _log.exception("%s has made no reply", found.name, extra=_of(session))
            session.reply(CommandError(_INTERNAL))
        if self.space.uncertain and len(session.out) > at:
            if found.writes or found.runs_script:
                session.unwritten.append(at)
            elif "readonly" in found.flags:
                database, resp3 = session.database, session.resp3
                session.rereads.append(Reread(at, found, request, database, resp3))

    def command_of(self, request: list[bytes]) -> Command | None:
        """Find the command that a request names."""
        found = self.table.get(request[0]) or self.table.get(request[0].upper())
        if found is not None and found.subcommands and len(request) > 1:
            return found.subcommands.get(request[1].upper(), found)
        return found

    def call(self, session: Session, found: Command, request: list[bytes]) -> Reply:
        """Run a command, all or nothing.  Returns its reply or a :class:`CommandError`."""
        started = time.perf_counter_ns()
        space = self.space
        if space.failing:
            space.reading = "readonly" in found.flags
        space.counting = found.looks_up
        try:
            if space.stale:
                space.recover()
            reply = found.handler(session, request)
            if not self.is_busy():  # a script that continues in a thread can still be undone
                self.space.keep()
        except TooLong:
            self.space.undo()
            reply = self._give_way(session, found, request)
        except NotStaged as unstaged:
            self.space.undo()
            space.may_stage = False
            if self.staging.begin(session, request, *unstaged.args):
                reply = NO_REPLY
            else:
                reply = self.call(session, found, request)
        except CommandError as error:
            self.space.undo()
            found.failed += 1
            self.errors.note(str(error))
            reply = error
        except Error as failure:  # another name: compiled, one has the type of its first use
            self.space.undo()
            found.failed += 1
            _log.error("%s: %s", found.name, failure, extra=_of(session))
            reply = CommandError(f"ERR {type(failure).__name__}: {failure}")
        except Exception:
            self.space.undo()
            found.failed += 1
            _log.exception("%s failed", found.name, extra=_of(session))
            reply = CommandError(_INTERNAL)
        space.reading = space.counting = False
        space.records.deadline = math.inf
        space.may_stage = False
        nanoseconds = time.perf_counter_ns() - started
        found.calls += 1  # note_call, without a call
        if found.latencies is None:
            found.latencies = Histogram()
        found.latencies.add(nanoseconds)
        self.commands += 1
        if nanoseconds >= self.settings.notable:
            self._note_slow(session, found, request, nanoseconds)
        return reply

    def _give_way(self, session: Session, found: Command, request: list[bytes]) -> Reply:
        """Run a command that takes long in a thread."""
        self.space.records.deadline = math.inf
        try:
            if changes_keys(found, request):
                left = self.writes.begin(session, found, request)
            else:
                left = self.reads.begin(session, found, request)
            if left:
                return NO_REPLY
        except (Error, OSError) as error:
            return CommandError(f"ERR {type(error).__name__}: {error}")
        return self.call(session, found, request)

    def _note_slow(
        self, session: Session, found: Command, request: list[bytes], nanoseconds: int
    ) -> None:
        """Note a command that took longer than the limit of the slow log, or of LATENCY."""
        if found.name == "EXEC" or self.is_busy() or session.postponed:
            return  # its commands are noted; it continues in a thread
        self.note_latency("fast-command" if "fast" in found.flags else "command", nanoseconds)
        if nanoseconds >= self.slow.threshold * 1000 >= 0:
            address, seconds = session.address, nanoseconds / 1e9
            self.slow.add(without_secrets(request), seconds, address, session.name)

    def note_latency(self, event: str, nanoseconds: int) -> None:
        """Note an event for LATENCY, if it took long enough."""
        if nanoseconds >= self.settings.latency_threshold * 1_000_000 > 0:
            self.latencies.add(event, nanoseconds)

    def _checked(
        self, session: Session, found: Command | None, request: list[bytes]
    ) -> Command | None:
        """Return the command if it runs now.  None if it is refused, postponed, or queued in a
        transaction."""
        try:
            if found is None:
                if request[0].lower() in (b"post", b"host:"):
                    self._suspect(session)
                    return None
                raise unknown_command(request)
            check_allowed(session, found, request)
        except CommandError as error:
            if session.queued is not None:
                session.refused = True
            if found is not None:
                found.rejected += 1
                if found.name == "EXEC":
                    session.leave_transaction()
                    reason = str(error).removeprefix("ERR ")
                    error = CommandError(f"EXECABORT Transaction discarded because of: {reason}")
            self.errors.note(str(error))
            session.reply(error)
            if found is not None and found.name == "EXEC" and self.monitors:
                self.show(session, found, request)
            return None
        if self.pause.active and self.pause.postpones(
            session, found, partial(self._run_postponed, session, request)
        ):
            return None
        if self.writes.active and self.writes.postpones(
            session, found, request, partial(self._run_postponed, session, request)
        ):
            return None
        if session.queued is not None and "control" not in found.flags:
            if not session.refused and not session.changed:  # otherwise EXEC runs none of them
                session.queued.append((found, request))
                session.queued_size += sum(map(len, request)) + _ONE_ARGUMENT * len(request)
            session.reply(QUEUED)
            return None
        return found

    def _suspect(self, session: Session) -> None:
        """Close the connection of a web browser: a web page wrote the requests, not its user."""
        session.closing = True
        self._log_seldom("security", _SECURITY, session.address, session=session)

    def show(self, session: Session, found: Command, request: list[bytes]) -> None:
        """Show a command that ran to the clients that monitor, unless it is an admin command, or
        shows itself."""
        if "admin" not in found.flags and "skip_monitor" not in found.properties.flags:
            self.show_request(session, request)

    def show_request(self, session: Session, request: list[bytes]) -> None:
        """Show a request to the clients that monitor."""
        words = " ".join(quoted(argument) for argument in without_secrets(request))
        line = f"{time.time():.6f} [{session.database.index} {session.address}] {words}"
        for monitor in self.monitors:
            monitor.show(line)

    # Pauses

    def pause_clients(self, seconds: float, everything: bool) -> None:
        """Delay requests: all, or those that write.  Keys do not expire during the pause."""
        self.pause.begin(seconds, everything)
        self.space.frozen = True
        self._look_at_pause_after(seconds)

    def _look_at_pause_after(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(min(seconds, _LONGEST_TIMER), self._look_at_pause)

    def _look_at_pause(self) -> None:
        """End the pause if its time has passed; timers may come a little early."""
        if not self.pause.active:
            return
        if self.is_busy():
            self._look_at_pause_after(_PAUSE)
        elif self.pause.left > 0:
            self._look_at_pause_after(self.pause.left)
        else:
            self.end_pause()

    def end_pause(self) -> None:
        """Run the requests that have waited."""
        self.space.frozen = False
        for run in self.pause.end():
            run()

    def _run_postponed(self, session: Session, request: list[bytes]) -> None:
        self.run(session, request)
        session.on_unblocked()

    # Scripts that run in a thread

    def holds_back(self, session: Session) -> bool:
        """Keep back the next request of a client and return True: a script runs in a thread, or the
        client's last request is paused or runs in a thread.

        If so, the client continues when that ends, or when it may be answered with BUSY.
        """
        if session.postponed:
            return True
        busy = self.busy
        if busy is None or (busy.over_limit and busy.session is not session):
            return False
        self._held_back[session] = None
        return True

    def release_held_back(self) -> None:
        """Resume the clients whose requests wait for the end of a script."""
        released, self._held_back = self._held_back, {}
        for session in released:
            session.on_unblocked()

    def begin_busy(self, evaluation: Evaluation) -> None:
        """Note that a script continues in a thread; delay the replies of its transaction."""
        self.busy = evaluation
        self._withheld, self._touched = self._touched, []

    def end_busy(self, evaluation: Evaluation, reply: Reply) -> None:
        """Answer a script that has ended in a thread, and continue."""
        self.busy = None
        self._touched = self._withheld + self._touched
        self._withheld = []
        session = evaluation.session
        session.evaluating = False
        if evaluation.abandoned:
            self.space.roll_back()
            self._refuse_writes(self._touched, "ERR The server is shutting down")
        self.space.keep()
        then, session.after_script = session.after_script, _nothing
        if evaluation.abandoned and session.running:
            session.cut()  # in the middle of its transaction, of which nothing was written
        else:
            self._answer_script(session, reply)
            then()
        if self.is_busy():
            return  # a further script of its transaction
        session.skips >>= 1
        if self.space.ready:
            self.waits.serve()
        self._commit_soon()
        self.release_held_back()

    def _answer_script(self, session: Session, reply: Reply) -> None:
        at = len(session.out)
        session.reply(reply)
        if self.space.has_changes and len(session.out) > at:
            session.unwritten.append(at)

    def _run_while_busy(self, session: Session, found: Command, request: list[bytes]) -> None:
        """Run a command that may run during a script: it touches no key."""
        try:
            reply = found.handler(session, request)
        except CommandError as error:
            reply = error
        if reply is not NO_REPLY:
            session.reply(reply)
        session.skips >>= 1

    # Ticks

    def commit(self) -> None:
        """Write the tick's changes, then release its replies."""
        self._scheduled = False
        touched, self._touched = self._touched, []
        wrote = False
        if self.space.has_changes and not self.is_busy():
            started = time.perf_counter_ns()
            try:
                self.space.commit()
            except Exception as error:
                self._refuse(touched, error)
            else:
                wrote = self.syncs.needed = True
                self.saves.written = self.space.changes
                self._succeed()
            self.note_latency("aof-write", time.perf_counter_ns() - started)
        hold = self.settings.appendfsync == "always" and (wrote or self.syncs.waited_for)
        for session in touched:
            if not session.out:
                continue
            if hold or session.held:  # later output must not overtake it
                self.syncs.hold(session)
            else:
                self._send(session, session.take_output())
        if self.syncs.waited_for:
            self.syncs.start()

    def _send(self, session: Session, data: bytes) -> None:
        """Send output.  A failing connection affects only its own session."""
        try:
            session.send(data)
        except Exception:
            _log.exception("sending to %s failed", session.address, extra=_of(session))
            disconnect = session.disconnect
            self.close_session(session)
            try:
                disconnect()
            except Exception:
                _log.exception("disconnecting %s failed", session.address, extra=_of(session))

    def _refuse(self, touched: list[Session], error: Exception) -> None:
        """Answer the writes of an unwritten tick with an error, and run its reads again."""
        self.fail("nothing written", error)
        self._refuse_writes(touched, _NOT_WRITTEN.format(error))

    def _refuse_writes(self, touched: list[Session], reason: str) -> None:
        """Answer the writes of a tick with an error, and run its reads again."""
        refusal = encode(CommandError(reason))
        for session in touched:
            for at in session.unwritten:
                session.replace_output(at, refusal)
            for read in session.rereads:
                session.replace_output(read.at, encode(self._read_again(session, read), read.resp3))
            for at in session.transactional:  # last: the lists above have some of them
                session.replace_output(at, b"")
            session.unwritten.clear()
            session.rereads.clear()
            session.transactional.clear()

    def _read_again(self, session: Session, read: Reread) -> Reply:
        """Return a read's reply again, because the writes that it saw were not written."""
        database, session.database = session.database, read.database
        try:
            return self.call(session, read.found, read.request)
        finally:
            session.database = database

    def fail(self, what: str, error: BaseException) -> None:
        """Note why writes are not in the log, or not durable."""
        self.failure = str(error) or type(error).__name__
        self._log_seldom(what, "%s: %s", what, error)

    def _succeed(self) -> None:
        if self.failure:
            self._log_seldom("recovered", "writes work again after: %s", self.failure)
            self.failure = ""

    def _log_seldom(
        self, kind: str, text: str, *values: object, session: Session | None = None
    ) -> None:
        """Log a message that could repeat with every tick, at most once a minute."""
        now = time.monotonic()
        if now - self._logged.get(kind, -_QUIET) >= _QUIET:
            self._logged[kind] = now
            _log.error(text, *values, extra=None if session is None else _of(session))

    def _fail_to_sync(self, error: BaseException) -> CommandError:
        self.fail("sync failed", error)
        return CommandError(_NOT_WRITTEN.format(error))

    @property
    def syncing(self) -> bool:
        """True if replies wait for a sync."""
        return self.syncs.running

    # In the background

    async def tidy(self) -> None:
        """Remove expired keys and sweep what was removed, in short steps."""
        while True:
            if self.is_busy():
                await asyncio.sleep(0.1)
                continue
            try:
                if self.space.failing and not self._probe():
                    await asyncio.sleep(1)
                    continue
                busy = self.tidy_once()
            except (Error, OSError) as error:
                self.fail("sweeping failed", error)
                await asyncio.sleep(1)
                continue
            except Exception:  # otherwise keys would stop expiring without notice
                _log.exception("sweeping failed")
                await asyncio.sleep(1)
                continue
            await asyncio.sleep(_PAUSE if busy else 0.1)

    def _probe(self) -> bool:
        """Write a probe after writes have failed.  Returns whether that worked."""
        self.space.probe()
        self.commit()
        return not self.space.failing

    def refuse_growth(self, refused: bool) -> None:
        """Refuse commands that make the store grow, or run them again."""
        if refused and not self.full:
            limit = self.settings.max_disk
            self._log_seldom("full", "the store takes more than max-disk (%d bytes)", limit)
        self.full = refused
        self._writable = self.space.writable and not refused

    def evict_once(self) -> bool:
        """Evict some keys.  Returns whether more are to be evicted, and there are any."""
        started = time.perf_counter_ns()
        try:
            if self.space.stale:
                self.space.recover()
            more = self.eviction.step()
        except BaseException:
            self.space.undo()
            raise
        self.space.keep()
        self.note_latency("eviction-cycle", time.perf_counter_ns() - started)
        if self.space.ready:
            self.waits.serve()
        if self.space.has_changes:
            self._commit_soon()
        return more

    def tidy_once(self, limit: int = _STEP) -> bool:
        """Do one step.  Returns whether there is more to do."""
        started = time.perf_counter_ns()
        try:
            if self.space.stale:
                self.space.recover()
            busy = not self.space.frozen and self.space.expire_due(limit) == limit
            busy = self.space.sweep(limit) or busy
        except BaseException:
            self.space.undo()
            raise
        self.space.keep()
        self.note_latency("expire-cycle", time.perf_counter_ns() - started)
        if self.space.ready:
            self.waits.serve()
        if self.space.has_changes:
            self._commit_soon()
        return busy


def _of(session: Session) -> dict[str, object]:
    """The fields of a log record that identify a client."""
    return {"client": session.address}


def _nothing() -> None:
    pass

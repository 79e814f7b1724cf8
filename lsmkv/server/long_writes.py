"""Writes that take long: they run in a thread, and change their keys at the end, as a whole.

A command that may change many elements begins in the loop.  If it takes longer than a read may, it
is undone, and begins again in a thread, on a :class:`~lsmkv.server.draft.Draft`.  Its client waits,
and so does a client whose command, transaction or script names a key that is being written.  All
others continue: they find the keys as they were.  The command counts as run at its beginning, so it
sees nothing of what is written meanwhile to the keys that it only reads.

A script that writes such a key without naming it, an expiry or ``FLUSHALL`` cannot wait.  Then the
command runs again, finally without giving way.  The same happens if it needs too many versions.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from lsmkv.engine.errors import Error
from lsmkv.server.command import Command, KeyUse
from lsmkv.server.draft import VERSIONS, Draft
from lsmkv.server.long_reads import without_collections
from lsmkv.server.records import TooLong
from lsmkv.server.resp import CommandError, encode, encode_in_pieces
from lsmkv.server.session import Service, Session

_log = logging.getLogger("lsmkv.server")
_CHANGED: Final = frozenset({"OW", "RW", "RM"})
"""Redis' flags of keys that a command changes."""
_ATTEMPTS: Final = 3
_PAUSE: Final = 0.01
"""Seconds until it is tried again while a script runs."""
_PATIENCE: Final = 1000
"""Waits of 10 ms before a server that stops ends the writes, and again after that."""

Place = tuple[int, bytes]
"""The index of a database, and a key."""


class _Job:
    """A command that writes, in a thread."""

    def __init__(self, session: Session, found: Command, request: list[bytes]) -> None:
        self.session = session
        self.found = found
        self.request = request
        changed = [use.key for use in found.keys_of(request) if _is_changed(use)]
        self.places = [(session.database.index, key) for key in dict.fromkeys(changed)]
        self.started = time.perf_counter()
        self.attempts = 0
        self.draft: Draft
        self.changed = False
        """True if one of its keys was changed since its draft was begun."""

    def note_change(self) -> None:
        """Note that one of its keys was changed."""
        self.changed = True


class LongWrites:
    """The writes of a server that run in a thread, one after the other."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._jobs: dict[Place, _Job] = {}
        """The job that writes each key."""
        self._running: set[_Job] = set()
        self._waiting: dict[Session, tuple[list[Place], Callable[[], None]]] = {}
        """The places that a client's request names, and what runs it."""
        self._threads: ThreadPoolExecutor | None = None
        self.active = False
        """True while there are jobs."""

    def begin(self, session: Session, found: Command, request: list[bytes]) -> bool:
        """Run a command in a thread, which answers it.  Returns False if there is no loop that
        could continue, if it reads keys that it does not name, or if the store takes no writes.
        Raises the store's errors."""
        words = [] if found.name != "SORT" else [word.upper() for word in request]
        if b"BY" in words or b"GET" in words:
            return False
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return False
        job = _Job(session, found, request)
        if not self._start(job):
            return False
        session.postponed = True
        self._running.add(job)
        self.active = True
        self._jobs.update(dict.fromkeys(job.places, job))
        return True

    def _start(self, job: _Job) -> bool:
        """Begin a draft.  Returns False if the store takes no writes."""
        service, space, session = self._service, self._service.space, job.session
        version = space.take_versions(VERSIONS)
        space.keep()
        service.commit()  # the draft sees what was written before, and nothing else gets a version
        if space.failing:
            return False
        job.draft = Draft(space, version)
        job.attempts += 1
        job.changed = False
        for place in job.places:
            space.watched.setdefault(place, set()).add(job.note_change)
        if self._threads is None:
            self._threads = ThreadPoolExecutor(1, "lsmkv write")
        writer = Session(service, session.id, session.address)
        writer.space, writer.resp3 = job.draft, session.resp3
        writer.user, writer.limited = session.user, session.limited
        writer.database = job.draft.databases[session.database.index]
        loop = asyncio.get_running_loop()
        running = loop.run_in_executor(self._threads, _write, writer, job)
        running.add_done_callback(partial(self._end, job))
        return True

    def _end(self, job: _Job, running: asyncio.Future[bytes]) -> None:
        """Make the changes of a command that has ended, or run it again."""
        service, space = self._service, self._service.space
        if service.is_busy():
            asyncio.get_running_loop().call_later(_PAUSE, self._end, job, running)
            return
        self._unwatch(job)
        reply, again = b"", False
        try:
            reply = running.result()
            again = job.changed or not job.draft.fits(space)
            if not again:
                job.draft.apply(space)
        except TooLong:
            again = not job.draft.ended
            job.attempts = _ATTEMPTS
        except CommandError as error:
            again = job.changed
            job.found.failed += 1
            service.errors.note(str(error))
            reply = encode(error)
        except OSError as failure:
            space.undo()
            service.fail("nothing written", failure)
            reply = encode(
                CommandError(f"MISCONF Errors writing to the log of the store: {failure}")
            )
        except Error as wrong:
            space.undo()
            _log.error("%s: %s", job.found.name, wrong)
            reply = _error(wrong)
        except Exception:
            space.undo()
            again = job.changed
            if not again:
                _log.exception("%s failed", job.found.name)
                reply = encode(CommandError("ERR internal error: the server's log has the details"))
        job.draft.discard(space)
        job.draft.close()
        space.keep()
        if again and job.attempts < _ATTEMPTS:
            try:
                if self._start(job):
                    return
            except (Error, OSError) as unread:
                reply, again = _error(unread), False
        self._finish(job, None if again else reply)

    def _finish(self, job: _Job, reply: bytes | None) -> None:
        """Answer a command, or run it without giving way, and resume all that waited for it."""
        service, session = self._service, job.session
        self._running.discard(job)
        self.active = bool(self._running)
        for place in job.places:
            del self._jobs[place]
        session.postponed = False
        if reply is None:
            service.space.records.touched = False
            service.answer(session, job.found, job.request)
        else:
            seconds = time.perf_counter() - job.started
            job.found.add_time(int(seconds * 1e9))
            if seconds * 1e6 >= service.slow.threshold >= 0:
                service.slow.add(job.request, seconds, session.address, session.name)
            session.write_reply(reply)
        if service.space.ready:
            service.waits.serve()
        service.commit()
        self._release()
        session.on_unblocked()

    def _unwatch(self, job: _Job) -> None:
        watched = self._service.space.watched
        for place in job.places:
            calls = watched.get(place)
            if calls is not None:
                calls.discard(job.note_change)
                if not calls:
                    del watched[place]

    # Others

    def postpones(
        self, session: Session, found: Command, request: list[bytes], run: Callable[[], None]
    ) -> bool:
        """Postpone a request and return True if it must wait for a key; ``run`` runs it later."""
        if session.queued is None:
            places = _places(session, found, request)
        elif found.name == "EXEC":
            places = [
                place for one, words in session.queued for place in _places(session, one, words)
            ]
        else:
            return False
        if not any(place in self._jobs for place in places):
            return False
        session.postponed = True
        self._waiting[session] = (places, run)
        return True

    def _release(self) -> None:
        """Run the requests whose keys are free."""
        for session, (places, run) in list(self._waiting.items()):
            if session.gone or not any(place in self._jobs for place in places):
                del self._waiting[session]
                session.postponed = False
                if not session.gone:
                    run()

    async def drain(self) -> None:
        """Wait for all: the server ends.  What takes too long is ended, and changes nothing."""
        for _ in range(2):
            for _ in range(_PATIENCE):
                if not self._running:
                    break
                await asyncio.sleep(_PAUSE)
            for job in self._running:
                job.draft.end()
        if self._threads is not None:
            self._threads.shutdown(wait=False)


def changes_keys(found: Command, request: list[bytes]) -> bool:
    """True if a request names keys that it changes."""
    return any(_is_changed(use) for use in found.keys_of(request))


def _is_changed(use: KeyUse) -> bool:
    return not _CHANGED.isdisjoint(use.flags)


def _places(session: Session, found: Command, request: list[bytes]) -> list[Place]:
    return [(session.database.index, use.key) for use in found.keys_of(request)]


def _write(writer: Session, job: _Job) -> bytes:
    """Make a draft.  Returns the encoded reply."""
    return without_collections(partial(_reply, writer, job))


def _reply(writer: Session, job: _Job) -> bytes:
    found = job.found.handler(writer, job.request)
    reply = encode_in_pieces(found, writer.resp3, writer.space.records.look_at_time)
    job.draft.settle()
    return reply


def _error(error: Exception) -> bytes:
    return encode(CommandError(f"ERR {type(error).__name__}: {error}"))

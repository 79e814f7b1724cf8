"""Long strings that are written in steps, before the command that writes them runs.

To write a string of hundreds of megabytes takes seconds.  So its chunks are written first, some in
each tick, under a version that no key has: of an argument of ``SET`` and similar commands, and of a
string that a release without chunks has stored whole, once a command changes a part of it.  The
client of the command waits; all others continue.  Then the command runs, and finds the chunks.

A record with the version is written before the first chunk and deleted with the command's own
writes.  If the server is killed in between, the chunks are swept when it starts again.
"""

from __future__ import annotations

import asyncio
from typing import Final

from lsmkv.server.database import Database
from lsmkv.server.encoding import STRING, Entry
from lsmkv.server.records import would_stall
from lsmkv.server.resp import CommandError
from lsmkv.server.session import Service, Session

_STEP: Final = 1 << 20
_PAUSE: Final = 0.01
"""Seconds until it is tried again while a script runs, or the store would let writes wait."""
_MOST_PAUSES: Final = 500
"""Consecutive pauses after which a step is written though the store delays it."""
_PATIENCE: Final = 1000
"""The number of times that a server that stops waits for 10 ms."""


class _Job:
    """A string that is written in steps."""

    def __init__(self, session: Session, request: list[bytes], value: bytes, old: Entry | None):
        self.session = session
        self.request = request
        self.value = value
        self.old = old
        """The entry of a key that has the string already; None for an argument."""
        self.database: Database = session.database
        self.entry = Entry(STRING)
        """The entry that owns its chunks."""
        self.at = 0
        """Bytes that are written."""
        self.pauses = 0
        """The number of pauses since the last step."""
        self.changed = False
        """True if the key was changed since the job began."""

    def note_change(self) -> None:
        """Note that the key was changed."""
        self.changed = True


class Staging:
    """The long strings of a server that are being written, at most one of each client."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._jobs: set[_Job] = set()
        self.step = _STEP
        """Bytes that are written in one tick."""
        self.resuming = False
        """True while a command runs whose string this has written."""

    def begin(
        self, session: Session, request: list[bytes], value: bytes, old: Entry | None
    ) -> bool:
        """Write a string, then run the request.  Returns False if no loop could continue."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return False
        space = self._service.space
        job = _Job(session, request, value, old)
        space.stage(job.entry)
        space.keep()
        if old is not None:
            place = (job.database.index, request[1])
            space.watched.setdefault(place, set()).add(job.note_change)
        session.postponed = True
        self._jobs.add(job)
        self._service.schedule(lambda: self._step(job))
        return True

    def _step(self, job: _Job) -> None:
        service, space = self._service, self._service.space
        ends = job.session.gone or job.at == len(job.value)
        waits = not ends and would_stall(service.db) and job.pauses < _MOST_PAUSES
        if service.is_busy() or waits:
            job.pauses += 1
            asyncio.get_running_loop().call_later(_PAUSE, self._step, job)
            return
        job.pauses = 0
        if ends:
            self._finish(job)
            return
        value = space.value(job.entry)
        part = job.value[job.at : job.at + self.step]
        value.write(job.at, part)
        value.flush()
        job.at += len(part)
        space.keep()
        service.commit()
        if space.failing:
            self._fail(job)
        else:
            service.schedule(lambda: self._step(job))

    def _fail(self, job: _Job) -> None:
        """Refuse the command of a job: the store takes no writes."""
        self._forget(job)
        self._discard(job)
        reason = f"MISCONF Errors writing to the log of the store: {self._service.failure}"
        job.session.reply(CommandError(reason))
        job.session.on_unblocked()

    def _forget(self, job: _Job) -> None:
        """Forget a job, and resume its client."""
        self._jobs.discard(job)
        job.session.postponed = False
        if job.old is not None and not job.changed:
            watched = self._service.space.watched
            calls = watched[(job.database.index, job.request[1])]
            calls.discard(job.note_change)
            if not calls:
                del watched[(job.database.index, job.request[1])]

    def _discard(self, job: _Job) -> None:
        """Sweep the chunks, if no key has them."""
        self._service.space.discard_staged(job.entry.version)
        self._service.space.keep()

    def _finish(self, job: _Job) -> None:
        """Run the command of a job whose chunks are all written."""
        service, space, session = self._service, self._service.space, job.session
        self._forget(job)
        if not session.gone:
            if job.old is None:
                space.staged = (job.value, job.entry)
            elif not job.changed:
                space.split(job.database, job.request[1], job.old, job.entry)
                space.keep()
            self.resuming = True
            try:
                service.run(session, job.request)
            finally:
                self.resuming = False
                space.staged = None
        self._discard(job)
        service.commit()
        session.on_unblocked()

    async def drain(self) -> None:
        """Wait for the strings that are being written: the server ends."""
        for _ in range(_PATIENCE):
            if not self._jobs:
                return
            await asyncio.sleep(0.01)

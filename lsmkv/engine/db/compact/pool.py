"""Flushes and compactions in worker processes: the side of the process that has the store open.

``BackgroundJobs`` calls it, in the background thread and without any lock.  What a thread computes
takes time from the other threads, since there is one interpreter lock; worker processes
(``worker.py``) compute in parallel.  One flushes and another one compacts, so that a flush never
waits for a compaction.  Each costs about 50 ms of a processor to start, and 50 to 100 MB, so they
are for stores that are written to a lot: see :data:`_PAYS_FROM`.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from lsmkv.engine.db.compact.messages import (
    CompactionRequest,
    FlushRequest,
    Report,
    encode_settings,
)
from lsmkv.engine.db.compact.obsolete import PendingOutputs
from lsmkv.engine.db.compact.picking import Compaction
from lsmkv.engine.db.tree.memtable import MemTable
from lsmkv.engine.db.tree.store import Store
from lsmkv.engine.db.tree.table_output import remove_table
from lsmkv.engine.env.local import LocalDirectory
from lsmkv.engine.env.process import Process, ProcessEnded, can_start, processors, random_token
from lsmkv.engine.format.filenames import table_name, worker_table_name, worker_token
from lsmkv.engine.format.version_edit import FileMetaData
from lsmkv.engine.options import Options, has_own_parts_alone

_PAYS_FROM = 8 * 1024 * 1024
"""A worker is started when jobs that follow each other within 5 seconds add up to this many bytes.
Half is enough if a job comes within a second of the last one, or of opening.  A memtable of at
least half this size that fills within a second starts its worker before the flush."""

_SOON = 5.0  # seconds
_AT_ONCE = 1.0  # second
_LONGEST_START = 1.0  # second; usually a twentieth of that

_LISTEN_EVERY = 0.01  # seconds
_LOOK_EVERY = 0.002  # seconds between looks whether a thread waits for the flush
_LONGEST_SILENCE = 60.0  # seconds: a disk may take long to sync a file
_MOST_FAILURES = 3


class WorkerPool:
    """Has jobs done by worker processes, where that is possible and pays.

    Used by the background thread, and by ``Background.stop`` after its end.  :meth:`flush` and
    :meth:`compact` return None if no worker did the job: the worker was not started or not ready in
    time, has died, or has declined.  The thread then does it.  An error of the job itself is raised
    as if the thread had done it.
    """

    def __init__(self, store: Store, pending_outputs: PendingOutputs) -> None:
        self._store = store
        self._enabled = _is_possible(store)
        self._flush_worker = WorkerProcess(store, pending_outputs, False)
        self._compaction_worker = WorkerProcess(store, pending_outputs, True)
        self._bytes = 0  # of jobs that came soon after each other
        self._last_job = time.monotonic()
        self._jobs = 0
        self._failures = 0

    def flush(
        self,
        memtable: MemTable,
        options: Options,
        pinned: list[int],
        poll: Callable[[], None],
        new_number: Callable[[], int],
    ) -> list[FileMetaData] | None:
        """Have tables made of the memtable's log; an empty list if there is nothing in it.

        ``options`` are those of the tables, and ``new_number`` gives each its number.
        Returns None if the job was not done.  ``poll`` is called periodically; if it raises, the
        job is given up.
        """
        worker = self._flush_worker
        if not self._start_if_it_pays(worker, memtable.usage):
            return None
        if not self._wait_for_start(worker, poll):
            return None
        self._jobs += 1
        request = FlushRequest(self._jobs, options, memtable.log_number, memtable.usage, pinned)
        return self._run_job(worker, request, lambda _: poll(), new_number)

    def compact(
        self,
        compaction: Compaction,
        options: Options,
        oldest_pinned: int,
        on_progress: Callable[[int], None],
        new_number: Callable[[], int],
    ) -> list[FileMetaData] | None:
        """Have a compaction carried out.  Returns None if the job was not done.

        ``options`` are those of the outputs.
        ``on_progress`` is called now and then, with the bytes read so far; if it raises, the job is
        given up.  ``new_number`` gives each table its number.
        """
        worker = self._compaction_worker
        if not self._start_if_it_pays(worker, compaction.input_size):
            return None
        self._jobs += 1
        request = CompactionRequest.of(self._jobs, options, compaction, oldest_pinned)
        return self._run_job(worker, request, on_progress, new_number)

    def should_start_ahead(self, size: int, seconds: float) -> bool:
        """Return True if a worker should start before the flush of a memtable that ``size`` bytes
        fill in ``seconds``.  Any thread may ask."""
        return (
            self._enabled
            and not self._flush_worker.is_running
            and size >= _PAYS_FROM // 2
            and seconds < _AT_ONCE
        )

    def start_ahead(self) -> None:
        """Start the worker for the next flush, unless it runs."""
        worker = self._flush_worker
        if not worker.is_running:
            worker.kill()  # as in _start_if_it_pays
            self._start(worker)

    def disable(self) -> None:
        """Start no more workers."""
        self._enabled = False

    def kill(self) -> None:
        """Kill the workers, and remove the tables that they did not finish."""
        self._flush_worker.kill()
        self._compaction_worker.kill()

    def abandon(self) -> None:
        """Abandon the workers in a forked child: they belong to the parent."""
        for worker in (self._flush_worker, self._compaction_worker):
            process = worker.process
            if process is not None:
                process.abandon()

    @property
    def _always(self) -> bool:
        """True if every job goes to a worker, whatever its size."""
        return self._store.options.background == "process"

    def _start_if_it_pays(self, worker: WorkerProcess, size: int) -> bool:
        """True if a job of ``size`` bytes goes to the worker, which is started if necessary."""
        if not self._enabled:
            return False
        if not worker.is_running:
            worker.kill()  # it has ended by itself, being idle: what it left is removed
        now = time.monotonic()
        since = now - self._last_job
        self._last_job = now
        self._bytes = size + (self._bytes if since < _SOON else 0)
        pays = self._bytes >= (_PAYS_FROM // 2 if since < _AT_ONCE else _PAYS_FROM)
        if worker.process is None and (pays or self._always):
            self._start(worker)
        return worker.process is not None

    def _start(self, worker: WorkerProcess) -> None:
        """Start a worker; if that fails, note it in ``LOG`` and go on without one."""
        try:
            worker.start()
        except Exception as error:  # the system's, Python's, or the process died
            worker.kill()
            self._note_failure(f"a worker process could not be started: {error}")

    def _wait_for_start(self, worker: WorkerProcess, poll: Callable[[], None]) -> bool:
        """Return True if a starting worker becomes ready before any thread waits for its job.

        Until then the background thread may as well wait: its computing would slow the writers.
        """
        if self._always:
            return True
        store = self._store
        wait = 0.0
        while not worker.is_ready(wait):
            poll()
            late = time.monotonic() - worker.started > _LONGEST_START
            if late or store.closing or store.changed.awaited:
                return False
            wait = _LOOK_EVERY
        return True

    def _run_job(
        self,
        worker: WorkerProcess,
        request: FlushRequest | CompactionRequest,
        on_progress: Callable[[int], None],
        new_number: Callable[[], int],
    ) -> list[FileMetaData] | None:
        """The tables that the worker made, under the store's own names; None if it made none."""
        process = worker.process
        assert process is not None
        try:
            report = worker.run_job(request, on_progress)
        except ProcessEnded as error:
            worker.kill()
            if process.status != 0:  # else it ended, being idle, while the request was on its way
                self._note_failure(
                    f"Worker process {process.pid} is lost ({error}, {process.status})"
                )
            return None
        except BaseException:
            worker.kill()
            raise
        if report.error is not None:
            raise report.error
        if report.declined is not None:
            self._note_failure(f"Worker process {process.pid}: {report.declined}")
            return None
        assert report.files is not None
        report.add_to(self._store.counters)
        return worker.rename_tables(report.files, new_number)

    def _note_failure(self, reason: str) -> None:
        """Note that a worker has failed; after some failures no more are started."""
        self._failures += 1
        last = self._failures >= _MOST_FAILURES
        if last:
            self._enabled = False
        self._store.info_log.warn(
            f"{reason}; the work is done in a thread{' from now on' if last else ''}"
        )


class WorkerProcess:
    """One worker process, while there is one.  It does one job at a time."""

    def __init__(self, store: Store, pending_outputs: PendingOutputs, low_priority: bool) -> None:
        """A process of ``low_priority`` lets others go first when processors are scarce."""
        self._store = store
        self._pending_outputs = pending_outputs
        self._low_priority = low_priority
        self._token = ""
        self._ready = False
        self.started = 0.0
        """Time at which the process was started (``time.monotonic``)."""
        self.process: Process | None = None

    @property
    def is_running(self) -> bool:
        """True if there is a process that has not ended.  Any thread may ask."""
        process = self.process
        return process is not None and not process.ended

    def start(self) -> None:
        """Start the process; any exception may be raised if that fails."""
        store = self._store
        directory = store.directory
        assert isinstance(directory, LocalDirectory)
        process = Process("lsmkv.engine.db.compact.worker", directory)
        self._token = random_token()
        self._pending_outputs.tokens.add(self._token)
        self._ready = False
        self.started = time.monotonic()
        self.process = process
        store.info_log.write(f"Worker process {process.pid} started")
        self._send(encode_settings(self._token, self._low_priority, store.options))

    def is_ready(self, seconds: float) -> bool:
        """Return True if the process has started up, or does so within ``seconds``.

        Its first report says so.
        """
        try:
            if not self._ready and self._receive(seconds) is not None:
                self._ready = True
        except ProcessEnded:
            return True  # run_job finds out
        return self._ready

    def run_job(
        self, request: FlushRequest | CompactionRequest, on_progress: Callable[[int], None]
    ) -> Report:
        """Send a request, and return the last report on its job.

        Raises :class:`ProcessEnded` if there is none, and what ``on_progress`` raises.
        """
        self._send(request.encode())
        heard = time.monotonic()
        bytes_read = 0
        while True:
            on_progress(bytes_read)
            report = self._receive(_LISTEN_EVERY)
            if report is None:
                if time.monotonic() - heard > _LONGEST_SILENCE:
                    raise ProcessEnded(f"no report for {_LONGEST_SILENCE:.0f} s")
                continue
            heard = time.monotonic()
            self._ready = True
            if report.job == request.job:
                if report.is_last:
                    return report
                bytes_read = report.bytes_read

    def rename_tables(
        self, files: list[FileMetaData], new_number: Callable[[], int]
    ) -> list[FileMetaData]:
        """Give the worker's tables numbers and names of the store, durably.

        If that fails, none of the tables stays.
        """
        directory = self._store.directory
        renamed: list[FileMetaData] = []
        try:
            for file in files:
                number = new_number()
                directory.rename(worker_table_name(self._token, file.number), table_name(number))
                renamed.append(FileMetaData(number, file.size, file.smallest, file.largest))
            directory.sync()
        except OSError:
            for file in renamed:
                remove_table(directory, file.number)
            self._remove_tables()
            raise
        return renamed

    def kill(self) -> None:
        """Kill the process, if there is one, and remove the tables that it did not finish."""
        process = self.process
        if process is None:
            return
        process.end()
        self.process = None
        self._pending_outputs.tokens.discard(self._token)
        self._remove_tables()

    def _remove_tables(self) -> None:
        """Remove all tables that the process has made, under the names that it gave them."""
        directory = self._store.directory
        try:
            for name in directory.names():
                if worker_token(name) == self._token:
                    directory.remove(name)
        except OSError:
            pass  # the next commit removes them, or the next open

    def _send(self, line: bytes) -> None:
        assert self.process is not None
        self.process.send(line)

    def _receive(self, seconds: float) -> Report | None:
        """The next report, or None if there is none within ``seconds``."""
        assert self.process is not None
        line = self.process.receive(seconds)
        if line is None:
            return None
        try:
            return Report.decode(line)
        except Exception as error:
            raise ProcessEnded(f"it sent a malformed report: {error}") from None


def _is_possible(store: Store) -> bool:
    """Return True if a worker process can do this store's work, and the options allow it."""
    options: Options = store.options
    if options.background in ("thread", "inline") or type(store.directory) is not LocalDirectory:
        return False
    if options.background == "auto" and processors() < 2:
        return False
    own = has_own_parts_alone(options.comparator, options.filter_policy, options.prefix_extractor)
    return own and can_start()

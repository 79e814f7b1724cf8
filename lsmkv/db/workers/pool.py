"""Flushes and compactions in other processes: the side of the one who has the store open.

What a thread computes is taken from the foreground: there is one interpreter lock.  Worker
processes (``worker.py``) compute beside it: one flushes, another one merges, so that a flush never
waits for a merge.  Each costs about 50 ms of a processor to start, and 50 to 100 MB, so they are
for stores that are written to a lot: see :data:`_PAYS_FROM`.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from lsmkv.db.compaction import Compaction
from lsmkv.db.memtable import MemTable
from lsmkv.db.obsolete import PendingOutputs
from lsmkv.db.store import Store
from lsmkv.db.workers.messages import CompactionRequest, FlushRequest, Report, encode_settings
from lsmkv.env.local import LocalDirectory
from lsmkv.env.process import Process, ProcessEnded, can_start, processors, random_token
from lsmkv.format.filenames import table_name, worker_table_name, worker_token
from lsmkv.format.version_edit import FileMetaData
from lsmkv.options import Options, has_own_parts_alone

_PAYS_FROM = 8 * 1024 * 1024
"""Bytes of jobs, one soon after the other, with which a worker is started; or half of them in one
job, where the one before, or the opening, was just now: then much is being written.  Where such a
job comes up as fast as that, a worker is started ahead of it."""

_SOON = 5.0  # seconds
_JUST_NOW = 1.0
_LONGEST_START = 1.0  # seconds; usually a twentieth of that

_LISTEN_EVERY = 0.01  # seconds
_LOOK_EVERY = 0.002  # seconds: who waits for the thread, meanwhile
_LONGEST_SILENCE = 60.0  # seconds: a disk may take long to sync a file
_MOST_FAILURES = 3


class WorkerPool:
    """Has jobs done by worker processes, where that can be and pays.

    Used by the background thread, and by ``stop`` after it.  A job that is not done here, because
    of a worker that cannot be had, has died or is in doubt, is for the thread to do; what a job
    itself fails with is raised as if it had been done here.
    """

    def __init__(self, store: Store, pending_outputs: PendingOutputs) -> None:
        self._store = store
        self._possible = _is_possible(store)
        self._flushing = _WorkerProcess(store, pending_outputs, False)
        self._merging = _WorkerProcess(store, pending_outputs, True)
        self._bytes = 0
        self._last_job = time.monotonic()
        self._jobs = 0
        self._failures = 0

    @property
    def pids(self) -> list[int]:
        """The process ids of the workers that there are: at most two."""
        hands = [self._flushing, self._merging]
        return [hand.process.pid for hand in hands if hand.process and hand.is_there]

    def flush(
        self,
        memtable: MemTable,
        live: list[int],
        between: Callable[[], None],
    ) -> list[FileMetaData] | None:
        """Have the memtable's log made into its table, if anything is in it; None if it was not
        done.

        ``between`` is called now and then; if it raises, the job is given up.
        """
        hand = self._flushing
        if not self._begin(hand, memtable.usage) or not self._comes_up(hand, between):
            return None
        self._jobs += 1
        order = FlushRequest(self._jobs, memtable.log_number, memtable.usage, live)
        return self._have_done(hand, order, lambda _: between(), lambda: memtable.table_number)

    def expects_flush(self, size: int, seconds: float) -> bool:
        """Whether a worker is to be started for a memtable that ``size`` bytes fill in so many
        seconds.  Any thread may ask."""
        return (
            self._possible
            and not self._flushing.is_there
            and size >= _PAYS_FROM // 2
            and seconds < _JUST_NOW
        )

    def prepare(self) -> None:
        """Start a worker for the flush that is foreseen, if there is none."""
        hand = self._flushing
        if not hand.is_there:
            hand.end()  # as in _begin
            self._start(hand)

    def merge(
        self,
        compaction: Compaction,
        oldest_seen: int,
        between: Callable[[int], None],
        new_number: Callable[[], int],
    ) -> list[FileMetaData] | None:
        """Have a compaction carried out; None if it was not done.

        ``between`` is called now and then, with the bytes read so far; if it raises, the job is
        given up.  ``new_number`` gives each table its number.
        """
        if not self._begin(self._merging, compaction.input_size):
            return None
        self._jobs += 1
        order = CompactionRequest.of(self._jobs, compaction, oldest_seen)
        return self._have_done(self._merging, order, between, new_number)

    def end(self) -> None:
        """Kill the workers, if there are any, and remove what they did not finish."""
        self._flushing.end()
        self._merging.end()

    def abandon(self) -> None:
        """In a forked child: the workers are the parent's."""
        for hand in (self._flushing, self._merging):
            process = hand.process
            if process is not None:
                process.abandon()

    @property
    def _insists(self) -> bool:
        return self._store.options.background == "process"

    def _begin(self, hand: _WorkerProcess, size: int) -> bool:
        """Whether a job of so many bytes goes to a worker; there is one then."""
        if not self._possible:
            return False
        if not hand.is_there:
            hand.end()  # it had nothing to do for some time
        now = time.monotonic()
        since = now - self._last_job
        self._last_job = now
        self._bytes = size + (self._bytes if since < _SOON else 0)
        pays = self._bytes >= (_PAYS_FROM // 2 if since < _JUST_NOW else _PAYS_FROM)
        if hand.process is None and (pays or self._insists):
            self._start(hand)
        return hand.process is not None

    def _start(self, hand: _WorkerProcess) -> None:
        """Start a worker; if that cannot be done there is none, and a word in the ``LOG``."""
        try:
            hand.start()
        except Exception as error:  # the system's, Python's, or the process died
            hand.end()
            self._failed(f"a worker process could not be started: {error}")

    def _comes_up(self, hand: _WorkerProcess, between: Callable[[], None]) -> bool:
        """Whether a worker that starts is ready before anybody waits for what it is to do.

        Until then the thread may as well wait: what it computed would be taken from the writers.
        """
        if self._insists:
            return True
        store = self._store
        wait = 0.0
        while not hand.is_ready(wait):
            between()
            late = time.monotonic() - hand.started > _LONGEST_START
            if late or store.closing or store.changed.awaited:
                return False
            wait = _LOOK_EVERY
        return True

    def _have_done(
        self,
        hand: _WorkerProcess,
        order: FlushRequest | CompactionRequest,
        between: Callable[[int], None],
        new_number: Callable[[], int],
    ) -> list[FileMetaData] | None:
        process = hand.process
        assert process is not None
        try:
            report = hand.work(order, between)
        except ProcessEnded as error:
            hand.end()
            if process.status != 0:  # else it ended by itself, while the order was on its way
                self._failed(f"Worker process {process.pid} is lost ({error}, {process.status})")
            return None
        except BaseException:
            hand.end()
            raise
        if report.error is not None:
            raise report.error
        if report.doubt is not None:
            self._failed(f"Worker process {process.pid}: {report.doubt}")
            return None
        assert report.files is not None
        report.count_in(self._store.counters)
        return hand.take_over(report.files, new_number)

    def _failed(self, reason: str) -> None:
        """Note that a worker was of no use; one that never is, is not asked for ever."""
        self._failures += 1
        last = self._failures >= _MOST_FAILURES
        if last:
            self._possible = False
        self._store.info_log.warn(
            f"{reason}; the work is done in a thread{' from now on' if last else ''}"
        )


class _WorkerProcess:
    """One worker process, when there is one; it does one job at a time."""

    def __init__(self, store: Store, pending_outputs: PendingOutputs, patient: bool) -> None:
        """A ``patient`` one lets others go first when processors are scarce."""
        self._store = store
        self._pending_outputs = pending_outputs
        self._patient = patient
        self._token = ""
        self._ready = False
        self.started = 0.0
        """When the process was."""
        self.process: Process | None = None

    @property
    def is_there(self) -> bool:
        """Whether there is a process, which has not ended.  Any thread may ask."""
        process = self.process
        return process is not None and not process.ended

    def start(self) -> None:
        """Start the process; an exception of one kind or another if that cannot be done."""
        store = self._store
        directory = store.directory
        assert isinstance(directory, LocalDirectory)
        process = Process("lsmkv.db.workers.worker", directory)
        self._token = random_token()
        self._pending_outputs.tokens.add(self._token)
        self._ready = False
        self.started = time.monotonic()
        self.process = process
        store.info_log.write(f"Worker process {process.pid} started")
        self._send(encode_settings(self._token, self._patient, store.options))

    def is_ready(self, seconds: float) -> bool:
        """Whether the process has started up, or does within so many seconds.

        It says so by a report of its own accord.
        """
        try:
            if not self._ready and self._receive(seconds) is not None:
                self._ready = True
        except ProcessEnded:
            return True  # the one who gives it an order is told
        return self._ready

    def work(
        self, order: FlushRequest | CompactionRequest, between: Callable[[int], None]
    ) -> Report:
        """The last report on a job.  :class:`ProcessEnded` if none comes."""
        self._send(order.encode())
        heard = time.monotonic()
        bytes_read = 0
        while True:
            between(bytes_read)
            report = self._receive(_LISTEN_EVERY)
            if report is None:
                if time.monotonic() - heard > _LONGEST_SILENCE:
                    raise ProcessEnded(f"nothing was heard of it for {_LONGEST_SILENCE:.0f} s")
                continue
            heard = time.monotonic()
            self._ready = True
            if report.job == order.job:
                if report.is_last:
                    return report
                bytes_read = report.bytes_read

    def take_over(
        self, files: list[FileMetaData], new_number: Callable[[], int]
    ) -> list[FileMetaData]:
        """Give the worker's tables numbers and names of the store's own, durably."""
        directory = self._store.directory
        taken: list[FileMetaData] = []
        for file in files:
            number = new_number()
            directory.rename(worker_table_name(self._token, file.number), table_name(number))
            taken.append(FileMetaData(number, file.size, file.smallest, file.largest))
        directory.sync()
        return taken

    def end(self) -> None:
        """Kill the process, if there is one, and remove what it did not finish."""
        process = self.process
        if process is None:
            return
        process.end()
        self.process = None
        self._pending_outputs.tokens.discard(self._token)
        directory = self._store.directory
        try:
            for name in directory.names():
                if worker_token(name) == self._token:
                    directory.remove(name)
        except OSError:
            pass  # the next commit removes it, or the next open

    def _send(self, line: bytes) -> None:
        assert self.process is not None
        self.process.send(line)

    def _receive(self, seconds: float) -> Report | None:
        assert self.process is not None
        line = self.process.receive(seconds)
        if line is None:
            return None
        try:
            return Report.decode(line)
        except Exception as error:
            raise ProcessEnded(f"an answer that is none: {error}") from None


def _is_possible(store: Store) -> bool:
    """Whether a worker process could do this store's work, and is allowed to."""
    options: Options = store.options
    if options.background == "thread" or type(store.directory) is not LocalDirectory:
        return False
    if options.background == "auto" and processors() < 2:
        return False
    return has_own_parts_alone(options.comparator, options.filter_policy) and can_start()

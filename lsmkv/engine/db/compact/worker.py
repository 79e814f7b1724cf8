"""The worker process: it flushes or compacts for its owner, the process that has the store open.

It holds no lock and commits nothing.  It reads logs and tables, which no process changes, and
writes tables under temporary names (``.worker-...``), durably; its owner renames and commits them.
So it may be killed at any moment, and the next open removes what it left.
"""

from __future__ import annotations

import time

from lsmkv.engine.counters import Counters
from lsmkv.engine.db.compact.compaction import CompactionJob
from lsmkv.engine.db.compact.flush import write_tables
from lsmkv.engine.db.compact.log_entries import LogEntries
from lsmkv.engine.db.compact.messages import (
    CompactionRequest,
    FlushRequest,
    Report,
    decode_request,
    decode_settings,
    opened_by,
)
from lsmkv.engine.db.tree.table_cache import TableCache
from lsmkv.engine.env.base import Directory
from lsmkv.engine.env.process import Port, ProcessEnded, inherited_directory
from lsmkv.engine.env.renaming_directory import RenamingDirectory
from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.format.filenames import log_name, parse_filename, worker_table_name
from lsmkv.engine.format.keys import InternalKeyComparator
from lsmkv.engine.options import Options

IDLE_SECONDS = 5.0
"""A worker ends when it gets no request for so long."""

_REPORT_EVERY = 0.05  # seconds


def main(owner: int, descriptor: int, path: str) -> None:
    """Serve the process ``owner``, in the directory that is open as ``descriptor``."""
    port = Port(owner)
    try:
        settings = port.receive(IDLE_SECONDS)
        if settings is not None:
            token, low_priority, options = decode_settings(settings)
            if low_priority:
                port.step_back()
            Worker(port, inherited_directory(descriptor, path), token, options).serve()
    except ProcessEnded:
        pass  # the owner is gone, and there is nothing to report to


class Worker:
    """Carries out one request after the other."""

    def __init__(self, port: Port, directory: Directory, token: str, options: Options) -> None:
        """``token`` is part of the name of every table that is made here."""
        self._port = port
        self._directory = RenamingDirectory(directory, self._alias)
        self._token = token
        self._comparator = InternalKeyComparator(options.comparator)
        self._order = self._comparator.order
        self._options = options
        self._tables_made = 0
        self._entries: LogEntries | None = None
        """The entries of the last flush, kept until the report is sent: they take a millisecond to
        free, which the owner need not wait for."""

    def serve(self) -> None:
        """Serve requests until none has come for :data:`IDLE_SECONDS`.

        Raises :class:`ProcessEnded` when the owner ends.
        """
        self._port.send(Report(0).encode())  # ready
        while True:
            line = self._port.receive(IDLE_SECONDS)
            if line is None:
                return
            self._run_job(line)

    def _run_job(self, line: bytes) -> None:
        request = decode_request(line)
        try:
            if isinstance(request, FlushRequest):
                report = self._flush(request)
            else:
                report = self._compact(request)
        except ProcessEnded:
            raise
        except MemoryError:
            report = Report(request.job, declined="out of memory")
        except Exception as error:
            report = Report(request.job, error=error)
        self._port.send(report.encode())
        self._entries = None

    def _alias(self, name: str) -> str:
        parsed = parse_filename(name)
        assert parsed is not None
        return worker_table_name(self._token, parsed[0])

    def _new_number(self) -> int:
        self._tables_made += 1
        return self._tables_made

    # Flush

    def _flush(self, request: FlushRequest) -> Report:
        name = log_name(request.log)
        entries = LogEntries(request.pinned)
        self._entries = entries
        try:
            with self._directory.open(name) as file:
                declined = entries.read(file)
        except (CorruptionError, OSError) as error:
            declined = str(error)
        if declined is None and entries.usage != request.usage:
            declined = "not the writes that the memtable holds"
        if declined is not None:
            return Report(request.job, declined=f"{name}: {declined}")
        if entries.empty:
            return Report(request.job, files=[])
        columns = entries.columns(self._order)
        files = write_tables([columns], self._directory, self._new_number, request.options)
        return Report(request.job, files=files)

    # Compaction

    def _compact(self, request: CompactionRequest) -> Report:
        counters = Counters()
        tables = TableCache(self._directory, self._options, counters)
        job = CompactionJob(
            request.compaction(self._comparator),
            self._directory,
            tables,
            request.options,
            self._new_number,
            request.oldest,
        )
        reported = time.monotonic()

        def report_progress() -> None:
            nonlocal reported
            self._port.listen()
            now = time.monotonic()
            if now - reported >= _REPORT_EVERY:
                reported = now
                self._port.send(Report(request.job, bytes_read=job.reads.bytes_read).encode())

        files = job.run(report_progress)
        return Report(request.job, files=files, opened=opened_by(counters))

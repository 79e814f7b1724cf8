"""The worker process: flushes or merges for the process that has the store open.

It holds no lock and commits nothing.  It reads logs and tables, which nobody changes, and writes
tables under temporary names (``.worker-...``), durably; what becomes of them is for its owner to
say.  So it may be killed at any moment, and whoever opens the store next removes what it left.
"""

from __future__ import annotations

import time

from lsmkv.db.compaction import CompactionJob
from lsmkv.db.table_cache import TableCache
from lsmkv.db.table_output import write_entries
from lsmkv.db.workers.log_entries import LogEntries
from lsmkv.db.workers.messages import (
    CompactionRequest,
    FlushRequest,
    Report,
    decode_request,
    decode_settings,
)
from lsmkv.env.aliased import AliasedDirectory
from lsmkv.env.base import Directory
from lsmkv.env.process import Port, ProcessEnded, inherited_directory
from lsmkv.errors import CorruptionError
from lsmkv.format.filenames import log_name, parse_filename, worker_table_name
from lsmkv.format.keys import InternalKeyComparator
from lsmkv.options import Options
from lsmkv.stats import Counters

IDLE_SECONDS = 5.0
"""A worker that nobody needed for so long ends."""

_TELL_EVERY = 0.05  # seconds


def main(owner: int, descriptor: int, path: str) -> None:
    """Serve the process ``owner``, in the directory that is open as ``descriptor``."""
    port = Port(owner)
    try:
        settings = port.receive(IDLE_SECONDS)
        if settings is not None:
            token, patient, options = decode_settings(settings)
            if patient:
                port.step_back()
            Worker(port, inherited_directory(descriptor, path), token, options).serve()
    except ProcessEnded:
        pass  # nobody is left to be told


class Worker:
    """Carries out one order after the other."""

    def __init__(self, port: Port, directory: Directory, token: str, options: Options) -> None:
        """``token`` is the owner's, and part of every name that is given here."""
        self._port = port
        self._directory = AliasedDirectory(directory, self._alias)
        self._token = token
        self._comparator = InternalKeyComparator(options.comparator)
        self._order = self._comparator.order
        self._options = options
        self._tables_made = 0
        self._rows: LogEntries | None = None
        """Of the last flush, until its owner is told: they take a millisecond to free, in which it
        has enough to do."""

    def serve(self) -> None:
        """Until nothing was asked for some seconds; :class:`ProcessEnded` when the owner ends."""
        self._port.send(Report(0).encode())  # ready
        while True:
            line = self._port.receive(IDLE_SECONDS)
            if line is None:
                return
            self._do(line)

    def _do(self, line: bytes) -> None:
        order = decode_request(line)
        try:
            report = self._flush(order) if isinstance(order, FlushRequest) else self._merge(order)
        except ProcessEnded:
            raise
        except MemoryError:
            report = Report(order.job, doubt="out of memory")
        except Exception as error:
            report = Report(order.job, error=error)
        self._port.send(report.encode())
        self._rows = None

    def _alias(self, name: str) -> str:
        parsed = parse_filename(name)
        assert parsed is not None
        return worker_table_name(self._token, parsed[0])

    def _new_number(self) -> int:
        self._tables_made += 1
        return self._tables_made

    # Flush

    def _flush(self, order: FlushRequest) -> Report:
        name = log_name(order.log_number)
        rows = LogEntries(order.live)
        self._rows = rows
        try:
            with self._directory.open(name) as file:
                doubt = rows.read(file)
        except (CorruptionError, OSError) as error:
            doubt = str(error)
        if doubt is None and rows.usage != order.usage:
            doubt = "not the writes that the memtable holds"
        if doubt is not None:
            return Report(order.job, doubt=f"{name}: {doubt}")
        if rows.empty:
            return Report(order.job, files=[])
        columns = rows.columns(self._order)
        table = write_entries([columns], self._directory, self._new_number(), self._options)
        return Report(order.job, files=[table])

    # Merge

    def _merge(self, order: CompactionRequest) -> Report:
        counters = Counters()
        tables = TableCache(self._directory, self._options, counters)
        job = CompactionJob(
            order.compaction(self._comparator),
            self._directory,
            tables,
            self._options,
            self._new_number,
            order.oldest_seen,
        )
        told = time.monotonic()

        def between() -> None:
            nonlocal told
            self._port.listen()
            now = time.monotonic()
            if now - told >= _TELL_EVERY:
                told = now
                self._port.send(Report(order.job, bytes_read=job.reads.bytes_read).encode())

        files = job.run(between)
        opened = counters.tables_opened, counters.metadata_reads, counters.metadata_bytes_read
        return Report(order.job, files=files, opened=opened)

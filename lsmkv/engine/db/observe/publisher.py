"""Publishes what a store does, once a second, for as long as it is open.

A separate thread writes the file, so that no operation waits for it.  The thread does not keep
the process alive, nor the store's handle.  It does not exist in a forked child.  A file that cannot
be written is tried again a second later: a full disk costs the store nothing but the file.
"""

from __future__ import annotations

import time
from typing import Final

from lsmkv.engine.db.compact.background import Background
from lsmkv.engine.db.observe.observer import Observer
from lsmkv.engine.db.observe.processes import figures_of, with_members
from lsmkv.engine.db.observe.published import (
    MOST_NAMES,
    CompactionUnderWay,
    Published,
    encode,
)
from lsmkv.engine.db.observe.trace import OPERATIONS
from lsmkv.engine.db.tree.store import Store
from lsmkv.engine.db.tree.store_stats import collect_stats
from lsmkv.engine.db.write.writer import Writer
from lsmkv.engine.errors import ClosedError
from lsmkv.engine.format.filenames import STATS, STATS_NEW
from lsmkv.engine.util.threads import get_ident, new_lock, start_new_thread

INTERVAL: Final = 1.0
"""Seconds from one publication to the next."""


class Publisher:
    """The thread that publishes.  Call order: ``start stop``, in the process of the owner."""

    def __init__(
        self, store: Store, background: Background, writer: Writer, observer: Observer, pid: int
    ) -> None:
        self._store = store
        self._background = background
        self._writer = writer
        self._observer = observer
        self._pid = pid
        self._opened = time.time()
        self._stopping = False
        self._alarm = new_lock()
        """Held until the thread is to stop."""
        self._alarm.acquire()
        self._ended = new_lock()
        """Held while the thread runs."""
        self._failed = False

    def start(self) -> None:
        """Publish now, and from now on."""
        self._ended.acquire()
        try:
            start_new_thread(self._run, ())
        except RuntimeError as error:  # no more threads, or the interpreter is going down
            self._ended.release()
            self._store.info_log.warn(f"No statistics are published: {error}")

    def stop(self) -> None:
        """End the thread, and remove the file.  A second call has no effect."""
        if not self._stopping:
            self._stopping = True
            self._alarm.release()
        # The thread itself stops it if the handle is collected there.
        if not self._store.lock.on_own_thread:
            with self._ended:
                pass
        for name in (STATS, STATS_NEW):
            self._remove(name)

    def _run(self) -> None:
        threads = self._store.lock.threads
        thread = get_ident()
        threads.append(thread)
        try:
            self._publish()
            while not self._alarm.acquire(True, INTERVAL):
                self._publish()
        finally:
            threads.remove(thread)
            self._ended.release()

    def _publish(self) -> None:
        """Write the file; a failure is logged once, until writing works again."""
        try:
            content = encode(self._look())
            self._write(content)
        except ClosedError:
            return  # it is being closed, and the file removed
        except OSError as error:
            self._remove(STATS_NEW)
            if not self._failed and not self._stopping:
                self._store.info_log.warn(f"No statistics are published: {error}")
            self._failed = True
        else:
            self._failed = False

    def _write(self, content: bytes) -> None:
        directory = self._store.directory
        if directory.exists(STATS_NEW):
            directory.remove(STATS_NEW)  # left by an owner that was killed
        with directory.create(STATS_NEW) as file:
            file.append(content)
        directory.rename(STATS_NEW, STATS)

    def _remove(self, name: str) -> None:
        directory = self._store.directory
        try:
            if directory.exists(name):
                directory.remove(name)
        except OSError as error:
            self._store.info_log.write(f"Could not delete {name}: {error}")

    def _look(self) -> Published:
        """The store as it is now.  Takes no lock."""
        store = self._store
        view = store.open_view()
        options = store.options
        cache = options.block_cache
        own = collect_stats(store, self._writer.log_is_mapped)
        sharing = store.sharing
        counted = [] if sharing is None else sharing.counted()
        return Published(
            pid=self._pid,
            time=time.time(),
            opened=self._opened,
            stats=with_members(own, [words for _, _, words in counted[1:]]) if counted else own,
            latencies=dict(zip(OPERATIONS, self._observer.latencies, strict=True)),
            compaction=self._compaction(),
            flushing=view.immutable is not None,
            stalled_seconds=self._writer.stalled_seconds,
            row_cache_bytes=view.version.row_cache.usage,
            block_cache_capacity=0 if cache is None else cache.capacity,
            write_buffer_size=options.write_buffer_size,
            trace=options.trace,
            epoch=0 if sharing is None else sharing.epoch,
            leased_names=() if sharing is None else tuple(sharing.leased_names()[:MOST_NAMES]),
            processes=tuple(
                [
                    figures_of(pid, role, words, None if at else own)
                    for at, (pid, role, words) in enumerate(counted)
                ]
            ),
        )

    def _compaction(self) -> CompactionUnderWay | None:
        jobs = self._background.jobs
        compaction = jobs.compaction
        if compaction is None:
            return None
        return CompactionUnderWay(
            compaction.level,
            len(compaction.inputs),
            len(compaction.next_inputs),
            compaction.input_size,
            min(jobs.bytes_merged, compaction.input_size),
            max(0.0, time.monotonic() - jobs.compaction_started),
        )

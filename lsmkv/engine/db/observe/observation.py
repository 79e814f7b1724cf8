"""The observation of a store: what ``publish_stats`` and ``trace`` ask for, from open to close.

``open.py`` makes an :class:`Observation` where an option asks for one, and only in that
case imports this package.  It listens to the store's calls, and ends before the lock is given up.
"""

from __future__ import annotations

import os

from lsmkv.engine.db.compact.background import Background
from lsmkv.engine.db.observe.histogram import Histogram
from lsmkv.engine.db.observe.observer import Observer
from lsmkv.engine.db.observe.publisher import Publisher
from lsmkv.engine.db.observe.trace import OPERATIONS
from lsmkv.engine.db.observe.trace_writer import TraceWriter, create_trace
from lsmkv.engine.db.tree.info_log import InfoLog
from lsmkv.engine.db.tree.store import Store
from lsmkv.engine.db.write.writer import Writer
from lsmkv.engine.env.base import Directory
from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.options import Options


class Observation:
    """Call order: ``attach publish? close``.  In a forked child nothing is written."""

    def __init__(self, directory: Directory, options: Options) -> None:
        """Creates the trace, if one is asked for.  Raises ``OSError``."""
        self._pid = os.getpid()
        self._info_log = InfoLog(directory, to_file=False)  # until the store is open
        self._trace: TraceWriter | None = None
        if options.trace is not None:
            env = LocalEnv() if options.env is None else options.env
            self._trace = create_trace(env, options.trace, options.trace_sample, self._warn)
        self._observer = Observer(self._trace)
        self._publisher: Publisher | None = None

    def attach(self, store: Store) -> None:
        """Listen to the store from now on."""
        self._info_log = store.info_log
        store.listener = self._observer

    def publish(self, store: Store, background: Background, writer: Writer) -> None:
        """Publish what the store does, from now on."""
        self._publisher = Publisher(store, background, writer, self._observer, self._pid)
        self._publisher.start()

    def latencies(self) -> dict[str, Histogram]:
        """The latencies since the store was opened, by operation."""
        return dict(zip(OPERATIONS, self._observer.latencies, strict=True))

    def close(self) -> None:
        """Stop publishing, and end the trace.  A second close has no effect."""
        if self._publisher is not None and os.getpid() == self._pid:
            self._publisher.stop()
        if self._trace is not None:
            self._trace.close()

    def _warn(self, message: str) -> None:
        self._info_log.warn(message)

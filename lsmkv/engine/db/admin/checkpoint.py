"""A checkpoint: a second store with the contents that the first one has now, made at little cost.

``DB.checkpoint`` calls :func:`hold`, which waits for the writers' lock, and then without any lock
:func:`write_checkpoint`.  In a store that is open for reading only, the logs that the view was read
from take the place of :func:`hold`, up to where they were read.  Tables are immutable, so they are
hard-linked, not copied; logs are copied up to the end of a batch.  The new directory is built under
a temporary name next to the target, and renamed once all of it is durable: a target that exists is
a complete store.
"""

from __future__ import annotations

from operator import itemgetter

from lsmkv.engine.db.admin.staging import build_directory, copy, link_or_copy
from lsmkv.engine.db.tree.checkpoint_source import CheckpointSource
from lsmkv.engine.db.tree.store import Store
from lsmkv.engine.db.write.wal import WriteAheadLog
from lsmkv.engine.db.write.writer import Writer
from lsmkv.engine.env.base import Directory, Env
from lsmkv.engine.errors import CorruptionError, StaleViewError
from lsmkv.engine.format.filenames import (
    FileType,
    log_name,
    manifest_name,
    old_table_name,
    parse_filename,
    set_current,
    table_name,
)
from lsmkv.engine.format.log import LogWriter
from lsmkv.engine.format.version_edit import VersionEdit
from lsmkv.engine.util.progress import Progress


def hold(store: Store, writer: Writer) -> CheckpointSource:
    """Take a view, and open the logs whose writes are in its memtables, between two writes."""
    while True:
        source = writer.between_writes(lambda log: _hold_logs(store, log))
        if source is not None:
            return source


def _hold_logs(store: Store, log: WriteAheadLog) -> CheckpointSource | None:
    """Take a view and open its logs; ``log`` is the one that is being written.

    Caller holds the writers' lock.  A flush does not wait for that lock: None if a flush has
    committed meanwhile, since it may have removed a log before it was opened here.
    """
    view = store.open_view()
    oldest = view.memtable.log_number
    if view.immutable is not None:
        oldest = min(oldest, view.immutable.log_number)
    source = CheckpointSource(view, store.versions.last_sequence, [])
    try:
        for name in sorted(store.directory.names()):
            parsed = parse_filename(name)
            if parsed is None or parsed[1] is not FileType.LOG:
                continue
            if oldest <= parsed[0] <= log.number:
                file = store.directory.open(name)
                end = log.visible_end if parsed[0] == log.number else file.size
                source.logs.append((parsed[0], file, end))
    except FileNotFoundError:
        source.close()
        if store.view is view:
            raise
        return None
    except BaseException:
        source.close()
        raise
    if store.view is not view:
        source.close()
        return None
    source.logs.sort(key=itemgetter(0))
    return source


def write_checkpoint(
    store: Store, env: Env, source: CheckpointSource, path: str, progress: Progress | None
) -> None:
    """Build the store ``path``, which must not exist, from ``source``.

    Raises :class:`StaleViewError` if a writer in another process has removed a table.
    """

    def build(directory: Directory) -> None:
        _link_tables(store, source, directory, progress)
        for number, file, end in source.logs:
            copy(file, directory, log_name(number), end)
        manifest = store.versions.next_file_number
        for number, _, _ in source.logs:  # one may be newer than the MANIFEST that a reader knows
            manifest = max(manifest, number + 1)
        _write_manifest(store, source, directory, manifest)
        directory.sync()
        set_current(directory, manifest)

    build_directory(env, path, "checkpoint", build)


def _link_tables(
    store: Store, source: CheckpointSource, directory: Directory, progress: Progress | None
) -> None:
    numbers = sorted(source.view.version.numbers)
    for done, number in enumerate(numbers):
        name = table_name(number)
        if not store.directory.exists(name):
            name = old_table_name(number)
        try:
            link_or_copy(store.directory, name, directory)
        except FileNotFoundError:
            path = f"{store.directory.path}/{table_name(number)}"
            if store.options.read_only:
                raise StaleViewError(path) from None
            if store.directory.exists(name):
                raise
            raise CorruptionError("the table is missing", path) from None
        if progress is not None:
            progress(done + 1, len(numbers), "tables")


def _write_manifest(
    store: Store, source: CheckpointSource, directory: Directory, number: int
) -> None:
    edit = VersionEdit()
    edit.comparator = store.comparator.user_comparator.name
    edit.log_number = min((log[0] for log in source.logs), default=0)
    edit.prev_log_number = 0
    edit.next_file_number = number + 1
    edit.last_sequence = source.last_sequence
    for level, files in enumerate(source.view.version.levels):
        for file in files:
            edit.add_file(level, file)
    with directory.create(manifest_name(number)) as target:
        LogWriter(target).add_record(edit.encode())
        target.sync()

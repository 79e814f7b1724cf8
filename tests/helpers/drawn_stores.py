"""A store that is drawn in text: its tables by level, its memtable, and a reader of it.

::

    memtable: fig#9:put=green
    L0: [apple#5:put=red] [apple#7:del]
    L1: [apple#1:put=old banana#2:put=yellow]

Of the tables of level 0, the oldest comes first.  What is in the log is in the memtable.
"""

from __future__ import annotations

from states import Drawing
from trees import entries_of, entry_of, is_level, level_of, order_of

from lsmkv import DB
from lsmkv.engine.db.tree.table_output import write_entries
from lsmkv.engine.db.tree.version_set import VersionSet
from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.engine.format.batch import encode_batch
from lsmkv.engine.format.filenames import log_name
from lsmkv.engine.format.keys import KIND_VALUE, InternalKeyComparator, sequence_in
from lsmkv.engine.format.log import frame
from lsmkv.engine.format.version_edit import VersionEdit
from lsmkv.engine.options import Options

_LOG = 100


def drawn_store(drawing: Drawing, writable_in: MemoryEnv | None = None) -> DB:
    """The store, whose tables have blocks of one or two entries.

    It is open for reading only, so that it stays as it is drawn, or is at ``/db`` of an env.
    """
    env = MemoryEnv() if writable_in is None else writable_in
    comparator = order_of(drawing)
    internal = InternalKeyComparator(comparator)
    options = Options(comparator=comparator, block_size=40, block_restart_interval=2)
    edit = VersionEdit()
    edit.log_number = _LOG
    log = b""
    with env.open_directory("/db", create=True) as directory:
        versions = VersionSet(directory, options, internal)
        versions.mark_file_number_used(_LOG)
        for label, text in drawing:
            for entries in entries_of(text) if is_level(label) else []:
                columns = [key for key, _ in entries], [tagged for _, tagged in entries]
                number = versions.new_file_number()
                edit.add_file(level_of(label), write_entries([columns], directory, number, options))
                newest = max(sequence_in(tagged) for tagged in columns[1])
                versions.last_sequence = max(versions.last_sequence, newest)
            if label == "memtable":
                for key, tagged in map(entry_of, text.split()):
                    value = tagged[8:] if tagged[0] == KIND_VALUE else None
                    log += frame(encode_batch(sequence_in(tagged), [(key, value)]), len(log))
        versions.log_and_apply(edit)
        versions.current.check()
        with directory.create(log_name(_LOG)) as file:
            file.append(log)
        versions.close()
    if writable_in is not None:
        return DB("/db", env=env, comparator=comparator, reuse_logs=True, block_size=40)
    return DB("/db", env=env, read_only=True, comparator=comparator)

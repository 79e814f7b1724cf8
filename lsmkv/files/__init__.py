"""The content of LevelDB's files, byte for byte, as plain data: for tools that inspect them.

There is one reader for each kind of file.  Each takes a path, ``bytes`` or a readable object
(:class:`Readable`), and writes nothing:

=====================  ===========================================================================
:class:`Table`         blocks, entries, filters, index and footer of a ``.ldb`` or ``.sst`` file
:class:`Log`           records and fragments of a write-ahead log
:class:`Manifest`      version edits, and the version after each of them
:class:`Batch`         the operations in a record of a log
:class:`Current`       the name of the MANIFEST in force
:class:`StoreFiles`    the files of a store's directory
:func:`parse_name`     the kind and the number in a file's name
=====================  ===========================================================================

The rest are their parts: named tuples of numbers, ``bytes`` and each other.  None of these classes
belongs to the engine, and no store has to be open, or undamaged.  ``docs/reference/format.md`` has
the layouts.

**Damage is data.**  Methods that walk a file (``walk``, ``walk_edits``, ``filters``) yield
:class:`Damage` where the file violates its format, and continue after it.  Methods that return
single values raise :class:`~lsmkv.CorruptionError` with the file and the offset.  Whatever the
bytes, they raise only errors of :mod:`lsmkv.errors`; for a file that cannot be read, they raise
``OSError``.

**Offsets** are in bytes from the beginning of the file, or, where noted, of a record or a plain
block (a block's decompressed content).  Spans do not include their end.

>>> import lsmkv
>>> env = lsmkv.MemoryEnv()
>>> with lsmkv.DB("store", create_if_missing=True, env=env) as db:
...     db.put(b"key", b"value")
...     db.flush()
>>> directory = env.open_directory("store")
>>> names = {parse_name(name): name for name in directory.names()}
>>> with Table(directory.open(names["table", 6])) as table:
...     [(entry.user_key, entry.sequence, entry.value) for entry in table.entries()]
[(b'key', 1, b'value')]
"""

from __future__ import annotations

from lsmkv.files.batches import Batch, Operation
from lsmkv.files.blocks import Block, BlockKind, BlockPlace, Entry, EntrySpans, Trailer, parse_block
from lsmkv.files.filters import (
    BITS_OF_FUSE,
    Filter,
    FilterKind,
    FilterLayout,
    FuseShape,
    Probe,
    filters_in,
    parse_filter_block,
)
from lsmkv.files.keys import (
    BlockHandle,
    InternalKey,
    handle_fields,
    make_key,
    parse_handle,
    parse_key,
)
from lsmkv.files.logs import LOG_BLOCK_SIZE, Fragment, FragmentKind, Log, LogEnd, LogRecord
from lsmkv.files.manifests import (
    EDIT_TAGS,
    LEVELS,
    Edit,
    Manifest,
    TableFile,
    Version,
    VersionBuilder,
    edit_fields,
    parse_edit,
)
from lsmkv.files.names import FileKind, FileName, make_name, parse_current, parse_name
from lsmkv.files.orders import Order, key_order
from lsmkv.files.parts import Damage, DamageKind, Field, Span
from lsmkv.files.readable import FileSource, Readable
from lsmkv.files.stores import Current, Folder, StoreFiles, foreign_engine
from lsmkv.files.tables import FOOTER_SIZE, Footer, Table, TableEntry, parse_footer

__all__ = [
    "BITS_OF_FUSE",
    "EDIT_TAGS",
    "FOOTER_SIZE",
    "LEVELS",
    "LOG_BLOCK_SIZE",
    "Batch",
    "Block",
    "BlockHandle",
    "BlockKind",
    "BlockPlace",
    "Current",
    "Damage",
    "DamageKind",
    "Edit",
    "Entry",
    "EntrySpans",
    "Field",
    "FileKind",
    "FileName",
    "FileSource",
    "Filter",
    "FilterKind",
    "FilterLayout",
    "Folder",
    "Footer",
    "Fragment",
    "FragmentKind",
    "FuseShape",
    "InternalKey",
    "Log",
    "LogEnd",
    "LogRecord",
    "Manifest",
    "Operation",
    "Order",
    "Probe",
    "Readable",
    "Span",
    "StoreFiles",
    "Table",
    "TableEntry",
    "TableFile",
    "Trailer",
    "Version",
    "VersionBuilder",
    "edit_fields",
    "filters_in",
    "foreign_engine",
    "handle_fields",
    "key_order",
    "make_key",
    "make_name",
    "parse_block",
    "parse_current",
    "parse_edit",
    "parse_filter_block",
    "parse_footer",
    "parse_handle",
    "parse_key",
    "parse_name",
]

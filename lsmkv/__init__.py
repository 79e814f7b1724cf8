"""lsmkv: LevelDB for Python, written in Python.

One page, ``docs/api.md``, describes options, methods and errors; ``help(lsmkv.Options)`` describes
the options as well.

>>> import lsmkv
>>> with lsmkv.DB(":memory:") as db:
...     db.put(b"key", b"value")
...     db.get(b"key"), db.get(b"no such key")
(b'value', None)
"""

import importlib
from typing import TYPE_CHECKING, Any

import lsmkv.env.main_interpreter as _main_interpreter  # noqa: F401 - before compiled modules
from lsmkv.db.admin.properties import TableInfo
from lsmkv.db.db import DB
from lsmkv.db.handles.prefixed import PrefixedDB
from lsmkv.db.handles.snapshot import Snapshot
from lsmkv.db.handles.transaction import Transaction
from lsmkv.db.opening.dropped import DroppedLog, RecoveryReport
from lsmkv.db.read.iterator import Iterator
from lsmkv.db.read.raw_iterator import RawIterator
from lsmkv.env.base import Directory, Env, FileLock, RandomAccessFile, WritableFile
from lsmkv.env.local import LocalEnv
from lsmkv.errors import (
    ClosedError,
    ComparatorMismatchError,
    ConflictError,
    CorruptionError,
    DirectoryReplacedError,
    Error,
    ForeignFormatError,
    ForkedError,
    IOError,
    IteratorInvalidError,
    LockedError,
    NestedCallError,
    NotFoundError,
    OutcomeUnknownError,
    PermissionDeniedError,
    ReadOnlyError,
    RecoveryWarning,
    SequenceTooOldError,
    StaleViewError,
    UnsupportedCompressionError,
    UnsupportedValueError,
)
from lsmkv.filter.bloom import BloomFilterPolicy, new_bloom_filter_policy
from lsmkv.filter.bloom64 import Bloom64Policy
from lsmkv.filter.fuse import BinaryFusePolicy
from lsmkv.filter.policy import FilterPolicy, HashedFilterPolicy
from lsmkv.filter.prefix import DelimitedPrefix, FixedPrefix, PrefixExtractor
from lsmkv.format.batch import WriteBatch
from lsmkv.options import OptionArguments, Options, TableArguments
from lsmkv.util import coding as _coding
from lsmkv.util.block_cache import BlockCache
from lsmkv.util.comparator import (
    BytewiseComparator,
    Comparator,
    ReverseBytewiseComparator,
)

if TYPE_CHECKING:
    from lsmkv.cache.cache import Cache
    from lsmkv.db.admin.table_writer import TableWriter
    from lsmkv.db.handles.explanation import Explanation
    from lsmkv.db.observe.trace import TraceReader, TraceRecord, read_trace
    from lsmkv.db.read.batches import Batches, CommittedBatch
    from lsmkv.env.memory import MemoryEnv
    from lsmkv.mapping import open
    from lsmkv.metrics import metrics_text
    from lsmkv.repair.plan import RepairPlan
    from lsmkv.repair.repair import plan_repair, repair_db
    from lsmkv.shared.destroying import destroy_db
    from lsmkv.shared.leases import Lease, LeaseReport
    from lsmkv.shared.shared_db import SharedDB
    from lsmkv.stats import LevelStats, Stats

    __version__: str
    """The version that is installed; ``"0+not.installed"`` for a source tree that is not."""

LRUCache = BlockCache
"""The block cache, under the name that stands for it in older programs."""

COMPILED: bool = not _coding.__file__.endswith(".py")
"""Whether the engine runs as compiled by mypyc; the same source either way."""

__all__ = [
    "Batches",
    "BinaryFusePolicy",
    "BlockCache",
    "Bloom64Policy",
    "BloomFilterPolicy",
    "BytewiseComparator",
    "COMPILED",
    "Cache",
    "ClosedError",
    "CommittedBatch",
    "Comparator",
    "ComparatorMismatchError",
    "ConflictError",
    "CorruptionError",
    "DirectoryReplacedError",
    "DB",
    "DelimitedPrefix",
    "Directory",
    "DroppedLog",
    "Env",
    "Error",
    "FilterPolicy",
    "Explanation",
    "FileLock",
    "FixedPrefix",
    "ForeignFormatError",
    "ForkedError",
    "HashedFilterPolicy",
    "IOError",
    "Iterator",
    "IteratorInvalidError",
    "LRUCache",
    "Lease",
    "LeaseReport",
    "LevelStats",
    "LocalEnv",
    "LockedError",
    "MemoryEnv",
    "NestedCallError",
    "NotFoundError",
    "OptionArguments",
    "Options",
    "OutcomeUnknownError",
    "PermissionDeniedError",
    "PrefixExtractor",
    "PrefixedDB",
    "RandomAccessFile",
    "RawIterator",
    "ReadOnlyError",
    "RecoveryReport",
    "RecoveryWarning",
    "RepairPlan",
    "ReverseBytewiseComparator",
    "SequenceTooOldError",
    "SharedDB",
    "Snapshot",
    "StaleViewError",
    "Stats",
    "TableArguments",
    "TableInfo",
    "TableWriter",
    "TraceReader",
    "TraceRecord",
    "Transaction",
    "UnsupportedCompressionError",
    "UnsupportedValueError",
    "WritableFile",
    "WriteBatch",
    "destroy_db",
    "metrics_text",
    "new_bloom_filter_policy",
    "open",
    "plan_repair",
    "read_trace",
    "repair_db",
]

# What most programs never ask for is imported when it is: half of the time of an import.
_LATER = {
    "Batches": "lsmkv.db.read.batches",
    "Cache": "lsmkv.cache.cache",
    "CommittedBatch": "lsmkv.db.read.batches",
    "Explanation": "lsmkv.db.handles.explanation",
    "Lease": "lsmkv.shared.leases",
    "LeaseReport": "lsmkv.shared.leases",
    "LevelStats": "lsmkv.stats",
    "MemoryEnv": "lsmkv.env.memory",
    "RepairPlan": "lsmkv.repair.plan",
    "SharedDB": "lsmkv.shared.shared_db",
    "Stats": "lsmkv.stats",
    "TableWriter": "lsmkv.db.admin.table_writer",
    "TraceReader": "lsmkv.db.observe.trace",
    "TraceRecord": "lsmkv.db.observe.trace",
    "__version__": "lsmkv.env.installed",
    "destroy_db": "lsmkv.shared.destroying",
    "metrics_text": "lsmkv.metrics",
    "open": "lsmkv.mapping",
    "plan_repair": "lsmkv.repair.repair",
    "read_trace": "lsmkv.db.observe.trace",
    "repair_db": "lsmkv.repair.repair",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_LATER[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})

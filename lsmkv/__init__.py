"""lsmkv: LevelDB for Python, written in Python.

One page, ``docs/reference/api.md``, describes options, methods and errors; ``help(lsmkv.Options)``
describes the options as well.

>>> import lsmkv
>>> with lsmkv.DB(":memory:") as db:
...     db.put(b"key", b"value")
...     db.get(b"key"), db.get(b"no such key")
(b'value', None)
"""

import importlib
from typing import TYPE_CHECKING, Any

import lsmkv.engine.env.main_interpreter as _main_interpreter  # noqa: F401 - before compiled modules
from lsmkv.engine import former_paths as _former_paths
from lsmkv.engine.db.admin.properties import TableInfo
from lsmkv.engine.db.db import DB
from lsmkv.engine.db.handles.prefixed import PrefixedDB
from lsmkv.engine.db.handles.snapshot import Snapshot
from lsmkv.engine.db.handles.transaction import Transaction
from lsmkv.engine.db.opening.dropped import DroppedLog, RecoveryReport
from lsmkv.engine.db.read.iterator import Iterator
from lsmkv.engine.db.read.raw_iterator import RawIterator
from lsmkv.engine.env.base import Directory, Env, FileLock, RandomAccessFile, WritableFile
from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.errors import (
    ClosedError,
    ComparatorMismatchError,
    ConflictError,
    CorruptionError,
    DeadlockError,
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
from lsmkv.engine.filter.bloom import BloomFilterPolicy, new_bloom_filter_policy
from lsmkv.engine.filter.bloom64 import Bloom64Policy
from lsmkv.engine.filter.fuse import BinaryFusePolicy
from lsmkv.engine.filter.policy import FilterPolicy, HashedFilterPolicy
from lsmkv.engine.filter.prefix import DelimitedPrefix, FixedPrefix, PrefixExtractor
from lsmkv.engine.format.batch import WriteBatch
from lsmkv.engine.options import OptionArguments, Options, TableArguments
from lsmkv.engine.util import coding as _coding
from lsmkv.engine.util.block_cache import BlockCache
from lsmkv.engine.util.comparator import (
    BytewiseComparator,
    Comparator,
    ReverseBytewiseComparator,
)

if TYPE_CHECKING:
    from lsmkv.cache.cache import Cache
    from lsmkv.engine.db.admin.table_writer import TableWriter
    from lsmkv.engine.db.handles.explanation import Explanation
    from lsmkv.engine.db.observe.trace import TraceReader, TraceRecord, read_trace
    from lsmkv.engine.db.read.batches import Batches, CommittedBatch
    from lsmkv.engine.env.memory import MemoryEnv
    from lsmkv.engine.leased_name import LeasedName
    from lsmkv.engine.metrics import metrics_text
    from lsmkv.engine.stats import LevelStats, Stats
    from lsmkv.files.repair.plan import RepairPlan
    from lsmkv.files.repair.repair import plan_repair, repair_db
    from lsmkv.mapping import open
    from lsmkv.shared.destroying import destroy_db
    from lsmkv.shared.leases import Lease, LeaseReport
    from lsmkv.shared.shared_db import SharedDB

    __version__: str
    """The version that is installed; ``"0+not.installed"`` for a source tree that is not."""

LRUCache = BlockCache
"""The block cache, under the name that stands for it in older programs."""

COMPILED: bool = not _coding.__file__.endswith(".py")
"""True if the engine runs as compiled by mypyc; the same source either way."""

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
    "DeadlockError",
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
    "LeasedName",
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
    "Batches": "lsmkv.engine.db.read.batches",
    "Cache": "lsmkv.cache.cache",
    "CommittedBatch": "lsmkv.engine.db.read.batches",
    "Explanation": "lsmkv.engine.db.handles.explanation",
    "Lease": "lsmkv.shared.leases",
    "LeaseReport": "lsmkv.shared.leases",
    "LeasedName": "lsmkv.engine.leased_name",
    "LevelStats": "lsmkv.engine.stats",
    "MemoryEnv": "lsmkv.engine.env.memory",
    "RepairPlan": "lsmkv.files.repair.plan",
    "SharedDB": "lsmkv.shared.shared_db",
    "Stats": "lsmkv.engine.stats",
    "TableWriter": "lsmkv.engine.db.admin.table_writer",
    "TraceReader": "lsmkv.engine.db.observe.trace",
    "TraceRecord": "lsmkv.engine.db.observe.trace",
    "__version__": "lsmkv.engine.env.installed",
    "destroy_db": "lsmkv.shared.destroying",
    "metrics_text": "lsmkv.engine.metrics",
    "open": "lsmkv.mapping",
    "plan_repair": "lsmkv.files.repair.repair",
    "read_trace": "lsmkv.engine.db.observe.trace",
    "repair_db": "lsmkv.files.repair.repair",
}


_former_paths.keep_paths(*(globals()[name] for name in __all__ if name not in _LATER))
_former_paths.install()


def __getattr__(name: str) -> Any:
    if _former_paths.present_path(f"lsmkv.{name}") is not None:
        return importlib.import_module(f"lsmkv.{name}")
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_LATER[name]), name)
    _former_paths.keep_paths(value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})

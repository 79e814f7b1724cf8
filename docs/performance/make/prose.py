"""What docs/performance.md says beside its figures."""

from __future__ import annotations

from lsmkv.tools.bench.settings import Settings

DEFAULTS = {
    name: value
    for name, value in Settings().to_dict().items()
    if name not in ("histogram", "write_buffer_size", "compressible")
}
"""Settings that are options of ``lsmkv bench``, which a command need not repeat."""

HEAD = """
# Performance

`lsmkv bench` measures lsmkv and its peers, each through its own Python API, with db_bench's
workloads. `make bench` makes this page from its figures.

**How to read it.** Times are microseconds an operation, the median of the rounds. A ratio is the
peer's time over lsmkv's: above 1, lsmkv is faster. It is the median of the rounds' ratios; the
lowest and the highest are in brackets. *Ahead* is the engine with the better median, in brackets if
another round went the other way. Keys have 16 bytes, values 100 that compress to half.
"""

MODES = {
    "compiled": """
## Compiled, against LevelDB

lsmkv as mypyc compiles it, and plyvel, the C++ LevelDB seen from Python.
""",
    "pure": """
## Pure Python, against LevelDB

The same source, interpreted, as it runs where there is no compiler.
""",
}

OWN_DEFAULTS = """
In the other tables both have the same cache (8 MiB) and filters (10 bits a key). Here lsmkv has a
block cache of 32 MiB and filters, plyvel 8 MiB and no filters.
"""

LATENCIES = """
### The slowest operations: compiled

Microseconds of single operations, in the median round. One in a thousand exceeds p99.9. The clock
costs some 0.1 us an operation.
"""

STUDIES = """
## Larger studies

Each study is one run. A ratio of times is plyvel's over lsmkv's; of bytes, lsmkv's over plyvel's.
The engines report what they write to tables (`leveldb.stats`). Gets of absent keys meet three
overlapping levels; LevelDB charges a seek to every table whose filter said no, and compacts for it.
Gets among values that do not compress have a block cache of 1 MiB, so that each takes a block from
the system's cache: plyvel maps it, lsmkv reads it. The process's memory includes mapped files.
"""

PEERS = """
## Other stores

The time of an operation, then the ratio with its spread. *Fastest* is the engine with the best
median. The stores promise different things: see the settings below, and
[Choosing a store](guides/choosing.md).
"""

BY_SHAPE = """
## Reads, by the shape of the store

How many tables a read has to merge changes its time by a factor of two and more. Half of the
entries, in random order, are in one level below, and a quarter is in a table above. LevelDB merges
tables that are read much, also during the measurement. `plyvel+crc` verifies each block that it
reads, as lsmkv does; plyvel by default does not.
"""

SHAPES = {
    "written": "As written: the last quarter in the memtable",
    "deep": "Deep: the last quarter in a second table above",
    "compacted": "Compacted: all in one level",
}
"""Titles of the tables, by the names of the runs."""

METHOD = """
## How it is measured

- **Each engine runs in a process of its own**, in turn, the order reversed from one round to the
  next. A round starts in an empty directory.
- **Keys and values are made before the clock starts**, from a seed. The timed loop only calls the
  engine's own bound method (`put = db.put`), with the garbage collector on.
- **Every answer is checked** in a first pass, which also warms the caches for reads.
- **Reads find a settled store**: `fillrandom`'s, when its background work has ended, closed and
  opened again.
- Background work after the last operation is not counted, as in db_bench. Random orders are
  permutations. Threads share the keys of a workload.

| workload | what it does |
|---|---|
| `fillseq`, `fillrandom`, `overwrite`, `deleterandom` | one write for each entry |
| `fillbatch`, `fillsync` | 1,000 entries a batch; a hundredth of the entries, each synced |
| `readmissing` | gets absent keys between the present ones |
| `readhot` | gets from the first hundredth of the keys |
| `seekrandom`, `seek10` | positions a new iterator; reads ten entries with one |
| `readwhilewriting` | Gets while another thread overwrites |
| `scandeleted` | scans a store, 99 % of it deleted by a table above; time for each entry |
| `queue` | deletes the first entry, found by a new iterator after those deleted before it |
| `compact` | merges keys in a lower level and in three tables above; time for each version |
| `open`, `openlog` | median of eleven openings: of a closed store; with 1,000 values in its log |
| `openkilled` | the same, with 4 MiB in the log of a killed store |

| | filters | block cache | compression | a write outlives the process | `fillsync` |
|---|---|---|---|---|---|
| lsmkv | 10 bits a key | 8 MiB | snappy | yes | `sync=True`: fsync of the log |
| plyvel | 10 bits a key | 8 MiB | snappy | yes | `sync=True` |
| rocksdict | 10 bits a key | 8 MiB | snappy | yes | `WriteOptions.sync` |
| lmdb | none | the system's | none | yes: `sync=False`, no write map | `sync=True` |
| sqlite3 | none | 8 MiB | none | yes: WAL, `synchronous=NORMAL` | `synchronous=FULL` |
| dbm | none | its own | none | not promised | `sync()` after each put, of dbm.gnu alone |

lsmkv verifies the checksum of every block that it reads; LevelDB does not by default, nor does
plyvel here. lmdb commits a transaction for each put, and reads in one transaction for all Gets. dbm
is the best of gnu, sqlite3, ndbm and dumb that Python has.
"""

REPRODUCE = """
## How to reproduce it

`make bench` makes virtual environments with and without lsmkv compiled, runs these commands, and
writes this page. `make bench BENCH_ARGS='--num 20000 --large 50000 --rounds 2'` is a smaller one.
A quiet machine matters more than many rounds.
"""

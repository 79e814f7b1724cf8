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
workloads. This page is made from its figures by `make bench`.

**How to read it.** Times are microseconds an operation, the median of the rounds. A ratio is the
peer's time over lsmkv's: above 1, lsmkv is faster. It is taken round by round; the median is
given, and in brackets the lowest and the highest. *Ahead* is the engine with the better median, in
brackets if another round went the other way. Keys have 16 bytes, values 100 that compress to half.
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
The other tables give both the same cache (8 MiB) and filters (10 bits a key). Here lsmkv has its
block cache of 32 MiB and its filters, plyvel LevelDB's 8 MiB and no filters.
"""

LATENCIES = """
### The slowest operations: compiled

Each operation by itself, in microseconds, in the round whose time is the median: p99.9 is the time
that one in a thousand exceeds. The clock costs some 0.1 us an operation.
"""

STUDIES = """
## Larger studies

Each of these is one run. A ratio of times is plyvel's over lsmkv's; of bytes, lsmkv's over
plyvel's. What tables cost to write is reported by the engines themselves (the property
`leveldb.stats`), in whole MiB a level. Gets of absent keys meet three overlapping levels; LevelDB
charges a seek to every table whose filter said no, and compacts for it. Gets among values that do
not compress have a block cache of 1 MiB, so that each takes a block from the system's cache. plyvel
maps it, and lsmkv reads it. The memory that the process holds then includes mapped files.
"""

PEERS = """
## Other stores

The time of an operation, then the ratio with its spread. *Fastest* is the engine with the best
median. They promise different things: see the table of settings below.
[Choosing a store](guides/choosing.md) says what each is better at.
"""

BY_SHAPE = """
## Reads, by the shape of the store

A store that is being written has entries in a memtable and in tables that overlap; one that rests
has them in one level. How many of these a read has to merge changes its time by a factor of two and
more. So these shapes are made on purpose: half of the entries, in random order, are in one level
below, and a quarter is in a table above. LevelDB merges tables that are read much, also while this
is measured. `plyvel+crc` verifies each block that it reads, as lsmkv does, and plyvel by default
does not.
"""

SHAPES = {
    "written": "As written: the last quarter in the memtable",
    "deep": "Deep: the last quarter in a second table above",
    "compacted": "Compacted: all in one level",
}
"""Titles of the tables, by the names of the runs."""

METHOD = """
## How it is measured

- **Each engine runs in a process of its own**, engines in turn, round after round, the order
  reversed from one round to the next. A round starts from nothing, in a directory of its own.
- **Keys and values are made before the clock starts**, from a seed: the same for every engine. The
  timed loop calls the engine's own bound method (`put = db.put`) and does nothing else. What is
  alive then is frozen for the garbage collector, which stays on.
- **Every answer is checked**: a first pass over the keys, or a sample of what was put, is compared
  with what should be there. A wrong answer ends the run. For reads this pass also brings the caches
  into the state that they then stay in.
- **Reads find a settled store**: `fillrandom`'s, when its background work has come to rest, closed
  and opened again. What changes a store works on a copy of it.
- `fillseq`, `fillrandom`, `overwrite`, `deleterandom`: one operation for each entry, each in a
  write of its own. Random orders are permutations, where db_bench draws with repetition: each key
  comes once. The clock stops at the last operation, and what the background still has to do is not
  counted, as in db_bench.
- `fillbatch` writes 1,000 entries a batch; `fillsync` a hundredth of the entries, each synced.
- `readmissing` gets keys with a dot behind them: between the keys that are there. `readhot` gets
  from the first hundredth of the keys.
- `seekrandom` positions a new iterator; `seek10` reads ten entries with one. `readwhilewriting`
  times Gets while another thread overwrites.
- `scandeleted` goes over a store of whose entries only a hundredth is left: the values are in one
  table, the deletions in another above it. The time is for each entry, deleted or not. `queue`
  takes the first entry and deletes it, 10,000 times at most: each step is a new iterator, which
  finds its entry after all those that were deleted before, in the memtable.
- `compact` merges a store whose keys are all there twice: in one table on a lower level, and in
  three above it. These are flushed by hand from large memtables, so that every engine starts from
  the same tables. The time is for each version read.
- `open` is the median of eleven openings of a closed store.
- `openlog` is the same for a store that was closed with 1,000 new values in its log, `openkilled`
  for one with 4 MiB there: a copy of an open store's directory, which is what a kill leaves.
- Threads share the keys of a workload.

| | filters | block cache | compression | a write outlives the process | `fillsync` |
|---|---|---|---|---|---|
| lsmkv | 10 bits a key | 8 MiB | snappy | yes | `sync=True`: fsync of the log |
| plyvel | 10 bits a key | 8 MiB | snappy | yes | `sync=True` |
| rocksdict | 10 bits a key | 8 MiB | snappy | yes | `WriteOptions.sync` |
| lmdb | none | the system's | none | yes: `sync=False`, no write map | `sync=True` |
| sqlite3 | none | 8 MiB | none | yes: WAL, `synchronous=NORMAL` | `synchronous=FULL` |
| dbm | none | its own | none | not promised | `sync()` after each put, of dbm.gnu alone |

lsmkv verifies the checksum of every block that it reads; LevelDB does not by default, nor does
plyvel here. lmdb commits a transaction for each put, and reads in one transaction for all Gets,
which is its idiom. dbm is the best of gnu, sqlite3, ndbm and dumb that Python has.
"""

REPRODUCE = """
## How to reproduce it

`make bench` makes two virtual environments, one with lsmkv compiled and one without, runs the
commands below, and writes this page. `make bench BENCH_ARGS='--num 20000 --large 50000 --rounds
2'` is a smaller one. A quiet machine matters more than many rounds.
"""

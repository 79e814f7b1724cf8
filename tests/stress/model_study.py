"""The same answers as a dict, under any order of operations; and as LevelDB, on one directory.

Every seed is a run of random operations on one store: puts, deletions, batches, snapshots,
iterators both ways and in zigzag, over any bounds, seeks, flushes, compactions, ingests,
range deletions, transactions, and openings with other settings.  Every other run takes turns with
LevelDB, where plyvel can be imported: one engine has the store open for a while, then the other,
and each must find what the other one left.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import random
import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import Any

from study import Outcome, Say, finds_ranges

from lsmkv import (
    DB,
    BinaryFusePolicy,
    Bloom64Policy,
    BloomFilterPolicy,
    ConflictError,
    DelimitedPrefix,
    MemoryEnv,
    ReverseBytewiseComparator,
    TableWriter,
)

Entry = tuple[bytes, bytes]
State = dict[bytes, bytes]

FEW = [b"", b"\0", b"\xff", b"\xff\xff", b"a", b"a\0", b"a\xff", b"b", b"k1"]
FEW += [b"k%04d" % n for n in range(20)]
"""With many versions each, which fill several blocks."""
KEYS = [*FEW, *(b"k%04d" % n for n in range(20, 250))]
STEMS = [b"a", b"a:", b"ab", b"ab:", b"a::", b"b:", b"c", b"\xff", b"\xff\xff", b"a\xff"]
TAILS = [b"", b"\0", b"1", b"2", b":", b"\xff", b"\xff\xff"]
AFTER = [b"b", b"ac", b"a;", b"b;"]
"""What follows directly behind all keys of a prefix."""
STEMMED = sorted({*TAILS, *AFTER, *(stem + tail for stem in STEMS for tail in TAILS)})
"""For filters of prefixes: keys at the ends of what a prefix holds."""
MANY = [b"m%04d" % n for n in range(1100)]
"""Enough for a fuse filter, if they come into one table."""
FILTERS: list[dict[str, Any]] = [
    {"bloom_filter_bits": 0},
    {"bloom_filter_bits": 1},
    {"bloom_filter_bits": 10},
    {"bloom_filter_bits": "auto:10"},
    {"bloom_filter_bits": [16, 0, 3]},
    {"filter_policy": BloomFilterPolicy(6)},
    {"filter_policy": Bloom64Policy(10)},
    {"filter_policy": Bloom64Policy(10), "bloom_filter_bits": "auto:4"},
    {"filter_policy": BinaryFusePolicy()},
    {"filter_policy": BinaryFusePolicy(3)},
]
"""Of Bloom filters, LevelDB reads what it finds."""
PREFIXES: list[dict[str, Any]] = [
    {},
    {"prefix_extractor": 1},
    {"prefix_extractor": 3},
    {"prefix_extractor": b"\xff"},
    {"prefix_extractor": DelimitedPrefix(b"00")},
    {"prefix_extractor": lambda key: key[:2] or None, "prefix_extractor_name": "model.FirstTwo"},
]
STEMMED_PREFIXES: list[dict[str, Any]] = [
    *({"prefix_extractor": of} for of in (None, 1, 2, 3, b":", b"::", b"\xff")),
    {"prefix_extractor": lambda key: key[:1] if key[:1] in (b"a", b"b") else None},
    # Without the colon, so that it goes by what follows the prefix: no scan may go by it.
    {"prefix_extractor": lambda key: key.partition(b":")[0] if b":" in key else None},
    {"prefix_extractor": lambda key: b""},
]
for _at, _one in enumerate(STEMMED_PREFIXES):
    if callable(_one["prefix_extractor"]):
        _one["prefix_extractor_name"] = f"model.{_at}"
ORDERS: list[dict[str, Any]] = [
    {},
    {},
    {"comparator": lambda a, b: (a > b) - (a < b), "comparator_name": "model.Plain"},
    {"comparator": ReverseBytewiseComparator()},
]
TURN = 150
"""Operations until somebody else opens the store."""


def run(size: float, seed: int, say: Say) -> Outcome:
    """Two runs of 1,000 operations at size 1, and 200 of 5,000 at size 100."""
    outcome = Outcome()
    operations = int(1000 + 4000 * min(1.0, max(0.0, (size - 1) / 99)))
    engines = ["lsmkv"]
    if importlib.util.find_spec("plyvel") is not None:
        engines.append("leveldb")
    for number in range(max(2, int(2 * size))):
        own = seed * 1000 + number
        in_turns = number % 2 == 1 and len(engines) == 2
        with tempfile.TemporaryDirectory() as path:
            run_once(own, outcome, f"{path}/db", engines if in_turns else engines[:1], operations)
        outcome.count("runs in turns" if in_turns else "runs")
        if number % 20 == 19:
            say(f"{number + 1} runs")
    return outcome


def run_once(seed: int, outcome: Outcome, path: str, engines: list[str], operations: int) -> None:
    """One run, at ``path`` if LevelDB is among the engines, and else in memory."""
    one = Run(seed, outcome, path, engines)
    try:
        one.run(operations)
    except Exception as error:
        where = f"seed {seed}, operation {one.at} ({one.doing})"
        outcome.violations.append(f"{where}: {error!r}")


class Wrong(AssertionError):
    """An answer that is not the model's."""


def expect(found: object, expected: object, what: str) -> None:
    """Raise :class:`Wrong` unless they are equal; says where they part."""
    if found == expected:
        return
    if isinstance(found, list) and isinstance(expected, list):
        pairs = itertools.zip_longest(found, expected)
        at, pair = next((n, pair) for n, pair in enumerate(pairs) if pair[0] != pair[1])
        raise Wrong(f"{what}: at {at} of {len(expected)}: {pair[0]!r:.80}, not {pair[1]!r:.80}")
    raise Wrong(f"{what}: {found!r:.80}, not {expected!r:.80}")


class Run:
    """One store and its model."""

    def __init__(self, seed: int, outcome: Outcome, path: str, engines: list[str]) -> None:
        self.rng = random.Random(seed)
        self.outcome = outcome
        self.engines = engines
        self.state: State = {}
        self.keys = self.rng.choice([FEW, KEYS, STEMMED])
        self.at = 0
        self.doing = "opening"
        self.db: Any = None
        self.engine = ""
        self._snapshots: list[tuple[Any, State]] = []
        self._iterators: list[tuple[Any, list[Entry], int, bool]] = []
        """With what each has before and behind it, where it stands, and whether it goes back."""
        self._where: dict[str, Any] = {"path": path}
        self._reverse = False
        self._order: dict[str, Any] = {}
        if len(engines) == 1:
            mapped_logs = self.rng.random() < 0.5
            self._where = {"path": "/db", "env": MemoryEnv(mapped_logs=mapped_logs)}
            if self.keys is not STEMMED:
                self._order = self.rng.choice(ORDERS)
            self._reverse = self._order is ORDERS[-1]
        self._common: list[tuple[Callable[[], None], int]] = [
            (self.put, 40), (self.delete, 18), (self.batch, 6), (self.overwrite, 1), (self.get, 25),
            (self.delete_run, 1), (self.scan, 2), (self.scan_range, 8), (self.take_snapshot, 3),
            (self.read_snapshot, 2), (self.release_snapshot, 2), (self.begin_iterator, 3),
            (self.walk, 12), (self.compact, 1), (self.scan_prefix, 4),
            (self.load, int(self.keys is KEYS)),
        ]  # fmt: skip
        self._own: list[tuple[Callable[[], None], int]] = [
            (self.flush, 2), (self.check, 2), (self.multi_get, 4), (self.range_flags, 4),
            (self.raw, 3), (self.ingest, 3), (self.transaction, 2),
            (self.delete_range, 2),
        ]  # fmt: skip
        if self.keys is STEMMED:
            self._own += [(self.put_stem, 4), (self.delete_stem, 2), (self.scan_stem, 3)]

    def run(self, operations: int) -> None:
        """So many, in turns."""
        try:
            for turn in range(max(1, operations // TURN)):
                self.engine = self.engines[turn % len(self.engines)]
                self.open()
                self.doing = "what was left"
                self.check()
                choices = self._common + (self._own if self.engine == "lsmkv" else [])
                actions, weights = zip(*choices, strict=True)
                for action in self.rng.choices(actions, weights, k=TURN):
                    self.at += 1
                    self.doing = f"{self.engine}: {action.__name__}"
                    action()
                    self.outcome.count("operations")
                self.doing = "the end of a turn"
                self.check()
                self.close()
        finally:
            self._let_go()
            if self.db is not None:
                self.db.close()

    # Opening

    def open(self) -> None:
        """With settings by chance, small ones, so that levels form."""
        rng = self.rng
        options: dict[str, Any] = {
            "create_if_missing": True,
            "paranoid_checks": True,
            "compression": rng.choice(["snappy", None]),
            "block_size": rng.choice([1024, 4096]),
            "block_restart_interval": rng.choice([1, 2, 16]),
        }
        if self.engine == "leveldb":
            plyvel: Any = importlib.import_module("plyvel")
            self.db = plyvel.DB(
                self._where["path"], write_buffer_size=65536,
                bloom_filter_bits=rng.choice([0, 1, 10]), **options,
            )  # fmt: skip
            return
        options |= rng.choice(FILTERS)
        layouts = ["block", "table", "both", None]
        if isinstance(options.get("filter_policy"), BinaryFusePolicy):
            layouts.remove("block")
        options["filter_layout"] = rng.choice(layouts)
        options["filter_last_level"] = rng.random() < 0.8
        if len(self.engines) == 1:
            options["compression"] = rng.choice(["snappy", "zstd", None])
            options["block_size"] = rng.choice([64, 256, 4096])
        if not self._order:
            options |= rng.choice(STEMMED_PREFIXES if self.keys is STEMMED else PREFIXES)
        self.db = DB(
            **self._where, **options, **self._order, background="thread",
            write_buffer_size=rng.choice([1024, 5000, 65536, 1 << 18]),
            max_file_size=rng.choice([1024, 5000, 1 << 20]),
            lru_cache_size=rng.choice([0, 2000, 1 << 20]),
            max_open_files=rng.choice([20, 1000]), map_tables=rng.random() < 0.5,
            reuse_logs=rng.random() < 0.5,
            mapped_log=rng.random() < 0.5,
        )  # fmt: skip
        finds_ranges(self.db)

    def close(self) -> None:
        """Whatever was taken from it first."""
        self._let_go()
        self.db.close()
        self.db = None

    def _let_go(self) -> None:
        for holder in [*self._snapshots, *self._iterators]:
            holder[0].close()
        self._snapshots = []
        self._iterators = []

    # The model

    def entries(self, state: State | None = None) -> list[Entry]:
        """In the store's order."""
        return sorted((self.state if state is None else state).items(), reverse=self._reverse)

    def key(self) -> bytes:
        """One that may well be there."""
        return self.rng.choice(self.keys)

    def target(self) -> bytes:
        """A key, or what lies beside one."""
        return self.key() + self.rng.choice([b"", b"", b"\0", b"x", b"\xff"])

    def value(self) -> bytes:
        """Compressible or not, empty at times."""
        size = self.rng.choice([0, 10, 10, 300, 3000])
        return self.rng.randbytes(size) if self.rng.random() < 0.7 else b"x" * size

    # Writing

    def put(self) -> None:
        key, value = self.key(), self.value()
        self.db.put(key, value, sync=self.rng.random() < 0.01)
        self.state[key] = value

    def delete(self) -> None:
        key = self.key()
        self.db.delete(key)
        self.state.pop(key, None)

    def batch(self) -> None:
        """Several operations on few keys: the last of each counts."""
        keys = [self.key() for _ in range(3)]
        batch = self.db.write_batch()
        for _ in range(self.rng.randrange(12)):
            key = self.rng.choice(keys)
            if self.rng.random() < 0.3:
                batch.delete(key)
                self.state.pop(key, None)
            else:
                value = self.value()
                batch.put(key, value)
                self.state[key] = value
        batch.write()

    def overwrite(self) -> None:
        """Enough to fill a memtable."""
        for key in self.keys[:: self.rng.choice([3, 7])]:
            value = b"%d" % self.at * self.rng.randrange(60)
            self.db.put(key, value)
            self.state[key] = value

    def delete_run(self) -> None:
        """Many keys in a row, or most of them."""
        at, size = self.rng.randrange(len(self.keys)), self.rng.choice([20, 150, len(self.keys)])
        for key in sorted(self.keys)[at : at + size]:
            if self.rng.random() < 0.95:
                self.db.delete(key)
                self.state.pop(key, None)

    def put_stem(self) -> None:
        """A table that most prefixes are not in, but for its edges."""
        stem = self.rng.choice(STEMS)
        for key in [STEMMED[0], *(stem + tail for tail in self.rng.sample(TAILS, 4)), STEMMED[-1]]:
            self.state[key] = b"%d" % self.at * 20
            self.db.put(key, self.state[key])
        self.db.flush()

    def delete_stem(self) -> None:
        """A table of deletions alone hides the entries of older ones."""
        stem = self.rng.choice(STEMS)
        for key in [key for key in self.state if key.startswith(stem)]:
            self.db.delete(key)
            del self.state[key]
        self.db.flush()

    def load(self) -> None:
        """Or delete, in one batch, so many that a table of them has a fuse filter."""
        value = None if self.rng.random() < 0.2 else b"%d" % self.at
        with self.db.write_batch() as batch:
            for key in self.rng.sample(MANY, 1050):
                if value is None:
                    batch.delete(key)
                    self.state.pop(key, None)
                else:
                    batch.put(key, value)
                    self.state[key] = value

    def ingest(self) -> None:
        """Files of which a later one wins, and all of them over what is written meanwhile."""
        home = os.path.dirname(self._where["path"])
        ingested: State = {}
        paths: list[str] = []
        for number in range(self.rng.randrange(1, 4)):
            part = {self.key(): self.value() for _ in range(self.rng.choice([1, 20, 100]))}
            paths.append(f"{home}/{self.at}-{number}.ldb")
            with TableWriter(paths[-1], env=self._where.get("env"), **self._order) as table:
                for key, value in self.entries(part):
                    table.add(key, value)
            ingested |= part

        def progress(*_: object) -> None:
            if self.rng.random() < 0.1:
                self.put()

        self.db.ingest(paths, progress=progress)
        self.state |= ingested

    def delete_range(self) -> None:
        """Of whole tables, now and then, and of what lies around them."""
        keys = sorted([self.key(), self.key()], reverse=self._reverse)
        start, stop = (None if self.rng.random() < 0.2 else key for key in keys)
        low, high = (stop, start) if self._reverse else (start, stop)
        self.db.delete_range(start, stop)
        for key in list(self.state):
            if (low is None or key >= low) and (high is None or key <= high) and key != stop:
                del self.state[key]

    def transaction(self) -> None:
        """It is committed unless what it read was written meanwhile."""
        with self.db.transaction() as transaction:
            read, written = self.key(), {self.key(): self.value() for _ in range(3)}
            expect(transaction.get(read), self.state.get(read), f"a transaction's {read!r}")
            for key, value in written.items():
                transaction.put(key, value)
            expect(transaction.get(key), value, f"a transaction's own {key!r}")
            if self.rng.random() < 0.7:
                transaction.commit()
                self.state |= written
                return
            self.state[read] = self.value()
            self.db.put(read, self.state[read])
            try:
                transaction.commit()
            except ConflictError:
                return
            raise Wrong(f"{read!r} was written meanwhile, and the transaction was committed")

    def flush(self) -> None:
        self.db.flush()

    def compact(self) -> None:
        start, stop = sorted([self.key(), self.key()], reverse=self._reverse)
        whole = self.rng.random() < 0.5
        if whole and self.engine == "lsmkv":
            self.db.compact_range()
        else:
            self.db.compact_range(start=start, stop=stop)

    # Reading

    def get(self) -> None:
        key = self.target()
        expect(self.db.get(key), self.state.get(key), f"get {key!r}")
        expect(self.db.get(key, b"d"), self.state.get(key, b"d"), f"get {key!r} or a default")

    def multi_get(self) -> None:
        keys = [self.target() for _ in range(self.rng.randrange(8))]
        expect(self.db.multi_get(keys), [self.state.get(k) for k in keys], f"multi_get {keys}")
        for key in keys:
            expect(key in self.db, key in self.state, f"{key!r} in db")

    def scan(self) -> None:
        expect(list(self.db.iterator()), self.entries(), "scan")
        expect(list(self.db.iterator(reverse=True)), self.entries()[::-1], "scan back")

    def check(self) -> None:
        """Everything, and what structures must be."""
        self.scan()
        more = [*MANY[::5], *(key + b"x" for key in MANY[::9])] if self.keys is KEYS else []
        for key in [*KEYS, *more]:
            expect(self.db.get(key), self.state.get(key), f"get {key!r}")
        if self.engine == "lsmkv":
            self.db.check()

    def _between(
        self,
        start: bytes | None,
        stop: bytes | None,
        flags: str = "[)",
        state: State | None = None,
    ) -> list[Entry]:
        """The model's entries in a range."""
        entries = self.entries(state)
        order = [_Backward(key) if self._reverse else key for key, _ in entries]
        low, high = 0, len(order)
        if start is not None:
            edge: Any = _Backward(start) if self._reverse else start
            low = (bisect_left if flags[0] == "[" else bisect_right)(order, edge)
        if stop is not None:
            edge = _Backward(stop) if self._reverse else stop
            high = (bisect_left if flags[1] == ")" else bisect_right)(order, edge)
        return entries[low:high]

    def _bounds(self) -> tuple[bytes | None, bytes | None]:
        start, stop = sorted([self.target(), self.target()], reverse=self._reverse)
        chance = self.rng.random()
        return (None if chance < 0.15 else start), (None if chance > 0.85 else stop)

    def scan_range(self) -> None:
        start, stop = self._bounds()
        expected = self._between(start, stop)
        what = f"{start!r} to {stop!r}"
        expect(list(self.db.iterator(start=start, stop=stop)), expected, what)
        keys = [key for key, _ in expected]
        if self.engine == "leveldb" and (keys == [start] or stop is None):
            return  # plyvel finds nothing there
        back = self.db.iterator(start=start, stop=stop, reverse=True, include_value=False)
        expect(list(back), keys[::-1], f"{what}, back")

    def range_flags(self) -> None:
        start, stop = self._bounds()
        flags = self.rng.choice("([") + self.rng.choice(")]")
        expected = self._between(start, stop, flags)
        for reverse in (False, True):
            found = list(self.db.iterator(
                start=start, stop=stop, include_start=flags[0] == "[",
                include_stop=flags[1] == "]", reverse=reverse,
            ))  # fmt: skip
            what = f"{flags[0]}{start!r}, {stop!r}{flags[1]} reverse={reverse}"
            expect(found, expected[::-1] if reverse else expected, what)

    def scan_prefix(self) -> None:
        if self._order:
            return  # a prefix is a range of the bytewise order alone
        prefix = self.target()[: self.rng.randrange(1, 5)]
        expected = [entry for entry in self.entries() if entry[0].startswith(prefix)]
        expect(list(self.db.iterator(prefix=prefix)), expected, f"prefix {prefix!r}")
        if self.engine == "lsmkv":
            back = list(self.db.iterator(prefix=prefix, reverse=True))
            expect(back, expected[::-1], f"prefix {prefix!r}, back")
            part = list(self.db.prefixed_db(prefix)) if prefix else expected
            expect([prefix + key for key, _ in part], [k for k, _ in expected], f"part {prefix!r}")

    def scan_stem(self) -> None:
        """Many ranges within one stem and at its end, both ways."""
        stem = self.rng.choice(STEMS)
        source, state = self.rng.choice([(self.db, self.state), *self._snapshots])
        ends = [stem + tail for tail in TAILS] + AFTER
        flags = self.rng.choice("([") + self.rng.choice(")]")
        for start, stop in itertools.product(ends, ends):
            expected = self._between(start, stop, flags, state)
            for reverse in (False, True):
                found = list(source.iterator(
                    start=start, stop=stop, include_start=flags[0] == "[",
                    include_stop=flags[1] == "]", reverse=reverse,
                ))  # fmt: skip
                what = f"{flags[0]}{start!r}, {stop!r}{flags[1]} reverse={reverse}"
                expect(found, expected[::-1] if reverse else expected, what)

    # What is held while the store changes

    def take_snapshot(self) -> None:
        if len(self._snapshots) < 4:
            self._snapshots.append((self.db.snapshot(), dict(self.state)))

    def read_snapshot(self) -> None:
        if not self._snapshots:
            return
        snapshot, state = self.rng.choice(self._snapshots)
        reverse = self.rng.random() < 0.5
        expected = self.entries(state)
        found = list(snapshot.iterator(reverse=reverse))
        expect(found, expected[::-1] if reverse else expected, "a snapshot")
        for key in self.rng.sample(self.keys, 20):
            expect(snapshot.get(key), state.get(key), f"a snapshot's {key!r}")

    def release_snapshot(self) -> None:
        if self._snapshots:
            self._snapshots.pop(self.rng.randrange(len(self._snapshots)))[0].close()

    def begin_iterator(self) -> None:
        if len(self._iterators) >= 4:
            self._iterators.pop(self.rng.randrange(4))[0].close()
        start, stop = self._bounds()
        arguments: dict[str, Any] = {"start": start, "stop": stop}
        entries = self._between(start, stop)
        back = self.engine == "lsmkv" and self.rng.random() < 0.3
        if self.keys is STEMMED and self.engine == "lsmkv" and self.rng.random() < 0.7:
            stem = self.rng.choice(STEMS)
            arguments = {"prefix": stem}
            entries = [entry for entry in self.entries() if entry[0].startswith(stem)]
        if back:
            arguments["reverse"] = True
            entries.reverse()
        self._iterators.append((self.db.iterator(**arguments), entries, 0, back))

    def walk(self) -> None:
        """Forth and back, and to any place, in what was there when the iterator was made."""
        if not self._iterators:
            return
        number = self.rng.randrange(len(self._iterators))
        iterator, entries, at, back = self._iterators[number]
        if self.engine == "leveldb" and len(entries) == 1:
            return  # plyvel does not find the only entry of a range when it comes back to it
        for _ in range(self.rng.randrange(1, 25)):
            step = self.rng.random()
            if step < 0.6 and at < len(entries):
                expect(next(iterator), entries[at], "next")
                at += 1
            elif step < 0.9 and at > 0:
                at -= 1
                expect(iterator.prev(), entries[at], "prev")
            elif step > 0.96 and self.engine == "lsmkv":
                key = self.target()
                iterator.seek(key)
                at = sum(self._before(name, key) for name, _ in entries)
                at = len(entries) - at if back else at
            elif step > 0.93:
                start = self.rng.random() < 0.5
                (iterator.seek_to_start if start else iterator.seek_to_stop)()
                at = 0 if start != back else len(entries)
        self._iterators[number] = iterator, entries, at, back

    def _before(self, key: bytes, other: bytes) -> bool:
        return key > other if self._reverse else key < other

    def raw(self) -> None:
        """LevelDB's own kind of iterator."""
        entries = self.entries()
        prefix = self.rng.choice(STEMS) if self.keys is STEMMED and self.rng.random() < 0.7 else b""
        if prefix:
            entries = [entry for entry in entries if entry[0].startswith(prefix)]
        iterator = self.db.raw_iterator(**({"prefix": prefix} if prefix else {}))
        key = self.target()
        at = sum(self._before(name, key) for name, _ in entries)
        iterator.seek(key)
        for _ in range(self.rng.randrange(1, 12)):
            expect(iterator.valid(), 0 <= at < len(entries), "valid")
            if not iterator.valid():
                break
            expect((iterator.key(), iterator.value()), entries[at], "where a raw iterator stands")
            forward = self.rng.random() < 0.5
            (iterator.next if forward else iterator.prev)()
            at += 1 if forward else -1
        iterator.close()


class _Backward:
    """A key in the opposite order."""

    def __init__(self, key: bytes) -> None:
        self.key = key

    def __lt__(self, other: _Backward) -> bool:
        return self.key > other.key

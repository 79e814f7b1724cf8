"""lsmkv.tools.trace.summary: counts, rates, and keys in bounded memory."""

from __future__ import annotations

import random
from collections import Counter

from lsmkv import TraceRecord
from lsmkv.tools.trace.summary import FrequentKeys, Summary


def test_keys_are_counted_exactly_while_there_is_room() -> None:
    keys = FrequentKeys(limit=10)
    for n in range(10):
        for _ in range(n + 1):
            keys.add(b"%d" % n)
    assert keys.most_common(3) == [(b"9", 10), (b"8", 9), (b"7", 8)]
    assert keys.missed == 0


def test_with_too_many_keys_the_error_is_known() -> None:
    choose = random.Random(1)
    keys = FrequentKeys(limit=50)
    true: Counter[bytes] = Counter()
    for _ in range(5000):
        key = b"hot" if choose.random() < 0.3 else b"%d" % choose.randrange(100_000)
        true[key] += 1
        keys.add(key)
    assert keys.missed > 0
    ((first, times),) = keys.most_common(1)
    assert first == b"hot"
    assert true[b"hot"] - keys.missed <= times <= true[b"hot"]
    assert len(keys.most_common(1000)) <= 50


def test_long_keys_are_dropped_sooner() -> None:
    keys = FrequentKeys(limit_bytes=1000)
    for n in range(100):
        keys.add(b"%d" % n * 100)
        keys.add(b"short")
    assert keys.most_common(1)[0][0] == b"short"
    assert sum(len(key) for key, _ in keys.most_common(100)) <= 1000
    assert keys.missed > 0


def test_a_summary() -> None:
    summary = Summary(1000.5, 10)
    for n in range(100):
        summary.add(TraceRecord("get", b"k%d" % (n % 4), n * 1000, 2000, 5 if n % 4 else None, 1))
    summary.add(TraceRecord("write", b"k0", 100_000, 1_000_000, 300, 30))
    summary.add(TraceRecord("seek", b"", 110_000, 5_000_000, 1, 1))
    lines = list(summary.lines(2, False, 80))
    assert lines[0] == "102 operations in 0.1 s, 8,870 a second"
    assert lines[1] == "sampled: one in 10 of each kind is in the trace"
    assert [line.split()[0] for line in lines[4:7]] == ["get", "write", "seek"]
    assert lines[4].split()[1:4] == ["100", "98.0%", "75.0%"]
    assert "batches of 30.0 operations" in lines[7]
    assert [line.split() for line in lines[-2:]] == [["26", "25.5%", "k0"], ["25", "24.5%", "k1"]]
    assert max(map(len, lines)) <= 80
    plain = summary.to_dict(1, False)
    assert plain["operations"]["get"]["found"] == 75
    assert plain["operations"]["write"]["operations"] == 30
    assert plain["keys"] == [{"key": "k0", "times": 26}]
    assert "found" not in plain["operations"]["write"]


def test_an_empty_trace() -> None:
    summary = Summary(0.0, 1)
    assert list(summary.lines(5, False, 80)) == ["0 operations in 0.0 s"]
    assert summary.to_dict(5, False)["operations"] == {}

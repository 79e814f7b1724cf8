"""Reads through a network that fails: a right answer, or an error that says what it was."""

from __future__ import annotations

import errno
import logging
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fault_proxy import Cut, Delay, Fault, FaultProxy, LostReply, Shorten, Status, Truncate
from scale_data import PREFIXES, absent_keys, made_dict, made_parts
from scale_servers import Bucket, new_bucket
from scale_sizes import FAULTS

import lsmkv.bulk
import lsmkv.shards
from lsmkv.errors import CorruptionError, IOError
from lsmkv.shards import Limits

PARTS, PAIRS = 4, 3000
LIMITS = Limits(attempts=4, timeout=1.0, backoff=0.005, longest_backoff=0.02)
_TOGETHER = 1000
_log = logging.getLogger(__name__)


@pytest.fixture(scope="module")
def _built(_proxy: FaultProxy) -> Bucket:
    _proxy.heal()
    bucket = new_bucket(_proxy)
    lsmkv.bulk.build(
        made_parts(PARTS, PAIRS),
        bucket.url,
        options=bucket.options,
        shards=6,
        table_bytes=128 * 1024,
        block_size=2048,
    )
    return bucket


@pytest.fixture
def built(_built: Bucket, proxy: FaultProxy) -> Bucket:
    """A set in S3; the proxy lets everything through."""
    return _built


@pytest.fixture(scope="module")
def pairs() -> dict[bytes, bytes]:
    return made_dict(PARTS, PAIRS)


def open_set(bucket: Bucket, **settings: Any) -> lsmkv.shards.Shards:
    return lsmkv.shards.open(
        bucket.url, options=bucket.options, limits=LIMITS, lru_cache_size=0, **settings
    )


class Reads:
    """Random reads of a set, each compared with a dict."""

    def __init__(self, pairs: dict[bytes, bytes], seed: int) -> None:
        self._pairs = pairs
        self._keys = list(pairs)
        self._absent = absent_keys(pairs, 500, seed)
        self._rng = random.Random(seed)

    def one(self, reader: lsmkv.shards.Shards) -> bool:
        """Whether the answer of one read is right."""
        kinds = (self._get, self._get, self._miss, self._multi_get, self._scan, self._prefix)
        return self._rng.choice(kinds)(reader)

    def _get(self, reader: lsmkv.shards.Shards) -> bool:
        key = self._rng.choice(self._keys)
        return reader.get(key) == self._pairs[key]

    def _miss(self, reader: lsmkv.shards.Shards) -> bool:
        return reader.get(self._rng.choice(self._absent)) is None

    def _multi_get(self, reader: lsmkv.shards.Shards) -> bool:
        keys = self._rng.sample(self._keys, 5) + self._rng.sample(self._absent, 5)
        self._rng.shuffle(keys)
        return reader.multi_get(keys) == [self._pairs.get(key) for key in keys]

    def _scan(self, reader: lsmkv.shards.Shards) -> bool:
        first = self._rng.randrange(len(self._keys) - 300)
        keys = self._keys[first : first + 300]
        step = self._rng.choice((1, -1))
        with reader.iterator(start=keys[0], stop=keys[-1], reverse=step < 0) as found:
            return list(found) == [(key, self._pairs[key]) for key in keys[:-1]][::step]

    def _prefix(self, reader: lsmkv.shards.Shards) -> bool:
        prefix = self._rng.choice([*PREFIXES[3:], b"large:", b"empty:"])
        wanted = [pair for pair in self._pairs.items() if pair[0].startswith(prefix)]
        return list(reader.iterator(prefix=prefix)) == wanted


@pytest.mark.parametrize("probability", [0.1, 0.5])
@pytest.mark.parametrize("first", range(0, FAULTS, _TOGETHER))
def test_no_answer_is_ever_wrong(
    built: Bucket,
    proxy: FaultProxy,
    pairs: dict[bytes, bytes],
    tmp_path: Path,
    probability: float,
    first: int,
) -> None:
    faults: list[Fault] = [Cut(), LostReply(), Delay(0.01), Status(500), Status(503)]
    faults += [Truncate(0), Truncate(100), Truncate(1500), Shorten(0), Shorten(700), Shorten(1)]
    reads = Reads(pairs, seed=first)
    outcomes: Counter[str] = Counter()
    errors: list[IOError] = []
    for batch in range(first, min(first + _TOGETHER, FAULTS), 50):
        proxy.heal()
        cache = tmp_path / "cache" if batch % 100 else None
        with open_set(built, cache_dir=cache) as reader:  # shards are opened through faults, too
            proxy.fail_randomly(probability, faults, seed=batch)
            for _ in range(50):
                try:
                    assert reads.one(reader)
                    outcomes["right"] += 1
                except IOError as error:
                    outcomes["IOError"] += 1
                    errors.append(error)
            requests = reader.stats().requests.get
            assert requests.retries <= (LIMITS.attempts - 1) * (
                requests.requests - requests.retries
            )
            proxy.heal()
            assert all(reads.one(reader) for _ in range(10))
    _log.info("%s, %d faults in %d requests", outcomes, proxy.faults, len(proxy.requests))
    assert outcomes["right"] > 0
    assert all(f"after {LIMITS.attempts} attempts" in str(error) for error in errors)
    assert all(error.errno not in (errno.ENOENT, errno.EACCES) for error in errors)
    assert outcomes["IOError"] > 0 or probability < 0.5


@pytest.mark.parametrize("fault", [Cut(), Status(500), Status(503), Truncate(5), Delay(1.5)])
def test_attempts_are_bounded(
    built: Bucket, proxy: FaultProxy, pairs: dict[bytes, bytes], fault: Fault
) -> None:
    key = list(pairs)[len(pairs) // 2]  # not of a table's first block, which META has
    with open_set(built) as reader:
        reader.warm()
        proxy.forget()
        proxy.plan(*[fault] * 20)
        with pytest.raises(IOError, match="after 4 attempts") as caught:
            reader.get(key)
        assert len(proxy.requests) == LIMITS.attempts
        assert "shards/" in str(caught.value)
        proxy.heal()
        assert reader.get(key) == pairs[key]


@pytest.mark.parametrize(
    "read",
    [
        lambda reader, key: reader.get(key),
        lambda reader, key: reader.multi_get([key, key + b"2"]),
        lambda reader, key: list(reader),
        lambda reader, key: reader.warm(),
        lambda reader, key: reader.refresh(),
    ],
    ids=["get", "multi_get", "scan", "warm", "refresh"],
)
def test_expired_credentials_say_so(
    built: Bucket,
    proxy: FaultProxy,
    pairs: dict[bytes, bytes],
    read: Callable[[lsmkv.shards.Shards, bytes], object],
) -> None:
    expired = Status(403, "ExpiredToken", "The provided token has expired.")
    with open_set(built) as reader:
        proxy.forget()
        proxy.fail_randomly(1, [expired])
        with pytest.raises(IOError, match="credentials have expired") as caught:
            read(reader, list(pairs)[len(pairs) // 2])
        assert caught.value.errno == errno.EACCES
        paths = [request.path for request in proxy.requests]
        assert len(paths) == len(set(paths)), "it comes again at every attempt"
    with pytest.raises(IOError, match="credentials have expired"):
        open_set(built)


@pytest.mark.parametrize("kind", ["META", ".ldb"])
@pytest.mark.parametrize("keep", [None, 0, 100], ids=["missing", "empty", "short"])
def test_a_missing_and_a_short_object_are_damage(
    built: Bucket,
    proxy: FaultProxy,
    pairs: dict[bytes, bytes],
    kind: str,
    keep: int | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    damaged = new_bucket(proxy)
    with built.open() as source, damaged.open() as target:
        names = [info.name for info in source.list("")]
        victim = next(name for name in names if name.endswith(kind))
        for name in names:
            data = source.get(name)
            if name != victim:
                target.put(name, data)
            elif keep is not None:
                target.put(name, data[:keep])
    with open_set(damaged) as reader:
        if (kind, keep) == ("META", None):  # it only repeats bytes of the files
            assert dict(reader) == pairs
            assert victim in caplog.text
            return
        for read in (lambda: list(reader), lambda: reader.multi_get(pairs)):
            with pytest.raises(CorruptionError) as caught:
                read()
            assert victim in str(caught.value)
        shard = next(at for at, one in enumerate(reader.document.shards) if one.path in victim)
        assert shard == 0
        rest = [key for key in pairs if key >= reader.document.shards[1].first]
        assert reader.multi_get(rest[:200]) == [pairs[key] for key in rest[:200]]

"""The pairs that the tests of ``tests/scale`` build shard sets of, and what is in a set of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from functools import partial
from hashlib import sha256

from lsmkv.shards.remote.objects.base import ObjectStore
from lsmkv.shards.version import VersionDocument
from lsmkv.shards.versions import list_versions, read_version

Pair = tuple[bytes, bytes]
PREFIXES = (b"user:", b"user:00000001", b"user:9", b"\x00", b"\xff", b"\xff\xff", b"absent:")
_BYTE = [bytes((number,)) for number in range(256)]


def made_pairs(number: int, count: int) -> list[Pair]:
    """Pairs of one part, in no order; some keys come twice, here and in other parts.

    Most keys are text with one prefix, others are any bytes, from none to 40.  Values are short,
    empty, or much longer than a block.
    """
    rng = random.Random(number)
    pairs = [(_made_key(rng, count), rng.randbytes(rng.randrange(200))) for _ in range(count)]
    pairs.append((b"", b"the empty key, of part %d" % number))
    pairs.append((b"large:%d" % (number % 3), rng.randbytes(100_000)))
    pairs.append((b"empty:%d" % number, b""))
    return pairs


def _made_key(rng: random.Random, count: int) -> bytes:
    if rng.random() < 0.7:
        return b"user:%010d" % rng.randrange(20 * count)
    return rng.choice(_BYTE) + rng.randbytes(rng.randrange(40))


def made_parts(parts: int, count: int) -> list[Callable[[], Iterable[Pair]]]:
    """Functions that workers call."""
    return [partial(made_pairs, number, count) for number in range(parts)]


def made_dict(parts: int, count: int) -> dict[bytes, bytes]:
    """What a set of them holds, in the order of its keys."""
    latest: dict[bytes, bytes] = {}
    for number in range(parts):
        latest.update(made_pairs(number, count))
    return dict(sorted(latest.items()))


def absent_keys(known: dict[bytes, bytes], count: int, seed: int) -> list[bytes]:
    """Keys like those that are there, and are not."""
    rng = random.Random(seed)
    found: list[bytes] = []
    while len(found) < count:
        key = _made_key(rng, len(known))
        if key not in known:
            found.append(key)
    return found


def contents(document: VersionDocument) -> list[object]:
    """What two builds of the same input agree in: all but the names of builds and attempts."""
    return [(shard.first, shard.pairs, shard.meta, shard.files) for shard in document.shards]


def check_complete(objects: ObjectStore) -> list[int]:
    """The numbers of the versions that are there; all that they name is there, byte for byte."""
    for number in (numbers := list_versions(objects)):
        for name, file in read_version(objects, number).objects():
            data = objects.get(name)
            assert (len(data), sha256(data).hexdigest()) == (file.size, file.sha256), name
    return numbers


def named_objects(objects: ObjectStore) -> set[str]:
    """The names of all versions, and of all that they name."""
    names = {f"versions/{number:08d}.json" for number in list_versions(objects)}
    for number in list_versions(objects):
        names.update(name for name, _ in read_version(objects, number).objects())
    return names

"""A run: exact bytes, ranges, samples, damage."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.errors import CorruptionError
from lsmkv.shards.building.blob import pack_columns
from lsmkv.shards.building.runs import FRAME_BYTES, Run, RunReader, encode_run
from lsmkv.shards.remote.objects.local import LocalObjects

NAME = "runs/000000-ab-0000"


def objects() -> LocalObjects:
    return LocalObjects(MemoryEnv(), "/set", True)


def read(
    store: LocalObjects, run: Run, begin: bytes = b"", end: bytes | None = None, most: int = 1
) -> list[tuple[bytes, bytes]]:
    pairs: list[tuple[bytes, bytes]] = []
    for keys, values in RunReader(store, run, begin, end, most).chunks():
        assert keys
        pairs += zip(keys, values, strict=True)
    return pairs


def test_a_small_run_has_these_bytes() -> None:
    run, data = encode_run(NAME, [b"a", b"b"], [b"1", b""])
    frame = pack_columns([b"a", b"b"], [b"1", b""])
    index = pack_columns([b"a"], [bytes(8)])
    footer = len(frame).to_bytes(8, "little") + len(index).to_bytes(8, "little") + b"lsmkvrun"
    assert data == frame + index + footer
    assert run[:5] == (NAME, len(data), b"a", b"b", 2)
    assert [sample.key for sample in run.samples] == [b"a", b"b"]


@pytest.mark.parametrize("most", [1, FRAME_BYTES, 1 << 30])
def test_every_range_is_read(most: int) -> None:
    rng = random.Random(1)
    pairs = sorted((b"%05d" % n, rng.randbytes(rng.randrange(4000))) for n in range(900))
    keys, values = [key for key, _ in pairs], [value for _, value in pairs]
    with objects() as store:
        run, data = encode_run(NAME, keys, values)
        assert len(data) > 5 * FRAME_BYTES
        store.put(NAME, data)
        assert read(store, run, most=most) == pairs
        for _ in range(50):
            begin, end = sorted(b"%05d" % rng.randrange(-1, 901) for _ in range(2))
            wanted = [pair for pair in pairs if begin <= pair[0] < end]
            assert read(store, run, begin, end, most) == wanted
        assert read(store, run, b"00899", None, most) == pairs[-1:]
        assert read(store, run, b"1", None, most) == []


def test_pairs_of_one_key_are_in_one_frame() -> None:
    keys = [b"a"] * 3 + [b"hot"] * 4000 + [b"z"]
    values = [b"%0200d" % n for n in range(len(keys))]
    run, data = encode_run(NAME, keys, values)
    with objects() as store:
        store.put(NAME, data)
        frames = [set(keys) for keys, _ in RunReader(store, run, b"", None, 1).chunks()]
        assert sum(b"hot" in frame for frame in frames) == 1
        assert len(frames) > 1
        assert read(store, run, b"hot", b"hou") == list(zip(keys[3:-1], values[3:-1], strict=True))


def test_an_index_longer_than_one_read() -> None:
    keys = [b"%04d" % n + b"k" * 20_000 for n in range(60)]
    run, data = encode_run(NAME, keys, [b""] * len(keys))
    long = [key + b"x" * FRAME_BYTES for key in keys[:8]]
    run, data = encode_run(NAME, long, [b""] * len(long))
    with objects() as store:
        store.put(NAME, data)
        assert [key for key, _ in read(store, run)] == long


def test_samples_weigh_what_lies_between_them() -> None:
    keys = [b"%06d" % n for n in range(10_000)]
    run, data = encode_run(NAME, keys, [b"x" * 100] * len(keys))
    assert len(run.samples) == 128
    assert run.samples[-1].key == keys[-1]
    weights = [sample.weight for sample in run.samples]
    assert max(weights) - min(weights) < 0.05 * max(weights)
    assert 0.9 * len(data) < sum(weights) <= len(data)


def test_frames_and_samples_are_even_in_bytes_where_pairs_are_not() -> None:
    small = [(b"a%06d" % n, b"x") for n in range(20_000)]
    large = [(b"b%06d" % n, b"x" * 50_000) for n in range(100)]
    keys, values = zip(*small, *large, strict=True)
    run, data = encode_run(NAME, keys, values)
    with objects() as store:
        store.put(NAME, data)
        chunks = list(RunReader(store, run, b"", None, 1).chunks())
    sizes = [sum(map(len, [*some, *others])) for some, others in chunks]
    assert max(sizes) < 1.3 * FRAME_BYTES
    assert sum(sample.key < b"b" for sample in run.samples) < 10
    assert max(sample.weight for sample in run.samples) < 2 * len(data) / 100


def test_a_reader_holds_one_frame_once() -> None:
    keys = [b"%06d" % n for n in range(12)]
    run, data = encode_run(NAME, keys, [b"x" * (FRAME_BYTES // 4)] * len(keys))
    with objects() as store:
        store.put(NAME, data)
        tracemalloc.start()
        try:
            chunks = RunReader(store, run, b"", None, FRAME_BYTES).chunks()
            chunk = next(chunks)
            held = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
    assert chunk[0] == keys[: len(chunk[0])]
    assert held < 1.5 * FRAME_BYTES


def test_damage_is_found() -> None:
    keys = [b"%03d" % n for n in range(40)]
    run, data = encode_run(NAME, keys, [b"value"] * len(keys))
    whole = list(zip(keys, [b"value"] * len(keys), strict=True))
    for at in range(len(data)):
        with objects() as store:
            store.put(NAME, data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
            with pytest.raises(CorruptionError) as caught:
                read(store, run)
            assert NAME in str(caught.value)
    for size in range(len(data)):
        with objects() as store:
            store.put(NAME, data[:size])
            with pytest.raises(CorruptionError):
                assert read(store, run) != whole

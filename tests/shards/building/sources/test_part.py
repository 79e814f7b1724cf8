"""Parts of pairs in memory and of functions."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from lsmkv.errors import CorruptionError
from lsmkv.shards.building.sources.part import CallablePart, PackedPart, Part, checked_pairs

PAIRS = [(b"b", b"1"), (b"a", b""), (b"b", b"2"), ("\u00e9".encode(), b"\xff")]


def give(pairs: list[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    yield from pairs


def fail(after: int) -> Iterator[tuple[bytes, bytes]]:
    yield from PAIRS[:after]
    raise KeyError("the program's own")


@pytest.mark.parametrize("pairs", [PAIRS, []])
def test_each_part_gives_its_pairs_again_and_after_a_pickling(pairs: Any) -> None:
    parts: list[Part] = [
        PackedPart.pack(pairs, "packed"),
        CallablePart(functools.partial(give, pairs), "called"),
    ]
    for part in parts:
        assert isinstance(part, Part)
        assert list(part.pairs()) == pairs
        assert list(part.pairs()) == pairs
        again = pickle.loads(pickle.dumps(part))
        assert list(again.pairs()) == pairs
        assert (again.label, again.size) == (part.label, part.size)


def test_a_packed_part_has_the_size_of_its_blob_and_hides_it() -> None:
    part = PackedPart.pack([(b"secret", b"value")], "one pair")
    assert part.size == len(part.blob)
    assert "secret" not in repr(part)


def test_damage_of_a_packed_part_names_it() -> None:
    part = PackedPart(PackedPart.pack(PAIRS, "").blob[:-1], "source[7]")
    with pytest.raises(CorruptionError, match=r"^source\[7\]: the checksum"):
        part.pairs()


@pytest.mark.parametrize(
    ("pair", "reason"),
    [
        (("text", b""), "a key must be bytes, not str: encode it first"),
        ((b"", "text"), "a value must be bytes, not str: encode it first"),
        ((b"", None), "a value must be bytes, not NoneType"),
        ((1 << 70, b""), "a key must be bytes, not int"),
        ((b"k",), "a pair must be a tuple .* not a tuple of 1"),
        ((b"k", b"v", b"t"), "a pair must be a tuple .* not a tuple of 3"),
        (b"kv", "a key must be bytes, not int"),
        (b"key", "a pair must be a tuple .* not bytes"),
        (7, "a pair must be a tuple .* not int"),
    ],
)
def test_what_is_no_pair_is_named_by_part_and_index(pair: object, reason: str) -> None:
    with pytest.raises(TypeError, match=rf"^mine: pair 2: {reason}"):
        list(checked_pairs([(b"k", b"v"), (b"k", b"v"), pair], "mine"))


def test_bytes_like_keys_and_values_become_bytes() -> None:
    class Derived(bytes):
        pass

    pairs = [(bytearray(b"k"), memoryview(b"v")), [Derived(b"k"), Derived(b"v")]]
    found = list(checked_pairs(pairs, "mine"))
    assert found == [(b"k", b"v")] * 2
    assert {type(item) for pair in found for item in pair} == {bytes}


def test_an_error_of_the_function_is_kept_and_names_the_part() -> None:
    pairs = CallablePart(functools.partial(fail, 2), "source[1], fail()").pairs()
    with pytest.raises(KeyError, match="the program's own") as error:
        list(pairs)
    assert error.value.__notes__ == ["while pair 2 of source[1], fail() was read"]
    with pytest.raises(TypeError, match="argument") as missing:
        CallablePart(fail, "source[1], fail()").pairs()  # type: ignore[arg-type]
    assert missing.value.__notes__ == ["while source[1], fail() made its pairs"]

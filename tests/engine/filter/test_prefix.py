"""lsmkv.engine.filter.prefix: extractors, and which ranges lie within one prefix."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from librt.vecs import vec
from mypy_extensions import i64

from lsmkv.engine.filter.hash64 import xxh3_hash
from lsmkv.engine.filter.prefix import (
    CallablePrefix,
    DelimitedPrefix,
    FixedPrefix,
    PrefixExtractor,
    append_prefix_hashes,
    is_own,
    own_extractor,
    prefix_of,
    shared_prefix,
)
from lsmkv.errors import Error

KEYS = st.text(alphabet="ab:\xff", max_size=5).map(lambda text: text.encode("latin-1"))
EXTRACTORS: list[PrefixExtractor] = [
    *(FixedPrefix(1), FixedPrefix(2), DelimitedPrefix(b":"), DelimitedPrefix(b"::")),
    CallablePrefix(lambda key: key[:1] if key[:1] == b"a" else None, "test.OnlyA"),
    # Its result depends on what follows the prefix, so no range is certain.
    CallablePrefix(lambda key: key.partition(b":")[0] if b":" in key else None, "test.Before"),
    CallablePrefix(lambda key: key[:2], "test.ForgetsShortKeys"),
]


@pytest.mark.parametrize("extractor", EXTRACTORS, ids=lambda extractor: extractor.name)
@given(KEYS, KEYS, KEYS, st.booleans())
def test_all_keys_of_a_range_share_the_prefix(
    extractor: PrefixExtractor, first: bytes, end: bytes, key: bytes, includes_end: bool
) -> None:
    prefix = shared_prefix(extractor, first, end, includes_end)
    inside = first <= key and (key < end or (includes_end and key == end))
    if prefix is not None and inside:
        assert extractor.extract(key) == prefix


@pytest.mark.parametrize(
    ("first", "end", "includes_end", "shared"),
    [
        (b"user1:a", b"user1:b", False, b"user1:"),
        (b"user1:", b"user1;", False, b"user1:"),  # the bounds of iterator(prefix=b"user1:")
        (b"user1:", b"user1;", True, None),
        (b"user1:", b"user1;a", False, None),
        (b"user1:a", b"user2:a", False, None),
        (b"user1", b"user2", False, None),  # shorter than the prefixes
        (b"", b"user1:", False, None),
    ],
)
def test_ranges(first: bytes, end: bytes, includes_end: bool, shared: bytes | None) -> None:
    assert shared_prefix(DelimitedPrefix(b":"), first, end, includes_end) == shared


def test_a_function_that_forgets_short_keys_has_no_range() -> None:
    """``b"k"`` is its own prefix, though ``b"kx"`` has another one."""
    forgets = CallablePrefix(lambda key: key[:2], "test.ForgetsShortKeys")
    assert shared_prefix(forgets, b"k", b"l", False) is None
    assert shared_prefix(forgets, b"kx", b"ky", False) == b"kx"


def test_hashes_of_prefixes() -> None:
    keys = [b"a:1", b"a:2", b"b", b"b:1", b"c:1", b"a:3"]
    for extractor in (
        DelimitedPrefix(b":"),
        CallablePrefix(DelimitedPrefix(b":").extract, "test.Same"),
    ):
        hashes, last = append_prefix_hashes(vec[i64](), keys[:2], extractor, None)
        hashes, last = append_prefix_hashes(hashes, keys[2:], extractor, last)
        assert list(hashes) == [xxh3_hash(prefix) for prefix in (b"a:", b"b:", b"c:", b"a:")]
        assert last == b"a:"


def test_a_function_may_return_a_prefix_that_begins_with_the_last_one() -> None:
    folders = CallablePrefix(lambda key: key[: key.rindex(b"/") + 1], "test.Folders")
    keys = [b"a/1", b"a/2", b"a/b/1", b"a/b/2"]
    hashes, last = append_prefix_hashes(vec[i64](), keys, folders, None)
    assert list(hashes) == [xxh3_hash(b"a/"), xxh3_hash(b"a/b/")]
    assert last == b"a/b/"


@pytest.mark.parametrize("extractor", EXTRACTORS[:4], ids=lambda extractor: extractor.name)
def test_own_extractors_are_known_by_name(extractor: PrefixExtractor) -> None:
    assert is_own(extractor)
    assert repr(own_extractor(extractor.name)) == repr(extractor)


def test_others_are_not() -> None:
    assert is_own(None)
    assert not is_own(EXTRACTORS[4])
    for name in ("", "test.OnlyA", "lsmkv.FixedPrefix.x", "lsmkv.FixedPrefix.0", "lsmkv.Other.1"):
        assert own_extractor(name) is None


def test_a_wrong_extractor_is_named() -> None:
    with pytest.raises(Error, match=r"test.Bad returned b'x', with which b'key' does not begin"):
        prefix_of(CallablePrefix(lambda key: b"x", "test.Bad"), b"key")
    with pytest.raises(Error, match=r"test.Fails failed on b'key': ZeroDivisionError"):
        prefix_of(CallablePrefix(lambda key: bytes([1 // 0]), "test.Fails"), b"key")


@pytest.mark.parametrize("wrong", [0, -1])
def test_sizes(wrong: int) -> None:
    with pytest.raises(ValueError, match="at least 1 byte"):
        FixedPrefix(wrong)


def test_types() -> None:
    with pytest.raises(TypeError):
        FixedPrefix("2")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        DelimitedPrefix(":")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least one byte"):
        DelimitedPrefix(b"")

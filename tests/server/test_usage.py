"""Which keys were used recently, or often."""

from __future__ import annotations

from lsmkv.server.usage import Usage


def test_by_recency() -> None:
    usage = Usage(by_frequency=False, most=3)
    for name in (b"a", b"b", b"c", b"a", b"d"):
        usage.note(name)
    assert [usage.quantile(part) for part in (0, 0.5, 0.99, 1)] == [3, 4, 5, 2**62]
    assert sorted([b"a", b"b", b"c", b"d", b"e"], key=usage.score) == [b"b", b"e", b"c", b"a", b"d"]


def test_a_key_that_is_gone_is_forgotten() -> None:
    usage = Usage(by_frequency=False)
    usage.note(b"a")
    usage.forget(b"a")
    usage.forget(b"b")
    assert usage.score(b"a") == 0


def test_by_frequency() -> None:
    usage = Usage(by_frequency=True, most=3)
    for name in (b"a", b"b", b"b", b"c", b"a", b"a", b"d"):
        usage.note(name)
    assert [usage.score(name) for name in (b"a", b"b", b"c", b"d")] == [3, 0, 1, 1]


def test_frequencies_are_halved_now_and_then() -> None:
    usage = Usage(by_frequency=True)
    usage.note(b"once")
    for _ in range(999_999):
        usage.note(b"often")
    assert (usage.score(b"once"), usage.score(b"often")) == (0, 499_999)

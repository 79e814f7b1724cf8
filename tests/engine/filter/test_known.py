"""lsmkv.engine.filter.known: policies by name and as text."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lsmkv.engine.filter.bloom import BloomFilterPolicy
from lsmkv.engine.filter.bloom64 import Bloom64Policy
from lsmkv.engine.filter.fuse import BinaryFusePolicy
from lsmkv.engine.filter.known import KNOWN_POLICIES, is_known, policy_from_text, policy_text
from lsmkv.engine.filter.policy import FilterPolicy


@pytest.mark.parametrize(
    "policy",
    [
        *(None, BloomFilterPolicy(10), BloomFilterPolicy(9.481888736358517), Bloom64Policy(10)),
        *(Bloom64Policy(12.25), BinaryFusePolicy(), BinaryFusePolicy(7.5), Bloom64Policy(1e20)),
    ],
    ids=repr,
)
def test_round_trip(policy: FilterPolicy | None) -> None:
    text = policy_text(policy)
    again = policy_from_text(text)
    assert policy_text(again) == text
    assert repr(again) == repr(policy)
    assert is_known(policy)


def test_short_texts() -> None:
    assert policy_text(policy_from_text("bloom")) == "bloom:10"
    assert policy_text(policy_from_text("bloom64")) == "bloom64:10"
    assert policy_text(policy_from_text("fuse")) == "fuse:10"


@pytest.mark.parametrize(
    "text", ["", "Bloom", "ribbon:10", "bloom:x", "bloom:0", "bloom64:nan", "none:1", "fuse:-1"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=repr(text)):
        policy_from_text(text)


class Own:
    """A user's."""

    name = BloomFilterPolicy(10).name

    def create_filter(self, keys: Sequence[bytes], /) -> bytes:
        return b""

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        return True


def test_a_policy_of_the_user_has_no_text() -> None:
    assert not is_known(Own())
    with pytest.raises(ValueError, match="not one of lsmkv's filter policies"):
        policy_text(Own())


def test_the_names_differ() -> None:
    assert len({policy.name for policy in KNOWN_POLICIES}) == len(KNOWN_POLICIES)

from __future__ import annotations

from lsmkv.tools.playground.hashes import ASKED, FILTERS, hashes


def test_sequential_keys_pass_leveldbs_hash() -> None:
    kinds = hashes({})["kinds"]
    rates = []
    for kind in kinds:
        assert [len(answers) for answers in kind["answers"]] == [ASKED] * FILTERS
        rates.append(sum(answers.count("1") for answers in kind["answers"]) / FILTERS / ASKED)
    names, sequential, sequential64 = rates
    assert names < 0.03
    assert sequential64 < 0.03
    assert sequential > 0.05
    assert hashes({})["kinds"] == kinds

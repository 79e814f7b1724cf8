from __future__ import annotations

from lsmkv.tools.playground.hashes import ASKED, FILTERS, KEYS, SIZES, hashes


def test_sequential_keys_with_gaps_pass_leveldbs_hash() -> None:
    kinds = hashes({})["kinds"]
    rates = []
    for kind in kinds:
        assert [len(answers) for answers in kind["answers"]] == [ASKED] * FILTERS
        rates.append(sum(answers.count("1") for answers in kind["answers"]) / FILTERS / ASKED)
    names, sequential, sequential64 = rates
    assert names < 0.03
    assert sequential64 < 0.03
    assert sequential > 0.05
    assert all("with gaps" in kind["title"] for kind in kinds[1:])
    assert hashes({})["kinds"] == kinds


def test_what_passes_depends_on_the_numbers_that_are_asked_for() -> None:
    found = hashes({})
    gaps, following, far = found["patterns"]
    at = SIZES.index(KEYS)
    grid = "".join(found["kinds"][1]["answers"])
    assert gaps["leveldb"][at] == grid.count("1") / len(grid) > 5 * following["leveldb"][at]
    assert gaps["bloom64"] == "".join(found["kinds"][2]["answers"]).count("1") / len(grid)
    assert following["leveldb"][at] > far["leveldb"][at]
    assert max(far["leveldb"]) < 0.02
    assert max(one["bloom64"] for one in (gaps, following, far)) < 0.02
    for one in (gaps, following, far):
        assert len(one["leveldb"]) == len(found["sizes"])
    assert "with gaps" in gaps["title"]

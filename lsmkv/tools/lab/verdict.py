"""The verdict: one sentence on which filter setting pays, if any, chosen by a stated rule."""

from __future__ import annotations

from typing import NamedTuple

from lsmkv.tools.lab.reads import Replay, SettingReads
from lsmkv.tools.lab.settings import parse_setting
from lsmkv.tools.text import printable, size

RULE = (
    "The rule: of the settings that save at least 95% of the reads that the best one saves, the one"
    " with the least memory; none, if the best one saves less than one read in 100 Gets."
)

_SHARE = 0.95
_LEAST_SAVED_PER_GET = 0.01


class Verdict(NamedTuple):
    """What pays."""

    setting: str | None
    """The setting chosen; None if nothing pays."""
    saved_reads: int
    """Wasted reads that it saves; if nothing pays, those that the best one would."""
    more_bytes: int
    """Memory of its filters beyond that of the store's; 0 if nothing pays."""
    sentence: str


def judge(replay: Replay) -> Verdict:
    """The verdict on a replay, by :data:`RULE`.  Each setting is compared with the store as it is.

    A read that is saved is a wasted one: a Get has to read the block that holds its key.
    """
    stored = replay.stored
    wasted = stored.wasted_reads
    saved = [(wasted - one.wasted_reads, one) for one in replay.results[1:]]
    most = max((number for number, _ in saved), default=0)
    if most < _LEAST_SAVED_PER_GET * replay.gets or most <= 0:
        return Verdict(None, max(most, 0), 0, _nothing_pays(replay, max(most, 0), bool(saved)))
    number, chosen = _cheapest(saved, most)
    more = chosen.filter_bytes - stored.filter_bytes
    setting = parse_setting(chosen.setting)
    words = setting.in_words()
    sentence = (
        f"{words[0].upper()}{words[1:]} would save {number:,} of {wasted:,} wasted reads"
        f" {_price(more)}."
    )
    if not setting.leveldb_asks:
        sentence += f" {_beside_leveldb(saved, stored)}"
    if replay.unsafe_order is not None:
        sentence += (
            f" But the store's order, {printable(replay.unsafe_order)}, may call keys of different"
            " bytes equal: if it does, filters miss keys, and there must be none."
        )
    return Verdict(chosen.setting, number, more, sentence)


def _cheapest(saved: list[tuple[int, SettingReads]], most: int) -> tuple[int, SettingReads]:
    """Of the settings that save nearly ``most`` reads, the one with the least memory."""
    enough = [(number, one) for number, one in saved if number >= _SHARE * most]
    return min(enough, key=lambda pair: (pair[1].filter_bytes, -pair[0]))


def _beside_leveldb(saved: list[tuple[int, SettingReads]], stored: SettingReads) -> str:
    """That LevelDB asks no such filters, and which setting is the best one for it."""
    told = "LevelDB reads such tables unfiltered"
    asked = [(number, one) for number, one in saved if parse_setting(one.setting).leveldb_asks]
    most = max((number for number, _ in asked), default=0)
    if most <= 0:
        return f"{told}."
    number, best = _cheapest(asked, most)
    words = parse_setting(best.setting).in_words()
    price = _price(best.filter_bytes - stored.filter_bytes)
    return f"{told}; of the filters that it reads, {words} would save {number:,} {price}."


def _price(more: int) -> str:
    if more > 0:
        return f"for {size(more)} more memory"
    return f"and {size(-more)} of memory" if more < 0 else "for no more memory"


def _nothing_pays(replay: Replay, most: int, compared: bool) -> str:
    gets = f"{replay.gets:,} Gets"
    wasted = replay.stored.wasted_reads
    if wasted == 0:
        return f"Nothing pays: the {gets} read no block in vain." + _cheaper(replay)
    told = f"Nothing pays: the {gets} read {wasted:,} blocks in vain"
    if not compared:
        return told + ", and no other setting was tried."
    best = f"the best setting would save {most:,} of them" if most else "no setting saves any"
    return f"{told}, and {best}." + _cheaper(replay)


def _cheaper(replay: Replay) -> str:
    """A second sentence, if a setting takes less memory and wastes no more reads."""
    stored = replay.stored
    as_good: list[SettingReads] = [
        one
        for one in replay.results[1:]
        if one.wasted_reads <= stored.wasted_reads and one.filter_bytes < 0.9 * stored.filter_bytes
    ]
    if not as_good:
        return ""
    least = min(as_good, key=lambda one: one.filter_bytes)
    less = size(stored.filter_bytes - least.filter_bytes)
    setting = parse_setting(least.setting)
    told = f" With {setting.in_words()} it would waste no more, for {less} less memory."
    if setting.leveldb_asks or setting.kind == "none":
        return told
    return f"{told} But LevelDB reads such tables unfiltered."

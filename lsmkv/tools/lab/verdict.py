"""The verdict: one sentence on which filter setting pays, if any, chosen by a stated rule."""

from __future__ import annotations

from typing import NamedTuple

from lsmkv.tools.filter_lab import Replay, SettingReads, parse_setting
from lsmkv.tools.text import count, printable, size

RULE = (
    "The rule: what costs nothing comes first. Of the settings that take no more memory than the"
    " store's filters, it is the one with the least memory among those that save at least 95% of"
    " the reads that the best of them saves. Then the same of all settings, at its price. Neither"
    " is named if it saves less than one read in 100 Gets, or the second less than that beyond the"
    " first."
)

_SHARE = 0.95
_LEAST_SAVED_PER_GET = 0.01


class Verdict(NamedTuple):
    """The setting that pays."""

    setting: str | None
    """The setting chosen; None if nothing pays."""
    saved_reads: int
    """Wasted reads that it saves; if nothing pays, those that the best one would."""
    more_bytes: int
    """Memory of its filters beyond that of the store; 0 if nothing pays."""
    sentence: str


def judge(replay: Replay) -> Verdict:
    """The verdict on a replay, by :data:`RULE`.  Each setting is compared with the store as it is.

    A read that is saved is a wasted one: a Get has to read the block that holds its key.
    """
    stored = replay.stored
    saved = [(stored.wasted_reads - one.wasted_reads, one) for one in replay.results[1:]]
    least = max(1.0, _LEAST_SAVED_PER_GET * replay.gets)
    free = _best([pair for pair in saved if _more(pair[1], stored) <= 0], least)
    priced = _best(saved, least + (free[0] if free is not None else 0))
    if priced is not None and _more(priced[1], stored) <= 0:
        priced = None  # it is the free one, or no better
    chosen = priced if free is None else free
    if chosen is None:
        most = max((number for number, _ in saved), default=0)
        return Verdict(None, max(most, 0), 0, _nothing_pays(replay, max(most, 0), bool(saved)))
    number, setting = chosen
    words = parse_setting(setting.setting).in_words()
    sentence = (
        f"{words[0].upper()}{words[1:]} would save {number:,} of {stored.wasted_reads:,} wasted"
        f" reads {_price(_more(setting, stored))}."
    )
    named: SettingReads | None = None
    if not parse_setting(setting.setting).leveldb_asks:
        words, named = _beside_leveldb(saved, stored, least)
        sentence += f" {words}"
    if free is not None and priced is not None and priced[1] is not named:
        number_more, dearer = priced
        price = size(_more(dearer, stored))
        words = parse_setting(dearer.setting).in_words()
        sentence += f" For {price} more memory, {words} would save {number_more:,}."
    if replay.unsafe_order is not None:
        sentence += (
            f" But the store's order, {printable(replay.unsafe_order)}, may call keys of different"
            " bytes equal: if it does, filters miss keys, and there must be none."
        )
    return Verdict(setting.setting, number, _more(setting, stored), sentence)


def _more(one: SettingReads, stored: SettingReads) -> int:
    """Bytes of memory beyond those of the store's filters."""
    return one.filter_bytes - stored.filter_bytes


def _best(saved: list[tuple[int, SettingReads]], least: float) -> tuple[int, SettingReads] | None:
    """The cheapest of those that save nearly as much as the best; None if it saves too little."""
    most = max((number for number, _ in saved), default=0)
    return None if most < least else _cheapest([one for one in saved if one[0] >= least], most)


def _cheapest(saved: list[tuple[int, SettingReads]], most: int) -> tuple[int, SettingReads]:
    """The setting with the least memory that saves nearly ``most`` reads."""
    enough = [(number, one) for number, one in saved if number >= _SHARE * most]
    return min(enough, key=lambda pair: (pair[1].filter_bytes, -pair[0]))


def _beside_leveldb(
    saved: list[tuple[int, SettingReads]], stored: SettingReads, least: float
) -> tuple[str, SettingReads | None]:
    """Say that LevelDB asks no such filters, and find the best setting for it: one that costs
    nothing, if it saves enough."""
    leveldb = "LevelDB reads such tables unfiltered"
    asked = [(number, one) for number, one in saved if parse_setting(one.setting).leveldb_asks]
    best = _best([pair for pair in asked if _more(pair[1], stored) <= 0], least)
    best = _best(asked, 1) if best is None else best
    if best is None:
        return f"{leveldb}.", None
    number, setting = best
    words = parse_setting(setting.setting).in_words()
    price = _price(_more(setting, stored))
    words = f"{leveldb}; of the filters that it reads, {words} would save {number:,} {price}."
    return words, setting


def _price(more: int) -> str:
    if more > 0:
        return f"for {size(more)} more memory"
    return f"and {size(-more)} of memory" if more < 0 else "for no more memory"


def _nothing_pays(replay: Replay, most: int, compared: bool) -> str:
    gets = f"{replay.gets:,} Gets"
    wasted = replay.stored.wasted_reads
    if wasted == 0:
        return f"Nothing pays: the {gets} waste no read." + _cheaper(replay)
    text = f"Nothing pays: the {gets} waste {count(wasted, 'read')}"
    if not compared:
        return text + ", and no other setting was tried."
    best = f"the best setting would save {most:,} of them" if most else "no setting saves any"
    return f"{text}, and {best}." + _cheaper(replay)


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
    text = f" With {setting.in_words()} it would waste no more, for {less} less memory."
    if setting.leveldb_asks or setting.kind == "none":
        return text
    return f"{text} But LevelDB reads such tables unfiltered."

"""The expected false-positive rate of a Bloom filter, small ones included.

The textbook's rate, (1 - e^(-kn/m))^k, is that of a large filter with independent probes.
LevelDB's k probes are h, h + d, h + 2d, ... modulo m, where h and d have 32 bits.  In a filter of a
few hundred bits three effects raise the error, and each of them fades as 1/m (compare Dillinger &
Manolios, "Bloom Filters in Probabilistic Verification", FMCAD 2004):

* Probes repeat: if d is 0 modulo m, for example, all of them probe one bit.  ``_Law.distinct`` is
  the share of hashes that probe r different bits.
* m is a multiple of 8.  If d is one too, all probes are among every eighth bit.  How full these are
  varies much more from filter to filter than how full the whole filter is.  The same holds for 2, 4
  and any higher power of two in m.
* A key with the same d, or with -d, may have set most of the bits that are probed.

The probability that r different bits are all set follows from those of one and of two bits.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from typing import Final

_SPAN: Final = 1 << 32
"""The modulus at which LevelDB's sums wrap around."""
_LONGEST_LAG: Final = 8
"""Probes farther apart than this are counted as meeting only by chance."""
_WRAPS: Final = 64
"""Beginnings and steps, as shares of the span, for which the wraps of the sums are counted."""
_PAIRED_WRAPS: Final = 24
"""As many for pairs of keys."""
_GOLDEN: Final = 0.6180339887498949
_FEW_BITS: Final = 8
"""In a filter of fewer bits a probe than this, probes far apart also meet."""


class _Law:
    """The statistics of k probes in m bits."""

    def __init__(
        self, distinct: list[dict[int, float]], mean: float, overlaps: dict[int, float]
    ) -> None:
        self.distinct = distinct
        """For each power of two that divides d, from 1 up to that of m: the share of hashes with it
        that probe r different bits."""
        self.mean = mean
        """Different bits that a hash probes, on average."""
        self.overlaps = overlaps
        """The average number of pairs of offsets that make a key with the same d share s bits."""


def expected_rate(keys: float, bits: int, probes: int) -> float:
    """The false-positive rate to expect of one of LevelDB's filters, among absent keys.

    It is the mean over filters of that many keys, whose hashes look random; a single small filter
    differs.  Measured with filters of 1 to 200 keys, it is accurate to within 25% up to 20 bits a
    key, and to an order of magnitude beyond.  Cost: a few milliseconds for the first filter of a
    size, and O(k^2) after that.  ``ValueError`` for impossible sizes.

    >>> f"{expected_rate(8, 320, 6):.3%}", f"{expected_rate(100_000, 1_000_000, 6):.3%}"
    ('0.019%', '0.844%')
    """
    law = _checked_law(keys, bits, probes)
    fill = expected_fill(keys, bits, probes)
    rate = 0.0
    for power, shares in enumerate(law.distinct):
        size = bits >> power
        both = _both_set(probes, len(law.distinct) - 1, power, size)
        both_clear = math.pow(min(1.0, max(0.0, 1.0 - 2.0 * law.mean / bits + both)), keys)
        for distinct, share in shares.items():
            rate += share * _all_set(distinct, fill, both_clear)
    for shared, offsets in law.overlaps.items():
        more = math.pow(fill, probes - shared) - math.pow(fill, probes)
        rate += 2.0 * keys / bits / bits * offsets * more
    return min(1.0, rate)


def expected_fill(keys: float, bits: int, probes: int) -> float:
    """The share of ones to expect in one of LevelDB's filters: ``1 - (1 - r/m)^n``.

    r is the average number of different bits that the k probes of a key reach.

    >>> round(expected_fill(8, 320, 6), 3), round(expected_fill(100, 1000, 6), 3)
    (0.139, 0.451)
    """
    law = _checked_law(keys, bits, probes)
    return 1.0 - math.pow(1.0 - law.mean / bits, keys)


def expected_rate64(keys: float, bits: int, probes: int) -> float:
    """As :func:`expected_rate`, for :class:`~lsmkv.Bloom64Policy`, whose probes are independent.

    >>> f"{expected_rate64(8, 80, 7):.2%}", f"{expected_rate64(100_000, 1_000_000, 7):.2%}"
    ('0.91%', '0.82%')
    """
    _check(keys, bits, probes)
    sets = keys * probes
    fill = 1.0 - math.pow(1.0 - 1.0 / bits, sets)
    both_clear = math.pow(1.0 - 2.0 / bits, sets)
    rate = 0.0
    for distinct, share in enumerate(_distinct_of_independent(bits, probes)):
        rate += share * _all_set(distinct, fill, both_clear)
    return min(1.0, rate)


def keys_from_fill(fill: float, bits: int, probes: int) -> float:
    """The approximate number of keys in one of LevelDB's filters, from its share of ones.

    The result for a full one is infinite.

    >>> round(keys_from_fill(expected_fill(100, 1000, 6), 1000, 6))
    100
    """
    if fill >= 1.0:
        return math.inf
    law = _checked_law(0, bits, probes)
    return math.log1p(-fill) / math.log1p(-min(law.mean / bits, 1.0 - 1e-9))


def keys_from_fill64(fill: float, bits: int, probes: int) -> float:
    """As :func:`keys_from_fill`, for :class:`~lsmkv.Bloom64Policy`: ``-(m/k) ln(1 - fill)``.

    >>> round(keys_from_fill64(0.451, 1000, 6))
    100
    """
    _check(0, bits, probes)
    return math.inf if fill >= 1.0 else math.log1p(-fill) / (probes * math.log1p(-1.0 / bits))


def _check(keys: float, bits: int, probes: int) -> None:
    if keys < 0 or bits < 1 or probes < 1:
        raise ValueError(f"no filter has {keys:g} keys, {bits} bits and {probes} probes")


def _checked_law(keys: float, bits: int, probes: int) -> _Law:
    _check(keys, bits, probes)
    return _law(bits, probes)


@functools.lru_cache(maxsize=4096)
def _law(bits: int, probes: int) -> _Law:
    top = (bits & -bits).bit_length() - 1  # the power of two in m
    wrap = _SPAN % bits
    most = [min(probes, bits >> power) for power in range(top + 1)]
    shares: list[dict[int, float]] = [
        {most[power]: 2.0 ** -min(power + 1, top)} for power in range(top + 1)
    ]
    paths: dict[tuple[int, ...], float] = _paths(probes, _WRAPS) if wrap else {(0,) * probes: 1.0}
    for step in _repeating_steps(bits, probes, wrap):
        power = min(top, (step & -step).bit_length() - 1) if step else top
        at = shares[power]
        for wraps, share in paths.items():
            distinct = len({(n * step - wraps[n] * wrap) % bits for n in range(probes)})
            at[distinct] = at.get(distinct, 0.0) + share / bits
            at[most[power]] -= share / bits
    mean = sum(distinct * share for at in shares for distinct, share in at.items())
    return _Law(shares, mean, _overlaps(probes, wrap > 0))


def _repeating_steps(bits: int, probes: int, wrap: int) -> set[int]:
    """The d modulo m for which probes close to each other meet: lag * d = wraps * 2^32."""
    if bits < _FEW_BITS * probes:
        return set(range(bits))
    steps: set[int] = set()
    for lag in range(1, min(probes, _LONGEST_LAG + 1)):
        common = math.gcd(lag, bits)
        whole = bits // common
        for wraps in range(lag + 1 if wrap else 1):
            if wraps * wrap % common == 0:
                inverse = pow(lag // common, -1, whole) if whole > 1 else 0
                first = wraps * wrap // common * inverse % whole
                steps.update(first + n * whole for n in range(common))
    return steps


@functools.lru_cache(maxsize=64)
def _paths(probes: int, number: int) -> dict[tuple[int, ...], float]:
    """Return each sequence of wraparounds before the probes, with its probability."""
    paths: Counter[tuple[int, ...]] = Counter()
    for n in range(number):
        begin, step = n * _GOLDEN % 1.0, (n + 0.5) / number
        paths[tuple(int(begin + at * step) for at in range(probes))] += 1
    return {path: times / number for path, times in paths.items()}


@functools.lru_cache(maxsize=64)
def _overlaps(probes: int, wraps: bool) -> dict[int, float]:
    """The offsets between two probe sequences with one d, by the bits that they share."""
    found: dict[int, float] = {}
    paths = _paths(probes, _PAIRED_WRAPS) if wraps else {(0,) * probes: 1.0}
    for one, share in paths.items():
        for other, also in paths.items():
            offsets = Counter(
                (n - at, one[n] - other[at]) for n in range(probes) for at in range(probes)
            )
            for shared in offsets.values():
                found[shared] = found.get(shared, 0.0) + share * also
    return {shared: number for shared, number in found.items() if shared > 1}


def _both_set(probes: int, top: int, power: int, size: int) -> float:
    """Return the probability that a key sets two given bits of the ``size`` ones that are equal
    modulo 2^power."""
    if size < 2:
        return 0.0
    pairs = 0.0
    for own in range(top + 1):  # the power of two in the key's d
        share = 2.0 ** -min(own + 1, top)
        if own > power:
            met = min(probes, 1 << (top - own)) if size == 1 << (top - power) else probes
            pairs += share * 2.0**-power * met * (met - 1)
            continue
        parts = 1 << (power - own)
        few, more = divmod(probes, parts)
        least, most = min(few, size), min(few + 1, size)
        both = more * most * (most - 1) + (parts - more) * least * (least - 1)
        pairs += share * 2.0**-own * both / parts
    return pairs / (size * (size - 1))


def _distinct_of_independent(bits: int, probes: int) -> list[float]:
    """Return the probability of each number of different bits for independent probes."""
    shares = [1.0] + [0.0] * probes
    for _ in range(probes):
        for met in range(probes, 0, -1):
            again = shares[met] * (met / bits)
            shares[met] = again + shares[met - 1] * max(0.0, 1.0 - (met - 1) / bits)
        shares[0] = 0.0
    return shares


def _all_set(distinct: int, fill: float, both_clear: float) -> float:
    """Return the probability that that many bits are all set, if each is set with probability
    ``fill`` and any two are both clear with probability ``both_clear``.

    It is exact for one bit and for two; for more, the number of ones is assumed to follow Polya's
    distribution.
    """
    clear = 1.0 - fill
    if clear <= 0.0 or fill <= 0.0:
        return math.pow(fill, distinct)
    alike = (both_clear - clear * clear) / (fill * clear)
    product = 1.0
    for n in range(distinct):
        chance = (fill * (1.0 - alike) + n * alike) / max(1e-9, 1.0 - alike + n * alike)
        product *= min(1.0, max(0.0, chance))
    return product

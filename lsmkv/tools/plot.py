"""Curves about filters, drawn by matplotlib: the extra ``plot``.

Each function takes plain figures and returns a matplotlib ``Figure``, which a notebook shows and
:func:`to_svg` writes.  Nothing here reads a store: what Gets read under several filter settings is
measured by ``lsmkv filter-lab --json``.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lsmkv.engine.filter.bloom import MIN_BITS, BloomFilterPolicy, predicted_rate
from lsmkv.engine.filter.rates import expected_fill, expected_rate
from lsmkv.engine.former_paths import keep_paths
from lsmkv.engine.util.text import count

try:
    import matplotlib as mpl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter
except ImportError as error:
    raise ImportError(
        f"lsmkv.plot needs matplotlib, pip install '.[plot]' in lsmkv's checkout: {error}",
        name="matplotlib",
    ) from error

__all__ = ["blocks_per_get", "false_positive_rates", "fill", "to_svg"]

_SVG: dict[Any, Any] = {"svg.hashsalt": "lsmkv", "svg.fonttype": "none"}
_USED, _WASTED = "#1f77b4", "#d62728"
_NOT_IN_IT = "wasted: the key is not in it"
_MARKERS = "osD^v"


def false_positive_rates(
    bits: Iterable[int] = range(1, 21),
    measured: Mapping[str, Mapping[int, float]] | None = None,
    *,
    keys: int | None = None,
) -> Figure:
    """The false-positive rate of ``BloomFilterPolicy`` against bits a key, predicted and measured.

    Predicted is that of large filters, or of filters of that many ``keys``: small ones are wrong
    more often, and their rate is :func:`~lsmkv.engine.filter.rates.expected_rate`.  ``measured``
    has rates between 0 and 1 by bits a key, for each name in the legend; a rate of 0 has no place
    on the logarithmic axis and is left out.  Raises ``ValueError`` for bits below 1.  O(number of
    points).

    >>> figure = false_positive_rates(range(1, 11), {"measured": {10: 0.0095}})
    >>> [line.get_label() for line in figure.axes[0].lines]
    ['predicted: (1 - e^(-kn/m))^k', 'measured']
    """
    figure, axes = _axes(3.6)
    numbers = list(bits)
    policies = [BloomFilterPolicy(one) for one in numbers]
    label = "predicted: (1 - e^(-kn/m))^k"
    if keys is None:
        rates = [predicted_rate(one.bits_per_key, one.probes) for one in policies]
    else:
        label = f"expected of filters of {count(keys, 'key')}"
        sizes = [8 * -(-max(MIN_BITS, keys * one) // 8) for one in numbers]
        rates = [
            expected_rate(keys, size, one.probes) for size, one in zip(sizes, policies, strict=True)
        ]
    axes.plot(numbers, rates, color="#555555", label=label)
    for at, (name, points) in enumerate((measured or {}).items()):
        seen = sorted((one, rate) for one, rate in points.items() if rate > 0)
        axes.plot(
            [one for one, _ in seen],
            [rate for _, rate in seen],
            linestyle="none",
            marker=_MARKERS[at % len(_MARKERS)],
            markersize=5,
            label=name,
        )
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda rate, _: f"{100 * rate:.3g}%"))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axes.set_xlabel("bits a key")
    axes.set_ylabel("false-positive rate")
    axes.grid(True, which="major", color="#dddddd", linewidth=0.6)
    axes.legend(frameon=False)
    return figure


def blocks_per_get(reads: Mapping[str, tuple[float, float]]) -> Figure:
    """Data blocks read per Get by filter setting, as bars: those of use, and wasted ones.

    ``reads`` has both figures per Get for each setting, in the order to be drawn from the top.
    Raises ``ValueError`` if there is none.  O(number of settings).

    >>> figure = blocks_per_get({"none": (0.5, 2.0), "block:10": (0.5, 0.02)})
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['none', 'block:10']
    """
    if not reads:
        raise ValueError("there is no setting to draw")
    figure, axes = _axes(0.34 * len(reads) + 1.1)
    places = range(len(reads))
    used = [one for one, _ in reads.values()]
    wasted = [one for _, one in reads.values()]
    axes.barh(places, used, color=_USED, height=0.62, label="of use: it holds the key")
    axes.barh(places, wasted, left=used, color=_WASTED, height=0.62, label=_NOT_IN_IT)
    for place, total in zip(places, map(sum, reads.values()), strict=True):
        axes.annotate(
            f"{total:.3g}", (total, place), (4, 0), textcoords="offset points", va="center"
        )
    axes.set_yticks(places, list(reads))
    axes.invert_yaxis()
    axes.margins(x=0.1)
    axes.set_xlabel("data blocks read per Get")
    axes.legend(frameon=False, loc="lower right")
    return figure


def fill(points: Sequence[tuple[int, float]], bits: int, probes: int) -> Figure:
    """The share of ones among a filter's bits while keys are added, measured and predicted.

    ``points`` are numbers of keys and the share, between 0 and 1, that ``fill_rate`` read off a
    filter of ``bits`` bits; ``probes`` is its k, and r the different bits that the probes of a key
    meet on average.  Raises ``ValueError`` for numbers below 1.
    O(number of points).

    >>> figure = fill([(100, 0.45)], bits=1000, probes=6)
    >>> [line.get_label() for line in figure.axes[0].lines]
    ['predicted: 1 - (1 - r/m)^n', 'measured', 'half: the best for its size']
    """
    if bits < 1 or probes < 1:
        raise ValueError(f"a filter has bits and probes, not {bits} and {probes}")
    figure, axes = _axes(3.0)
    most = max((keys for keys, _ in points), default=0) or bits // probes
    numbers = [most * step / 100 for step in range(101)]
    shares = [expected_fill(one, bits, probes) for one in numbers]
    axes.plot(numbers, shares, color="#555555", label="predicted: 1 - (1 - r/m)^n")
    axes.plot(
        [keys for keys, _ in points],
        [share for _, share in points],
        linestyle="none",
        marker="o",
        markersize=4,
        label="measured",
    )
    axes.axhline(
        0.5, color=_WASTED, linewidth=0.8, linestyle="--", label="half: the best for its size"
    )
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_xlabel(f"keys in a filter of {bits:,} bits with {probes} probes")
    axes.set_ylabel("bits that are 1")
    axes.legend(frameon=False, loc="lower right")
    return figure


def to_svg(figure: Figure) -> bytes:
    """A figure as SVG: the same figure, drawn by the same matplotlib, gives the same bytes.

    Raises what matplotlib raises.  O(size of the picture).

    >>> to_svg(fill([], bits=1000, probes=6)) == to_svg(fill([], bits=1000, probes=6))
    True
    """
    out = io.BytesIO()
    with mpl.rc_context(_SVG):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    lines = out.getvalue().splitlines()
    return b"\n".join(line.rstrip() for line in lines) + b"\n"


def _axes(height: float) -> tuple[Figure, Axes]:
    """An empty figure, 7 inches wide, and its axes."""
    figure = Figure(figsize=(7, height), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=9)
    return figure, axes


keep_paths(*(globals()[name] for name in __all__))

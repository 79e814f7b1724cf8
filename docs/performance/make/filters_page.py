"""The tables of docs/filters.md, made of what was measured: misses are shown like the rest."""

from __future__ import annotations

import math
import statistics
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from page_parts import with_measured

MODES = ("compiled", "pure")

FUSE_RATE = 0.0045
FUSE_BITS = 9.9
FUSE_FROM = 10_000
"""Keys of a table from which on the bars of fuse filters hold."""
BLOOM64_RATES = {"bloom64, table": 0.009, "bloom64, 2 KiB": 0.011}
LEVELS_RATIO = 1.8
SCAN_BLOCKS = 0.1
LEVELDB = "bloom, 2 KiB"
"""The setting that LevelDB has."""

_WIDTH = 105

Row = Sequence[str]
Figures = dict[str, Any]


def with_tables(page: str, modes: dict[str, Figures]) -> str:
    """The page with new tables; ``ValueError`` if it has no place for them."""
    return with_measured(page, tables(modes))


def tables(modes: dict[str, Figures]) -> str:
    """All tables and the words between them.  Counts are the same in both modes, and are taken from
    the first that there is."""
    counts = modes[next(mode for mode in MODES if mode in modes)]
    loaded = {name: found["fuse"]["loaded"] for name, found in counts["corpora"].items()}
    listed = ", ".join(f"{number:,} {name}" for name, number in loaded.items())
    paragraphs = [
        f"{about(counts)} Loaded: {listed}.",
        "**False positives, in %**",
        *rates(counts),
        "**What they cost**: bits a key, and data blocks read per 1,000 Gets of absent keys, the"
        " lowest and the highest of these sets; nanoseconds a key to build the filters, to ask one,"
        " its hash included, and for a whole Get of an absent key, the medians.",
        *costs(modes, counts),
        f"**Bits by level**, for three levels of {levels_text(counts)} random keys: false positives"
        " per 1,000 Gets of absent keys, which ask a filter of each level.",
        *level_rows(counts),
        "**Scans of absent prefixes**: data blocks read per scan of a time series that is not"
        " there, in five tables that overlap.",
        *scan_rows(counts),
        "**Targets**",
        *bar_rows(modes, counts),
    ]
    paragraphs += [f"Not measured, since the keys are missing: {one}." for one in counts["missing"]]
    return "\n\n".join(
        one if one.startswith("|") else textwrap.fill(one, _WIDTH) for one in paragraphs
    )


def about(counts: Figures) -> str:
    """Where and how it was measured."""
    where = counts["machine"]
    return (
        f"Measured by `make bench-filters` on one core ({where['processor']}, {where['python']})."
        " Of each set of keys, every other one in their order is loaded, with a value of 100 bytes,"
        " and those between are asked for. *2 KiB* and *table* are the layouts; *fuse, 10,000 keys*"
        " has tables of so many keys, and the others one table."
    )


def rate(found: Figures) -> float:
    """The false-positive rate."""
    return float(found["false_positives"] / found["asked"])


def rates(counts: Figures) -> list[str]:
    """False positives by corpus and setting."""
    names = settings(counts)
    rows = [
        [corpus, *(f"{rate(found[name]):.2%}".rstrip("%") for name in names)]
        for corpus, found in counts["corpora"].items()
    ]
    return table(["keys", *names], rows)


def settings(counts: Figures) -> list[str]:
    """The names of the settings."""
    return list(next(iter(counts["corpora"].values())))


def costs(modes: dict[str, Figures], counts: Figures) -> list[str]:
    """What each setting costs, over all corpora."""
    head = ["filter", "bits a key", "blocks"]
    for mode in MODES:
        if mode in modes:
            head += [f"build, {mode}", f"ask, {mode}", f"Get, {mode}"]
    rows: list[Row] = []
    for name in settings(counts):
        found = [corpus[name] for corpus in counts["corpora"].values()]
        row = [
            name,
            span([one["bits_a_key"] for one in found], 2),
            span([1000 * one["blocks_read"] / one["gets"] for one in found], 1),
        ]
        for mode in MODES:
            if mode in modes:
                timed = [corpus[name] for corpus in modes[mode]["corpora"].values()]
                for key in ("build_ns", "probe_ns", "get_ns"):
                    row.append(middle([one[key] for one in timed if key in one]))
        rows.append(row)
    return table(head, rows)


def middle(numbers: list[float]) -> str:
    """The median, as a whole number."""
    return f"{middle_of(numbers):,.0f}" if numbers else "-"


def middle_of(numbers: list[float]) -> float:
    """The median: the higher one of two."""
    return statistics.median_high(numbers)


def span(numbers: list[float], digits: int) -> str:
    """The lowest and the highest, or one number if they are the same."""
    low, high = f"{min(numbers):.{digits}f}", f"{max(numbers):.{digits}f}"
    return low if low == high else f"{low} to {high}"


def levels_text(counts: Figures) -> str:
    """The sizes of the levels."""
    run = counts["scale"]["run"]
    return f"{run:,}, {10 * run:,} and {100 * run:,}"


def level_rows(counts: Figures) -> list[str]:
    """Uniform bits and Monkey's."""
    rows = []
    for name, found in counts["levels"].items():
        uniform, monkey = found["uniform"], found["by level"]
        memory = monkey["filter_bytes"] / uniform["filter_bytes"]
        rows.append(
            [
                name,
                " / ".join(f"{one:.1f}" for one in monkey["bits"]),
                f"{1000 * sum(uniform['false_positives']) / uniform['gets']:.1f}",
                f"{1000 * sum(monkey['false_positives']) / monkey['gets']:.1f}",
                f"{levels_ratio(found):.2f}",
                f"{memory:.3f}",
            ]
        )
    head = ["filter", "bits by level", "10 bits everywhere", "by level", "times fewer", "memory"]
    return table(head, rows)


def levels_ratio(found: Figures) -> float:
    """How many times fewer false positives Monkey's bits make."""
    uniform, monkey = found["uniform"], found["by level"]
    return float(
        sum(uniform["false_positives"])
        * monkey["gets"]
        / max(sum(monkey["false_positives"]) * uniform["gets"], 1)
    )


def scan_rows(counts: Figures) -> list[str]:
    """Scans with and without prefix filters."""
    rows = []
    for name, found in counts["scans"].items():
        bits = 8 * found["prefix_filter_bytes"] / found["prefixes"]
        rows.append(
            [
                name,
                f"{found['blocks_read'] / found['scans']:.3f}",
                f"{found['filters_asked'] / found['scans']:.1f}",
                f"{bits:.1f}" if bits else "-",
            ]
        )
    return table(["filters", "blocks", "filters asked", "bits a prefix"], rows)


def bar_rows(modes: dict[str, Figures], counts: Figures) -> list[str]:
    """Each bar beside the worst that was measured."""
    rows: list[Row] = []
    fuse = [
        (found[name], corpus, name)
        for corpus, found in counts["corpora"].items()
        for name in found
        if name.startswith("fuse") and found[name]["loaded"] >= FUSE_FROM
    ]
    if fuse:
        worst, where, name = max(fuse, key=lambda one: rate(one[0]) - fuse_bar(one[0]))
        rows.append(
            bar(
                f"fuse from {FUSE_FROM:,} keys: at most {FUSE_RATE:.2%}, and 3 sigma"
                f" ({fuse_bar(worst):.2%})",
                f"{rate(worst):.3%} ({where}, {name})",
                all(rate(found) <= fuse_bar(found) for found, _, _ in fuse),
            )
        )
        worst, where, name = max(fuse, key=lambda one: one[0]["bits_a_key"])
        rows.append(
            bar(
                f"fuse from {FUSE_FROM:,} keys: at most {FUSE_BITS} bits",
                f"{worst['bits_a_key']:.2f} ({where}, {name})",
                worst["bits_a_key"] <= FUSE_BITS,
            )
        )
    for name, most in BLOOM64_RATES.items():
        highest, where = max(
            (rate(found[name]), corpus) for corpus, found in counts["corpora"].items()
        )
        rows.append(bar(f"{name}: at most {most:.1%}", f"{highest:.3%} ({where})", highest <= most))
    for name, found in counts["levels"].items():
        ratio = levels_ratio(found)
        title = f"bits by level, {name}: at least {LEVELS_RATIO} times fewer"
        rows.append(bar(title, f"{ratio:.2f}", ratio >= LEVELS_RATIO))
    for name, found in counts["scans"].items():
        if found["prefix_filter_bytes"]:
            blocks = found["blocks_read"] / found["scans"]
            title = f"scan, {name}: at most {SCAN_BLOCKS} blocks"
            rows.append(bar(title, f"{blocks:.3f}", blocks <= SCAN_BLOCKS))
    for mode in MODES:
        if mode in modes:
            corpora = modes[mode]["corpora"].values()
            ratio = middle_of([one["fuse"]["get_ns"] / one[LEVELDB]["get_ns"] for one in corpora])
            title = f"Get of an absent key, fuse over {LEVELDB}, {mode}: at most 1"
            rows.append(bar(title, f"{ratio:.2f}, the median", ratio <= 1))
    return table(["target", "measured, at worst", "reached"], rows)


def bar(title: str, measured: str, reached: bool) -> Row:
    """One row."""
    return [title, measured, "yes" if reached else "**no**"]


def fuse_bar(found: Figures) -> float:
    """The rate that a sample of this size may show: three standard deviations above the bar."""
    return FUSE_RATE + 3 * math.sqrt(FUSE_RATE * (1 - FUSE_RATE) / found["asked"])


def table(head: Row, rows: Iterable[Row]) -> list[str]:
    """A table, as one part of the page."""
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return ["\n".join(f"| {' | '.join(line)} |" for line in lines)]

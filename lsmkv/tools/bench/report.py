"""The figures as text for a terminal."""

from __future__ import annotations

from typing import Any

from lsmkv.tools.bench.engines import OWN
from lsmkv.tools.bench.measuring import Histogram
from lsmkv.tools.text import count, size

_NAME = 17
_ABREAST = 2


def lines(results: dict[str, Any]) -> list[str]:
    """All figures, as lines."""
    rows = _head(results)
    if results["workloads"]:
        rows += ["", *table(results)]
    for name, by_engine in results["studies"].items():
        rows += ["", *study(name, by_engine)]
    for name, workload in results["workloads"].items():
        for engine, summary in workload["engines"].items():
            if "histogram" in summary:
                rows += ["", f"{name}, {engine}: microseconds an operation"]
                rows += Histogram(**summary["histogram"]).lines()
    return rows


def table(results: dict[str, Any]) -> list[str]:
    """A line for each workload: the time of an operation, and the peers' ratios to lsmkv's.

    80 columns wide: two peers at a time.
    """
    engines = [name for name, about in results["engines"].items() if "missing" not in about]
    peers = [name for name in engines if name != OWN]
    rows: list[str] = []
    for at in range(0, max(1, len(peers)), _ABREAST):
        rows += ["", *_columns(results["workloads"], peers[at : at + _ABREAST])]
    if peers:
        rows += ["", "ratio: the peer's time over lsmkv's; above 1, lsmkv is faster"]
    return rows[1:]


def _columns(workloads: dict[str, Any], peers: list[str]) -> list[str]:
    head = f"{'us/op':{_NAME}}{OWN:>9}"
    head += "".join(f"{peer:>10}{'ratio (spread)':>17}" for peer in peers)
    rows = [head, "-" * len(head)]
    for name, workload in workloads.items():
        by_engine = workload["engines"]
        line = f"{name:{_NAME}}{micros(by_engine[OWN]['micros']['median']):>9}"
        for peer in peers:
            summary = by_engine[peer]
            if "skipped" in summary:
                line += f"{'-':>10}{'-':>17}"
            else:
                time = micros(summary["micros"]["median"])
                line += f"{time:>10}{ratio(summary['ratio']):>17}"
        rows.append(line)
    return rows


def study(name: str, by_engine: dict[str, Any]) -> list[str]:
    """A few lines for a study, with the figures of each engine."""
    rows = [name]
    for engine, figures in by_engine.items():
        if "skipped" in figures:
            rows.append(f"  {engine:11}- ({figures['skipped']})")
        else:
            rows.append(f"  {engine:11}{_STUDY_LINES[name](figures)}")
    return rows


def micros(number: float) -> str:
    """Microseconds, with three or four significant digits.

    >>> micros(0.5432), micros(12.345), micros(1234.5)
    ('0.543', '12.35', '1,234')
    """
    if number < 10:
        return f"{number:.3f}"
    return f"{number:.2f}" if number < 1000 else f"{number:,.0f}"


def ratio(numbers: dict[str, float]) -> str:
    """A ratio and its spread.

    >>> ratio({"median": 1.5, "low": 1.234, "high": 10})
    '1.50 (1.23-10.0)'
    """
    low, high = times(numbers["low"]), times(numbers["high"])
    return f"{times(numbers['median'])} ({low}-{high})"


def times(number: float) -> str:
    """Format a ratio in at most five characters, below a million.

    >>> times(0.034), times(9.994), times(31.26), times(1234.5), times(98765)
    ('0.03', '9.99', '31.3', '1.2k', '99k')
    """
    if number < 9.995:
        return f"{number:.2f}"
    if number < 99.95:
        return f"{number:.1f}"
    if number < 999.5:
        return f"{number:.0f}"
    return f"{number / 1000:.1f}k" if number < 9950 else f"{number / 1000:.0f}k"


def _head(results: dict[str, Any]) -> list[str]:
    settings = results["settings"]
    mode = "compiled" if results["compiled"] else "pure Python"
    machine = results["machine"]
    versions = [
        f"{name} {about['version']}"
        for name, about in results["engines"].items()
        if about.get("version") is not None and name != OWN
    ]
    return [
        f"lsmkv {results['lsmkv']} ({mode}){', ' if versions else ''}{', '.join(versions)}",
        f"{machine['python']}, {machine['processor']}, {machine['cores']} cores,"
        f" {machine['file_system']}",
        f"{count(settings['num'], 'entry')} of 16 +"
        f" {settings['value_size']} bytes, {settings['compression']},"
        f" {settings['bloom_bits']} filter bits a key, cache {size(settings['cache_size'])},"
        f" {settings['shape']}, {count(settings['threads'], 'thread')},"
        f" {count(results['rounds'], 'round')}",
    ]


def _sustained(figures: dict[str, Any]) -> str:
    histogram = figures["histogram"]
    percentiles = ", ".join(
        f"{title} {micros(histogram[name])}"
        for title, name in (("p50", "p50"), ("p99", "p99"), ("p99.9", "p999"), ("max", "high"))
    )
    return (
        f"{figures['ops']:,} puts in {figures['seconds']:.2f} s; us: {percentiles};"
        f" {figures['over_50_ms']} over 50 ms"
    )


def _growth(figures: dict[str, Any]) -> str:
    points = [
        f"{point['entries']:,}: {micros(point['micros_per_get'])}" for point in figures["points"]
    ]
    return f"us a Get by entries: {'; '.join(points)}"


def _incompressible(figures: dict[str, Any]) -> str:
    held = figures["resident_bytes"]
    memory = "unknown memory" if held is None else f"{size(held)} of memory"
    return f"{micros(figures['micros_per_get'])} us a Get, {memory}"


def _footprint(figures: dict[str, Any]) -> str:
    return (
        f"{size(figures['disk_bytes'])} on disk, {size(figures['disk_bytes_compacted'])} compacted;"
        f" {size(figures['table_bytes_written'])} of tables written"
    )


def _absent(figures: dict[str, Any]) -> str:
    written = figures["bytes_written"]
    amount = "unknown" if written is None else f"{written:,} bytes"
    return f"{amount} written by {figures['gets']:,} Gets of absent keys"


def _memory(figures: dict[str, Any]) -> str:
    if figures["peak"] is None:
        return "unknown"
    return f"{size(figures['peak'])} at most, {size(figures['imported'])} when imported"


def _import(figures: dict[str, Any]) -> str:
    return f"{figures['milliseconds']:.1f} ms ({figures['low']:.1f}-{figures['high']:.1f})"


_STUDY_LINES = {
    "sustained": _sustained,
    "growth": _growth,
    "incompressible": _incompressible,
    "footprint": _footprint,
    "absent": _absent,
    "memory": _memory,
    "import": _import,
}

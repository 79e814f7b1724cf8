"""The figures of stores as text for monitoring systems: OpenMetrics 1.0, which Prometheus reads.

``DB.metrics_text`` and ``lsmkv.metrics_text`` call :func:`exposition`.  **No metric is declared
here**: each is a field of :class:`~lsmkv.Stats` or :class:`~lsmkv.LevelStats`, which have the
counters of ``lsmkv/engine/counters.py``.  The name of a metric is ``lsmkv_`` or ``lsmkv_level_``
and the name of the field, in which a part ``bytes`` or ``seconds`` is the unit and moves to the
end, where OpenMetrics wants it.  Its help is the first sentence of the field's docstring.  Where
the sources are not installed, the help is the field's name in words.

A metric of a level has the label ``level``, and each one the label ``store``.  All levels are
listed, since a series that appears late hides its first increments.  Only the latencies of an
observed store (``publish_stats``, ``trace``) have a histogram.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any, Final, NamedTuple

from lsmkv.engine.counters import LEVEL_COUNTERS, STORE_COUNTERS, LevelCounts, StoreCounts
from lsmkv.engine.db.observe.histogram import Histogram, bucket_of, largest_in
from lsmkv.engine.db.observe.processes import COUNTED, ProcessFigures, all_of
from lsmkv.engine.db.observe.trace import OPERATIONS
from lsmkv.engine.stats import LevelStats, Stats
from lsmkv.engine.util.source import field_docs

CONTENT_TYPE: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
"""The content type of an HTTP answer with this text."""

_UNITS: Final = ("bytes", "seconds")
_BOUNDS: Final = [largest_in(bucket_of((1 << power) - 1)) for power in range(8, 35)]
"""Nanoseconds, up to 17 seconds.  Each is the longest duration of a bucket, so counts are exact."""


class Measured(NamedTuple):
    """The figures of one store at one moment."""

    store: str
    """The value of the label ``store``."""
    stats: Stats
    latencies: Mapping[str, Histogram]
    """By operation; empty if the store is not observed."""
    publishing: bool | None = None
    """For a store that another process may have open: whether that process publishes them.  If
    not, there are no counters, and they are left out.  None for a handle of this process."""
    published: float | None = None
    """The time of publication: seconds since 1970."""
    epoch: int = 0
    """The epoch of a shared store; 0 of any other."""
    processes: Sequence[ProcessFigures] = ()
    """Counters of each process of a shared store."""


class _Metric(NamedTuple):
    """A metric family that is a field of the statistics."""

    field: str
    name: str
    kind: str
    unit: str
    help: str
    of_level: bool


def exposition(measured: Sequence[Measured]) -> str:
    """The text for these stores, each metric once with the samples of all of them.

    ``ValueError`` if two stores have one label.
    """
    labels = [label("store", one.store) for one in measured]
    for one in labels:
        if labels.count(one) > 1:
            raise ValueError(f"two stores with {one}: give each its own name, in a mapping")
    stores = list(zip(labels, measured, strict=True))
    lines: list[str] = []
    for metric in _declared():
        _add(lines, metric, list(_samples(metric, stores)))
    _add(lines, _STORE, [f"lsmkv_store_info{{{store},{_about(one)}}} 1" for store, one in stores])
    _add(lines, _LATENCY, [line for store, one in stores for line in _latencies(store, one)])
    _add_processes(lines, stores)
    _add(
        lines,
        _PUBLISHING,
        [
            f"{_PUBLISHING.name}{{{store}}} {one.publishing:d}"
            for store, one in stores
            if one.publishing is not None
        ],
    )
    _add(
        lines,
        _PUBLISHED,
        [
            f"{_PUBLISHED.name}{{{store}}} {one.published!r}"
            for store, one in stores
            if one.published is not None
        ],
    )
    lines.append("# EOF\n")
    return "\n".join(lines)


def _add(lines: list[str], metric: _Metric, samples: list[str]) -> None:
    """Add a family; one without samples is left out."""
    if samples:
        lines.append(f"# TYPE {metric.name} {metric.kind}")
        if metric.unit:
            lines.append(f"# UNIT {metric.name} {metric.unit}")
        lines.append(f"# HELP {metric.name} {_escaped(metric.help)}")
        lines += samples


def _samples(metric: _Metric, stores: list[tuple[str, Measured]]) -> Iterator[str]:
    is_counter = metric.kind == "counter"
    name = f"{metric.name}_total" if is_counter else metric.name
    for store, one in stores:
        if is_counter and one.publishing is False:
            continue
        if not metric.of_level:
            yield f"{name}{{{store}}} {getattr(one.stats, metric.field)!r}"
            continue
        for level in one.stats.levels:
            value = getattr(level, metric.field)
            if value is not None:  # a rate that is not known yet
                yield f'{name}{{{store},level="{level.level}"}} {value!r}'


def _about(one: Measured) -> str:
    log = "mapped" if one.stats.mapped_log else "written"
    return f"{label('compression', one.stats.compression)},{label('log', log)}"


def _latencies(store: str, one: Measured) -> Iterator[str]:
    """The samples of a histogram for each operation."""
    for operation in OPERATIONS:
        latencies = one.latencies.get(operation)
        if latencies is not None:
            labels = f'{store},operation="{operation}"'
            yield from _histogram(_LATENCY.name, labels, latencies)


def _histogram(name: str, labels: str, latencies: Histogram) -> Iterator[str]:
    total = latencies.total
    buckets = latencies.buckets()  # a copy: other threads continue to count
    at = count = 0
    for bound in _BOUNDS:
        last = bucket_of(bound)
        while at < len(buckets) and buckets[at][0] <= last:
            count += buckets[at][1]
            at += 1
        yield f'{name}_bucket{{{labels},le="{bound / 1e9!r}"}} {count}'
    count += sum(number for _, number in buckets[at:])
    yield f'{name}_bucket{{{labels},le="+Inf"}} {count}'
    yield f"{name}_count{{{labels}}} {count}"
    yield f"{name}_sum{{{labels}}} {total / 1e9!r}"


# Processes that share a store


def _add_processes(lines: list[str], stores: list[tuple[str, Measured]]) -> None:
    """Add the counters of the processes of shared stores: each of them, and all members
    together."""
    shared = [(store, one) for store, one in stores if one.processes]
    _add(lines, _EPOCH, [f"{_EPOCH.name}{{{store}}} {one.epoch}" for store, one in shared])
    for metric in (_MEMBER_WRITES, _WITHOUT_OWNER):
        samples = [
            line
            for store, one in shared
            for line in _histogram(metric.name, store, all_of(one.processes, metric.field))
        ]
        _add(lines, metric, samples)
    for metric in _declared():
        if metric.field in COUNTED and metric.kind == "counter":
            _add(lines, _of_process(metric), list(_process_samples(metric, shared)))
    for metric in (_MEMBER_WRITES, _WITHOUT_OWNER):
        name = metric.name.replace("lsmkv_", "lsmkv_process_")
        samples = [
            f"{name}_{what}{{{labels}}} {value!r}"
            for labels, one in _labelled(shared)
            for what, value in _totals(getattr(one, metric.field))
        ]
        _add(lines, metric._replace(name=name, kind="summary"), samples)


def _labelled(stores: list[tuple[str, Measured]]) -> Iterator[tuple[str, ProcessFigures]]:
    for store, one in stores:
        for process in one.processes:
            yield f'{store},pid="{process.pid}",role="{process.role}"', process


def _totals(histogram: Histogram) -> list[tuple[str, float]]:
    return [("count", histogram.count), ("sum", histogram.total / 1e9)]


def _of_process(metric: _Metric) -> _Metric:
    name = metric.name.removeprefix("lsmkv_level_").removeprefix("lsmkv_")
    return metric._replace(name=f"lsmkv_process_{name}")


def _process_samples(metric: _Metric, stores: list[tuple[str, Measured]]) -> Iterator[str]:
    name = _of_process(metric).name
    for labels, one in _labelled(stores):
        yield f"{name}_total{{{labels}}} {one.counters[metric.field]}"


def label(name: str, value: str) -> str:
    """A label as it stands between braces."""
    return f'{name}="{_escaped(value)}"'


def _escaped(text: str) -> str:
    r"""Text for a label or help.  A code that is not a character, as in the path of a file whose
    name is not UTF-8, becomes its number.

    >>> print(_escaped('a\\b "c"\n\udcff'))
    a\\b \"c\"\n\\udcff
    """
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


@cache
def _declared() -> list[_Metric]:
    """The metrics of the fields of both records.

    Made at the first call: reading what the sources say of the fields takes as long as importing
    all that methods need.
    """
    found: list[_Metric] = []
    kinds: list[tuple[type[Any], type[Any], list[str]]] = [
        (Stats, StoreCounts, STORE_COUNTERS),
        (LevelStats, LevelCounts, LEVEL_COUNTERS),
    ]
    for record, counts, counters in kinds:
        meanings: dict[str, str] = {}
        for declaring in (*counts.__mro__, record):
            if declaring is not object:
                meanings |= field_docs(declaring.__module__, declaring.__name__)
        for field in fields(record):
            is_number = str(field.type).startswith(("int", "float"))
            if not is_number or field.name in _LEFT_OUT:
                continue
            name, unit = metric_name(field.name)
            found.append(
                _Metric(
                    field.name,
                    f"lsmkv_level_{name}" if record is LevelStats else f"lsmkv_{name}",
                    "counter" if field.name in counters else "gauge",
                    unit,
                    _first_sentence(meanings.get(field.name, "")) or _in_words(field.name),
                    record is LevelStats,
                )
            )
    return found


def metric_name(field: str) -> tuple[str, str]:
    """A field's name as that of a metric, and its unit, which may be empty.

    >>> metric_name("compaction_bytes_read"), metric_name("gets")
    (('compaction_read_bytes', 'bytes'), ('gets', ''))
    """
    parts = field.split("_")
    for unit in _UNITS:
        if unit in parts:
            parts.remove(unit)
            return "_".join([*parts, unit]), unit
    return field, ""


def _first_sentence(text: str) -> str:
    """The first sentence of a docstring, without its markup.

    >>> _first_sentence("Gets, ``multi_get``\\nincluded.  They are cheap.")
    'Gets, multi_get included.'
    """
    plain = re.sub(r":\w+:`~?([^`]*)`", r"\1", text).replace("``", "")
    return " ".join(re.split(r"(?<=\.)\s", plain.split("\n\n")[0])[0].split())


def _in_words(field: str) -> str:
    return field.replace("_", " ").capitalize() + "."


_LEFT_OUT: Final = ("level", "filter_positives")
"""A label, and the difference of two counters."""
_STORE: Final = _Metric(
    "",
    "lsmkv_store",
    "info",
    "",
    "The codec of new tables, and whether the log is mapped into memory or written.",
    False,
)
_LATENCY: Final = _Metric(
    "",
    "lsmkv_operation_seconds",
    "histogram",
    "seconds",
    "Durations of the store's calls, by operation.",
    False,
)
_EPOCH: Final = _Metric(
    "",
    "lsmkv_epoch",
    "gauge",
    "",
    "The epoch of a shared store: each new owner adds 1.",
    False,
)
_MEMBER_WRITES: Final = _Metric(
    "writes",
    "lsmkv_member_write_seconds",
    "histogram",
    "seconds",
    "Durations of members' writes, including the wait for the owner.",
    False,
)
_WITHOUT_OWNER: Final = _Metric(
    "without_owner",
    "lsmkv_without_owner_seconds",
    "histogram",
    "seconds",
    "Durations for which processes had no owner, before this one.",
    False,
)
_PUBLISHING: Final = _Metric(
    "",
    "lsmkv_publishing",
    "gauge",
    "",
    "1 if the process that has the store open publishes its counters, otherwise 0.",
    False,
)
_PUBLISHED: Final = _Metric(
    "",
    "lsmkv_published_timestamp_seconds",
    "gauge",
    "seconds",
    "Time of publication of the figures, in seconds since 1970.",
    False,
)

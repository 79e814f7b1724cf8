"""LATENCY: the longest delays of each kind of event, and what they suggest.

An event is noted if it took at least ``latency-monitor-threshold`` milliseconds; 0, the default,
turns that off.  Events are Redis': ``command`` and ``fast-command`` (one of the flag ``fast``),
``aof-write`` (the changes of a tick of the loop are written to the log), ``expire-cycle`` (a step
in which keys expire and removed records are swept) and ``eviction-cycle``.
"""

from __future__ import annotations

import time
from collections import deque
from typing import NamedTuple

_KEPT = 160
"""Samples of one event; Redis' number."""
_ADVICE = {
    "command": "Slow commands: SLOWLOG GET names them. docs/reference/redis-commands.md says what"
    " each command costs.",
    "fast-command": "Commands that should be fast were delayed: look for a busy or swapping"
    " machine, and at write_stalls of INFO lsmkv.",
    "aof-write": "Writes to the log were delayed: by the disk, or because compaction does not keep"
    " up (write_stalls and write_slowdowns of INFO lsmkv).",
    "expire-cycle": "Many keys expired, or were swept, at once: spread their times.",
    "eviction-cycle": "Many keys were evicted at once: the limit is too low for what is written.",
}


class Sample(NamedTuple):
    """An event, or the longest of those in one second."""

    time: int
    """Seconds since 1970."""
    milliseconds: int


class Latencies:
    """The last delays by event."""

    def __init__(self) -> None:
        self._samples: dict[str, deque[Sample]] = {}
        self._longest: dict[str, int] = {}

    def add(self, event: str, nanoseconds: int) -> None:
        """Note the duration of an event."""
        sample = Sample(int(time.time()), nanoseconds // 1_000_000)
        samples = self._samples.setdefault(event, deque(maxlen=_KEPT))
        if samples and samples[-1].time == sample.time:
            sample = max(samples.pop(), sample)
        samples.append(sample)
        self._longest[event] = max(self._longest.get(event, 0), sample.milliseconds)

    def latest(self) -> list[tuple[str, Sample, int]]:
        """Each event, its last sample, and the longest in milliseconds."""
        return [
            (event, samples[-1], self._longest[event])
            for event, samples in sorted(self._samples.items())
        ]

    def history(self, event: str) -> list[Sample]:
        """The samples of an event, oldest first."""
        return list(self._samples.get(event, ()))

    def reset(self, events: list[str]) -> int:
        """Forget some events, or all if the list is empty.  Returns how many there were."""
        found = set(events or self._samples) & set(self._samples)
        for event in found:
            del self._samples[event], self._longest[event]
        return len(found)

    def advice(self, threshold: int) -> str:
        """A report for people; ``threshold`` is in milliseconds."""
        if threshold == 0:
            return (
                "Latency monitoring is off. CONFIG SET latency-monitor-threshold <milliseconds>"
                " turns it on.\n"
            )
        if not self._samples:
            return f"No event took {threshold} ms or longer.\n"
        lines = [f"Events that took {threshold} ms or longer:", ""]
        for event, last, longest in self.latest():
            samples = self.history(event)
            mean = sum(one.milliseconds for one in samples) / len(samples)
            lines.append(
                f"{event}: {len(samples)} samples, mean {mean:.0f} ms, longest {longest} ms, last"
                f" {int(time.time()) - last.time} s ago."
            )
            lines += [f"  {_ADVICE[event]}"] if event in _ADVICE else []
        return "\n".join(lines) + "\n"

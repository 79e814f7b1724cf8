"""LATENCY and MEMORY: reports about delays and memory."""

from __future__ import annotations

import ctypes
import gc
import sys

from lsmkv.engine.db.observe.histogram import Histogram, largest_in
from lsmkv.server.command import Command, every
from lsmkv.server.consumer_group import held_by_groups
from lsmkv.server.encoding import STREAM, element_ranges
from lsmkv.server.info import SECTIONS
from lsmkv.server.numbers import to_int
from lsmkv.server.registry import command, container
from lsmkv.server.resp import OK, CommandError, Reply, Verbatim, syntax_error
from lsmkv.server.session import Session

_LONG_OUTPUT = 32 * 2**20
"""Bytes of replies that wait for clients which MEMORY DOCTOR remarks on."""
container("LATENCY", group="server")


@command("LATENCY LATEST", 2, "admin", group="server")
def latency_latest(session: Session, args: list[bytes]) -> Reply:
    """Return the last and the longest delay of each event."""
    return [
        [event.encode(), last.time, last.milliseconds, longest]
        for event, last, longest in session.service.latencies.latest()
    ]


@command("LATENCY HISTORY", 3, "admin", group="server", usage="<event>")
def latency_history(session: Session, args: list[bytes]) -> Reply:
    """Return the last 160 delays of an event, oldest first."""
    history = session.service.latencies.history(args[2].decode("latin-1"))
    return [[one.time, one.milliseconds] for one in history]


@command("LATENCY RESET", -2, "admin", group="server", usage="[<event> ...]")
def latency_reset(session: Session, args: list[bytes]) -> Reply:
    """Forget the delays of some events, or of all.  Returns how many events that were."""
    return session.service.latencies.reset([word.decode("latin-1") for word in args[2:]])


@command("LATENCY DOCTOR", 2, "admin", group="server")
def latency_doctor(session: Session, args: list[bytes]) -> Reply:
    """Return a report about delays, with advice."""
    threshold = session.service.settings.latency_threshold
    return Verbatim(session.service.latencies.advice(threshold).encode())


@command("LATENCY HISTOGRAM", -2, "admin", group="server", usage="[COMMAND ...]")
def latency_histogram(session: Session, args: list[bytes]) -> Reply:
    """Return how many calls of commands took at most 1, 2, 4, ... microseconds."""
    table = session.service.table
    names = [word.upper().split(b"|") for word in args[2:]]
    chosen = [one for words in names for one in _named(table.get(words[0]), words[1:])]
    return {
        one.full_name.encode(): {
            b"calls": one.calls,
            b"histogram_usec": _cumulated(one.latencies),
        }
        for one in (chosen if names else every(table))
        if one.latencies is not None
    }


def _named(outer: Command | None, inner: list[bytes]) -> list[Command]:
    """A command with its subcommands, or one of these."""
    if outer is None:
        return []
    if not inner:
        return [outer, *outer.subcommands.values()]
    return [outer.subcommands[inner[0]]] if inner[0] in outer.subcommands else []


def _cumulated(latencies: Histogram) -> dict[Reply, Reply]:
    """Calls by the power of two of microseconds that they did not exceed; only where they rise."""
    found: dict[Reply, Reply] = {}
    total = 0
    for bucket, count in latencies.buckets():
        total += count
        found[1 << max(0, (largest_in(bucket) // 1000).bit_length())] = total
    return found


container("MEMORY", group="server")


@command("MEMORY USAGE", -3, "readonly", group="server", usage="<key> [SAMPLES <count>]")
def memory_usage(session: Session, args: list[bytes]) -> Reply:
    """Return about how many bytes a key takes in the store; those in tables are estimated."""
    for at in range(3, len(args), 2):  # Redis estimates from this many elements
        if args[at].upper() != b"SAMPLES" or at + 1 == len(args) or to_int(args[at + 1]) < 0:
            raise syntax_error()
    entry = session.space.find(session.database, args[2])
    if entry is None:
        return None
    size = len(session.database.prefix) + len(args[2]) + len(entry.encode())
    starts = element_ranges(entry)
    if entry.kind == STREAM:
        starts += held_by_groups(session.space.records, entry)
    for start in starts:
        size += session.service.db.approximate_size(start, start + b"\xff" * 8)
    return size


@command("MEMORY STATS", 2, group="server")
def memory_stats(session: Session, args: list[bytes]) -> Reply:
    """Return figures of memory: those of INFO memory, and the keys of each database."""
    figures = SECTIONS["memory"](session.service)
    used, first = _number(figures["used_memory"]), _number(figures["used_memory_startup"])
    databases = session.space.databases
    keys = sum(database.size for database in databases)
    stats: dict[Reply, Reply] = {
        b"peak.allocated": _number(figures["used_memory_peak"]),
        b"total.allocated": used,
        b"startup.allocated": first,
        b"replication.backlog": 0,
        b"clients.slaves": 0,
        b"clients.normal": _number(figures["mem_clients_normal"]),
        b"cluster.links": 0,
        b"aof.buffer": 0,
        b"lua.caches": _number(figures["used_memory_lua"]),
        b"functions.caches": 0,
        b"overhead.total": _number(figures["used_memory_overhead"]),
        b"keys.count": keys,
        b"keys.bytes-per-key": max(0, used - first) // max(keys, 1),
        b"dataset.bytes": _number(figures["used_memory_dataset"]),
        b"dataset.percentage": _percentage(figures["used_memory_dataset_perc"]),
        b"peak.percentage": _percentage(figures["used_memory_peak_perc"]),
        b"fragmentation": 1.0,
        b"fragmentation.bytes": 0,
    }
    return stats


def _number(value: object) -> int:
    return int(str(value))


def _percentage(value: object) -> float:
    return float(str(value).rstrip("%"))


@command("MEMORY DOCTOR", 2, group="server")
def memory_doctor(session: Session, args: list[bytes]) -> Reply:
    """Return a report about memory, with advice."""
    figures = SECTIONS["memory"](session.service)
    used, installed = _number(figures["used_memory"]), _number(figures["total_system_memory"])
    found = []
    if 0 < installed < 2 * used:
        found.append(f"The process has {used} of the machine's {installed} bytes of memory.")
    if 10 * used < 7 * _number(figures["used_memory_peak"]):
        found.append("The peak was much higher than what is used now. MEMORY PURGE may help.")
    if _number(figures["mem_clients_normal"]) > _LONG_OUTPUT:
        found.append("Replies wait for clients that do not read them: CLIENT LIST names them.")
    if _number(figures["used_memory_lua"]) > session.service.settings.script_memory // 2:
        found.append("Scripts have more than half of script-max-memory: SCRIPT FLUSH frees it.")
    return Verbatim(("\n".join(found) or "No problem was found.").encode() + b"\n")


@command("MEMORY MALLOC-STATS", 2, group="server")
def memory_malloc_stats(session: Session, args: list[bytes]) -> Reply:
    """Return what Python's own allocator has, in blocks."""
    return Verbatim(b"Python has %d blocks allocated.\n" % sys.getallocatedblocks())


@command("MEMORY PURGE", 2, group="server")
def memory_purge(session: Session, args: list[bytes]) -> Reply:
    """Collect cyclic garbage, and return free memory to the system.  All clients wait for it."""
    gc.collect()
    if sys.platform == "linux":
        try:
            ctypes.CDLL(None).malloc_trim(0)
        except (OSError, AttributeError) as error:  # a C library without it
            raise CommandError(f"ERR purging is not supported here: {error}") from None
    return OK

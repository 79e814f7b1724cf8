"""The reply to INFO."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from lsmkv.engine.env.base import Directory
from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.env.process_memory import installed, peak, resident
from lsmkv.engine.format.filenames import LOCK
from lsmkv.engine.util.search import IS_COMPILED
from lsmkv.server.command import every
from lsmkv.server.database import Database
from lsmkv.server.pubsub import CHANNEL, PATTERN, SHARD

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from lsmkv.server.session import Service

Fields = Mapping[str, object]
_PERCENTILES = (50, 99, 99.9)
REDIS_VERSION = "7.0.15"
"""The version of Redis whose commands these are.  Clients decide by it."""


def describe(service: Service, names: list[str]) -> str:
    """The sections of these names, as INFO returns them.  Unknown names are ignored.

    ``default``, or no name at all, means every section except the figures of each command.  ``all``
    and ``everything`` include those.
    """
    wanted = set(names or ["default"])
    if wanted & {"all", "everything"}:
        wanted |= set(SECTIONS)
    elif "default" in wanted:
        wanted |= set(SECTIONS) - {"commandstats", "latencystats"}
    parts = []
    for name, section in SECTIONS.items():
        if name in wanted:
            lines = [f"{field}:{value}\r\n" for field, value in section(service).items()]
            title = "CPU" if name == "cpu" else name.capitalize()
            parts.append(f"# {title}\r\n{''.join(lines)}")
    return "\r\n".join(parts)


def _version() -> str:
    try:
        return version("lsmkv")
    except PackageNotFoundError:
        return "unknown"  # run from a folder, without an installation


def _server(service: Service) -> Fields:
    seconds = int(time.time() - service.started)
    return {
        "redis_version": REDIS_VERSION,
        "redis_mode": "standalone",
        "lsmkv_version": _version(),
        "lsmkv_compiled": "yes" if IS_COMPILED else "no",
        "python_version": platform.python_version(),
        "os": f"{platform.system()} {platform.release()} {platform.machine()}",
        "arch_bits": 64 if sys.maxsize > 2**32 else 32,
        "process_id": os.getpid(),
        "script_process_id": service.scripts.pid,
        "run_id": service.run_id,
        "tcp_port": service.settings.fixed.get("port", "0"),
        "server_time_usec": time.time_ns() // 1000,
        "uptime_in_seconds": seconds,
        "uptime_in_days": seconds // 86400,
        "executable": sys.executable,
        "config_file": service.settings.config_file,
    }


def _clients(service: Service) -> Fields:
    sessions = list(service.sessions.values())
    return {
        "connected_clients": len(sessions),
        "cluster_connections": 0,
        "maxclients": service.settings.maxclients,
        "blocked_clients": len(service.waits) + len(service.pause),
        "tracking_clients": 0,
        "pubsub_clients": sum(session.subscribed for session in sessions),
        "watching_clients": sum(bool(session.watching) for session in sessions),
        "client_recent_max_output_buffer": max((s.unsent for s in sessions), default=0),
    }


def _memory(service: Service) -> Fields:
    """``used_memory`` is what the process has in memory, since Python reports nothing closer."""
    used, lua = resident(), service.scripts.memory
    first = service.first_memory
    most = max(peak(), used, first)  # the system's own figure lags
    stats, functions = service.db.stats(), service.functions
    data = stats.memtable_bytes + stats.block_cache_bytes
    return {
        "used_memory": used,
        "used_memory_human": human(used),
        "used_memory_rss": used,
        "used_memory_rss_human": human(used),
        "used_memory_peak": most,
        "used_memory_peak_human": human(most),
        "used_memory_peak_perc": f"{100 * used / max(most, 1):.2f}%",
        "used_memory_overhead": max(0, used - data),
        "used_memory_startup": first,
        "used_memory_dataset": data,
        "used_memory_dataset_perc": f"{100 * data / max(used - first, data, 1):.2f}%",
        "total_system_memory": installed(),
        "total_system_memory_human": human(installed()),
        "maxmemory": service.settings.max_disk,
        "maxmemory_human": human(service.settings.max_disk),
        "maxmemory_policy": service.settings.eviction,
        "mem_fragmentation_ratio": "1.00",
        "mem_clients_normal": sum(one.unsent + one.unread() for one in service.sessions.values()),
        "mem_allocator": "libc",
        "used_memory_lua": lua,
        "used_memory_lua_human": human(lua),
        "used_memory_vm_eval": lua,
        "used_memory_scripts_eval": service.sources.size,
        "number_of_cached_scripts": len(service.sources),
        "number_of_functions": len(functions),
        "number_of_libraries": len(functions.libraries),
        "used_memory_functions": functions.size,
        "memtable_bytes": stats.memtable_bytes,
        "block_cache_bytes": stats.block_cache_bytes,
    }


def human(size: int) -> str:
    """A number of bytes as Redis formats it for people.

    >>> human(0), human(1536), human(5 * 2**20)
    ('0B', '1.50K', '5.00M')
    """
    if size < 1024:
        return f"{size}B"
    power = min((size.bit_length() - 1) // 10, 4)
    return f"{size / 1024**power:.2f}{' KMGT'[power]}"


def _persistence(service: Service) -> Fields:
    return {
        "loading": 0,
        "async_loading": 0,
        "rdb_changes_since_last_save": max(0, service.space.changes - service.saves.durable),
        "rdb_bgsave_in_progress": 0,
        "rdb_last_save_time": service.saves.time,
        "rdb_last_bgsave_status": "err" if service.failure else "ok",
        "aof_enabled": 1,
        "aof_rewrite_in_progress": 0,
        "aof_rewrite_scheduled": 0,
        "aof_last_bgrewrite_status": "ok",
        "aof_last_write_status": "err" if service.failure else "ok",
        "aof_pending_bio_fsync": int(service.syncing),
        "appendfsync": service.settings.appendfsync,
        "last_failure": service.failure,
        "keys_changed": service.space.changes,
        "garbage_ranges": service.space.garbage_ranges,
    }


def _stats(service: Service) -> Fields:
    commands, received, sent = service.rates.per_second(service.totals)
    return {
        "total_connections_received": service.connections,
        "total_commands_processed": service.commands,
        "instantaneous_ops_per_sec": round(commands),
        "total_net_input_bytes": service.bytes_in,
        "total_net_output_bytes": service.bytes_out,
        "instantaneous_input_kbps": f"{received / 1024:.2f}",
        "instantaneous_output_kbps": f"{sent / 1024:.2f}",
        "rejected_connections": service.refused_connections,
        "expired_keys": service.space.expired,
        "evicted_keys": service.space.evicted,
        "scripts_killed": service.scripts.killed,
        "scripts_crashed": service.scripts.crashed,
        "keyspace_hits": service.space.hits,
        "keyspace_misses": service.space.misses,
        "pubsub_channels": len(service.channels.subscribers[CHANNEL]),
        "pubsub_patterns": len(service.channels.subscribers[PATTERN]),
        "pubsubshard_channels": len(service.channels.subscribers[SHARD]),
        "total_error_replies": service.errors.total,
    }


def _replication(service: Service) -> Fields:
    role: dict[str, object] = {"role": "master"}
    if not service.space.writable:
        role = {"role": "slave", "slave_read_only": 1}
    return role | {
        "connected_slaves": 0,
        "master_failover_state": "no-failover",
        "master_replid": service.run_id,
        "master_replid2": "0" * 40,
        "master_repl_offset": 0,
        "second_repl_offset": -1,
        "repl_backlog_active": 0,
        "repl_backlog_size": 0,
        "repl_backlog_first_byte_offset": 0,
        "repl_backlog_histlen": 0,
    }


def _cpu(service: Service) -> Fields:
    if sys.platform == "win32":
        times = os.times()
        system, user = times.system, times.user
    else:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        system, user = usage.ru_stime, usage.ru_utime
    return {"used_cpu_sys": f"{system:.6f}", "used_cpu_user": f"{user:.6f}"}


def _commandstats(service: Service) -> Fields:
    fields: dict[str, object] = {}
    for one in every(service.table):
        if one.calls or one.rejected or one.failed:
            each = one.microseconds / one.calls if one.calls else 0.0
            fields[f"cmdstat_{one.full_name}"] = (
                f"calls={one.calls},usec={one.microseconds:.0f},usec_per_call={each:.2f},"
                f"rejected_calls={one.rejected},failed_calls={one.failed}"
            )
    return fields


def _errorstats(service: Service) -> Fields:
    counts = service.errors.counts
    return {f"errorstat_{word}": f"count={counts[word]}" for word in sorted(counts)}


def _latencystats(service: Service) -> Fields:
    """Percentiles in microseconds; each is at most 3.2% too high."""
    return {
        f"latency_percentiles_usec_{one.full_name}": ",".join(
            f"p{percent}={one.latencies.percentile(percent) / 1000:.3f}" for percent in _PERCENTILES
        )
        for one in every(service.table)
        if one.latencies is not None
    }


def _modules(service: Service) -> Fields:
    return {}


def _cluster(service: Service) -> Fields:
    return {"cluster_enabled": 0}


def _keyspace(service: Service) -> Fields:
    return {
        f"db{database.index}": f"keys={database.size},expires={database.expiring}"
        f",avg_ttl={_mean_ttl(database, service.space.now())}"
        for database in service.space.databases
        if database.size
    }


def _mean_ttl(database: Database, now: int) -> int:
    """Milliseconds; 0 if no key expires."""
    count = database.expiring
    return max(0, database.times // count - now) if count else 0


def _disk(service: Service) -> Fields:
    """The disk space that the store takes, and the free space there, in bytes."""
    try:
        with LocalEnv().open_directory(service.db.path) as directory:
            used = sum(_size(directory, name) for name in directory.names())
            return {"disk_bytes": used, "disk_free_bytes": directory.free_bytes() or 0}
    except OSError:
        return {"disk_bytes": 0, "disk_free_bytes": 0}  # it is in memory


def _size(directory: Directory, name: str) -> int:
    try:
        return directory.size(name)
    except FileNotFoundError:
        return 0  # a compaction removed it


def _owner(service: Service) -> int:
    """The process that writes the store; 0 if it is not known or there is none."""
    if service.space.writable:
        return os.getpid()
    try:
        with LocalEnv().open_directory(service.db.path) as directory:
            return directory.lock_holder(LOCK) or 0
    except OSError:
        return 0  # it is in memory


def _lsmkv(service: Service) -> Fields:
    """The figures of the tree: see ``docs/reference/serve.md``."""
    stats = service.db.stats()
    fields: dict[str, object] = {
        "gets": stats.gets,
        "gets_found": stats.gets_found,
        "filters_asked": stats.filters_asked,
        "filter_negatives": stats.filter_negatives,
        "filter_false_positives": stats.filter_false_positives,
        "blocks_read": stats.blocks_read,
        "block_cache_hits": stats.block_cache_hits,
        "log_writes": stats.log_writes,
        "log_syncs": stats.log_syncs,
        "flushes": stats.flushes,
        "compactions": stats.compactions,
        "write_slowdowns": stats.slowdowns,
        "write_stalls": stats.stalls,
        "write_stall_seconds": f"{stats.stall_seconds:.3f}",
        "write_amplification": f"{stats.write_amplification:.2f}",
    }
    fields |= _disk(service)
    fields["disk_full"] = int(service.full)
    fields["owner"] = _owner(service)
    for number, level in enumerate(stats.levels):
        if level.files:
            fields[f"level{number}"] = f"files={level.files},bytes={level.bytes}"
    return fields


SECTIONS: dict[str, Callable[[Service], Fields]] = {
    "server": _server,
    "clients": _clients,
    "memory": _memory,
    "persistence": _persistence,
    "stats": _stats,
    "replication": _replication,
    "cpu": _cpu,
    "modules": _modules,
    "commandstats": _commandstats,
    "errorstats": _errorstats,
    "latencystats": _latencystats,
    "cluster": _cluster,
    "keyspace": _keyspace,
    "lsmkv": _lsmkv,
}
"""The function that makes each section."""

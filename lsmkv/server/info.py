"""The reply to INFO."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from lsmkv.engine.util.search import IS_COMPILED
from lsmkv.server.pubsub import CHANNEL, PATTERN, SHARD

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from lsmkv.server.session import Service

Fields = Mapping[str, object]
REDIS_VERSION = "7.0.15"
"""The version of Redis whose commands these are.  Clients decide by it."""


def describe(service: Service, names: list[str]) -> str:
    """The sections of these names, as INFO returns them.  Unknown names are ignored.

    ``default``, or no name at all, means every section except the figures per command.  ``all`` and
    ``everything`` include those.
    """
    wanted = set(names or ["default"])
    if wanted & {"all", "everything"}:
        wanted |= set(SECTIONS)
    elif "default" in wanted:
        wanted |= set(SECTIONS) - {"commandstats"}
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
    usage = service.db.get_property("leveldb.approximate-memory-usage")
    used, peak, lua = int(usage or 0), _peak_memory(), service.scripts.memory
    return {
        "used_memory": used,
        "used_memory_human": _human(used),
        "used_memory_peak": peak,
        "used_memory_peak_human": _human(peak),
        "maxmemory": 0,
        "maxmemory_human": "0B",
        "maxmemory_policy": "noeviction",
        "used_memory_lua": lua,
        "used_memory_lua_human": _human(lua),
        "used_memory_vm_eval": lua,
        "used_memory_scripts_eval": service.sources.size,
        "number_of_cached_scripts": len(service.sources),
        "number_of_functions": 0,
        "number_of_libraries": 0,
    }


def _human(size: int) -> str:
    """A number of bytes as Redis formats it for people.

    >>> _human(0), _human(1536), _human(5 * 2**20)
    ('0B', '1.50K', '5.00M')
    """
    if size < 1024:
        return f"{size}B"
    power = min((size.bit_length() - 1) // 10, 4)
    return f"{size / 1024**power:.2f}{' KMGT'[power]}"


def _peak_memory() -> int:
    """The peak memory of this process in bytes; 0 where the system does not report it."""
    if sys.platform == "win32":
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024)


def _persistence(service: Service) -> Fields:
    return {
        "loading": 0,
        "async_loading": 0,
        "rdb_changes_since_last_save": 0,
        "rdb_bgsave_in_progress": 0,
        "rdb_last_save_time": int(service.started),
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
    return {
        "total_connections_received": service.connections,
        "total_commands_processed": service.commands,
        "total_net_input_bytes": service.bytes_in,
        "total_net_output_bytes": service.bytes_out,
        "rejected_connections": service.refused_connections,
        "expired_keys": service.space.expired,
        "evicted_keys": 0,
        "scripts_killed": service.scripts.killed,
        "scripts_crashed": service.scripts.crashed,
        "keyspace_hits": service.hits,
        "keyspace_misses": service.misses,
        "pubsub_channels": len(service.channels.subscribers[CHANNEL]),
        "pubsub_patterns": len(service.channels.subscribers[PATTERN]),
        "pubsubshard_channels": len(service.channels.subscribers[SHARD]),
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
    for outer in service.table.values():
        for one in (outer, *outer.subcommands.values()):
            if one.calls or one.rejected or one.failed:
                each = one.microseconds / one.calls if one.calls else 0.0
                fields[f"cmdstat_{one.full_name}"] = (
                    f"calls={one.calls},usec={one.microseconds:.0f},usec_per_call={each:.2f},"
                    f"rejected_calls={one.rejected},failed_calls={one.failed}"
                )
    return fields


def _modules(service: Service) -> Fields:
    return {}


def _cluster(service: Service) -> Fields:
    return {"cluster_enabled": 0}


def _keyspace(service: Service) -> Fields:
    return {
        f"db{database.index}": f"keys={database.size}"
        for database in service.space.databases
        if database.size
    }


def _lsmkv(service: Service) -> Fields:
    """The figures of the tree: see ``lsmkv stats`` and ``docs/command.md``."""
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
        "write_amplification": f"{stats.write_amplification:.2f}",
    }
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
    "cluster": _cluster,
    "keyspace": _keyspace,
    "lsmkv": _lsmkv,
}
"""The function that makes each section."""

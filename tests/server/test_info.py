"""INFO, as clients parse it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from lookups import LOOKUPS, PREPARED
from serving import Client, an_engine

from lsmkv import DB
from lsmkv.server.commands import COMMANDS
from lsmkv.server.engine import Engine
from lsmkv.server.info import SECTIONS, describe
from lsmkv.server.keyspace import Keyspace
from lsmkv.server.settings import Settings


def fields(text: str) -> dict[str, str]:
    lines = [line for line in text.split("\r\n") if line and not line.startswith("#")]
    return dict(line.split(":", 1) for line in lines)


def test_sections() -> None:
    with an_engine() as engine:
        text = describe(engine, ["server", "nothing", "clients"])
        assert text.startswith("# Server\r\nredis_version:7.")
        assert "\r\n\r\n# Clients\r\nconnected_clients:0\r\n" in text
        assert describe(engine, ["nothing"]) == ""
        for name in SECTIONS:
            shown = describe(engine, [name]).lower()
            assert shown.startswith(f"# {name}\r\n")


def test_the_figures_of_each_command_are_asked_for() -> None:
    with an_engine() as engine:
        client = Client(engine)
        client("SET k v")
        usual, every = client("INFO"), client("INFO all")
        assert usual.count(b"# ") == every.count(b"# ") - 2 == len(SECTIONS) - 2
        assert b"cmdstat_set:" in every
        assert b"cmdstat_" not in usual
        assert client("INFO commandSTATS cpu commandstats").count(b"# ") == 2
        found = fields(usual.decode())
        assert (found["cluster_enabled"], found["master_repl_offset"]) == ("0", "0")
        assert len(found["run_id"]) == len(found["master_replid"]) == 40


def test_figures() -> None:
    with an_engine() as engine:
        client, other = Client(engine), Client(engine)
        client("CONFIG RESETSTAT")  # commands are counted for all engines of a process
        for request in ("SET a 1", "GET a", "GET b", "NONE", "GET", "INCR a b", "LPUSH a 1"):
            client(request)
        other("SELECT 3")
        other("SET c 1 PX 1000000")
        other("SUBSCRIBE x")
        client("WATCH a")
        found = fields(describe(engine, list(SECTIONS)))
        assert {name: found[name] for name in (
            "connected_clients", "pubsub_clients", "watching_clients", "keyspace_hits",
            "keyspace_misses", "total_connections_received", "pubsub_channels", "role", "db0",
            "db3",
        )} == {
            "connected_clients": "2", "pubsub_clients": "1", "watching_clients": "1",
            "keyspace_hits": "1", "keyspace_misses": "1", "total_connections_received": "2",
            "pubsub_channels": "1", "role": "master", "db0": "keys=1,expires=0,avg_ttl=0",
            "db3": found["db3"],
        }  # fmt: skip
        assert found["db3"].startswith("keys=1,expires=1,avg_ttl=9999")
        assert "db1" not in found
        assert found["total_commands_processed"] == "9"
        get = dict(part.split("=") for part in found["cmdstat_get"].split(","))
        assert (get["calls"], get["rejected_calls"], get["failed_calls"]) == ("2", "1", "0")
        assert "calls=1,failed" not in found["cmdstat_lpush"]
        assert found["cmdstat_lpush"].endswith("rejected_calls=0,failed_calls=1")
        assert int(found["log_writes"]) > 0


def test_lookups_count_as_in_redis() -> None:
    for expected, request in LOOKUPS:
        with an_engine() as engine:
            client = Client(engine)
            for line in PREPARED:
                client(line)
            client("CONFIG RESETSTAT")
            client(*request.split(" "))
            assert [engine.space.hits, engine.space.misses] == expected, request


def test_lookups_of_a_raw_store_count_too() -> None:
    with an_engine(raw=True) as engine:
        client = Client(engine)
        for request in ("SET a 1", "GET a", "GET b", "MGET a b", "EXISTS a b", "STRLEN b", "DEL a"):
            client(request)
        assert (engine.space.hits, engine.space.misses) == (3, 4)


def exported(text: str) -> dict[tuple[str, ...], float]:
    """The metrics that redis_exporter reads from INFO ALL: it takes a field apart by its section.

    Percentiles need both the field of the command's latencies and that of its calls.
    """
    found: dict[tuple[str, ...], float] = {}
    section = ""
    for line in text.split("\r\n"):
        if line.startswith("# "):
            section = line[2:]
        name, _, value = line.partition(":")
        if not value:
            continue
        parts = [part.partition("=") for part in value.split(",")]
        if section == "Commandstats":
            command = name.removeprefix("cmdstat_")
            assert [key for key, _, _ in parts] == [
                *("calls", "usec", "usec_per_call", "rejected_calls", "failed_calls"),
            ]
            found |= {(command, key): float(number) for key, _, number in parts}
        elif section == "Latencystats":
            command = name.removeprefix("latency_percentiles_usec_")
            assert (command, "calls") in found
            found |= {(command, key): float(number) for key, _, number in parts}
        elif section == "Errorstats":
            assert name.startswith("errorstat_")
            assert parts[0][0] == "count"
            found["errors", name.removeprefix("errorstat_")] = float(parts[0][2])
        elif section == "Keyspace":
            assert [key for key, _, _ in parts] == ["keys", "expires", "avg_ttl"]
            found |= {(name, key): float(number) for key, _, number in parts}
        else:
            with contextlib.suppress(ValueError):
                found[(name,)] = float(value)
    return found


def test_an_exporter_reads_what_it_needs() -> None:
    with an_engine() as engine:
        client = Client(engine)
        client("CONFIG RESETSTAT")
        for request in ("SET a 1 EX 100", "SET b 1", "GET a", "GET b", "GET c", "LPUSH a 1", "GET"):
            client(request)
        client("EVAL", "return redis.call('lpush', 'a', '1')", "0")
        client("EVAL", "return redis.error_reply('MINE x')", "0")
        found = exported(client("INFO ALL").decode())
    assert found["get", "calls"] == 3
    assert found["get", "rejected_calls"] == 1
    assert found["lpush", "failed_calls"] == found["eval", "failed_calls"] == 2
    assert 0 < found["get", "p50"] <= found["get", "p99"] <= found["get", "p99.9"]
    assert found["get", "usec"] <= 3 * 1.1 * found["get", "p99.9"]
    assert {key: number for key, number in found.items() if key[0] == "errors"} == {
        ("errors", "ERR"): 1, ("errors", "WRONGTYPE"): 2, ("errors", "MINE"): 1,
    }  # fmt: skip
    assert found["total_error_replies",] == 4
    assert (found["keyspace_hits",], found["keyspace_misses",]) == (2, 1)
    assert (found["db0", "keys"], found["db0", "expires"]) == (2, 1)
    assert 90_000 < found["db0", "avg_ttl"] <= 100_000
    assert found["rdb_changes_since_last_save",] == 2
    assert found["used_memory",] == found["used_memory_rss",] > 2**20
    assert found["used_memory_peak",] > 2**20
    assert found["instantaneous_ops_per_sec",] > 0
    for name in ("blocked_clients", "connected_clients", "connected_slaves", "evicted_keys",
                 "expired_keys", "maxclients", "maxmemory", "mem_fragmentation_ratio", "owner",
                 "rdb_last_save_time", "rejected_connections", "total_commands_processed",
                 "total_net_input_bytes", "total_net_output_bytes", "total_system_memory",
                 "uptime_in_seconds", "used_cpu_sys", "used_cpu_user", "disk_bytes",
                 "write_stall_seconds"):  # fmt: skip
        assert (name,) in found


def test_a_save_makes_changes_durable() -> None:
    with an_engine() as engine:
        client = Client(engine)
        client("MSET a 1 b 2")
        before = exported(client("INFO persistence").decode())
        client("SAVE")
        after = exported(client("INFO persistence").decode())
    assert before["rdb_changes_since_last_save",] == 2
    assert after["rdb_changes_since_last_save",] == 0
    assert after["rdb_last_save_time",] >= before["rdb_last_save_time",]


def test_disk_and_owner(tmp_path: Path) -> None:
    with DB(tmp_path / "db", create_if_missing=True) as db:
        engine = Engine(db, Keyspace(db), COMMANDS, Settings())
        found = exported(describe(engine, ["lsmkv"]))
        with DB(tmp_path / "db", read_only=True) as other:
            replica = Engine(other, Keyspace(other, writable=False), COMMANDS, Settings())
            owner = exported(describe(replica, ["lsmkv"]))["owner",]
        size = sum(one.stat().st_size for one in tmp_path.glob("db/*"))
    assert found["owner",] == owner == os.getpid()
    assert found["disk_bytes",] == size
    assert found["disk_free_bytes",] > 0


def test_a_replica_says_so() -> None:
    from lsmkv import MemoryEnv

    env = MemoryEnv()
    with an_engine(env):
        pass
    with an_engine(env, read_only=True) as engine:
        assert fields(describe(engine, ["replication"]))["role"] == "slave"

"""INFO, as clients parse it."""

from __future__ import annotations

from serving import Client, an_engine

from lsmkv.server.info import SECTIONS, describe


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
        assert usual.count(b"# ") == every.count(b"# ") - 1 == len(SECTIONS) - 1
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
            "pubsub_channels": "1", "role": "master", "db0": "keys=1",
            "db3": "keys=1",
        }  # fmt: skip
        assert "db1" not in found
        assert found["total_commands_processed"] == "9"
        get = dict(part.split("=") for part in found["cmdstat_get"].split(","))
        assert (get["calls"], get["rejected_calls"], get["failed_calls"]) == ("2", "1", "0")
        assert "calls=1,failed" not in found["cmdstat_lpush"]
        assert found["cmdstat_lpush"].endswith("rejected_calls=0,failed_calls=1")
        assert int(found["log_writes"]) > 0


def test_a_replica_says_so() -> None:
    from lsmkv import MemoryEnv

    env = MemoryEnv()
    with an_engine(env):
        pass
    with an_engine(env, read_only=True) as engine:
        assert fields(describe(engine, ["replication"]))["role"] == "slave"

"""The server: INFO, CONFIG, SLOWLOG, MONITOR, SAVE, SHUTDOWN."""

from __future__ import annotations

from lsmkv.engine.errors import Error
from lsmkv.server.command import MISSING, every
from lsmkv.server.globs import matcher
from lsmkv.server.info import describe
from lsmkv.server.numbers import to_int, to_int_from
from lsmkv.server.options import wait_seconds
from lsmkv.server.registry import command, container
from lsmkv.server.resp import (
    NO_REPLY,
    OK,
    CommandError,
    Reply,
    Simple,
    Verbatim,
    busy_error,
    read_only_error,
    syntax_error,
    wrong_subcommand,
)
from lsmkv.server.session import Session


@command("INFO", -1, group="server")
def info(session: Session, args: list[bytes]) -> Reply:
    """Return figures in sections: of the server, and of the tree in section lsmkv."""
    names = [word.decode("latin-1").lower() for word in args[1:]]
    return Verbatim(describe(session.service, names).encode())


container("CONFIG", group="server")


@command("CONFIG GET", -3, "admin", group="server", usage="<pattern> [<pattern> ...]")
def config_get(session: Session, args: list[bytes]) -> Reply:
    """Return the settings that match patterns."""
    shown = session.service.settings.shown()
    found: dict[bytes, str] = {}
    for word in args[2:]:
        if any(special in word for special in b"*?["):
            matches = matcher(word.lower())
            found |= {name.encode(): shown[name] for name in shown if matches(name.encode())}
        elif (name := word.decode("latin-1").lower()) in shown:
            found[word] = shown[name]
    return {name: text.encode("utf-8", "surrogateescape") for name, text in sorted(found.items())}


@command("CONFIG SET", -4, "admin", group="server", usage="<name> <value> [<name> <value> ...]")
def config_set(session: Session, args: list[bytes]) -> Reply:
    """Change settings until the server ends: all of them, or none."""
    if len(args) % 2:
        raise syntax_error()
    words = [word.decode("utf-8", "surrogateescape") for word in args[2:]]
    session.service.settings.change(list(zip(words[::2], words[1::2], strict=True)))
    return OK


@command("CONFIG RESETSTAT", 2, "admin", group="server")
def config_resetstat(session: Session, args: list[bytes]) -> Reply:
    """Reset the counters of INFO to 0."""
    service = session.service
    service.commands = service.bytes_in = service.bytes_out = service.refused_connections = 0
    service.space.evicted = service.space.expired = service.space.hits = service.space.misses = 0
    service.scripts.killed = service.scripts.crashed = 0
    service.errors.forget()
    for one in every(service.table):
        one.forget_calls()
    return OK


@command("CONFIG REWRITE", 2, "admin", group="server")
def config_rewrite(session: Session, args: list[bytes]) -> Reply:
    """Write the settings into the configuration file.  Comments and other lines stay."""
    rewrite = session.service.settings.rewrite_config
    if rewrite is None:
        raise CommandError("ERR The server is running without a config file")
    try:
        rewrite()
    except OSError as error:
        raise CommandError(f"ERR Rewriting config file: {error.strerror}") from None
    return OK


container("SLOWLOG", group="server")


@command("SLOWLOG GET", -2, "admin", group="server", usage="[<count>]")
def slowlog_get(session: Session, args: list[bytes]) -> Reply:
    """Return the slowest commands, newest first."""
    if len(args) > 3:
        raise wrong_subcommand(args)
    error = "ERR count should be greater than or equal to -1"
    count = to_int_from(-1, args[2], error) if len(args) > 2 else 10
    chosen = list(session.service.slow.commands)
    return [
        [one.number, one.time, one.microseconds, one.request, one.address.encode(), one.client]
        for one in (chosen if count == -1 else chosen[:count])
    ]


@command("SLOWLOG LEN", 2, "admin", group="server")
def slowlog_len(session: Session, args: list[bytes]) -> Reply:
    """Return how many commands the slow log holds."""
    return len(session.service.slow.commands)


@command("SLOWLOG RESET", 2, "admin", group="server")
def slowlog_reset(session: Session, args: list[bytes]) -> Reply:
    """Empty the slow log."""
    session.service.slow.commands.clear()
    return OK


@command("MONITOR", 1, "admin", group="server")
def monitor(session: Session, args: list[bytes]) -> Reply:
    """Show every command that runs, until the connection is closed."""
    if session.running:
        raise CommandError("ERR MONITOR isn't allowed for DENY BLOCKING client")
    if session.monitoring:
        return NO_REPLY
    session.monitoring = True
    session.service.monitors.add(session)
    return OK


def _check_writable(session: Session) -> None:
    if not session.space.writable:
        raise read_only_error()


def _synced(session: Session) -> None:
    """Write what is pending, and make it durable.

    All clients wait: there is one thread.  The earlier commands of this tick are answered first,
    with errors if they cannot be written.
    """
    service = session.service
    _check_writable(session)
    service.failure = ""
    service.commit()
    if service.failure:
        raise CommandError(f"ERR {service.failure}")
    try:
        service.db.sync()
    except (Error, OSError) as error:
        service.fail("sync failed", error)
        raise CommandError(f"ERR {error}") from None
    service.saves.end(service.saves.written)


@command("SAVE", 1, "admin no_multi", group="server")
def save(session: Session, args: list[bytes]) -> Reply:
    """Make all writes durable: one sync of the log."""
    _synced(session)
    return OK


@command("BGSAVE", -1, "admin", group="server")
def bgsave(session: Session, args: list[bytes]) -> Reply:
    """Like SAVE: a sync is short, and needs no other process.  In a transaction, after it."""
    if len(args) > 2 or (len(args) == 2 and args[1].upper() != b"SCHEDULE"):
        raise syntax_error()
    if session.running:
        _check_writable(session)
        session.service.schedule(lambda: _synced_later(session))
        return Simple("Background saving scheduled")
    _synced(session)
    return Simple("Background saving started")


def _synced_later(session: Session) -> None:
    try:
        _synced(session)
    except CommandError:
        pass  # INFO reports the failure: no client still waits for a reply


@command("BGREWRITEAOF", 1, "admin", group="server")
def bgrewriteaof(session: Session, args: list[bytes]) -> Reply:
    """Return OK: compaction always runs in the background."""
    _check_writable(session)
    done = "scheduled" if session.running else "started"
    return Simple(f"Background append only file rewriting {done}")


@command("LASTSAVE", 1, "fast", group="server")
def lastsave(session: Session, args: list[bytes]) -> Reply:
    """Return when a sync ended last, by SAVE or by itself, or when the server started."""
    return session.service.saves.time


@command("WAIT", 3, "", group="generic")
def wait(session: Session, args: list[bytes]) -> Reply:
    """Return 0: there are no replicas."""
    to_int(args[1])
    wait_seconds(args[2])
    return 0


@command("ROLE", 1, "fast", group="server")
def role(session: Session, args: list[bytes]) -> Reply:
    """Return master, or slave if the store is open for reading only."""
    return [b"master", 0, []] if session.space.writable else [b"slave", b"", 0, b"connected", 0]


@command("SHUTDOWN", -1, "admin no_multi", group="server")
def shutdown(session: Session, args: list[bytes]) -> Reply:
    """End the server: run the requests that were received, sync, and close the store."""
    for word in args[1:]:
        if word.upper() not in (b"SAVE", b"NOSAVE", b"NOW", b"FORCE"):
            raise syntax_error()
    busy = session.service.busy
    if busy is not None and b"NOSAVE" not in [word.upper() for word in args]:
        raise busy_error(busy.script.is_library)
    session.service.on_shutdown()
    session.closing = True
    session.service.schedule(session.close)
    return NO_REPLY


container("MODULE", group="server")


@command("MODULE LIST", 2, "admin", group="server")
def module_list(session: Session, args: list[bytes]) -> Reply:
    """Return an empty list: there are no modules."""
    return []


for _what, _names in {
    "cluster": "CLUSTER ASKING READONLY READWRITE",
    "Sentinel": "SENTINEL",
    "modules": "MODULE|LOAD MODULE|LOADEX MODULE|UNLOAD",
    "replication by commands: open the directory with --read-only instead": "REPLICAOF SLAVEOF"
    " PSYNC SYNC REPLCONF FAILOVER",
    "a connection to another server: see DUMP and RESTORE": "RESTORE-ASKING MIGRATE",
    "tests of HyperLogLog": "PFDEBUG PFSELFTEST",
    "client-side caching": "CLIENT|CACHING CLIENT|GETREDIR CLIENT|TRACKING CLIENT|TRACKINGINFO",
    "debugger of scripts": "SCRIPT|DEBUG",
    "graph of delays: see LATENCY HISTORY": "LATENCY|GRAPH",
    "debugging commands": "DEBUG",
    "art": "LOLWUT",
}.items():
    MISSING.update((_name.encode(), _what) for _name in _names.split())

"""``lsmkv serve``: the command."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from typer import BadParameter

from lsmkv.tools.arguments import Directory
from lsmkv.tools.console import guarded, needing, say, write_json
from lsmkv.tools.logs import logging_to, set_level
from lsmkv.tools.options import choice, flag, option

if TYPE_CHECKING:
    from lsmkv.server import Server
    from lsmkv.tools.config_file import ConfigFile

_log = logging.getLogger("lsmkv.server")
_configs: list[ConfigFile] = []
"""The file that ``--config`` names, between its callback and the command."""


def _read_config(context: Any, path: str | None) -> str | None:
    """Take the file's values as defaults of the other options."""
    if path is not None:
        with needing("serve", "hiredis", extra="server"):
            from lsmkv.tools.config_file import ConfigFile  # noqa: PLC0415 - as in serve()
        try:
            file = ConfigFile(path)
        except (OSError, ValueError) as error:
            raise BadParameter(str(error)) from None
        context.default_map = file.options()
        _configs[:] = [file]
    return path


@guarded
def serve(
    directory: Directory,
    config: str | None = option(
        None,
        "FILE",
        "Read options and settings from this file, in redis.conf's syntax.",
        callback=_read_config,
        is_eager=True,
    ),
    host: str = option("127.0.0.1", "HOST", "The address to listen on."),
    port: int = option(6379, "N", "The port; 0 takes a free one, -1 none.", min=-1, max=65535),
    unix_socket: str | None = option(None, "FILE", "Also listen on this socket.", "--unixsocket"),
    unix_socket_mode: str | None = option(
        None, "MODE", "The socket's mode, such as 660.", "--unixsocketperm"
    ),
    tls_port: int | None = option(
        None, "N", "A port for TLS; 0 takes a free one.", min=0, max=65535
    ),
    tls_cert_file: str = option("", "FILE", "The server's certificate, in PEM."),
    tls_key_file: str = option("", "FILE", "Its key, unless the same file has it."),
    tls_ca_cert_file: str = option("", "FILE", "The authorities of clients' certificates."),
    tls_auth_clients: Literal["yes", "no", "optional"] | None = choice(
        None, "Whether clients need a certificate: yes, if there are authorities."
    ),
    appendfsync: Literal["always", "everysec", "no"] = choice(
        "everysec", "When writes are made durable: before the reply, each second, or never."
    ),
    password: str = option(
        "",
        "TEXT",
        "Require this password with AUTH.",
        "--requirepass",
        envvar="LSMKV_SERVE_PASSWORD",
        show_envvar=False,
    ),
    acl_file: str = option("", "FILE", "Users and what they may do, as in Redis.", "--aclfile"),
    protected_mode: bool = choice(
        True,
        "Without a password, serve clients of this machine only.",
        "--protected-mode/--no-protected-mode",
    ),
    maxclients: int = option(10_000, "N", "The maximum number of connections.", min=1),
    timeout: int = option(0, "SECONDS", "Disconnect idle clients; 0: never.", min=0),
    scripts: str | None = option(
        None,
        "inline|process|off|FILE",
        "Where scripts run, or a list of the SHA-1 of those that may.",
    ),
    max_disk: str = option(
        "0", "SIZE", "Evict keys, or refuse writes, beyond this size: such as 10gb; 0: no limit."
    ),
    maxmemory_policy: str = option(
        "noeviction", "POLICY", "Which keys are evicted, as in Redis: such as allkeys-lru."
    ),
    raw: bool = flag("Serve an ordinary store's keys as strings.", "--raw"),
    read_only: bool = flag("Write nothing, and follow the store's writer.", "--read-only"),
    metrics_port: int | None = option(
        None, "N", "Answer Prometheus on this port; 0 takes a free one.", min=0, max=65535
    ),
    queues: str = option(
        "", "NAMES", "Keys, separated by commas, whose length /metrics shows; or those it knows."
    ),
    logfile: str = option("", "FILE", "Log to this file instead of stderr."),
    log_json: bool = flag("Log in JSON, an object a line.", "--log-json"),
    refresh: float = option(1.0, "SECONDS", "How often --read-only looks at the store.", min=0.01),
    as_json: bool = flag("The address as JSON, on stdout.", "--json"),
) -> None:
    """Serve the store to Redis clients, until Ctrl-C or SIGTERM.

    Strings, hashes, lists, sets, sorted sets, streams, expiry, transactions, scripts and messages,
    on disk in LevelDB's files; docs/serve.md describes commands, promises and records. The
    directory is made if it is not there; :memory: keeps everything in memory.

    Scripts run in the server (inline), or in a separate process, where a script can always be
    ended; that is the default if other machines reach HOST. FILE has the SHA-1 of one script on
    each line, and comments after #: these run inline, and others are refused.

    The password is also taken from LSMKV_SERVE_PASSWORD, where other users of this machine do not
    see it.

    What --config names may have DIR (as dir) and all settings of CONFIG; the command line comes
    first. SIGHUP reads it, and the TLS certificates, again.

    JSON: "path", "host", "port", "tls_port", "unixsocket", "metrics_port".
    """
    if sys.platform == "win32" and unix_socket is not None:
        raise ValueError("--unixsocket needs a system with Unix sockets: Windows has --port alone")
    with needing("serve", "hiredis", extra="server"):
        from lsmkv.server import Server  # noqa: PLC0415 - hiredis is an extra
    server = Server(
        directory,
        host=None if port < 0 and tls_port is None else host,
        port=None if port < 0 else port,
        unix_socket=unix_socket,
        unix_socket_mode=_mode(unix_socket_mode),
        tls_port=tls_port,
        tls_cert_file=tls_cert_file,
        tls_key_file=tls_key_file,
        tls_ca_cert_file=tls_ca_cert_file,
        tls_auth_clients=tls_auth_clients,
        appendfsync=appendfsync,
        password=password,
        acl_file=acl_file,
        protected_mode=protected_mode,
        maxclients=maxclients,
        timeout=timeout,
        max_disk=max_disk,
        maxmemory_policy=maxmemory_policy,
        raw=raw,
        read_only=read_only,
        refresh_seconds=refresh,
        scripts=scripts if scripts in (None, "inline", "process", "off") else _listed(scripts),
        metrics_port=metrics_port,
        queues=[name for name in queues.split(",") if name],
    )
    file = _configs.pop() if config is not None else None

    async def run() -> None:
        loop = asyncio.get_running_loop()
        _call_on_signals(loop, server.shut_down)
        if sys.platform != "win32":
            loop.add_signal_handler(signal.SIGHUP, _reload, server, file)
        try:
            await server.start()
        except OSError as error:
            if error.errno != errno.EADDRINUSE or (unix_socket or "\0") in str(error):
                raise
            ports = f"port {port}" if tls_port is None else f"port {port} or {tls_port}"
            reason = f"{ports} is in use (--port 0 takes a free one)"
            raise OSError(error.errno, reason, host) from None
        try:
            _announce(server, as_json)
            await server.serve_until_shutdown()
        finally:
            await server.stop()

    with logging_to(logfile, log_json):
        server.settings.on_change.append(lambda: set_level(server.settings.log_level))
        set_level(server.settings.log_level)
        if file is not None:
            _remark(file.configure(server.settings))
        with asyncio.Runner(loop_factory=_new_loop) as runner:
            runner.run(run())
    if not as_json:
        say(f"{directory} is closed")


def _listed(path: str) -> list[str]:
    """The words of a file, one on each line, without comments."""
    with open(path, encoding="utf-8") as lines:
        return [word for line in lines if (word := line.partition("#")[0].strip())]


def _reload(server: Server, file: ConfigFile | None) -> None:
    """Read the configuration and the certificates again; what fails is logged."""
    _log.info("reloading: SIGHUP was received")
    try:
        if file is not None:
            _remark(file.reload(server.settings))
        server.reload_certificates()
    except (OSError, ValueError) as error:
        _log.warning("reloading failed: %s", error)


def _remark(remarks: list[str]) -> None:
    for remark in remarks:
        _log.warning("configuration: %s", remark)


def _mode(text: str | None) -> int | None:
    """A mode in octal digits."""
    if text is None:
        return None
    if not text.isascii() or not text.isdecimal() or set(text) & {"8", "9"} or len(text) > 4:
        raise ValueError(
            f"--unixsocketperm takes a mode in octal digits, such as 660, not {text!r}"
        )
    return int(text, 8)


def _call_on_signals(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Call from the loop at Ctrl-C and SIGTERM.  Windows' loops have no handlers of signals."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if sys.platform == "win32":
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(call))
        else:
            loop.add_signal_handler(number, call)


def _new_loop() -> asyncio.AbstractEventLoop:
    """A loop of uvloop where that is there: it is faster."""
    try:
        import uvloop  # noqa: PLC0415 - an extra
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def _announce(server: Server, as_json: bool) -> None:
    if as_json:
        fields = {
            "path": server.path,
            "host": server.host,
            "port": server.port or None,
            "tls_port": server.tls_port,
            "unixsocket": server.unix_socket,
            "metrics_port": server.metrics_port,
        }
        write_json(fields)
        sys.stdout.flush()
        return
    places = []
    if server.port:
        places.append(f"{server.host}:{server.port}")
    if server.tls_port is not None:
        places.append(f"{server.host}:{server.tls_port} (TLS)")
    if server.unix_socket:
        places.append(os.fspath(server.unix_socket))
    say(f"{server.path} is served at {' and '.join(places)} (Ctrl-C ends it)")

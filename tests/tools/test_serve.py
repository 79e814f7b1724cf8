"""``lsmkv serve``, as a user starts it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from certificates import Certificates
from commands import fails, lsm
from documents import ROOT
from processes import ENVIRON

import lsmkv
from lsmkv.tools import serve as serve_module

COMMAND = [sys.executable, "-W", "error", "-m", "lsmkv", "serve"]


@contextlib.contextmanager
def started(*arguments: str | Path, **environment: str) -> Iterator[tuple[Any, str]]:
    """A server in a process of its own, and the line that it has printed."""
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRON | environment,
    )
    with process:
        try:
            stream = process.stdout if "--json" in arguments else process.stderr
            assert stream is not None
            yield process, stream.readline()
        finally:
            process.kill()


def sha_of(script: str) -> str:
    return hashlib.sha1(script.encode()).hexdigest()


def port_of(line: str) -> int:
    found = re.search(r"127\.0\.0\.1:(\d+)", line)
    assert found is not None, line
    return int(found[1])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "store"
    with started(path, "--port", "0") as (process, line):
        assert line == f"lsmkv: {path} is served at 127.0.0.1:{port_of(line)} (Ctrl-C ends it)\n"
        with redis.Redis(port=port_of(line)) as client:
            assert client.set("k", "v")
            assert client.rpush("l", *range(1000)) == 1000
            process.send_signal(number)
            _, err = process.communicate()
    assert (process.returncode, err) == (0, f"lsmkv: {path} is closed\n")
    with lsmkv.DB(path) as db:
        assert db.get(b"!format") == b"lsmkv-serve 1"
        assert sum(key.startswith(b"e") for key, _ in db) == 1000
    with started(path, "--port", "0") as (_, line), redis.Redis(port=port_of(line)) as client:
        assert (client.get("k"), client.llen("l")) == (b"v", 1000)


def test_shutdown_ends_it_too() -> None:
    with started(":memory:", "--port", "0") as (process, line):
        with redis.Redis(port=port_of(line)) as client:
            client.shutdown()
        assert process.wait() == 0


def test_json(tmp_path: Path) -> None:
    path, unix_socket = tmp_path / "store", tmp_path / "socket"
    with started(path, "--port", "0", "--unixsocket", unix_socket, "--json") as (process, line):
        shown = json.loads(line)
        port = shown["port"]
        assert shown == {
            "path": str(path), "host": "127.0.0.1", "port": port, "tls_port": None,
            "unixsocket": str(unix_socket), "metrics_port": None,
        }  # fmt: skip
        for client in (redis.Redis(port=port), redis.Redis(unix_socket_path=str(unix_socket))):
            with client:
                assert client.ping()
        process.send_signal(signal.SIGTERM)
        assert process.communicate() == ("", "")
    assert process.returncode == 0


def test_options_reach_the_server(tmp_path: Path) -> None:
    unix_socket = str(tmp_path / "socket")
    options = ("--port", "-1", "--unixsocket", unix_socket, "--appendfsync", "always",
               "--maxclients", "7", "--timeout", "9", "--no-protected-mode",
               "--max-disk", "10gb", "--maxmemory-policy", "allkeys-lru")  # fmt: skip
    with started(":memory:", *options, LSMKV_SERVE_PASSWORD="secret") as (_, line):
        assert line == f"lsmkv: :memory: is served at {unix_socket} (Ctrl-C ends it)\n"
        stranger = redis.Redis(unix_socket_path=unix_socket)
        with stranger, pytest.raises(redis.AuthenticationError):
            stranger.ping()
        with redis.Redis(unix_socket_path=unix_socket, password="secret") as client:
            shown = client.config_get("*")
    assert {name: shown[name] for name in (
        "appendfsync", "maxclients", "timeout", "protected-mode", "port", "unixsocket",
        "max-disk", "maxmemory", "maxmemory-policy",
    )} == {
        "appendfsync": "always", "maxclients": "7", "timeout": "9", "protected-mode": "no",
        "port": "0", "unixsocket": unix_socket, "max-disk": str(10 * 2**30),
        "maxmemory": str(10 * 2**30), "maxmemory-policy": "allkeys-lru",
    }  # fmt: skip


def test_users_of_the_page(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
    text = page.partition("$ cat users.acl\n")[2].partition("$ chmod")[0]
    users = tmp_path / "users.acl"
    users.write_text(text)
    with started(":memory:", "--port", "0", "--aclfile", users, "--json") as (_, line):
        port = json.loads(line)["port"]
        stranger = redis.Redis(port=port)
        with stranger, pytest.raises(redis.AuthenticationError):
            stranger.ping()
        shop = redis.Redis(port=port, username="shop", password="s3cret")
        report = redis.Redis(port=port, username="report", password="r3port")
        admin = redis.Redis(port=port, username="admin", password="hard-to-guess")
        with shop, report, admin:
            assert shop.set("shop:1", "tea")
            assert shop.publish("orders:1", "tea") == 0
            assert report.get("shop:1") == b"tea"
            for refused, words in (
                (report, "SET shop:1 coffee"), (report, "GET payroll"), (shop, "FLUSHALL"),
                (shop, "CONFIG GET *"), (shop, "PUBLISH news tea"), (shop, "KEYS *"),
            ):  # fmt: skip
                with pytest.raises(redis.exceptions.NoPermissionError) as caught:
                    refused.execute_command(*words.split())
                if f"> {words}\n" in page:
                    assert f"> {words}\n(error) NOPERM {caught.value}\n" in page
            assert admin.acl_save()
    assert "s3cret" not in users.read_text()
    users.write_text("user ann +none\n")
    fails(
        lsm("serve", ":memory:", "--aclfile", str(users)), "Unknown command or category name in ACL"
    )
    options = ("--aclfile", str(users), "--requirepass", "secret")
    fails(lsm("serve", ":memory:", *options), "cannot be combined with a file of users")


def test_which_scripts_run(tmp_path: Path) -> None:
    pytest.importorskip("lupa")
    allowed = tmp_path / "allowed"
    allowed.write_text(f"# scripts\n\n{sha_of('return 1').upper()}  # one\n")
    options = ("--port", "0", "--scripts", allowed)
    with started(":memory:", *options) as (_, line), redis.Redis(port=port_of(line)) as client:
        assert client.config_get("scripts") == {"scripts": "list"}
        assert client.eval("return 1", 0) == 1
        assert client.evalsha(client.script_load("return 1"), 0) == 1
        refused = rf"refuses scripts \(--scripts\): the list lacks {sha_of('return 2')}"
        for call in (lambda: client.eval("return 2", 0), lambda: client.script_load("return 2")):
            with pytest.raises(redis.exceptions.NoPermissionError, match=refused):
                call()
    options = ("--port", "0", "--scripts", "off")
    with started(":memory:", *options) as (_, line), redis.Redis(port=port_of(line)) as client:
        assert client.script_exists("a" * 40) == [False]
        with pytest.raises(redis.exceptions.NoPermissionError, match="they are off"):
            client.eval("return 1", 0)
    allowed.write_text("return 1")
    fails(lsm("serve", ":memory:", "--scripts", allowed), "'return 1' is not a SHA-1")
    fails(lsm("serve", ":memory:", "--scripts", "of"), "of: No such file")


@pytest.mark.parametrize(
    ("options", "mode"),
    [(("--host", "0.0.0.0"), "process"), (("--host", "0.0.0.0", "--scripts", "inline"), "inline"),
     ((), "inline"), (("--scripts", "process"), "process")],
)  # fmt: skip
def test_scripts_for_other_machines_run_in_a_process(options: tuple[str, ...], mode: str) -> None:
    with started(":memory:", "--port", "0", "--json", *options) as (_, line):
        client = redis.Redis(port=json.loads(line)["port"])
        with client:
            assert client.config_get("scripts") == {"scripts": mode}
            assert client.eval("return 1", 0) == 1
            assert bool(client.info("server")["script_process_id"]) == (mode == "process")


def test_tls_and_the_mode_of_a_unix_socket(tmp_path: Path) -> None:
    files = Certificates(tmp_path)
    unix_socket = tmp_path / "socket"
    options = ["--port", "-1", "--tls-port", "0", "--tls-cert-file", files.certificate("server"),
               "--tls-key-file", files.key("server"), "--tls-ca-cert-file", files.certificate("ca"),
               "--unixsocket", unix_socket, "--unixsocketperm", "600", "--json"]  # fmt: skip
    with started(":memory:", *options) as (_, line):
        shown = json.loads(line)
        assert shown["port"] is None
        assert unix_socket.stat().st_mode & 0o777 == 0o600
        with redis.Redis(
            port=shown["tls_port"], ssl=True, ssl_ca_certs=str(files.certificate("ca")),
            ssl_certfile=str(files.certificate("client")), ssl_keyfile=str(files.key("client")),
        ) as client:  # fmt: skip
            assert client.ping()
    fails(lsm("serve", ":memory:", "--unixsocketperm", "9"), "takes a mode in octal digits")
    fails(lsm("serve", ":memory:", "--tls-port", "0"), "TLS needs a certificate")


def test_a_configuration_file_is_read_reloaded_and_rewritten(tmp_path: Path) -> None:
    config, store, log = tmp_path / "x.conf", tmp_path / "store", tmp_path / "log"
    config.write_text(
        f"# why\ndir {store}\nport 0\nmaxclients 50\nlogfile {log}\nloglevel notice\nsave 1 1\n"
    )
    with started("--config", config, "--port", "0", "--maxclients", "60", "--log-json") as (
        process,
        line,
    ):
        assert line.startswith(f"lsmkv: {store} is served at 127.0.0.1:{port_of(line)} ")
        with redis.Redis(port=port_of(line)) as client:
            assert client.info("server")["config_file"] == str(config)
            assert client.config_get("maxclients")["maxclients"] == "60"  # the command line's
            client.config_set("timeout", 9)
            client.config_rewrite()
            text = config.read_text()
            assert text == (
                f"# why\ndir {store}\nport 0\nmaxclients 60\nlogfile {log}\nloglevel notice\n"
                "save 1 1\n\n# Generated by CONFIG REWRITE\ntimeout 9\n"
            )
            config.write_text(text.replace("clients 60", "clients 70").replace("port 0", "port 1"))
            process.send_signal(signal.SIGHUP)
            while "next start" not in log.read_text():
                assert process.poll() is None
            assert client.config_get("maxclients")["maxclients"] == "70"
            process.send_signal(signal.SIGTERM)
        assert process.communicate() == ("", f"lsmkv: {store} is closed\n")
    messages = [json.loads(one)["message"] for one in log.read_text().splitlines()]
    assert messages == [
        "configuration: save has no effect",
        "reloading: SIGHUP was received",
        "configuration: port takes effect at the next start",
    ]


def test_a_configuration_file_that_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "x.conf"
    done = lsm("serve", ":memory:", "--config", config)
    assert done.status == 2
    assert "No such file" in done.err
    config.write_text('requirepass "a\n')
    done = lsm("serve", ":memory:", "--config", config)
    assert done.status == 2
    assert "line 1: unbalanced quotes" in done.err
    config.write_text("slowlog-max-len x\n")
    fails(lsm("serve", ":memory:", "--port", "0", "--config", config), "slowlog-max-len")


def test_raw_and_read_only(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with lsmkv.DB(path, create_if_missing=True) as db:
        db.put(b"k", b"v")
    options = (path, "--port", "0", "--raw", "--read-only")
    with started(*options) as (_, line), redis.Redis(port=port_of(line)) as client:
        assert client.get("k") == b"v"
        with pytest.raises(redis.ReadOnlyError):
            client.set("k", "w")


def test_what_it_refuses(tmp_path: Path) -> None:
    ordinary, file = tmp_path / "store", tmp_path / "file"
    with lsmkv.DB(ordinary, create_if_missing=True) as db:
        db.put(b"k", b"v")
    file.touch()
    fails(lsm("serve", ordinary, "--port", "0"), "did not write", "--raw")
    assert not (tmp_path / "none").exists()
    fails(lsm("serve", tmp_path / "none", "--port", "0", "--raw"))
    fails(lsm("serve", ":memory:", "--max-disk", "much"), "invalid size")
    fails(lsm("serve", ":memory:", "--maxmemory-policy", "lru"), "must be one of noeviction")
    fails(lsm("serve", ":memory:", "--port", "-1"), "a server needs a host, a Unix socket, or both")
    fails(lsm("serve", ":memory:", "--port", "0", "--unixsocket", file), str(file))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        fails(lsm("serve", ":memory:", "--port", str(port)),
              f"port {port} is in use (--port 0 takes a free one)")  # fmt: skip
    done = lsm("serve")
    assert (done.status, done.out) == (2, "")
    assert "Usage" in done.err
    assert "DIR" in done.err
    for options in (("--port", "70000"), ("--appendfsync", "sometimes"), ("--maxclients", "0")):
        assert lsm("serve", ":memory:", *options).status == 2


def test_a_store_that_is_served_already(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with started(path, "--port", "0"):
        fails(lsm("serve", path, "--port", "0"), str(path))


def test_without_hiredis(tmp_path: Path) -> None:
    (tmp_path / "hiredis.py").write_text("raise ImportError('none', name='hiredis')\n")
    environment = ENVIRON | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ENVIRON['PYTHONPATH']}"}
    done = subprocess.run(
        [*COMMAND, ":memory:", "--port", "0"],
        capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "lsmkv: serve needs hiredis: pip install '.[server]' in lsmkv's checkout\n"
    )


def test_on_windows_signals_reach_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose ``add_signal_handler`` raises ``NotImplementedError`` there."""

    class Loop:
        def __init__(self) -> None:
            self.called: list[object] = []

        def call_soon_threadsafe(self, call: object) -> None:
            self.called.append(call)

    handlers: dict[int, Any] = {}
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(signal, "signal", handlers.__setitem__)
    loop = Loop()
    serve_module._call_on_signals(loop, test_json)  # type: ignore[arg-type]
    assert set(handlers) == {signal.SIGINT, signal.SIGTERM}
    for number, handler in handlers.items():
        handler(number, None)
    assert loop.called == [test_json, test_json]


def test_on_windows_there_are_no_unix_sockets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SystemExit, match="2"):
        serve_module.serve(str(tmp_path), unix_socket="socket")
    assert "Unix sockets: Windows has --port alone" in capsys.readouterr().err

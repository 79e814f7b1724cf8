"""TLS: a port with certificates, in both kinds of loops."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio
from certificates import Certificates
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from lsmkv.server import Server


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def server_of(files: Certificates, **options: Any) -> Server:
    options = {"tls_cert_file": files.certificate("server"), "tls_key_file": files.key("server"),
               **options}  # fmt: skip
    return Server(":memory:", port=None, tls_port=0, **options)


def client_of(server: Server, files: Certificates, name: str = "") -> redis.asyncio.Redis:
    own = {}
    if name:
        own = {"ssl_certfile": str(files.certificate(name)), "ssl_keyfile": str(files.key(name))}
    assert server.tls_port is not None
    return redis.asyncio.Redis(
        host="localhost", port=server.tls_port, ssl=True, ssl_ca_certs=str(files.certificate("ca")),
        retry=Retry(NoBackoff(), 0), **own,  # type: ignore[arg-type]
    )  # fmt: skip


def test_commands_and_messages(runner: asyncio.Runner, files: Certificates) -> None:
    async def main() -> None:
        async with server_of(files) as server, client_of(server, files) as client:
            assert await client.set("k", "v" * 3_000_000)
            assert await client.get("k") == b"v" * 3_000_000
            async with client.pipeline() as pipeline:
                for number in range(2000):
                    pipeline.rpush("l", number)
                assert (await pipeline.execute())[-1] == 2000
            async with client.pubsub() as listener:
                await listener.subscribe("c")
                await client.publish("c", "hello")
                messages = [await listener.get_message(timeout=10) for _ in range(2)]
                assert messages[1] is not None
                assert messages[1]["data"] == b"hello"
            assert (await client.config_get("tls-*"))["tls-auth-clients"] == "no"
            assert (await client.config_get("port"))["port"] == "0"
            assert (await client.client_list())[0]["addr"].startswith("127.0.0.1:")

    runner.run(main())


@pytest.mark.parametrize(
    ("auth", "served"),
    [
        (None, {"client"}),
        ("yes", {"client"}),
        ("optional", {"client", ""}),
        ("no", {"client", "", "stranger"}),
    ],
)
def test_certificates_of_clients(
    runner: asyncio.Runner, files: Certificates, auth: Any, served: set[str]
) -> None:
    async def main() -> None:
        options = {"tls_ca_cert_file": files.certificate("ca"), "tls_auth_clients": auth}
        async with server_of(files, **options) as server:
            found = set()
            for name in ("client", "", "stranger"):
                async with client_of(server, files, name) as client:
                    try:
                        assert await client.ping()
                        found.add(name)
                    except (redis.ConnectionError, OSError):
                        pass
            assert found == served

    runner.run(main())


def test_a_client_without_tls_disturbs_nobody(runner: asyncio.Runner, files: Certificates) -> None:
    async def main() -> None:
        async with server_of(files) as server, client_of(server, files) as client:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.tls_port)
            writer.write(b"PING\r\n" * 100)
            answer = b""
            with contextlib.suppress(ConnectionError):
                answer = await reader.read()
            assert b"PONG" not in answer
            writer.close()
            assert await client.ping()

    runner.run(main())


def test_both_ports_serve_one_store(runner: asyncio.Runner, files: Certificates) -> None:
    async def main() -> None:
        server = Server(":memory:", port=0, tls_port=0, tls_cert_file=files.certificate("server"),
                        tls_key_file=files.key("server"))  # fmt: skip
        await server.start()
        async with client_of(server, files) as one, redis.asyncio.Redis(port=server.port) as other:
            await one.set("k", "v")
            assert await other.get("k") == b"v"
        await server.stop()

    runner.run(main())


async def test_files_that_cannot_be_used(files: Certificates, tmp_path: Path) -> None:
    broken, none = tmp_path / "broken", tmp_path / "none"
    broken.write_text("nothing")
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"tls_cert_file": broken}, ValueError, "broken: "),
        ({"tls_key_file": files.key("client")}, ValueError, "KEY_VALUES_MISMATCH"),
        ({"tls_cert_file": none}, FileNotFoundError, "none"),
        ({"tls_ca_cert_file": none}, FileNotFoundError, "none"),
        ({"tls_ca_cert_file": broken}, ValueError, "broken: "),
    ]
    for options, error, reason in cases:
        with pytest.raises(error, match=reason):
            await server_of(files, **options).start()


def test_settings_that_contradict_each_other(files: Certificates) -> None:
    with pytest.raises(ValueError, match="TLS needs a certificate"):
        Server(":memory:", tls_port=0)
    with pytest.raises(ValueError, match="certificates of clients need an authority"):
        server_of(files, tls_auth_clients="yes")
    with pytest.raises(ValueError, match="tls_port needs a host"):
        Server(":memory:", host=None, unix_socket="s", tls_port=0)


def test_new_connections_get_a_new_certificate(
    runner: asyncio.Runner, files: Certificates, tmp_path: Path
) -> None:
    certificate, key = tmp_path / "own.crt", tmp_path / "own.key"

    def use(name: str) -> None:
        certificate.write_bytes(files.certificate(name).read_bytes())
        key.write_bytes(files.key(name).read_bytes())

    async def served(server: Server) -> bool:
        async with client_of(server, files) as client:
            with contextlib.suppress(redis.ConnectionError):
                return bool(await client.ping())
        return False

    async def main() -> None:
        use("stranger")
        async with server_of(files, tls_cert_file=certificate, tls_key_file=key) as server:
            assert not await served(server)
            use("server")
            server.reload_certificates()
            assert await served(server)
            key.write_bytes(files.key("stranger").read_bytes())
            with pytest.raises(ValueError, match="KEY_VALUES_MISMATCH"):
                server.reload_certificates()
            assert await served(server)

    runner.run(main())

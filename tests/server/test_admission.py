"""What is refused, and how, before it runs."""

from __future__ import annotations

from serving import Client, an_engine


def test_an_error_shows_no_more_than_128_bytes_of_a_request(client: Client) -> None:
    long = "x" * 200
    assert client(f"NO{long}") == (
        f"ERR unknown command 'NO{'x' * 126}', with args beginning with: "
    )
    assert client(f"NONE {long} {long}") == (
        f"ERR unknown command 'NONE', with args beginning with: '{'x' * 128}' "
    )
    assert client("NONE a b") == "ERR unknown command 'NONE', with args beginning with: 'a' 'b' "
    assert client(f"CONFIG {long}") == (f"ERR unknown subcommand '{'x' * 128}'. Try CONFIG HELP.")


def test_the_number_of_arguments_is_checked_before_the_password() -> None:
    with an_engine(password="secret") as engine:
        Client(engine).plays(
            ("GET", "ERR wrong number of arguments for 'get' command"),
            ("GET k", "NOAUTH Authentication required."),
            ("AUTH secret", b"OK"),
            ("GET k", None),
        )

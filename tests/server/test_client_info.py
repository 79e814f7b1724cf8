"""The line of a client."""

from __future__ import annotations

from serving import Client

from lsmkv.server.client_info import described


def test_a_line_has_the_user_and_the_size_of_the_request(client: Client) -> None:
    client.plays(("ACL SETUSER ann on nopass +@all", b"OK"), ("AUTH ann x", b"OK"))
    fields = dict(one.split("=", 1) for one in described(client.session, [b"GET", b"k"]).split(" "))
    assert (fields["user"], fields["qbuf"], fields["argv-mem"]) == ("ann", "20", "4")

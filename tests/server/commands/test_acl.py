"""ACL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from serving import PLACES, Client, an_engine
from transcripts import Section, transcript


@transcript("acl.txt")
def test_acl(section: Section) -> None:
    if any("EVAL" in step.line for step in section.steps):
        pytest.importorskip("lupa")
    section.play()


def logged(client: Client) -> list[dict[bytes, Any]]:
    """The entries of ACL LOG, newest first."""
    return [dict(zip(*[iter(one)] * 2, strict=True)) for one in client("ACL LOG")]


def test_users_are_loaded_and_their_connections_closed(tmp_path: Path) -> None:
    file = tmp_path / "users.acl"
    file.write_text("user ann on >a ~* +@all\nuser default on nopass ~* &* +@all -flushall\n")
    with an_engine(acl_file=str(file)) as engine:
        client, ann, other = Client(engine), Client(engine), Client(engine)
        client.plays(
            ("CONFIG GET aclfile", [b"aclfile", str(file).encode()]),
            ("FLUSHALL", "NOPERM this user has no permissions to run the 'flushall' command"),
            ("ACL SETUSER eve on >e +get", b"OK"),
            ("ACL SAVE", b"OK"),
        )
        assert ann("AUTH ann a") == b"OK"
        assert other("AUTH eve e") == b"OK"
        file.write_text(file.read_text().replace("-flushall", "-dbsize"))
        assert ann("ACL LOAD") == b"OK"  # its own connection is closed after the reply
        assert ann.session.closing
        assert other.session.gone
        client.plays(
            ("ACL USERS", [b"ann", b"default", b"eve"]),
            ("FLUSHALL", b"OK"),
            ("DBSIZE", "NOPERM this user has no permissions to run the 'dbsize' command"),
            ("CONFIG SET aclfile x",
             "ERR CONFIG SET failed (possibly related to argument 'aclfile') - can't set immutable"
             " config"),
        )  # fmt: skip
        file.write_text("nonsense")
        assert client("ACL LOAD").startswith(f"ERR {file}:1 should start with user keyword")
        file.unlink()
        assert client("ACL LOAD") == (
            f"ERR Error loading ACLs, opening file '{file}': No such file or directory"
        )
        assert client("ACL USERS") == [b"ann", b"default", b"eve"]
        engine.users.file = str(tmp_path / "none" / "users.acl")
        assert client("ACL SAVE").startswith("ERR There was an error trying to save the ACLs.")


def test_a_removed_user_loses_its_connections(client: Client) -> None:
    client("ACL SETUSER ann on nopass ~* &* +@all")
    other, own = Client(client.engine), Client(client.engine)
    assert other("AUTH ann x") == b"OK"
    own("HELLO 2 AUTH ann x")
    assert b" user=ann " in own("CLIENT INFO")
    assert own("ACL DELUSER ann") == 1
    assert own.session.closing
    assert not own.session.gone  # its reply is sent first
    assert other.session.gone
    client("ACL SETUSER ann on nopass ~* &* +@all")
    last = Client(client.engine)
    for request in ("AUTH ann x", "MULTI", "ACL DELUSER ann", "SET k v", "EXEC"):
        last(request)
    assert client("GET k") is None  # what came after it in the transaction was refused


def test_subscribers_are_closed_when_they_lose_their_channels(client: Client) -> None:
    client("ACL SETUSER ann on nopass +@all &a &b:* &c")
    for subscribed, rules, stays in (
        ("SUBSCRIBE a", "resetchannels &a &d", True),
        ("SUBSCRIBE a", "resetchannels &b:*", False),
        ("SUBSCRIBE b:1", "resetchannels &b:* &z", True),
        ("PSUBSCRIBE b:*", "allchannels", True),
        ("PSUBSCRIBE b:*", "resetchannels &*", True),
        ("PSUBSCRIBE b:*", "resetchannels &b*", False),
    ):
        client("ACL SETUSER ann resetchannels &a &b:* &c")
        other = Client(client.engine)
        other("AUTH ann x")
        other(subscribed)
        client(f"ACL SETUSER ann {rules}")
        assert other.session.gone is not stays, (subscribed, rules)
        client.engine.close_session(other.session)


def test_rights_change_for_connections_that_are_open(client: Client) -> None:
    other = Client(client.engine)
    client("ACL SETUSER ann on nopass ~* &* +@all")
    other.plays(("AUTH ann x", b"OK"), ("SET k v", b"OK"))
    assert not other.session.restricted  # which costs nothing
    client("ACL SETUSER ann resetkeys")
    assert other("GET k").startswith("NOPERM")
    client("ACL SETUSER ann ~k")
    assert other("GET k") == b"v"


def test_a_command_that_waits_gets_what_it_waits_for(client: Client) -> None:
    client("ACL SETUSER ann on nopass ~* +@all")
    other = Client(client.engine)
    other.plays(("AUTH ann x", b"OK"), ("BLPOP k 0", None))
    client.plays(("ACL SETUSER ann -@all", b"OK"), ("RPUSH k v", 1))
    assert other.received() == [b"k", b"v"]


def test_the_default_user(client: Client) -> None:
    client("ACL SETUSER ann on nopass ~* &* +@all")
    admin, before = Client(client.engine), Client(client.engine)
    admin("AUTH ann x")
    admin.plays(("ACL SETUSER default off", b"OK"))
    new = Client(client.engine)
    assert new("GET k") == "NOAUTH Authentication required."
    assert new("AUTH default x").startswith("WRONGPASS")
    assert before("GET k") is None  # it was connected before
    assert before("RESET") == b"RESET"
    assert before("GET k") == "NOAUTH Authentication required."
    admin("ACL SETUSER default on -@all")
    assert new("GET k") == "NOPERM this user has no permissions to run the 'get' command"
    assert new("HELLO 3 AUTH ann x")[b"proto"] == 3
    assert new("ACL WHOAMI") == b"ann"
    assert new("ACL GETUSER default")[b"flags"] == [b"on", b"nopass"]


def test_requirepass_is_the_password_of_the_default_user() -> None:
    with an_engine(password="secret") as engine:
        client = Client(engine)
        client.plays(
            ("ACL WHOAMI", "NOAUTH Authentication required."),
            ("AUTH secret", b"OK"),
            ("CONFIG SET requirepass other", b"OK"),
            ("AUTH secret", "WRONGPASS invalid username-password pair or user is disabled."),
            ("AUTH default other", b"OK"),
            ("ACL SETUSER default >third", b"OK"),
            ("CONFIG SET timeout 0", b"OK"),  # which changes no password
            ("AUTH third", b"OK"),
            ("CONFIG SET requirepass ''", b"OK"),
        )
        assert client("ACL LIST") == [b"user default on nopass ~* &* +@all"]
        assert Client(engine)("PING") == b"PONG"


def test_what_is_refused_is_logged(client: Client) -> None:
    client("ACL SETUSER ann on >a ~k +set +eval +multi +exec +get resetchannels +publish")
    other = Client(client.engine)
    other("AUTH ann wrong")
    other("HELLO 3 AUTH ann wrong")
    other("AUTH ann a")
    for request in ("INCR k", "SET x 1", "PUBLISH c m", "MULTI", "INCR k", "EXEC", "INCR k"):
        other(request)
    pytest.importorskip("lupa")
    other("EVAL \"redis.call('incr', 'k')\" 0")
    other("MULTI")
    other("GET k")
    client("ACL SETUSER ann -get")
    other("EXEC")
    shown = [(one[b"reason"], one[b"context"], one[b"object"]) for one in logged(client)]
    assert shown == [
        (b"command", b"multi", b"get"),
        (b"command", b"lua", b"incr"),
        (b"command", b"toplevel", b"incr"),
        (b"command", b"multi", b"incr"),
        (b"channel", b"toplevel", b"c"),
        (b"key", b"toplevel", b"x"),
        (b"auth", b"toplevel", b"HELLO"),
        (b"auth", b"toplevel", b"AUTH"),
    ]
    one = logged(client)[2]
    assert one[b"username"] == b"ann"
    assert one[b"count"] == 2
    assert 0 <= float(one[b"age-seconds"]) < 60
    assert b" cmd=incr user=ann " in one[b"client-info"]
    assert len(client("ACL LOG 3")) == 3
    assert client("ACL LOG -1") == []
    client("HELLO 3")
    assert isinstance(client("ACL LOG")[0][b"age-seconds"], float)


def test_rules_of_users_are_not_shown_to_others(client: Client) -> None:
    client("CONFIG SET slowlog-log-slower-than 0")
    client("ACL SETUSER ann >secret")
    assert client("SLOWLOG GET 1")[0][3] == [b"ACL", b"SETUSER", *[b"(redacted)"] * 2]


def test_passwords_are_made(client: Client) -> None:
    made = client("ACL GENPASS")
    assert len(made) == 64
    assert made != client("ACL GENPASS")
    assert [len(client(f"ACL GENPASS {bits}")) for bits in (1, 4, 5, 4096)] == [1, 1, 2, 1024]


@pytest.mark.parametrize("scripts", PLACES)
def test_a_script_has_the_rights_of_its_caller(client: Client) -> None:
    pytest.importorskip("lupa")
    client("ACL SETUSER ann on nopass ~a +@all")
    client("SADD a 1")
    other = Client(client.engine)
    other("AUTH ann x")
    script = """
        local found = {}
        for at, words in ipairs({{'get', 'b'}, {'sort', 'a', 'get', '#'}, {'sort', 'a'}}) do
            local reply = redis.pcall(unpack(words))
            found[at] = reply and reply.err or 'ran'
        end
        found[4] = tostring(redis.acl_check_cmd('get', 'b'))
        found[5] = tostring(redis.acl_check_cmd('get', 'a'))
        return found
    """
    denied = [
        b"ERR The user executing the script can't access at least one of the keys mentioned in the"
        b" command arguments",
        b"ERR GET option of SORT denied due to insufficient ACL permissions.",
        *(b"ran", b"false", b"true"),
    ]
    permitted = [*[b"ran"] * 3, b"true", b"true"]
    for _ in range(2):  # who ran one before does not matter
        assert other("EVAL", script, "0") == denied
        assert client("EVAL", script, "0") == permitted


def test_an_ordinary_store_has_users_too() -> None:
    with an_engine(raw=True) as engine:
        client = Client(engine)
        client.plays(
            ("ACL SETUSER ann on nopass +@read ~a", b"OK"),
            ("AUTH ann x", b"OK"),
            ("GET a", None),
            ("GET b",
             "NOPERM this user has no permissions to access one of the keys used as arguments"),
            ("SET a v", "NOPERM this user has no permissions to run the 'set' command"),
            ("LSMKV.RANGE '' ''", "NOPERM this user has no permissions to read all keys"),
            ("RESET", b"RESET"),
            ("ACL SETUSER ann %R~*", b"OK"),
            ("AUTH ann x", b"OK"),
            ("LSMKV.RANGE '' ''", []),
        )  # fmt: skip

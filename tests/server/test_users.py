"""The users of a server, and their file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lsmkv.server.commands import COMMANDS
from lsmkv.server.resp import CommandError
from lsmkv.server.settings import Settings
from lsmkv.server.users import Users


def lines_of(users: Users) -> list[str]:
    return [user.line().decode() for user in users.all()]


def test_a_file_is_read_and_written_as_redis_does(tmp_path: Path) -> None:
    file = tmp_path / "users.acl"
    file.write_text(
        "\n  user bob on nopass ( ~w:* +set )  (+get ~r:*)\t\r\n\n"
        "user ann off >secret -@all +@read\n"
    )
    users = Users(COMMANDS, Settings(acl_file=str(file)))
    expected = [
        "user ann off #2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
        " resetchannels -@all +@read",
        "user bob on nopass resetchannels -@all (~w:* resetchannels -@all +set)"
        " (~r:* resetchannels -@all +get)",
        "user default on nopass ~* &* +@all",
    ]
    assert lines_of(users) == expected
    users.change(b"default", [b"resetpass", b">x"])
    users.remove([b"ann"])
    file.chmod(0o640)
    users.save()
    assert file.read_text().splitlines() == lines_of(users)
    if sys.platform != "win32":
        assert file.stat().st_mode & 0o777 == 0o640
    assert lines_of(Users(COMMANDS, Settings(acl_file=str(file)))) == lines_of(users)


def test_every_invalid_line_is_reported_and_none_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "users.acl"
    file.write_text("user ann on nopass +@all\n")
    users = Users(COMMANDS, Settings(acl_file=str(file)))
    file.write_text(
        "# comment\nuser bob +none ~* ~a\nuser bob on\nuser cid (+get\nuser\nuser d\x0bb\nuser eve"
    )
    with pytest.raises(CommandError) as caught:
        users.load()
    assert str(caught.value) == (
        f"ERR {file}:1 should start with user keyword followed by the username. "
        f"{file}:2: Error in applying operation '+none': Unknown command or category name in ACL. "
        f"{file}:2: Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and"
        " does not have any effect. Try 'resetkeys' to start with an empty list of patterns. "
        "WARNING: Duplicate user 'bob' found on line 3. "
        f"{file}:4: Unmatched parenthesis in selector definition. "
        f"{file}:5 should start with user keyword followed by the username. "
        f"{file}:6: username 'd\x0bb' contains invalid characters. "
        "WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
    )
    assert [user.name for user in users.all()] == [b"ann", b"default"]
    with pytest.raises(ValueError, match=r"^.*users.acl:1 should start"):
        Users(COMMANDS, Settings(acl_file=str(file)))
    file.unlink()
    with pytest.raises(FileNotFoundError):
        Users(COMMANDS, Settings(acl_file=str(file)))


def test_an_error_shows_no_password(tmp_path: Path) -> None:
    file = tmp_path / "users.acl"
    file.write_text("user ann <secret\n")
    with pytest.raises(ValueError, match="password you are trying to remove") as caught:
        Users(COMMANDS, Settings(acl_file=str(file)))
    assert "secret" not in str(caught.value)


def test_the_default_user_has_the_password_of_the_settings(tmp_path: Path) -> None:
    users = Users(COMMANDS, Settings(password="secret"))
    assert users.default.accepts(b"secret")
    assert not users.default.open
    users.set_password("")
    assert users.default.open
    with pytest.raises(ValueError, match="cannot be combined"):
        Settings(password="secret", acl_file=str(tmp_path))


def test_an_object_of_a_user_stays_the_same_when_it_changes() -> None:
    users = Users(COMMANDS, Settings())
    made = users.change(b"ann", [b"on"])
    assert users.change(b"ann", [b"+get"]) is made
    assert users.find(b"ann") is made
    assert made.line() == b"user ann on resetchannels -@all +get"

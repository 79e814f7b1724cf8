"""CONFIG's settings."""

from __future__ import annotations

from typing import Any

import pytest

from lsmkv.server.resp import CommandError
from lsmkv.server.settings import Settings


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("appendfsync", "always", "always"),
        ("requirepass", "secret", "secret"),
        ("protected-mode", "no", "no"),
        ("maxclients", "5", "5"),
        ("timeout", "7", "7"),
        ("tcp-keepalive", "0", "0"),
        ("proto-max-bulk-len", "2mb", "2097152"),
        ("client-query-buffer-limit", "3M", "3000000"),
        ("slowlog-log-slower-than", "-1", "-1"),
        ("script-max-time", "0", "0"),
        ("slowlog-max-len", "2000", "2000"),
        (
            "client-output-buffer-limit",
            "normal 1 1 1 pubsub 1gb 0 0",
            "normal 0 0 0 slave 0 0 0 pubsub 1073741824 0 0",
        ),
        ("port", "6379", "6379"),
    ],
)
def test_a_change_is_shown(name: str, value: str, shown: str) -> None:
    settings = Settings(fixed={"port": "6379"})
    settings.change([(name, value)])
    assert settings.shown()[name] == shown
    others = Settings(fixed={"port": "6379"}).shown()
    assert {key: text for key, text in settings.shown().items() if key != name} == {
        key: text for key, text in others.items() if key != name
    }


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("appendfsync", "sometimes", "one of the following: everysec, always, no"),
        ("protected-mode", "maybe", "argument must be 'yes' or 'no'"),
        ("maxclients", "0", "argument must be between 1 and 4294967295 inclusive"),
        ("tcp-keepalive", "-1", "argument must be between 0 and 2147483647 inclusive"),
        ("tcp-keepalive", "1x", "argument couldn't be parsed into an integer"),
        ("tcp-keepalive", "", "argument couldn't be parsed into an integer"),
        ("maxclients", "1kb", "argument couldn't be parsed into an integer"),
        ("maxclients", "9" * 5000, "argument couldn't be parsed into an integer"),
        ("proto-max-bulk-len", "1bk", "argument must be a memory value"),
        ("proto-max-bulk-len", "1", "between 1048576 and 9223372036854775807 inclusive"),
        (
            "client-output-buffer-limit",
            "pubsub 1 2",
            "Wrong number of arguments in buffer limit configuration.",
        ),
        (
            "client-output-buffer-limit",
            "other 1 2 3",
            "Invalid client class specified in buffer limit configuration.",
        ),
        (
            "client-output-buffer-limit",
            "pubsub x 2 3",
            "Error in hard, soft or soft_seconds setting in buffer limit configuration.",
        ),
        ("port", "1", "can't set immutable config"),
        ("daemonize", "no", "can't set immutable config"),
        ("dir", "/tmp", "can't set protected config"),
        ("TIMEOUT", "4", "(possibly related to argument 'TIMEOUT') - duplicate parameter"),
        ("nothing", "1", "Unknown option or number of arguments for CONFIG SET - 'nothing'"),
    ],
)
def test_what_cannot_be_set(name: str, value: str, reason: str) -> None:
    settings = Settings(fixed={"port": "6379", "dir": "/tmp"})
    before = settings.shown()
    with pytest.raises(CommandError, match=r"^ERR ") as raised:
        settings.change([("timeout", "3"), (name, value)])
    assert str(raised.value).endswith(reason)
    assert settings.shown() == before


@pytest.mark.parametrize("wrong", [{"appendfsync": "never"}, {"maxclients": 0}])
def test_settings_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Settings(**wrong)

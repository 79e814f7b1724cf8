"""Which scripts run, and where."""

from __future__ import annotations

import pytest

from lsmkv.server.script_choice import ScriptChoice, is_local


@pytest.mark.parametrize(
    ("host", "local"),
    [
        (None, True),
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("", False),
        ("192.0.2.1", False),
        ("example.org", False),
    ],
)
def test_by_default_it_depends_on_who_reaches_the_server(host: str | None, local: bool) -> None:
    assert is_local(host) == local
    assert ScriptChoice.of(None, host).name == ("inline" if local else "process")
    assert ScriptChoice.of("inline", host) == ScriptChoice("inline")


def test_modes_and_lists() -> None:
    assert ScriptChoice.of("process", None) == ("process", None)
    assert ScriptChoice.of("off", None) == ("off", frozenset())
    assert ScriptChoice.of(["A" * 40, "b" * 40], "0.0.0.0") == ("list", {b"a" * 40, b"b" * 40})
    assert ScriptChoice.of([], None) == ("list", frozenset())
    with pytest.raises(ValueError, match="inline, process, off or a list of SHA-1, not 'on'"):
        ScriptChoice.of("on", None)
    with pytest.raises(ValueError, match="'abc' is not a SHA-1 in 40 hexadecimal digits"):
        ScriptChoice.of(["abc"], None)

"""The log of what was refused."""

from __future__ import annotations

from lsmkv.server.acl_log import AclLog, Refusal
from lsmkv.server.settings import Settings


def a_refusal(name: bytes = b"get", context: str = "toplevel") -> Refusal:
    return Refusal("command", context, name, b"ann")


def test_equal_refusals_are_counted_in_one_entry() -> None:
    log = AclLog(Settings())
    log.add(a_refusal(), "first")
    log.add(a_refusal(context="multi"), "other")
    log.add(a_refusal(), "last")
    shown = [(one.context, one.count, one.client) for one in log.refusals]
    assert shown == [("toplevel", 2, "last"), ("multi", 1, "other")]
    log.refusals[0].time -= 61
    log.add(a_refusal(), "much later")
    assert [one.count for one in log.refusals] == [1, 2, 1]


def test_only_the_newest_entries_are_kept_and_looked_at() -> None:
    settings = Settings()
    log = AclLog(settings)
    for number in range(11):
        log.add(a_refusal(b"%d" % number), "")
    log.add(a_refusal(b"0"), "")
    assert [one.name for one in log.refusals][:2] == [b"0", b"10"]
    assert len(log.refusals) == 12
    settings.change([("acllog-max-len", "5")])
    log.add(a_refusal(b"x"), "")
    assert len(log.refusals) == 5
    log.add(a_refusal(b"x" * 5000), "")
    assert log.refusals[0].name == b"x" * 1024

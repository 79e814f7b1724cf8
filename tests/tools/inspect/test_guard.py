from __future__ import annotations

from typing import Any

import pytest
from inspected import Answer, request
from starlette.responses import PlainTextResponse

from lsmkv.tools.inspect.guard import COOKIE, POLICY, Guard

TOKEN = "correct horse"


def ask(guard: Guard, path: str = "/api/levels", **given: Any) -> Answer:
    return request(guard, path, **given)


@pytest.fixture
def guard() -> Guard:
    return Guard(PlainTextResponse("data"), "127.0.0.1", None)


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:1", "[::1]:8000", "localhost"])
def test_names_of_this_machine_are_served(guard: Guard, host: str) -> None:
    assert ask(guard, host=host).status == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[::2]:8000"])
def test_other_hosts_are_refused(guard: Guard, host: str) -> None:
    assert ask(guard, host=host).status == 403


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_other_origins_are_refused(guard: Guard, method: str) -> None:
    own = "http://127.0.0.1:8000"
    assert ask(guard, method=method, origin=own).status == 200
    for origin in ("http://evil.example", "null", "http://127.0.0.1:8001", "http://localhost:8000"):
        assert ask(guard, method=method, origin=origin).status == 403


def test_requests_of_another_site_are_refused(guard: Guard) -> None:
    for site in ("cross-site", "same-site"):
        assert ask(guard, sec_fetch_site=site, sec_fetch_mode="no-cors").status == 403
    assert ask(guard, sec_fetch_site="cross-site", sec_fetch_mode="navigate").status == 200
    posted = ask(guard, method="POST", sec_fetch_site="same-site", sec_fetch_mode="navigate")
    assert posted.status == 403
    assert ask(guard, sec_fetch_site="same-origin").status == 200


def test_other_methods_are_refused(guard: Guard) -> None:
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH"):
        assert ask(guard, method=method).status == 405


def test_every_answer_has_the_policy(guard: Guard) -> None:
    for answer in (ask(guard), ask(guard, host="evil.example")):
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in answer.headers
    assert "unsafe" not in POLICY


def test_another_host_needs_a_token() -> None:
    with pytest.raises(ValueError, match="not loopback: give --token"):
        Guard(PlainTextResponse("data"), "0.0.0.0", None)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_token_is_asked_for(host: str) -> None:
    guard = Guard(PlainTextResponse("data"), host, TOKEN)
    assert ask(guard).status == 401
    assert ask(guard, cookie=f"{COOKIE}=wrong").status == 401
    assert ask(guard, cookie="a=b; \x00").status == 401
    assert ask(guard, authorization=f"Bearer {TOKEN}").status == 200
    assert ask(guard, authorization="Bearer wrong").status == 401
    assert ask(guard, query="token=correct+horse").status == 401  # the page alone takes it
    assert ask(guard, "/", query="token=wrong").status == 401


def test_the_token_moves_into_a_cookie() -> None:
    guard = Guard(PlainTextResponse("data"), "127.0.0.1", TOKEN)
    answer = ask(guard, "/", query="token=correct%20horse")
    assert (answer.status, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert ask(guard, cookie=cookie.partition(";")[0]).status == 200

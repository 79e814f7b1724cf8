from __future__ import annotations

from typing import Any

import pytest
from inspected import Answer, request
from starlette.responses import PlainTextResponse

from lsmkv.tools.inspect.guard import COOKIE, POLICY, Guard, moved_to

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


MODES = ["navigate", "no-cors", "cors", "same-origin", "websocket"]
DESTINATIONS = ["document", "iframe", "frame", "embed", "object", "image", "script", "empty"]


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none"])
@pytest.mark.parametrize("path", ["/", "/api/levels", "/static/app.js"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_other_sites_reach_the_page_alone_and_as_a_document(
    guard: Guard, site: str, path: str, method: str
) -> None:
    answered = {
        (mode, destination)
        for mode in MODES
        for destination in DESTINATIONS
        if ask(
            guard,
            path,
            method=method,
            sec_fetch_site=site,
            sec_fetch_mode=mode,
            sec_fetch_dest=destination,
        ).status
        == 200
    }
    allowed = method != "POST" and (site == "none" or path == "/")
    assert answered == ({("navigate", "document")} if allowed else set())


def test_the_own_page_and_programs_reach_everything(guard: Guard) -> None:
    for path in ("/", "/api/levels", "/static/app.js"):
        for destination in DESTINATIONS:
            own = {"sec_fetch_site": "same-origin", "sec_fetch_dest": destination}
            assert ask(guard, path, **own).status == 200
        assert ask(guard, path).status == 200


def test_an_own_origin_does_not_excuse_another_site(guard: Guard) -> None:
    own = "http://127.0.0.1:8000"
    assert ask(guard, origin=own, sec_fetch_site="cross-site").status == 403


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
    wrong = (f"{COOKIE}-8000=wrong", f"{COOKIE}-8000={TOKEN}", f"{COOKIE}={TOKEN}", "a; =\x00")
    for cookie in wrong:
        assert ask(guard, cookie=cookie).status == 401
    assert ask(guard, authorization=f"Bearer {TOKEN}").status == 200
    assert ask(guard, authorization="Bearer wrong").status == 401
    assert ask(guard, query="token=correct+horse").status == 401  # the page alone takes it
    assert ask(guard, "/", query="token=wrong").status == 401


def cookie_of(guard: Guard, host: str = "127.0.0.1:8000") -> str:
    """What the page sets, with its attributes."""
    answer = ask(guard, "/", query="token=correct%20horse", host=host)
    assert answer.status == 200
    return answer.headers["set-cookie"]


def test_the_token_moves_into_a_cookie() -> None:
    guard = Guard(PlainTextResponse("data"), "127.0.0.1", TOKEN)
    answer = ask(guard, "/", query="token=correct%20horse")
    assert answer.status == 200
    assert b'http-equiv="refresh" content="0;url=/"' in answer.body
    pair, *attributes = cookie_of(guard).split("; ")
    assert sorted(attributes) == ["HttpOnly", "Path=/", "SameSite=strict"]
    assert ask(guard, cookie=pair).status == 200
    assert ask(guard, cookie=f"other=1; {pair}; broken").status == 200


def test_the_cookie_is_of_one_port_and_hides_the_token() -> None:
    guard = Guard(PlainTextResponse("data"), "127.0.0.1", TOKEN)
    pair = cookie_of(guard).partition(";")[0]
    name, _, value = pair.partition("=")
    assert name == f"{COOKIE}-8000"
    assert TOKEN not in value
    for host in ("127.0.0.1:8001", "localhost:8000", "127.0.0.1"):
        other = cookie_of(guard, host).partition("=")
        assert other[2].partition(";")[0] != value
        assert ask(guard, host=host, cookie=pair).status == 401
        assert ask(guard, host=host, cookie=f"{other[0]}={value}").status == 401


def test_the_cookie_is_of_one_server_whatever_host_is_stated() -> None:
    guard = Guard(PlainTextResponse("data"), "127.0.0.1", TOKEN)
    pair = cookie_of(guard).partition(";")[0]
    assert ask(guard, cookie=pair).status == 200
    assert ask(guard, cookie=pair, port=8001).status == 401


def test_a_document_leads_on_to_a_url() -> None:
    url = 'http://127.0.0.1:1/?token=a&b"><script>'
    assert 'url=http://127.0.0.1:1/?token=a&amp;b&quot;&gt;&lt;script&gt;"' in moved_to(url)

"""What other pages, other servers and a file can do to the inspector, in Chromium."""

from __future__ import annotations

import contextlib
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from driven import running
from inspected import levelled_store
from starlette.responses import HTMLResponse

from lsmkv.tools.inspect.api import Api
from lsmkv.tools.inspect.opening import opened_page
from lsmkv.tools.inspect.server import application

TOKEN = "correct horse battery"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    store = levelled_store(tmp_path_factory.mktemp("guarded") / "store")
    with contextlib.closing(Api(str(store))) as api:
        yield api


class Noting:
    """An application, and the statuses of its answers by path."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.statuses: dict[str, set[int]] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def noting(message: Any) -> None:
            if message["type"] == "http.response.start":
                self.statuses.setdefault(scope["path"], set()).add(message["status"])
            await send(message)

        await self._app(scope, receive, noting)


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"], ids=["another site", "another port"])
def test_another_page_cannot_embed_or_ask_but_link(browser: Any, api: Api, name: str) -> None:
    noting = Noting(application(api))
    with running(noting) as url:
        ways = f"""
            <iframe src="{url}api/levels"></iframe> <iframe src="{url}"></iframe>
            <object data="{url}api/state"></object> <embed src="{url}api/history">
            <img src="{url}api/live"> <script src="{url}static/app.js"></script>
            <script>fetch("{url}api/filters", {{ mode: "no-cors" }})</script>
            <a href="{url}">the page</a> <a href="{url}api/levels">its data</a>
        """
        with (
            running(HTMLResponse(ways)) as other,
            contextlib.closing(browser.new_context()) as used,
        ):
            page = used.new_page()
            there = other.replace("127.0.0.1", name)
            page.goto(there)
            page.wait_for_load_state("networkidle")
            asked = ("levels", "state", "history", "live", "filters")
            assert noting.statuses == {
                path: {403} for path in ("/", "/static/app.js", *(f"/api/{view}" for view in asked))
            }
            with page.expect_navigation() as followed:
                page.get_by_text("its data").click()
            assert followed.value.status == 403
            page.goto(there)
            page.get_by_text("the page").click()
            page.wait_for_selector(".view")


def test_a_file_with_the_token_opens_the_page(
    browser: Any, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    with (
        running(application(api, token=TOKEN)) as url,
        running(application(api, token=TOKEN)) as second,
        contextlib.closing(browser.new_context()) as used,
    ):
        page = used.new_page()
        answer = page.goto(url)
        assert answer.status == 401
        with opened_page(f"{url}?token={TOKEN.replace(' ', '%20')}", has_token=True):
            page.goto(opened[0])
            page.wait_for_selector(".view")
        assert not Path(opened[0].removeprefix("file://")).exists()
        assert "token" not in page.url
        history = page.evaluate("history.length")
        page.reload()
        page.wait_for_selector(".view")
        assert page.evaluate("history.length") == history
        port = url.rstrip("/").rpartition(":")[2]
        (cookie,) = used.cookies()
        assert (cookie["name"], cookie["sameSite"]) == (f"lsmkv-token-{port}", "Strict")
        assert cookie["httpOnly"]
        assert TOKEN not in cookie["value"]
        assert page.goto(f"{url}api/levels").status == 200
        assert page.goto(second).status == 401

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from inspected import WORDS, Answer, request
from stores import contents

import lsmkv
from lsmkv.tools.inspect.api import Api
from lsmkv.tools.inspect.server import application, listen

JSON = "application/json"


@pytest.fixture
def app(api: Api) -> Any:
    return application(api)


def post(app: Any, path: str, body: object, **headers: str) -> Answer:
    data = json.dumps(body).encode()
    return request(app, path, method="POST", body=data, content_type=JSON, **headers)


def test_the_page_and_its_files(app: Any) -> None:
    page = request(app, "/")
    assert page.status == 200
    assert "text/html" in page.headers["content-type"]
    for name in ("app.js", "inspect.css", "lab.css", "vendor/d3/d3.min.js", "vendor/uplot/LICENSE"):
        assert request(app, f"/static/{name}").status == 200
        assert f'"static/{name}"'.encode() in page.body or "LICENSE" in name
    for name in ("../server.py", "..%2fserver.py", "/etc/passwd"):
        assert request(app, f"/static/{name}").status == 404


def test_data_and_errors_are_json(app: Any) -> None:
    assert request(app, "/api/levels").json["readable"]
    got = request(app, "/api/get", query="key=word+00001").json
    assert got["key"]["text"] == "word 00001"
    for path, query, status in (
        ("/api/nothing", "", 404),
        ("/api/table", "name=../CURRENT", 404),
        ("/api/get", "", 400),
        ("/api/block", "name=000001.ldb&offset=x", 400),
        ("/api/history/state", "step=-1", 400),
    ):
        answer = request(app, path, query=query)
        assert answer.status == status
        assert answer.json["error"]


def test_an_answer_says_of_which_change_it_is(path: Path) -> None:
    with contextlib.closing(Api(str(path))) as api:
        app = application(api)
        before = int(request(app, "/api/get", query="key=k").headers["lsmkv-change"])
        with lsmkv.DB(path) as db:
            db.put(b"k", b"v")
        answer = request(app, "/api/get", query="key=k")
        assert answer.json["found"]
        change = request(app, "/api/state").json["change"]
        assert before < int(answer.headers["lsmkv-change"]) == change


def test_a_store_that_is_gone_is_gone(path: Path) -> None:
    with contextlib.closing(Api(str(path))) as api:
        app = application(api)
        shutil.rmtree(path)
        assert request(app, "/api/levels").status == 410
        assert request(app, "/api/scratch").status == 200
        assert "was deleted" in request(app, "/api/state").json["replaced"]


def test_actions_take_json_alone(app: Any) -> None:
    assert post(app, "/api/scratch/put", {"key": "k", "value": "v"}).status == 200
    plain = request(app, "/api/scratch/put", method="POST", body=b"{}", content_type="text/plain")
    assert plain.status == 400
    assert post(app, "/api/scratch/put", ["k"]).status == 400
    assert post(app, "/api/scratch/put", {"key": 1}).status == 400
    assert post(app, "/api/scratch/put", {"key": "k" * 300_000}).status == 400
    assert post(app, "/api/levels", {}).status == 404
    assert request(app, "/api/scratch/put", query="key=k").status == 404  # not by GET


def test_nothing_is_written_to_the_store(path: Path) -> None:
    before = contents(str(path))
    with contextlib.closing(Api(str(path))) as api:
        app = application(api)
        for name in ("levels", "history", "scratch"):
            request(app, f"/api/{name}")
        request(app, "/api/get", query="key=word")
        for action in ("check", "scratch/fill", "scratch/flush", "scratch/compact"):
            assert post(app, f"/api/{action}", {"keys": "50"}).status == 200
        api.source.finish_check()
    assert contents(str(path)) == before


def test_over_a_socket(api: Api) -> None:
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        config = uvicorn.Config(application(api), log_level="warning", lifespan="off", ws="none")
        server = uvicorn.Server(config)
        running = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        running.start()
        try:
            asked = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            asked.request("GET", f"/api/get?key={WORDS[0].decode().replace(' ', '+')}")
            assert json.loads(asked.getresponse().read())["steps"]
            asked.close()
        finally:
            server.should_exit = True
            running.join()


def test_another_host_needs_a_token(api: Api) -> None:
    for make in (lambda: application(api, "0.0.0.0"), lambda: listen("0.0.0.0", 0)):
        with pytest.raises(ValueError, match="give --token"):
            make()


def test_a_port_that_is_taken() -> None:
    with listen("127.0.0.1", 0) as first:
        assert first.family == socket.AF_INET
        with pytest.raises(OSError, match="in use"):
            listen("127.0.0.1", first.getsockname()[1])

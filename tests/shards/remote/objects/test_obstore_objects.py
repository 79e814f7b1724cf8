"""Objects in S3 behind a proxy that fails requests; the rest is in the contract's tests."""

from __future__ import annotations

import errno
import http.client
import os
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest
from fault_proxy import Cut, Delay, Fault, FaultProxy, LostReply, Shorten, Status, Truncate
from processes import run_python
from s3_servers import S3Server, an_s3_server, s3_options

from lsmkv.shards.remote.objects.counters import Requests
from lsmkv.shards.remote.objects.open import open_objects
from lsmkv.shards.remote.objects.retrying import Limits, RetryingObjects

pytest.importorskip("obstore")

ONCE = Limits(attempts=1, timeout=30)
QUICK = Limits(attempts=4, timeout=30, backoff=0.0)


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with an_s3_server() as server:
        yield server


class Place(NamedTuple):
    """An empty bucket behind a proxy."""

    proxy: FaultProxy
    bucket: str

    def open(self, limits: Limits = ONCE, **options: object) -> RetryingObjects:
        url = f"s3://{self.bucket}/some/place"
        return open_objects(url, options=s3_options(self.proxy.url) | options, limits=limits)


@pytest.fixture
def place(server: S3Server) -> Iterator[Place]:
    with FaultProxy(server.host, server.port) as proxy:
        yield Place(proxy, server.new_bucket())


CALLS: dict[str, Callable[[RetryingObjects], object]] = {
    "get": lambda store: store.get("x"),
    "get_range": lambda store: store.get_range("x", 5, 20),
    "put": lambda store: store.put("y", b"1"),
    "put_if_absent": lambda store: store.put_if_absent("z", b"1"),
    "list": lambda store: store.list(""),
    "delete": lambda store: store.delete(["w"]),
}


def failure_of(call: Callable[[], object]) -> OSError:
    try:
        call()
    except OSError as error:
        return error
    raise AssertionError("it did not fail")


every_call = pytest.mark.parametrize("call", CALLS)


@every_call
@pytest.mark.parametrize(
    ("fault", "number"),
    [
        (Cut(), errno.ECONNRESET),
        (LostReply(), errno.ECONNRESET),
        (Status(403), errno.EACCES),
        (Status(401), errno.EACCES),
        (Status(400, "ExpiredToken"), errno.EACCES),
        (Status(403, "ExpiredToken"), errno.EACCES),
        (Status(404, "NoSuchBucket"), errno.ENOENT),
        (Status(400), errno.EINVAL),
        (Status(301, "PermanentRedirect"), errno.EINVAL),
        (Status(405), errno.ENOTSUP),
        (Status(501), errno.ENOTSUP),
        (Status(429), errno.EBUSY),
        (Status(500), errno.EIO),
        (Status(503), errno.EBUSY),
    ],
)
def test_a_failure_is_identified_by_its_errno(
    place: Place, call: str, fault: Fault, number: int
) -> None:
    with place.open() as store:
        store.put("x", b"x" * 1000)
        place.proxy.forget()
        place.proxy.plan(fault)
        error = failure_of(lambda: CALLS[call](store))
        assert error.errno == number
        assert type(error) is type(OSError(number, ""))
        assert error.filename.startswith(f"s3://{place.bucket}/some/place/")
        assert len(place.proxy.requests) == 1  # obstore itself tries nothing again
        if isinstance(fault, Status) and fault.code == "ExpiredToken":
            assert "the credentials have expired" in str(error)
        if isinstance(fault, Status) and fault.code == "NoSuchBucket":
            assert "no such bucket" in str(error)


@pytest.mark.parametrize("status", [409, 412])
def test_a_conflict_means_that_the_name_may_be_taken(place: Place, status: int) -> None:
    with place.open() as store:
        for call in ("put_if_absent", "put"):
            place.proxy.plan(Status(status))
            with pytest.raises(OSError, match=str(status)) as caught:
                CALLS[call](store)
            number = errno.EEXIST if call == "put_if_absent" else errno.EBUSY
            assert caught.value.errno == number


# A whole object that is shorter than the one that was put is what the reply says it is.
@pytest.mark.parametrize(
    ("call", "fault"),
    [
        *((call, Truncate(keep)) for call in ("get", "get_range", "list") for keep in (0, 10)),
        *((call, Shorten(keep)) for call in ("get_range", "list") for keep in (0, 10)),
    ],
)
def test_a_body_that_was_cut_is_a_transient_failure(place: Place, call: str, fault: Fault) -> None:
    with place.open(QUICK) as store:
        store.put("x", bytes(range(250)))
        expected = CALLS[call](store)
        place.proxy.forget()
        place.proxy.plan(fault, fault, methods={"GET"})
        assert CALLS[call](store) == expected
        assert place.proxy.counts["GET"] == 3


def test_a_range_behind_the_end_is_empty(place: Place) -> None:
    with place.open() as store:
        store.put("x", b"12345")
        assert store.get_range("x", 5, 10) == b""
        assert store.get_range("x", 3, 10) == b"45"
        assert place.proxy.counts["GET"] == 2
        assert [r.headers["range"] for r in place.proxy.requests if r.method == "GET"] == [
            "bytes=5-14",
            "bytes=3-12",
        ]


@every_call
def test_a_reply_that_takes_too_long_is_a_transient_failure(place: Place, call: str) -> None:
    with place.open(ONCE._replace(timeout=0.4)) as store:
        place.proxy.plan(Delay(20))
        with pytest.raises(TimeoutError):
            CALLS[call](store)


def test_transient_failures_are_met_by_trying_again(place: Place) -> None:
    with place.open(QUICK._replace(attempts=30)) as store:
        faults = [Cut(), LostReply(), Status(500), Status(503), Truncate(5)]
        place.proxy.fail_randomly(0.3, faults, seed=7)
        for at in range(40):
            store.put(f"a/{at:02}", b"%d" % at * 100)
        for at in range(40):
            assert store.get(f"a/{at:02}") == b"%d" % at * 100
        assert [found.name for found in store.list("a/")] == [f"a/{at:02}" for at in range(40)]
        store.delete(f"a/{at:02}" for at in range(40))
        assert store.list("") == []
        assert place.proxy.faults > 10
        counts = store.counters.snapshot()
        assert counts.total.requests == len(place.proxy.requests)
        assert counts.get.requests + counts.list.requests == place.proxy.counts["GET"]
        assert counts.put.requests == place.proxy.counts["PUT"]
        assert counts.delete.requests == place.proxy.counts["POST"]


def test_a_name_put_by_a_lost_attempt_is_found_taken(place: Place) -> None:
    with place.open(QUICK) as store:
        place.proxy.plan(LostReply(), methods={"PUT"})
        with pytest.raises(FileExistsError):
            store.put_if_absent("v", b"mine")
        assert store.get("v") == b"mine"
        assert place.proxy.counts["PUT"] == 2


def test_one_of_many_callers_puts_though_the_server_checks_first(server: S3Server) -> None:
    with FaultProxy(server.host, server.port, serialize_puts=True) as proxy:
        place = Place(proxy, server.new_bucket())
        proxy.fail_randomly(0.2, [Status(503), Cut()], seed=3)

        def put(who: int) -> bool:
            with place.open(QUICK._replace(attempts=30)) as store:
                try:
                    store.put_if_absent("v", b"%d" % who)
                except FileExistsError:
                    return False
                return True

        with ThreadPoolExecutor(20) as pool:
            won = [who for who, success in enumerate(pool.map(put, range(20))) if success]
        assert len(won) == 1
        with place.open(QUICK._replace(attempts=30)) as store:
            assert store.get("v") == b"%d" % won[0]


def test_connections_are_limited(place: Place) -> None:
    with place.open(ONCE._replace(connections=3)) as store, ThreadPoolExecutor(12) as pool:
        store.put("x", b"1")
        place.proxy.fail_randomly(1.0, [Delay(0.02)])
        assert list(pool.map(lambda _: store.get("x"), range(24))) == [b"1"] * 24
        assert place.proxy.most_at_once <= 3


@pytest.mark.long
def test_long_listings_come_in_pages(server: S3Server, place: Place) -> None:
    connection = http.client.HTTPConnection(server.host, server.port)
    for at in range(1050):
        connection.request("PUT", f"/{place.bucket}/some/place/a/{at:04}", b"1")
        connection.getresponse().read()
    connection.close()
    names = [f"a/{at:04}" for at in range(1050)]
    with place.open(QUICK) as store:
        place.proxy.plan(None, Status(503))  # the second page: the listing starts over
        assert [found.name for found in store.list("a/")] == names
        assert place.proxy.counts["GET"] == 4
        store.delete(names)
        assert place.proxy.counts["POST"] == 2
        assert store.list("") == []
        assert store.counters.snapshot().delete == Requests(requests=2)


def test_markers_of_folders_are_no_objects_of_theirs(server: S3Server, place: Place) -> None:
    connection = http.client.HTTPConnection(server.host, server.port)
    for key in ("some/place/", "some/place/a/"):
        connection.request("PUT", f"/{place.bucket}/{key}", b"")
        connection.getresponse().read()
    connection.close()
    with place.open() as store:
        store.put("a/x", b"1")
        assert [found.name for found in store.list("a/")] == ["a/x"]
        assert "" not in [found.name for found in store.list("")]


def test_a_bucket_that_is_not_there(place: Place) -> None:
    nowhere = Place(place.proxy, "test-there-is-no-such-bucket")
    with nowhere.open() as store:
        for call in CALLS.values():
            with pytest.raises(FileNotFoundError, match="no such bucket"):
                call(store)


def test_missing_credentials(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy stands for the machine's own server of credentials, which has none."""
    place.proxy.fail_randomly(1.0, [Status(404)])
    options = {"endpoint": place.proxy.url, "allow_http": True, "region": "us-east-1"}
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    options["proxy_url"] = place.proxy.url
    store = open_objects("s3://bucket", options=options, limits=ONCE)
    with pytest.raises(PermissionError, match="no credentials were given"):
        store.get("x")


def test_plain_http_is_refused_unless_it_is_allowed(place: Place) -> None:
    with place.open(allow_http=False) as store:
        with pytest.raises(OSError, match="allow_http") as caught:
            store.get("x")
        assert caught.value.errno == errno.EINVAL


def test_a_web_server_serves_objects(place: Place) -> None:
    options = {"default_headers": {"authorization": "some token"}}
    with open_objects(f"{place.proxy.url}/{place.bucket}/some/place/", options=options) as web:
        web.put("a/x", b"12345")
        assert web.get("a/x") == b"12345"
        assert web.get_range("a/x", 1, 2) == b"23"
        assert web.get_range("a/x", 5, 2) == b""
        with pytest.raises(FileNotFoundError):
            web.get("a/nix")
        for call in (lambda: web.list(""), lambda: web.put_if_absent("y", b"")):
            assert failure_of(call).errno == errno.ENOTSUP


@pytest.mark.parametrize("options", [{"nonsense": 1}, {"timeout": object()}])
def test_options_that_obstore_does_not_know(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="obstore cannot open s3://bucket"):
        open_objects("s3://bucket", options=options)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_process_is_refused_instead_of_waiting_forever(place: Place) -> None:
    code = """
        import os, sys, warnings
        from lsmkv.shards.remote.objects.open import open_objects

        warnings.simplefilter("ignore")
        url, endpoint = sys.argv[1:]
        keys = dict(access_key_id="a", secret_access_key="b", endpoint=endpoint, allow_http=True)
        open_objects(url, options=keys).put("x", b"1")
        pid = os.fork()
        if pid == 0:
            try:
                open_objects(url, options=keys).get("x")
            except OSError as error:
                print(error.strerror, flush=True)
            os._exit(0)
        os.waitpid(pid, 0)
    """
    ran = run_python(
        "-c", textwrap.dedent(code), f"s3://{place.bucket}", place.proxy.url, check=True, timeout=60
    )
    assert "before this process was forked" in ran.stdout

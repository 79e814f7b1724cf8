"""The cache backend for Django, by what Django's documentation says of backends."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from plain_values import PLAIN
from processes import python, start
from still_clocks import StillClock
from threads import run_threads

import lsmkv
from lsmkv.cache.codecs import DefaultCodec

pytest.importorskip("django")

import django_site
from django.core.cache import CacheHandler
from django.core.cache.backends.base import InvalidCacheBackendError
from django.http import HttpResponse
from django.middleware.cache import CacheMiddleware
from django.test import RequestFactory

import lsmkv.django

BACKEND = "lsmkv.django.LsmkvCache"


@pytest.fixture(scope="module", autouse=True)
def django_settings() -> None:
    django_site.configure()


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
def handler(tmp_path: Path, clock: StillClock) -> Iterator[Any]:
    """Aliases of backends, as ``django.core.cache.caches``; one directory is one cache."""
    where = str(tmp_path / "cache")
    options = {"clock": clock}
    handler = CacheHandler(
        {
            "default": {"BACKEND": BACKEND, "LOCATION": where, "TIMEOUT": 300, "OPTIONS": options},
            "prefixed": {
                **{"BACKEND": BACKEND, "LOCATION": where, "KEY_PREFIX": "p"},
                "OPTIONS": options,
            },
            "second": {"BACKEND": BACKEND, "LOCATION": where, "VERSION": 2},
            "forever": {"BACKEND": BACKEND, "LOCATION": where, "TIMEOUT": None},
            "never": {"BACKEND": BACKEND, "LOCATION": where, "TIMEOUT": 0},
            "plain": {
                "BACKEND": BACKEND,
                "LOCATION": where + "-plain",
                "OPTIONS": {
                    "codec": "lsmkv.cache.codecs.DefaultCodec",
                    "size_limit": 1 << 20,
                    "MAX_ENTRIES": 9,
                    "shared": False,
                },
            },
        }
    )
    yield handler
    for cache in lsmkv.django._caches.values():
        cache.close()
    lsmkv.django._caches.clear()


@pytest.fixture
def cache(handler: Any) -> Any:
    return handler["default"]


def test_set_and_get(cache: Any) -> None:
    cache.set("my_key", "hello, world!", 30)
    assert cache.get("my_key") == "hello, world!"
    assert cache.get("other") is None
    assert cache.get("other", "has expired") == "has expired"


def test_a_none_is_told_from_a_missing_key(cache: Any) -> None:
    sentinel = object()
    cache.set("none", None)
    assert cache.get("none", sentinel) is None
    assert cache.get("missing", sentinel) is sentinel


def test_add_stores_only_what_is_not_there(cache: Any) -> None:
    assert cache.add("k", "first") is True
    assert cache.add("k", "second") is False
    assert cache.get("k") == "first"
    assert cache.add("zero", 1, timeout=0) is True
    assert cache.get("zero") is None


def test_get_or_set(cache: Any) -> None:
    assert cache.get_or_set("k", "value", 100) == "value"
    assert cache.get_or_set("k", lambda: "another") == "value"
    assert cache.get_or_set("t", lambda: "called") == "called"
    assert cache.get_or_set("none", None) is None


def test_many(cache: Any) -> None:
    assert cache.set_many({"a": 1, "b": 2, "c": 3}) == []
    assert cache.get_many(["a", "b", "x"]) == {"a": 1, "b": 2}
    cache.delete_many(["a", "b", "x"])
    assert cache.get_many(["a", "b", "c"]) == {"c": 3}


def test_delete_says_whether_it_was_there(cache: Any) -> None:
    cache.set("k", 1)
    assert cache.delete("k") is True
    assert cache.delete("k") is False


def test_clear(cache: Any, handler: Any) -> None:
    cache.set("k", 1)
    handler["prefixed"].set("k", 2)
    cache.clear()
    assert cache.get("k") is None
    assert handler["prefixed"].get("k") is None


def test_touch(cache: Any, clock: StillClock) -> None:
    cache.set("k", 1, 1)
    assert cache.touch("k", 100) is True
    clock.now += 99
    assert cache.get("k") == 1
    assert cache.touch("k", 1) is True
    clock.now += 1
    assert cache.get("k") is None
    assert cache.touch("k") is False
    cache.set("k", 1)
    assert cache.touch("k", 0) is True
    assert cache.get("k") is None


def test_incr_and_decr(cache: Any) -> None:
    cache.set("num", 1)
    assert cache.incr("num") == 2
    assert cache.incr("num", 10) == 12
    assert cache.decr("num") == 11
    assert cache.decr("num", 5) == 6
    with pytest.raises(ValueError, match="missing"):
        cache.incr("missing")
    with pytest.raises(ValueError, match="missing"):
        cache.decr("missing")
    cache.set("text", "x")
    with pytest.raises(TypeError):
        cache.incr("text")


def test_increments_of_threads_are_not_lost(cache: Any) -> None:
    cache.set("n", 0)
    assert run_threads(*[lambda: [cache.incr("n") for _ in range(25)]] * 4) == []
    assert cache.get("n") == 100


def test_has_key_and_in(cache: Any) -> None:
    cache.set("k", None)
    assert cache.has_key("k")
    assert "k" in cache
    assert "x" not in cache


def test_timeouts(cache: Any, handler: Any, clock: StillClock) -> None:
    cache.set("soon", 1, 0.5)
    cache.set("forever", 1, None)
    cache.set("never", 1, 0)
    cache.set("k", 1)
    cache.set("k", 2, -1)
    clock.now += 1
    assert [cache.get(key) for key in ("soon", "forever", "never", "k")] == [None, 1, None, None]
    assert cache.cache.get(":1:forever", expire_time=True) == (1, None)
    handler["forever"].set("default", 1)
    assert cache.cache.get(":1:default", expire_time=True) == (1, None)
    handler["never"].set("default", 2)
    assert cache.get("default") is None
    cache.set("default", 3)
    assert cache.cache.get(":1:default", expire_time=True) == (3, clock.now + 300)


def test_prefixes(cache: Any, handler: Any) -> None:
    cache.set("k", 1)
    assert handler["prefixed"].get("k") is None
    handler["prefixed"].set("k", 2)
    assert (cache.get("k"), handler["prefixed"].get("k")) == (1, 2)


def test_versions(cache: Any, handler: Any) -> None:
    cache.set("k", "one")
    cache.set("k", "two", version=2)
    assert cache.get("k") == "one"
    assert cache.get("k", version=2) == "two"
    assert handler["second"].get("k") == "two"
    assert handler["second"].get("k", version=1) == "one"
    assert cache.delete("k", version=2)
    assert cache.incr_version("k") == 2
    assert cache.get("k") is None
    assert cache.get("k", version=2) == "one"
    assert handler["second"].decr_version("k") == 1
    assert cache.get("k") == "one"
    with pytest.raises(ValueError, match="not found"):
        cache.incr_version("missing")


def test_a_key_function(tmp_path: Path) -> None:
    backend = lsmkv.django.LsmkvCache(
        str(tmp_path / "f"),
        {"KEY_FUNCTION": lambda key, prefix, version: f"<{key}>", "OPTIONS": {"shared": False}},
    )
    backend.set("k", 1)
    assert list(backend.cache) == ["<k>"]
    backend.cache.close()


def test_values_of_many_types(cache: Any) -> None:
    values = {
        "string": "this is a string",
        "int": 42,
        "bool": True,
        "list": [1, 2, 3, 4],
        "tuple": (1, 2, 3, 4),
        "dict": {"A": 1, "B": 2},
        "set": {1, 2},
        "date": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
        "bytes": bytes(range(256)),
    }
    cache.set_many(values)
    for key, value in values.items():
        assert cache.get(key) == value
        assert type(cache.get(key)) is type(value)


def test_keys_and_values_in_unicode(cache: Any) -> None:
    cache.set_many({"ascii": "ascii_value", "ключ": "Iñtërnâtiônàlizætiøn", "": "empty"})
    assert cache.get("ключ") == "Iñtërnâtiônàlizætiøn"
    assert cache.get("") == "empty"


def test_a_value_is_a_copy(cache: Any) -> None:
    value = [1]
    cache.set("k", value)
    value.append(2)
    assert cache.get("k") == [1]
    cache.get("k").append(3)
    assert cache.get("k") == [1]


def test_close_after_a_request_keeps_the_cache_open(cache: Any, handler: Any) -> None:
    cache.set("k", 1)
    handler.close_all()
    assert cache.get("k") == 1


def test_all_threads_have_one_cache(handler: Any) -> None:
    found: list[Any] = []
    assert run_threads(*[lambda: found.append(handler["default"])] * 2) == []
    assert found[0] is not found[1]
    assert found[0].cache is found[1].cache is handler["prefixed"].cache


def test_values_are_signed(cache: Any, clock: StillClock) -> None:
    cache.set("k", {1})
    codec = lsmkv.cache.codecs.PickleCodec(key=b"x")
    other = lsmkv.Cache(cache.cache.directory, codec=codec, clock=clock)
    with pytest.raises(lsmkv.CorruptionError, match="signature"):
        other.get(":1:k")
    other.set(":1:forged", {2})
    with pytest.raises(lsmkv.CorruptionError, match="signature"):
        cache.get("forged")
    other.close()


def test_options_and_another_codec(handler: Any) -> None:
    plain = handler["plain"]
    assert isinstance(plain.cache.codec, DefaultCodec)
    plain.set("plain", PLAIN)
    assert plain.get("plain") == PLAIN
    assert plain.cache.size_limit == 1 << 20
    plain.set("k", (1, "x"))
    assert plain.get("k") == (1, "x")
    with pytest.raises(lsmkv.UnsupportedValueError):
        plain.set("k", object())


def test_tags_pop_cull_and_memoize(cache: Any) -> None:
    cache.set("a", 1, tag="t")
    cache.add("b", 2, tag="t")
    cache.set("c", 3)
    assert cache.evict("t") == 2
    assert cache.pop("c") == 3
    assert cache.pop("c", "none") == "none"
    calls: list[int] = []

    @cache.memoize("f", timeout=60, tag="results", lock=True)
    def function(number: int) -> int:
        calls.append(number)
        return number + 1

    assert function(1) == function(1) == 2
    assert calls == [1]
    assert cache.evict("results") == 1
    with cache.transact():
        cache.set("k", 1)
    assert cache.cull() == 0


def test_what_diskcache_adds(cache: Any, clock: StillClock) -> None:
    assert cache.directory == cache.cache.directory
    assert cache.set("f", io.BytesIO(b"bytes"), read=True, tag="t") is True
    assert cache.add("g", io.BytesIO(bytes(100_000)), 5, read=True) is True
    with cache.read("f") as file, cache.get("g", read=True) as other:
        assert (file.read(), len(other.read())) == (b"bytes", 100_000)
    with pytest.raises(KeyError):
        cache.read("none")
    assert cache.get("f", tag=True, expire_time=True) == (b"bytes", clock.now + 300, "t")
    assert cache.pop("f", tag=True, expire_time=True) == (b"bytes", clock.now + 300, "t")
    assert (cache.incr("n", 5, default=1), cache.decr("m", 2, default=0)) == (6, -2)
    clock.now += 6
    assert cache.expire() == 1
    cache.stats()
    cache.get("n"), cache.get("none")
    assert cache.stats(reset=True) == (1, 1)
    assert cache.clear() == 2


def test_results_have_a_prefix_and_a_version(cache: Any, handler: Any) -> None:
    calls: list[int] = []

    def function(number: int) -> int:
        calls.append(number)
        return number

    plain, typed = cache.memoize("f")(function), cache.memoize("f", typed=True)(function)
    later, prefixed = cache.memoize("f", version=2)(function), handler["prefixed"].memoize("f")
    for one in (plain, later, prefixed(function), typed):
        assert one(3) == one(3) == 3
    assert calls == [3, 3, 3, 3]
    assert cache.delete(plain.__cache_key__(3)) is True
    assert cache.get(later.__cache_key__(3), version=2) == 3
    plain(3)
    assert len(calls) == 5
    assert (":1:f", (3,), ()) in cache.cache
    with pytest.raises(TypeError, match="parentheses"):
        cache.memoize(function)


def test_keys_that_were_not_stored(cache: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "set", lambda key, *_: key != "b")
    assert cache.set_many({"a": 1, "b": 2}) == ["b"]


def test_the_asynchronous_methods(cache: Any) -> None:
    async def main() -> list[Any]:
        await cache.aset("k", 1)
        await cache.aset_many({"a": 1, "b": 2})
        return [
            await cache.aget("k"),
            await cache.aincr("k"),
            await cache.aadd("k", 3),
            await cache.aget_many(["a", "b"]),
            await cache.ahas_key("x"),
            await cache.adelete("k"),
        ]

    assert asyncio.run(main()) == [1, 2, False, {"a": 1, "b": 2}, False, True]


def test_pages_are_cached(handler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import django.core.cache
    import django.middleware.cache
    import django.utils.cache

    for module in (django.core.cache, django.middleware.cache, django.utils.cache):
        monkeypatch.setattr(module, "caches", handler, raising=False)
    views: list[str] = []

    def view(request: Any) -> HttpResponse:
        views.append(request.path)
        return HttpResponse(f"page {len(views)}", headers={"X-Own": "yes"})

    middleware = CacheMiddleware(view, cache_timeout=60, key_prefix="pages")
    first = middleware(RequestFactory().get("/a"))
    again = middleware(RequestFactory().get("/a"))
    assert first.content == again.content == b"page 1"
    assert again.headers["X-Own"] == "yes"
    assert middleware(RequestFactory().get("/b")).content == b"page 2"
    assert views == ["/a", "/b"]


def test_other_processes_see_it(cache: Any, tmp_path: Path) -> None:
    cache.set("k", {1, 2}, timeout=None)
    script = f"""
import sys
sys.path[:] = {sys.path!r}
from django.conf import settings
settings.configure(SECRET_KEY="a secret of the tests", CACHES={{"default": {{
    "BACKEND": {BACKEND!r}, "LOCATION": {str(tmp_path / "cache")!r}}}}})
from django.core.cache import cache
print(cache.get("k"), cache.incr("n") if "n" in cache else cache.add("n", 7))
"""
    assert python(script).stdout.split("\n")[0] == "{1, 2} True"
    assert cache.get("n") == 7


def test_processes_lose_no_increment_and_move_each_key_once(cache: Any, tmp_path: Path) -> None:
    keys = [f"k{number}" for number in range(40)]
    for key in keys:
        cache.set(key, 0, timeout=None)
    script = f"""
import asyncio, sys
sys.path[:] = {sys.path!r}
from django.conf import settings
settings.configure(SECRET_KEY="a secret of the tests", CACHES={{"default": {{
    "BACKEND": {BACKEND!r}, "LOCATION": {str(tmp_path / "cache")!r}}}}})
from django.core.cache import cache
cache.get("k0")
print("ready", flush=True)
input()

async def count():
    for key in {keys!r}:
        await cache.aincr(key, 2)
        await cache.adecr(key)

asyncio.run(count())
print("counted", flush=True)
for move in (cache.incr_version, lambda key: asyncio.run(cache.aincr_version(key, 1, 2))):
    input()
    moved = 0
    for key in {keys!r}:
        try:
            move(key)
            moved += 1
        except ValueError:
            pass
    print(moved, flush=True)
"""
    with contextlib.ExitStack() as ending:
        others = [start(script) for _ in range(4)]
        for one in others:
            ending.enter_context(one)
            ending.callback(one.kill)

        def said() -> list[str]:
            return [one.stdout.readline().decode().strip() for one in others]

        def go() -> None:
            for one in others:
                one.stdin.write(b"\n")
                one.stdin.flush()

        assert said() == ["ready"] * 4
        go()
        assert said() == ["counted"] * 4
        for _ in range(2):
            go()
            assert sum(map(int, said())) == len(keys)
    assert cache.get_many(keys, version=3) == dict.fromkeys(keys, 4)
    assert cache.get_many(keys) == {}


def test_an_unknown_option_is_an_error(tmp_path: Path) -> None:
    handler = CacheHandler(
        {
            "default": {
                "BACKEND": BACKEND,
                "LOCATION": str(tmp_path / "c"),
                "OPTIONS": {"siez_limit": 1},
            }
        }
    )
    with pytest.raises((TypeError, InvalidCacheBackendError)):
        handler["default"]


def test_without_django_the_error_says_what_to_install() -> None:
    script = """
import sys
sys.modules["django"] = None
try:
    import lsmkv.django
except ImportError as error:
    print(error)
"""
    assert python(script).stdout == "lsmkv.django needs Django: pip install django\n"

"""Test Python libraries with ``lsmkv serve``: a table of ``docs/reference/redis-commands.md``.

    python tests/redis/libraries.py PORT [PAGE]

tries each library that is installed, in a process of its own, against the server at a port of this
machine, and prints the table, or writes it into the page.  Beside a Redis at that port every row
says yes: that shows that a trial is one.  The server's data is deleted.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PORT = int(sys.argv[1]) if __name__ == "__main__" else 6379
URL = f"redis://127.0.0.1:{PORT}/0"
_SECONDS = 60
_MARKS = ("<!-- libraries -->\n\n", "<!-- end libraries -->")
_MISSING = re.compile(r"unknown (?:sub)?command '([^']+)'")

TRIALS: dict[str, tuple[str, Callable[[], None]]] = {}


def trial(package: str, what: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Register a function as the trial of what a library does: it raises what is wrong."""

    def register(run: Callable[[], None]) -> Callable[[], None]:
        TRIALS[f"{package}: {what}"] = package, run
        return run

    return register


@trial("redis", "commands, pipelines, transactions, messages")
def redis_py() -> None:
    import redis

    for protocol in (2, 3):
        with redis.Redis(port=PORT, protocol=protocol, decode_responses=True) as client:
            assert client.set("k", "v", ex=100)
            assert client.get("k") == "v"
            client.hset("h", mapping={"a": "1", "b": "2"})
            assert client.hgetall("h") == {"a": "1", "b": "2"}
            client.zadd("z", {"x": 1.5, "y": 2})
            assert [one[0] for one in client.zrange("z", 0, -1, withscores=True)] == ["x", "y"]
            assert set(client.scan_iter("*")) >= {"k", "h", "z"}
            with client.pipeline() as pipe:
                pipe.watch("k")
                pipe.multi()
                pipe.incr("n").lpush("l", "1")
                pipe.execute()
            with client.pubsub(ignore_subscribe_messages=True) as listener:
                listener.subscribe("c")
                listener.get_message(timeout=1)
                client.publish("c", "hi")
                message = listener.get_message(timeout=5) or listener.get_message(timeout=5)
                assert message is not None
                assert message["data"] == "hi"
            assert client.info()["redis_version"]
            assert client.client_list()[0]["tot-mem"]


@trial("redis", "redis.asyncio")
def redis_asyncio() -> None:
    from redis import asyncio as aioredis

    async def main() -> None:
        async with aioredis.Redis(port=PORT) as client:
            await client.set("k", "v")
            assert await client.get("k") == b"v"
            async with client.pipeline(transaction=True) as pipe:
                assert len(await pipe.incr("n").incr("n").execute()) == 2
            await client.rpush("l", "x")
            assert await client.blpop(["l"], timeout=1)

    asyncio.run(main())


@trial("redis", "streams and consumer groups")
def redis_streams() -> None:
    import redis

    for protocol in (2, 3):
        with redis.Redis(port=PORT, protocol=protocol, decode_responses=True) as client:
            client.delete("stream")
            ids = [client.xadd("stream", {"n": str(number)}) for number in range(3)]
            client.xgroup_create("stream", "group", id="0")
            got = client.xreadgroup("group", "one", {"stream": ">"}, count=2)
            assert str(ids[0]) in str(got)
            assert client.xack("stream", "group", ids[0]) == 1
            assert client.xpending("stream", "group")["pending"] == 1
            claimed = client.xautoclaim("stream", "group", "two", min_idle_time=0)
            assert [one[0] for one in claimed[1]] == [ids[1]]
            assert client.xinfo_stream("stream")["length"] == 3
            assert client.xtrim("stream", maxlen=1, approximate=False) == 2


@trial("redis", "Lock")
def redis_lock() -> None:
    import redis

    with redis.Redis(port=PORT) as client, client.lock("lock", timeout=5):
        assert client.exists("lock")


def _django(backend: str) -> object:
    from django.conf import settings
    from django.core.cache import cache

    settings.configure(CACHES={"default": {"BACKEND": backend, "LOCATION": URL}})
    assert cache.add("k", 1)
    cache.set_many({"a": [1, 2], "b": "x"}, timeout=50)
    assert cache.get_many(["a", "b"]) == {"a": [1, 2], "b": "x"}
    assert cache.touch("a", 100)
    assert cache.delete("b")
    assert cache.get_or_set("c", lambda: 5) == 5
    return cache


@trial("Django", "its cache, `RedisCache`")
def django_cache() -> None:
    cache = _django("django.core.cache.backends.redis.RedisCache")
    assert cache.incr("k") == 2
    cache.clear()


@trial("django-redis", "get, set, delete_pattern")
def django_redis() -> None:
    cache = _django("django_redis.cache.RedisCache")
    assert cache.delete_pattern("*") >= 2


@trial("django-redis", "incr")
def django_redis_incr() -> None:
    cache = _django("django_redis.cache.RedisCache")
    assert cache.incr("k") == 2


@trial("celery", "broker and result backend")
def celery_worker() -> None:
    import celery
    from celery.contrib.testing.worker import start_worker

    app = celery.Celery("tried", broker=URL, backend=URL)
    app.conf.update(broker_connection_retry_on_startup=True, worker_hijack_root_logger=False)

    @app.task(name="tried.add")
    def add(one: int, other: int) -> int:
        return one + other

    with start_worker(app, perform_ping_check=False, pool="solo", loglevel="INFO"):
        assert add.delay(2, 3).get(timeout=20) == 5
        delayed = add.apply_async((1, 1), countdown=1)
        assert delayed.get(timeout=20) == 2


@trial("rq", "a worker")
def rq_worker() -> None:
    import operator

    import redis
    from rq import Queue, SimpleWorker

    client = redis.Redis(port=PORT)
    queue = Queue(connection=client)
    job = queue.enqueue(operator.add, 2, 3)
    bad = queue.enqueue(operator.truediv, 1, 0)
    SimpleWorker([queue], connection=client).work(burst=True)
    assert job.get_status(refresh=True).value == "finished"
    assert bad.get_status(refresh=True).value == "failed"


@trial("huey", "RedisHuey")
def huey_worker() -> None:
    from huey import RedisHuey

    huey = RedisHuey("tried", url=URL)

    @huey.task()
    def add(one: int, other: int) -> int:
        return one + other

    later = add.schedule((1, 1), delay=1)
    result = add(2, 3)
    consumer = huey.create_consumer(workers=1, periodic=False, scheduler_interval=1)
    consumer.start()
    try:
        assert result.get(blocking=True, timeout=20) == 5
        assert later.get(blocking=True, timeout=20) == 2
    finally:
        consumer.stop()


@trial("dramatiq", "RedisBroker")
def dramatiq_worker() -> None:
    import threading

    import dramatiq
    from dramatiq.brokers.redis import RedisBroker

    broker = RedisBroker(url=URL)
    dramatiq.set_broker(broker)
    done = threading.Event()

    @dramatiq.actor
    def work() -> None:
        done.set()

    worker = dramatiq.Worker(broker, worker_timeout=100)
    worker.start()
    try:
        work.send()
        assert done.wait(20)
    finally:
        worker.stop()


@trial("saq", "a worker")
def saq_worker() -> None:
    from saq import Queue, Worker

    async def add(context: object, *, one: int, other: int) -> int:
        return one + other

    async def main() -> None:
        queue = Queue.from_url(URL)
        await queue.connect()
        worker = Worker(queue, functions=[("add", add)])
        task = asyncio.create_task(worker.start())
        assert await queue.apply("add", one=2, other=3, timeout=20) == 5
        await worker.stop()
        task.cancel()

    asyncio.run(main())


@trial("limits", "fixed and moving windows")
def limits_windows() -> None:
    from limits import parse, storage, strategies

    kept = storage.storage_from_string(URL)
    for strategy in (strategies.FixedWindowRateLimiter, strategies.MovingWindowRateLimiter):
        limiter = strategy(kept)
        limit = parse("2/minute")
        assert [limiter.hit(limit, strategy.__name__) for _ in range(3)] == [True, True, False]


@trial("Flask-Limiter", "limits on requests")
def flask_limiter() -> None:
    import flask
    from flask_limiter import Limiter

    app = flask.Flask("tried")
    limiter = Limiter(lambda: "someone", app=app, storage_uri=URL)

    @app.get("/")
    @limiter.limit("1/minute")
    def page() -> str:
        return "hi"

    client = app.test_client()
    codes = [client.get("/").status_code for _ in range(2)]
    assert codes == [200, 429], limiter.storage.incr("k", 1)


@trial("Flask-Caching", "RedisCache")
def flask_caching() -> None:
    import flask
    from flask_caching import Cache

    app = flask.Flask("tried")
    cache = Cache(app, config={"CACHE_TYPE": "RedisCache", "CACHE_REDIS_URL": URL})
    with app.app_context():
        cache.set("k", [1], timeout=50)
        assert cache.get("k") == [1]
        assert cache.cache.inc("n", 2) == 2
        cache.clear()


@trial("Flask-Session", "sessions")
def flask_session() -> None:
    import flask
    import redis
    from flask_session import Session

    app = flask.Flask("tried")
    app.config.update(SESSION_TYPE="redis", SESSION_REDIS=redis.Redis(port=PORT))
    Session(app)

    @app.get("/")
    def page() -> str:
        flask.session["n"] = flask.session.get("n", 0) + 1
        return str(flask.session["n"])

    client = app.test_client()
    assert [client.get("/").text for _ in range(2)] == ["1", "2"]


@trial("arq", "a worker")
def arq_worker() -> None:
    from arq import create_pool
    from arq.connections import RedisSettings
    from arq.worker import Worker, func

    async def add(context: object, one: int, other: int) -> int:
        return one + other

    async def main() -> None:
        settings = RedisSettings(port=PORT)
        pool = await create_pool(settings)
        job = await pool.enqueue_job("add", 2, 3)
        assert job is not None
        worker = Worker(
            [func(add, name="add")], redis_settings=settings, burst=True, handle_signals=False
        )
        await worker.main()
        assert await job.result(timeout=10) == 5

    asyncio.run(main())


def _tasks(make_broker: Callable[[], Any], count: int) -> None:
    """Let a worker of taskiq's add numbers."""
    from taskiq.api import run_receiver_task
    from taskiq_redis import RedisAsyncResultBackend

    async def main() -> None:
        broker = make_broker().with_result_backend(RedisAsyncResultBackend(URL))

        @broker.task(task_name="tried:add")
        async def add(one: int, other: int) -> int:
            return one + other

        broker.is_worker_process = True
        await broker.startup()
        receiver = asyncio.create_task(run_receiver_task(broker))
        tasks = [await add.kiq(number, 3) for number in range(count)]
        results = [await task.wait_result(timeout=20) for task in tasks]
        assert [result.return_value for result in results] == list(range(3, 3 + count))
        receiver.cancel()
        await asyncio.gather(receiver, return_exceptions=True)
        await broker.shutdown()

    asyncio.run(main())


@trial("taskiq-redis", "ListQueueBroker with results")
def taskiq_list() -> None:
    from taskiq_redis import ListQueueBroker

    _tasks(lambda: ListQueueBroker(URL), 1)


@trial("taskiq-redis", "RedisStreamBroker")
def taskiq_stream() -> None:
    from taskiq_redis import RedisStreamBroker

    _tasks(lambda: RedisStreamBroker(URL), 20)


@trial("channels-redis", "RedisChannelLayer")
def channels_layer() -> None:
    from channels_redis.core import RedisChannelLayer

    _channels(RedisChannelLayer)


@trial("channels-redis", "RedisPubSubChannelLayer")
def channels_pubsub() -> None:
    from channels_redis.pubsub import RedisPubSubChannelLayer

    _channels(RedisPubSubChannelLayer)


def _channels(layer_class: Callable[..., object]) -> None:
    async def main() -> None:
        layer = layer_class(hosts=[URL])
        channel = await layer.new_channel()
        await layer.group_add("group", channel)
        await layer.group_send("group", {"type": "hi"})
        message = await asyncio.wait_for(layer.receive(channel), 10)
        assert message["type"] == "hi"

    asyncio.run(main())


@trial("dogpile.cache", "regions and their locks")
def dogpile() -> None:
    from dogpile.cache import make_region

    for locks in (False, True):
        region = make_region().configure(
            "dogpile.cache.redis",
            arguments={"port": PORT, "distributed_lock": locks, "thread_local_lock": False},
        )
        assert region.get_or_create(f"k{locks}", lambda: 5) == 5


@trial("aiocache", "RedisCache")
def aiocache_cache() -> None:
    from aiocache import Cache

    async def main() -> None:
        cache = Cache(Cache.REDIS, endpoint="127.0.0.1", port=PORT)
        await cache.set("k", "v", ttl=50)
        assert await cache.get("k") == "v"
        assert await cache.increment("n", 2) == 2
        await cache.multi_set([("a", "1"), ("b", "2")])
        assert await cache.multi_get(["a", "b"]) == ["1", "2"]
        await cache.delete("k")
        await cache.close()

    asyncio.run(main())


@trial("coredis", "commands, pipelines")
def coredis_client() -> None:
    import coredis

    async def main() -> None:
        client = coredis.Redis(port=PORT)
        async with client:
            await client.set("k", "v")
            assert await client.get("k") == b"v"
            async with client.pipeline(transaction=True) as pipe:
                pipe.incr("n")
                pipe.incr("n")

    asyncio.run(main())


@trial("walrus", "Hash, List, ZSet, cache")
def walrus_objects() -> None:
    from walrus import Database

    database = Database(port=PORT)
    made = database.Hash("hash")
    made.update(a="1")
    assert made["a"] == b"1"
    database.List("list").extend(["x", "y"])
    database.ZSet("zset").add({"m": 1})
    assert len(database.List("list")) == 2
    cache = database.cache()
    cache.set("k", 5, timeout=50)
    assert cache.get("k") == 5


@trial("walrus", "Stream, ConsumerGroup, TimeSeries")
def walrus_streams() -> None:
    from walrus import Database

    database = Database(port=PORT)
    stream = database.Stream("stream")
    ids = [stream.add({"n": str(number)}) for number in range(5)]
    assert len(stream) == 5
    assert stream[ids[1]][0] == ids[1]
    group = database.consumer_group("group", ["stream"])
    group.create()
    group.set_id("0")
    ((_, entries),) = group.read(count=3)
    assert [id_ for id_, _ in entries] == ids[:3]
    assert group.stream.ack(*ids[:2]) == 2
    assert [one["message_id"] for one in group.stream.pending()] == [ids[2]]
    series = database.time_series("series", ["a", "b"])
    series.create()
    series.a.add({"k": "v"})
    assert len(series.read()) == 1


@trial("pottery", "RedisDict, RedisList")
def pottery_objects() -> None:
    import redis
    from pottery import RedisDict, RedisList

    client = redis.Redis(port=PORT)
    mapping = RedisDict({"a": 1}, redis=client, key="mapping")
    mapping["b"] = [2]
    assert dict(mapping) == {"a": 1, "b": [2]}
    values = RedisList([1, 2], redis=client, key="values")
    values.append(3)
    assert list(values) == [1, 2, 3]


@trial("bullmq", "a queue and a worker")
def bullmq_worker() -> None:
    from bullmq import Queue, Worker

    async def main() -> None:
        queue = Queue("tried", {"connection": URL})
        done = asyncio.Event()

        async def process(job: object, token: str) -> int:
            done.set()
            return 5

        await queue.add("job", {"n": 1})
        worker = Worker("tried", process, {"connection": URL})
        await asyncio.wait_for(done.wait(), 20)
        await worker.close()
        await queue.close()

    asyncio.run(main())


def tried(name: str) -> str:
    """What a trial says: nothing, or what is missing."""
    with tempfile.TemporaryFile("w+") as output:
        command = [sys.executable, str(Path(__file__).resolve()), str(PORT), "--only", name]
        try:
            done = subprocess.run(
                command, check=False, stdout=output, stderr=subprocess.STDOUT, timeout=_SECONDS
            )
            failed = done.returncode != 0
        except subprocess.TimeoutExpired:
            failed = True
        output.seek(0)
        text = output.read()
    if not failed:
        return ""
    missing = sorted({word.upper() for word in _MISSING.findall(text)})
    last = text.strip().splitlines()[-1:] or ["no end"]
    return f"needs {', '.join(missing)}" if missing else f"fails: {last[0][:150]}"


def table() -> list[str]:
    """The table's lines, of what is installed."""
    import redis

    rows = ["| library | what was tried | works |", "|---|---|---|"]
    for name, (package, _) in TRIALS.items():
        try:
            found = f"{package} {version(package)}"
        except PackageNotFoundError:
            continue
        with redis.Redis(port=PORT) as client:
            client.flushall()
        problem = tried(name)
        what = name.partition(": ")[2]
        rows.append(f"| {found} | {what} | {'no: ' + problem if problem else 'yes'} |")
        print(rows[-1], flush=True)
    return rows


def main(words: list[str]) -> None:
    if "--only" in words:
        TRIALS[words[words.index("--only") + 1]][1]()
        return
    lines = table()
    if len(words) > 1:
        page = Path(words[1])
        before, mark, rest = page.read_text().partition(_MARKS[0])
        _, end, after = rest.partition(_MARKS[1])
        assert mark
        assert end
        page.write_text(before + mark + "\n".join(lines) + "\n\n" + end + after)


if __name__ == "__main__":
    main(sys.argv[1:])

"""A process of ``queue_kills.py``: ``python queue_child.py LIBRARY ROLE PORT JOURNAL``.

Its role is to put jobs into a queue, to work on them, or to ask the library's own recovery for the
jobs of workers that are gone, where nothing else does.  With a lock, a limit or a cache all
processes do the same.  What happens is appended to the journal, a line for each event, which the
process's death does not tear:

    ask JOB     about to be put into the queue
    kept JOB    the library says that it is there
    doubt JOB   the library raised: it may be there, or not
    took JOB    a worker has it from the queue (RQ's, which does much before it begins)
    run JOB     a worker begins with it
    ran JOB     and is done
    gone JOB    the server has acknowledged that it is out of the queue
    late JOB    instead of ``ran``: the lock had expired by then
    lost JOB    the server has not, or no longer, what it had acknowledged

``queue_child.js`` is the same for libraries in JavaScript.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

_BACKLOG = 60
"""Jobs that wait, at the most: none of them shall wait for longer than a library lets it."""
_LONGEST = 0.02
"""Seconds that a job takes, at the most."""
PATIENCE = 6
"""Seconds after which a library gives a job to another worker, where that can be set."""
_HELD = 3.0
"""Seconds that a lock is held, at the most: long enough for a server to die and return."""
_EXPIRY = 10.0
"""Seconds after which a lock expires."""
LIMIT = 20
"""Hits that a limit allows to each name."""
ARQ = Path(sys.prefix, "arq")
"""Where arq is installed, which wants another redis-py than the others."""


class Journal:
    """The lines of all processes, in the order in which they were written.

    Each ends with the id of the process that made the journal, and not of one that it has forked.
    """

    def __init__(self, path: Path | str) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._writer = os.getpid()

    def write(self, event: str, job: str) -> None:
        os.write(self._descriptor, f"{event} {job} {self._writer}\n".encode())

    def close(self) -> None:
        os.close(self._descriptor)


journal: Journal


def work_on(job: str) -> None:
    """What a job does, in each library."""
    journal.write("run", job)
    time.sleep(random.random() * _LONGEST)
    journal.write("ran", job)


def produce(put: Callable[[str], object], waiting: Callable[[], int]) -> None:
    """Put one job after the other into the queue, until the process is ended."""
    for number in count():
        job = f"{os.getpid()}-{number}"
        journal.write("ask", job)
        try:
            put(job)
        except Exception as error:  # each library has its own
            journal.write("doubt", job)
            sys.stderr.write(f"{job}: {error}\n")
            time.sleep(0.05)
        else:
            journal.write("kept", job)
        while number % 5 == 0:
            try:
                if waiting() < _BACKLOG:
                    break
            except Exception:
                pass
            time.sleep(0.02)


def client(port: int) -> Any:
    """A client that tries again, as they do by default."""
    import redis

    return redis.Redis(port=port)


def celery(role: str, port: int) -> None:
    """A worker with two processes, whose tasks are acknowledged when they are done."""
    import celery as library
    from kombu.transport import redis as transport
    from kombu.transport import virtual

    app = library.Celery("kills", broker=f"redis://127.0.0.1:{port}/0")
    app.conf.update(
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        task_ignore_result=True,
        worker_prefetch_multiplier=1,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={"visibility_timeout": PATIENCE},
    )

    @app.task(name="work_on")
    def task(job: str) -> None:
        work_on(job)

    def ack(qos: Any, tag: str) -> None:
        message = qos._delivered.get(tag)
        *_, removed = qos._remove_from_indices(tag).execute()
        virtual.QoS.ack(qos, tag)
        if removed and message is not None:
            journal.write("gone", message.headers["id"])

    if role == "produce":
        waiting = client(port)
        produce(
            lambda job: task.apply_async((job,), task_id=job, retry=False),
            lambda: waiting.llen("celery"),
        )
    else:
        transport.QoS.ack = ack
        options = "--concurrency 2 --loglevel WARNING --without-gossip --without-mingle"
        app.worker_main(["worker", *options.split(), "--hostname", f"{os.getpid()}@kills"])


def rq(role: str, port: int) -> None:
    """A worker that forks for each job, which is tried again if the worker dies."""
    from rq import Queue, Retry, Worker
    from rq.job import Job

    connection = client(port)
    queue = Queue(connection=connection)

    class Recorder(Worker):
        def execute_job(self, job: Any, *args: Any, **kwargs: Any) -> None:
            journal.write("took", job.id)
            super().execute_job(job, *args, **kwargs)

        def handle_job_success(self, job: Any, *args: Any, **kwargs: Any) -> None:
            super().handle_job_success(job, *args, **kwargs)
            journal.write("gone", job.id)

    if role == "produce":
        produce(
            lambda job: queue.enqueue(
                work_on, job, job_id=job, retry=Retry(max=100), result_ttl=600
            ),
            lambda: len(queue),
        )
    elif role == "work":
        Recorder([queue], connection=connection).work(logging_level="WARNING")
    else:
        # What a worker does every ten minutes, and for jobs that it has seen for a minute.
        between, started = queue.intermediate_queue, queue.started_job_registry
        waiting = set(queue.get_job_ids())
        for job in Job.fetch_many(between.get_job_ids(), connection):
            if job is not None and job.is_queued and job.id not in waiting and job not in started:
                connection.set(between.get_first_seen_key(job.id), time.time() - 100)
        between.cleanup(Worker([queue], connection=connection), queue)
        started.cleanup(time.time() + 10**6)
        for name in queue.failed_job_registry.get_job_ids():
            queue.failed_job_registry.requeue(name)


def dramatiq(role: str, port: int) -> None:
    """A worker with two threads."""
    import signal
    import threading

    import dramatiq as library
    from dramatiq.brokers import redis as brokers

    shared = client(port)
    broker = brokers.RedisBroker(
        client=shared, heartbeat_timeout=1000 * PATIENCE, maintenance_chance=50_000
    )
    library.set_broker(broker)
    actor = library.actor(work_on, max_retries=100, min_backoff=10, max_backoff=100)
    acked = brokers._RedisConsumer.ack

    def ack(consumer: Any, message: Any) -> None:
        acked(consumer, message)
        stored = f"dramatiq:{consumer.queue_name}.msgs"
        if not shared.hexists(stored, message.options["redis_message_id"]):
            journal.write("gone", message.args[0])

    if role == "produce":
        produce(actor.send, lambda: shared.llen("dramatiq:default"))
    else:
        brokers._RedisConsumer.ack = ack
        ended = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: ended.set())
        worker = library.Worker(broker, worker_threads=2, worker_timeout=100)
        worker.start()
        ended.wait()
        worker.stop()


def huey(role: str, port: int) -> None:
    """A consumer with two threads, whose jobs leave the queue before they run."""
    from huey import RedisHuey

    queue = RedisHuey("kills", port=port, results=False)
    _huey(role, queue)


def huey_priority(role: str, port: int) -> None:
    """The same with a sorted set."""
    from huey import PriorityRedisHuey

    _huey(role, PriorityRedisHuey("kills", port=port, results=False))


def _huey(role: str, queue: Any) -> None:
    def run(job: str) -> None:
        work_on(job)
        journal.write("gone", job)

    task = queue.task(name="run")(run)
    if role == "produce":
        produce(task, queue.pending_count)
    else:
        queue.create_consumer(workers=2, periodic=False, backoff=1.0).run()


def arq(role: str, port: int) -> None:
    """A worker of two jobs at a time, which ends when it loses its server."""
    sys.path.insert(0, str(ARQ))
    from arq import create_pool, func
    from arq.connections import RedisSettings
    from arq.worker import Worker

    settings = RedisSettings(port=port)

    async def run(_: Any, job: str) -> None:
        work_on(job)

    class Recorder(Worker):
        async def finish_job(self, job_id: str, *args: Any) -> None:
            await super().finish_job(job_id, *args)
            journal.write("gone", job_id)

    if role == "produce":
        wait = asyncio.Runner().run
        pool = wait(create_pool(settings))
        produce(
            lambda job: _accepted(wait(pool.enqueue_job("run", job, _job_id=job))),
            lambda: wait(pool.zcard("arq:queue")),
        )
    else:
        functions = [func(run, name="run", max_tries=100)]
        worker = Recorder(functions, redis_settings=settings, max_jobs=2, poll_delay=0.1)
        worker.in_progress_timeout_s = PATIENCE
        worker.run()


def saq(role: str, port: int) -> None:
    """A worker of two jobs at a time, which are tried again."""
    from saq import Job, Worker
    from saq.queue.redis import RedisQueue

    class Recorder(RedisQueue):
        async def _finish(self, job: Any, status: Any, **kwargs: Any) -> None:
            await super()._finish(job, status, **kwargs)
            if status == "complete":
                journal.write("gone", job.key)

    queue = Recorder.from_url(f"redis://127.0.0.1:{port}")

    async def run(_: Any, *, job: str) -> None:
        work_on(job)

    if role == "produce":
        wait = asyncio.Runner().run

        def put(key: str) -> None:
            job = Job("run", key=key, kwargs={"job": key}, retries=100, timeout=PATIENCE)
            _accepted(wait(queue.enqueue(job)))

        produce(put, lambda: wait(queue.count("incomplete")))
    else:
        worker = Worker(queue, [("run", run)], concurrency=2, timers={"sweep": 1})
        asyncio.run(worker.start())


def _accepted(job: object) -> None:
    """Raise if arq or saq returned None: the job was there already, or arq lost its server."""
    if job is None:
        raise RuntimeError("the job was not accepted")


def channels_redis(role: str, port: int) -> None:
    """Messages to a group with one channel."""
    from channels_redis.core import RedisChannelLayer

    class Recorder(RedisChannelLayer):
        cleaned = False

        async def _clean_receive_backup(self, *args: Any) -> None:
            await super()._clean_receive_backup(*args)
            self.cleaned = True

    layer = Recorder([("127.0.0.1", port)], expiry=600)

    async def receive() -> None:
        while True:
            layer.cleaned = False
            try:
                job = (await layer.receive("kills"))["job"]
            except Exception as error:
                sys.stderr.write(f"{error}\n")
                await asyncio.sleep(0.05)
            else:
                work_on(job)
                await layer.wait_received()
                if layer.cleaned:
                    journal.write("gone", job)

    wait = asyncio.Runner().run
    if role == "produce":

        async def put(job: str) -> None:
            await layer.group_add("all", "kills")
            await layer.group_send("all", {"type": "job", "job": job})

        async def waiting() -> int:
            return await layer.connection(0).zcard("asgikills")

        produce(lambda job: wait(put(job)), lambda: wait(waiting()))
    else:
        wait(receive())


def django_redis(role: str, port: int) -> None:
    """A cache, each of whose entries is read at once, and when all is over."""
    from django.conf import settings

    location = f"redis://127.0.0.1:{port}"
    settings.configure(
        CACHES={"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": location}}
    )
    from django.core.cache import cache

    def put(job: str) -> None:
        cache.set(job, job, timeout=3600)
        journal.write("gone" if cache.get(job) == job else "lost", job)

    if role == "mend":
        for line in Path(sys.argv[-1]).read_text(encoding="ascii").splitlines():
            what, job, _ = line.split()
            if what == "kept" and cache.get(job) == job:
                journal.write("ran", job)
    else:
        produce(put, lambda: 0)


def limits(_: str, port: int) -> None:
    """Hits on one name after the other, each until it is refused; windows of both kinds."""
    from limits import RateLimitItemPerHour, storage, strategies

    server = storage.RedisStorage(f"redis://127.0.0.1:{port}")
    limiters = strategies.FixedWindowRateLimiter, strategies.MovingWindowRateLimiter
    number = 0
    while True:
        limiter = limiters[number % 2](server)
        try:
            allowed = limiter.hit(RateLimitItemPerHour(LIMIT), str(number))
        except Exception as error:
            sys.stderr.write(f"{number}: {error}\n")
            time.sleep(0.05)
            continue
        if allowed:
            journal.write("kept", str(number))
            time.sleep(random.random() * _LONGEST)
            journal.write("gone", str(number))
        else:
            number += 1


def redis_py_lock(_: str, port: int) -> None:
    """The lock of redis-py."""
    from redis.exceptions import LockNotOwnedError

    shared = client(port)
    _contend(lambda: shared.lock("kills", timeout=_EXPIRY), LockNotOwnedError)


def redis_lock(_: str, port: int) -> None:
    """The lock of python-redis-lock."""
    from redis_lock import Lock, NotAcquired

    shared = client(port)
    _contend(lambda: Lock(shared, "kills", expire=int(_EXPIRY)), NotAcquired)


def pottery(_: str, port: int) -> None:
    """A Redlock, with one server."""
    from pottery import Redlock, ReleaseUnlockedLock

    settings = {"masters": {client(port)}, "auto_release_time": _EXPIRY}
    _contend(
        lambda: Redlock(key="kills", raise_on_redis_errors=True, **settings), ReleaseUnlockedLock
    )


def _contend(new_lock: Callable[[], Any], not_owned: type[Exception]) -> None:
    """Take a lock again and again, for a moment each time."""
    for number in count():
        job = f"{os.getpid()}-{number}"
        try:
            lock = new_lock()
            begun = time.monotonic()
            while not lock.acquire(blocking=False):
                time.sleep(0.01)
                begun = time.monotonic()
            journal.write("run", job)
            time.sleep(random.random() * _HELD)
            journal.write("ran" if time.monotonic() < begun + _EXPIRY else "late", job)
            lock.release()
            journal.write("gone", job)
        except not_owned:
            journal.write("lost", job)
        except Exception as error:
            sys.stderr.write(f"{job}: {error}\n")
            time.sleep(0.05)


LOCKS = {"redis_py_lock": redis_py_lock, "redis_lock": redis_lock, "pottery": pottery}
LIBRARIES = {
    "celery": celery,
    "rq": rq,
    "dramatiq": dramatiq,
    "huey": huey,
    "huey_priority": huey_priority,
    "arq": arq,
    "saq": saq,
    "channels_redis": channels_redis,
    "django_redis": django_redis,
    "limits": limits,
    **LOCKS,
}

if __name__ == "__main__":
    # Also for a worker of RQ, which imports the module that has the job.
    sys.modules["queue_child"] = sys.modules["__main__"]
    work_on.__module__ = "queue_child"
    _, library, role, port, path = sys.argv
    journal = Journal(path)
    LIBRARIES[library](role, int(port))

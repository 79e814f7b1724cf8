"""A queue of jobs with Redis' protocol: workers wait for jobs, and no job is lost when a worker
dies.

A worker moves a job from ``jobs`` to its own list, and removes it from there when it is done.  A
job that is not done by its deadline returns to ``jobs``.  The set ``workers`` names the lists, so
no scan over all keys is needed.  The store is on disk, in ``./queue``: the queue survives a
restart.

It needs lsmkv's extra ``server``, and redis-py, an ordinary Redis client.
"""

from __future__ import annotations

import threading
import time

import redis
from redis.client import Pipeline

from lsmkv.testing import serving

DEADLINE = 0.5  # seconds


def work(port: int, name: str, done: list[str]) -> None:
    """Do jobs until there is none for a second."""
    with redis.Redis(port=port, decode_responses=True) as client:
        client.sadd("workers", name)
        while job := client.blmove("jobs", f"taken:{name}", 1, "LEFT", "RIGHT"):
            client.zadd("deadlines", {f"{name} {job}": time.time() + DEADLINE})
            if job == "job 3" and name == "worker 1":
                return  # it dies while it has the job
            done.append(job)
            with client.pipeline(transaction=True) as both:
                both.lrem(f"taken:{name}", 1, job)
                both.zrem("deadlines", f"{name} {job}")
                both.execute()


def give_back(client: redis.Redis) -> int:
    """Return overdue jobs to the queue.  Returns their number."""
    for name in client.smembers("workers"):
        for job in client.lrange(f"taken:{name}", 0, -1):
            # It may have died before it set a deadline.
            client.zadd("deadlines", {f"{name} {job}": time.time() + DEADLINE}, nx=True)
    late = client.zrangebyscore("deadlines", "-inf", time.time())
    return sum(move_back(client, *entry.rsplit(" job ", 1)) for entry in late)


def move_back(client: redis.Redis, name: str, job: str) -> bool:
    """Move a job from a worker's list to ``jobs``; False if it was done or moved meanwhile."""
    taken = f"taken:{name}"

    def move(both: Pipeline) -> bool:
        """Called again if the list changes before what it queues is executed."""
        there = both.lpos(taken, f"job {job}") is not None
        both.multi()
        both.zrem("deadlines", f"{name} job {job}")
        if there:
            both.lrem(taken, 1, f"job {job}")
            both.lpush("jobs", f"job {job}")
        return there

    return bool(client.transaction(move, taken, value_from_callable=True))


def main() -> None:
    """Five jobs, a worker that dies, and one that does the rest."""
    done: list[str] = []
    with (
        serving("queue") as server,
        redis.Redis(port=server.port, decode_responses=True) as client,
    ):
        client.flushdb()
        client.rpush("jobs", *(f"job {number}" for number in range(1, 6)))
        for name in ("worker 1", "worker 2"):
            worker = threading.Thread(target=work, args=(server.port, name, done))
            worker.start()
            worker.join()
            print(f"{name} is gone, done so far: {', '.join(done)}")
            time.sleep(DEADLINE)
            print("given back:", give_back(client))
        work(server.port, "worker 3", done)
        print("left:", client.llen("jobs"), "- done:", ", ".join(sorted(done)))


if __name__ == "__main__":
    main()

"""Background jobs with RQ on `lsmkv serve`: the server is killed, and no job is lost.

The jobs are put into the queue while no worker runs.  Then the server gets a `kill -9` and is
started again, as systemd would.  A worker, which is a process of RQ's own command, finds all jobs.

The same file is the program and the module with the job, which the worker imports.

It needs lsmkv's extras `server` and `tools`, and `rq`.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry
from rq import Queue

JOBS = 20


def count_words(text: str) -> int:
    """The job."""
    return len(text.split())


def serve(directory: str, port: int) -> subprocess.Popen[bytes]:
    """Start the server next to the program."""
    command = [sys.executable, "-m", "lsmkv", "serve", directory, "--port", str(port)]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL)


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


def work(port: int) -> None:
    """Let RQ's worker do what is in the queue."""
    url = f"redis://127.0.0.1:{port}"
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, "-m", "rq.cli", "worker", "--burst", "--quiet", "--url", url]
    subprocess.run(command, env=environment, check=True)


def main(directory: str) -> None:
    """Put jobs into the queue, kill the server, and see what a worker finds."""
    port = free_port()
    server = serve(directory, port)
    # A client that waits for a server that is being started: 100 times 0.1 seconds.
    patience = Retry(ConstantBackoff(0.1), 100)
    try:
        with redis.Redis(port=port, retry=patience) as client:
            queue = Queue(connection=client)
            texts = ["word " * number for number in range(1, JOBS + 1)]
            jobs = [queue.enqueue("background_jobs.count_words", text) for text in texts]
            print(f"{len(queue)} jobs wait")
            server.kill()
            server.wait()
            server = serve(directory, port)
            print(f"after kill -9: {len(queue)} jobs wait")
            work(port)
            results = [job.return_value(refresh=True) for job in jobs]
            print(f"a worker has done {sum(result is not None for result in results)} of them")
            print("their results:", *results)
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(temporary)

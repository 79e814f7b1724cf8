"""A Redis and an ``lsmkv serve``, each in a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from processes import ENVIRON

REDIS = shutil.which("redis-server")
MEASURED = "7.0"
"""The release of Redis whose replies these are."""


def redis_is_there() -> bool:
    """Whether there is a Redis to compare with; LSMKV_EXPECT_REDIS=1 makes it an error if not."""
    if REDIS is not None:
        version = subprocess.run([REDIS, "--version"], capture_output=True, text=True, check=True)
        if f"v={MEASURED}." in version.stdout:
            return True
    if os.environ.get("LSMKV_EXPECT_REDIS") == "1":
        raise FileNotFoundError(f"redis-server {MEASURED} is not installed")
    return False


class Redis:
    """A Redis that keeps everything in memory, at a Unix socket."""

    def __init__(self, directory: Path) -> None:
        assert REDIS is not None
        # A path of a Unix socket is short: it is given from within its directory.
        self.address = os.path.relpath(directory / "redis.sock")
        options = {
            "port": "0",
            "unixsocket": "redis.sock",
            "save": "",
            "appendonly": "no",
            "hz": "100",  # how precisely blocked clients time out
            "stream-node-max-bytes": "0",  # approximate trimming goes by entries alone
            "dir": str(directory),
        }
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        with (directory / "redis.log").open("wb") as log:
            self._process = subprocess.Popen(
                [REDIS, *words],
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                env={**os.environ, "LC_ALL": "C"},
            )
        while not (directory / "redis.sock").exists():
            if self._process.poll() is not None:
                raise RuntimeError((directory / "redis.log").read_text())
            time.sleep(0.01)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


class Lsmkv:
    """An ``lsmkv serve`` of a directory, at a port of its choice."""

    def __init__(self, directory: Path, *options: str) -> None:
        self._command = [sys.executable, "-P", "-m", "lsmkv", "serve", str(directory)]
        self._command += ["--port", "0", "--json", *options]
        self.log = directory.with_suffix(".log")
        """What it has said on stderr: nothing, if all is well."""
        self._process: subprocess.Popen[bytes]
        self.address = 0
        self._start()

    def _start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=ENVIRON,
            )
        assert self._process.stdout is not None
        self.address = json.loads(self._process.stdout.readline())["port"]

    def restart(self) -> None:
        """End it as a user does, and serve the directory again, at another port."""
        self.stop()
        self._start()

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        if self._process.returncode:
            raise RuntimeError(f"lsmkv serve ended with {self._process.returncode}")

"""Shard sets that a command names, and how they are opened."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import lsmkv.shards
from lsmkv import Env
from lsmkv.shards.remote.objects.open import open_objects
from lsmkv.shards.remote.remote_env import Expected, RemoteEnv
from lsmkv.shards.versions import newest_version
from lsmkv.tools.text import count


def open_shards(where: str) -> lsmkv.shards.Shards:
    """Open the newest version of a shard set."""
    return lsmkv.shards.open(where, options=store_options(where))


@contextlib.contextmanager
def open_shard(where: str, number: int) -> Iterator[tuple[str, Env]]:
    """The directory of a shard of the newest version, and the env that it is in.

    ``ValueError`` if the version has fewer shards.
    """
    with open_objects(where, options=store_options(where)) as objects:
        document = newest_version(objects)
        if number >= len(document.shards):
            shards = count(len(document.shards), "shard")
            raise ValueError(f"there is no shard {number}: version {document.number} has {shards}")
        entry = document.shards[number]
        expected = {name: Expected(file.size, file.sha256) for name, file in entry.objects()}
        with contextlib.closing(RemoteEnv(objects, expected=expected)) as env:
            yield entry.path, env


def store_options(url: str) -> dict[str, object] | None:
    """Options from the environment that the client of an object store does not read by itself.

    obstore takes ``AWS_ACCESS_KEY_ID``, ``AWS_REGION``, ``AWS_ENDPOINT_URL`` and so on from there,
    but ``AWS_ALLOW_HTTP`` only if it gets no timeouts.
    """
    allowed = os.environ.get("AWS_ALLOW_HTTP")
    if allowed is None or not url.lower().startswith(("s3://", "s3a://")):
        return None
    return {"allow_http": allowed}

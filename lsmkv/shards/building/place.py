"""A storage place that can be sent to another process and opened there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from lsmkv.engine.util.urls import is_url
from lsmkv.shards.remote.objects.open import absolute_url, open_objects
from lsmkv.shards.remote.objects.retrying import DEFAULT_LIMITS, Limits, RetryingObjects


class Place(NamedTuple):
    """A URL, and the settings to open it."""

    url: str
    options: Mapping[str, object] | None = None
    limits: Limits = DEFAULT_LIMITS
    durable: bool = True
    """False for objects that are useless after a power cut: a put does not wait for a local disk.
    """

    @classmethod
    def at(
        cls, url: str | os.PathLike[str], options: Mapping[str, object] | None, limits: Limits
    ) -> Place:
        """A place that stays the same in another working directory.

        ``options`` are those of an object store; a local directory takes none and ignores them.
        """
        text = absolute_url(url)
        is_local = not is_url(text) or text.lower().startswith("file:")
        return cls(text, None if is_local else options, limits)

    def open(self, create: bool = False) -> RetryingObjects:
        """Open the store of objects.

        With ``create`` a missing local directory is made.  Only the process that starts the others
        may do that: a worker that outlives it must not make again what was removed.
        """
        return open_objects(
            self.url,
            options=self.options,
            limits=self.limits,
            create=create,
            durable=self.durable,
        )

    def below(self, name: str) -> Place:
        """The objects whose names begin with ``name/`` here."""
        return self._replace(url=f"{self.url.rstrip('/')}/{name}")

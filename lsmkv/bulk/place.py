"""A place for objects that can be sent to another process and opened there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from lsmkv.env.objects.open import open_objects
from lsmkv.env.objects.retrying import DEFAULT_LIMITS, Limits, RetryingObjects
from lsmkv.env.objects.urls import absolute_url, is_url


class Place(NamedTuple):
    """A URL, and what is needed to open it."""

    url: str
    options: Mapping[str, object] | None = None
    limits: Limits = DEFAULT_LIMITS
    durable: bool = True
    """False for what is of no use after a power cut: a put does not wait for a local disk."""

    @classmethod
    def at(
        cls, url: str | os.PathLike[str], options: Mapping[str, object] | None, limits: Limits
    ) -> Place:
        """A place that is the same from another working directory.

        ``options`` are those of an object store: a directory, which takes none, leaves them out.
        """
        text = absolute_url(url)
        is_local = not is_url(text) or text.lower().startswith("file:")
        return cls(text, None if is_local else options, limits)

    def open(self, create: bool = False) -> RetryingObjects:
        """The objects there.

        With ``create`` a local directory is made if it is missing, which is for the process that
        calls the others: one that is left alone must not make again what was removed.
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

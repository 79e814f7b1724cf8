"""A place for objects that can be sent to another process and opened there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from lsmkv.env.objects.open import open_objects
from lsmkv.env.objects.retrying import DEFAULT_LIMITS, Limits, RetryingObjects


class Place(NamedTuple):
    """A URL, and what is needed to open it."""

    url: str
    options: Mapping[str, object] | None = None
    limits: Limits = DEFAULT_LIMITS

    def open(self) -> RetryingObjects:
        """The objects there; a local directory is made if it is missing."""
        return open_objects(self.url, options=self.options, limits=self.limits, create=True)

    def below(self, name: str) -> Place:
        """The objects whose names begin with ``name/`` here."""
        return self._replace(url=f"{self.url.rstrip('/')}/{name}")

"""The explanation of a Get in a shard set: :class:`ShardExplanation`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lsmkv.engine.db.handles.explanation import Explanation
from lsmkv.engine.util.outline import Line, Tone, as_html, as_text
from lsmkv.engine.util.text import count, escape, quoted


@dataclass(frozen=True)
class ShardExplanation:
    """The shard and the steps of a Get of one key; ``str()`` is text.

    A data block that is not in the block cache costs one request, unless the cache on disk has it.
    ``Shards.explain`` makes an explanation, and states errors and cost.  This is plain data.

    >>> import lsmkv.bulk, lsmkv.shards, tempfile
    >>> with tempfile.TemporaryDirectory() as here:
    ...     _ = lsmkv.bulk.build([(b"ant", b"six"), (b"cow", b"four")], here)
    ...     with lsmkv.shards.open(here) as s:
    ...         get = s.explain(b"bee")
    >>> get.found, get.requests, get.requests_without_filters, get.requests_saved
    (False, 0, 1, 1)
    >>> get.to_dict()["shard"], get.outline()[-1].text
    (0, 'requests: 0; without filters and caches: 1; 1 request saved')
    """

    key: bytes
    version: int
    shard: int
    """The index of the shard, from 0; -1 if the version has no shards."""
    path: str
    """Its directory in the set."""
    steps: Explanation | None

    @property
    def found(self) -> bool:
        """True if the key exists."""
        return self.steps is not None and self.steps.found

    @property
    def requests(self) -> int:
        """The most requests that the Get makes, once the shard is open."""
        return 0 if self.steps is None else self.steps.blocks_read

    @property
    def requests_without_filters(self) -> int:
        """Requests that it would make without filters and caches."""
        return 0 if self.steps is None else self.steps.blocks_without_filters

    @property
    def requests_saved(self) -> int:
        """The difference."""
        return self.requests_without_filters - self.requests

    def to_dict(self) -> dict[str, Any]:
        """Plain data; keys are escaped text, ready for JSON."""
        return {
            "key": escape(self.key),
            "version": self.version,
            "shard": self.shard,
            "path": self.path,
            "requests": self.requests,
            "requests_without_filters": self.requests_without_filters,
            "requests_saved": self.requests_saved,
            "steps": None if self.steps is None else self.steps.to_dict(),
        }

    def outline(self) -> list[Line]:
        """The steps in words, one per line."""
        if self.steps is None:
            explained = f"get {quoted(self.key)}: not found: version {self.version} has no shards"
            return [Line(0, "plain", explained)]
        where = f"shard {self.shard} of version {self.version}: {self.path}"
        steps = self.steps.outline()
        explained = f"requests: {self.requests}; without filters and caches: "
        explained += f"{self.requests_without_filters}"
        if self.requests_saved:
            explained += f"; {count(self.requests_saved, 'request')} saved"
        tone: Tone = "saved" if self.requests_saved else "plain"
        return [steps[0], Line(1, "plain", where), *steps[1:], Line(1, tone, explained)]

    def __str__(self) -> str:
        """The steps in words, one per line."""
        return as_text(self.outline())

    def _repr_html_(self) -> str:
        """The steps as nested lists, for a notebook."""
        return as_html(self.outline())

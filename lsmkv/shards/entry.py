"""A shard entry of a version, to JSON and back: part of :mod:`lsmkv.shards.version`."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from lsmkv.engine.util.json_fields import json_field, take_field
from lsmkv.shards.remote.objects.base import check_object_name

_LARGEST = (1 << 63) - 1
_SHA256 = re.compile(r"[0-9a-f]{64}")


class StoredFile(NamedTuple):
    """A file of a shard, as it was stored.

    >>> StoredFile("CURRENT", 16, "0" * 64).size
    16
    """

    name: str
    """Within the shard's directory."""
    size: int
    """Bytes."""
    sha256: str
    """64 lower-case hexadecimal digits."""


class ShardEntry(NamedTuple):
    """A shard of a version.

    >>> files = [StoredFile(name, 16, "0" * 64) for name in ("META", "CURRENT")]
    >>> entry = ShardEntry("shards/b/0000-1", b"", 5, files[0], (files[1],))
    >>> [name for name, _ in entry.objects()]
    ['shards/b/0000-1/META', 'shards/b/0000-1/CURRENT']
    """

    path: str
    """Its directory, such as ``shards/<build>/0003-<attempt>``."""
    first: bytes
    """Its inclusive lower bound; empty for the first shard."""
    pairs: int
    meta: StoredFile
    files: tuple[StoredFile, ...]
    """All files except ``meta``: CURRENT, the MANIFEST and the tables."""

    def objects(self) -> Iterator[tuple[str, StoredFile]]:
        """All its files, including ``meta``, with the names of their objects."""
        for file in (self.meta, *self.files):
            yield f"{self.path}/{file.name}", file


def shard_fields(shard: ShardEntry) -> dict[str, Any]:
    """The JSON fields of a shard."""
    return {
        "path": shard.path,
        **json_field("first", shard.first),
        "pairs": shard.pairs,
        "meta": shard.meta._asdict(),
        "files": [file._asdict() for file in shard.files],
    }


def decode_shard(fields: object) -> ShardEntry:
    """The shard with these fields.  Raises ``ValueError`` if some have wrong types."""
    fields = _object(fields)
    shard = ShardEntry(
        path=take(fields, "path", str),
        first=take_field(fields, "first"),
        pairs=take(fields, "pairs", int),
        meta=_decode_file(take(fields, "meta", dict)),
        files=tuple(map(_decode_file, take(fields, "files", list))),
    )
    done(fields)
    return shard


def _decode_file(fields: object) -> StoredFile:
    fields = _object(fields)
    file = StoredFile(
        take(fields, "name", str), take(fields, "size", int), take(fields, "sha256", str)
    )
    done(fields)
    return file


def check_shard(which: str, shard: ShardEntry) -> None:
    """Raise ``ValueError`` for a shard that no published version can have."""
    check_object_name(shard.path)
    require(shard.path.startswith("shards/"), f"{which} is outside shards/: {shard.path!r}")
    for part in shard.path.split("/"):
        check_component(which, part)
    require(0 <= shard.pairs <= _LARGEST, f"{which} has {shard.pairs} pairs")
    names = set()
    for _, file in shard.objects():
        check_component(which, file.name)
        names.add(file.name)
        require(0 <= file.size <= _LARGEST, f"{which}: {file.name} has {file.size} bytes")
        require(_SHA256.fullmatch(file.sha256), f"{which}: not a SHA-256: {file.sha256!r}")
    require(len(names) == 1 + len(shard.files), f"{which} has two files of one name")


def check_component(which: str, text: str) -> None:
    """Raise ``ValueError`` unless the text is a plain name, without a slash."""
    plain = is_plain(text) and "/" not in text and "\\" not in text
    require(plain and text not in (".", ".."), f"{which}: not a plain name: {text!r}")


def is_plain(text: str) -> bool:
    """True if a name is not empty and printable."""
    return text != "" and text.isprintable()


def take(fields: dict[str, object], name: str, *types: type) -> Any:
    """Remove a field and return its value.  Raises ``ValueError`` if it has none of these types."""
    require(name in fields, f"{name} is missing")
    value = fields.pop(name)
    if type(value) not in types:  # so that the text of a large value is not built for nothing
        raise ValueError(f"{name} is {reprlib.repr(value)}")
    return value


def done(fields: dict[str, object]) -> None:
    """Raise ``ValueError`` if fields are left."""
    require(not fields, f"unknown fields: {', '.join(map(repr, fields))}")


def require(condition: object, message: str) -> None:
    """Raise ``ValueError`` unless the condition holds."""
    if not condition:
        raise ValueError(message)


def _object(fields: object) -> dict[str, object]:
    if not isinstance(fields, dict):
        raise ValueError(f"not a JSON object: {reprlib.repr(fields)}")
    return fields

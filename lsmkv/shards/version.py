r"""Version documents: what a shard set consists of, and the JSON in which that is published.

A shard set is a series of *versions*, each an object ``versions/00000017.json``.  The one of the
highest number is in force.  A version names its shards in the order of their keys, and every file
of each with its size and SHA-256.  A shard is a legal LevelDB database in a directory of its own.
Neither versions nor the files of shards are ever changed, so versions may share shards.

The document is ASCII and ends in a seal, the SHA-256 of everything before it.  Abridged::

    {
     "format": 1,
     "number": 17,
     "nonce": "9f86d081884c7d65",
     "build": "2026-11-26-a1b2",
     "created": "2026-11-26T11:20:00+00:00",
     "comparator": "leveldb.BytewiseComparator",
     "filter_policy": "leveldb.BuiltinBloomFilter2",
     "prefix_extractor": null,
     "shards": [
      {
       "path": "shards/2026-11-26-a1b2/0000-1",
       "first": "",
       "pairs": 1000,
       "meta": {"name": "META", "size": 4096, "sha256": "..."},
       "files": [{"name": "CURRENT", "size": 16, "sha256": "..."}, ...]
      }
     ],
     "sha256": "..."
    }

``first`` is ``first_base64`` where the key is not UTF-8: :mod:`lsmkv.util.json_fields`.  All other
formats, with other numbers, keep the first field and the seal.

Left out: upper bounds (a shard ends where the next begins), other orders than the bytewise one, and
what a shard's own META says.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from operator import attrgetter
from typing import Any, NamedTuple

from lsmkv.env.objects.base import check_object_name
from lsmkv.errors import CorruptionError
from lsmkv.util.json_fields import json_field, parse_json_object, take_field

FORMAT = 1
COMPARATOR = "leveldb.BytewiseComparator"
"""The only order of keys that shards are cut in."""

_LARGEST = (1 << 63) - 1
_VERSION_NAME = re.compile(r"versions/([0-9]{8,18})\.json")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_NONCE = re.compile(r"[0-9a-f]{8,64}")

_Bytes = bytes  # VersionDocument has a property of this name


class StoredFile(NamedTuple):
    """A file of a shard, as it was put."""

    name: str
    """Within the shard's directory."""
    size: int
    """Bytes."""
    sha256: str
    """64 lower-case hexadecimal digits."""


class ShardEntry(NamedTuple):
    """A shard of a version."""

    path: str
    """Its directory, such as ``shards/<build>/0003-<attempt>``."""
    first: bytes
    """Its inclusive lower bound; empty for the first shard."""
    pairs: int
    meta: StoredFile
    files: tuple[StoredFile, ...]
    """All files but ``meta``: CURRENT, the MANIFEST and the tables."""

    def objects(self) -> Iterator[tuple[str, StoredFile]]:
        """All its files, ``meta`` included, with the names of their objects."""
        for file in (self.meta, *self.files):
            yield f"{self.path}/{file.name}", file


class VersionDocument(NamedTuple):
    """A version of a shard set; its shards rise by their lower bounds.

    A *draft* is one whose ``number``, ``nonce`` and ``created`` are still to be filled in, which
    :func:`lsmkv.bulk.publish.publish` does.
    """

    number: int
    """From 1."""
    nonce: str
    """Hexadecimal and random: tells a publisher's own document from another's."""
    build: str
    """Names the build; plain text without a slash."""
    created: str
    """When it was published: ISO 8601, in UTC."""
    comparator: str
    """The name of the order of keys: :data:`COMPARATOR`."""
    filter_policy: str | None
    """The name of the filter policy that its tables have filters of."""
    prefix_extractor: str | None
    shards: tuple[ShardEntry, ...]

    @property
    def pairs(self) -> int:
        """The pairs of all shards."""
        return sum(shard.pairs for shard in self.shards)

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(file.size for shard in self.shards for _, file in shard.objects())

    def shard_for(self, key: _Bytes) -> int:
        """The index of the shard whose range holds ``key``; -1 if there are no shards.

        A binary search in bytewise order, the only one that shards are cut in.
        """
        return bisect_right(self.shards, key, key=attrgetter("first")) - 1

    def objects(self) -> Iterator[tuple[str, StoredFile]]:
        """All files of all shards, with the names of their objects."""
        for shard in self.shards:
            yield from shard.objects()

    def check(self) -> None:
        """``ValueError`` says what cannot be so in a published version."""
        _require(1 <= self.number <= _LARGEST, f"number {self.number} is out of range")
        _require(_NONCE.fullmatch(self.nonce), f"not a nonce: {self.nonce!r}")
        _check_component("build", self.build)
        _check_created(self.created)
        _require(
            self.comparator == COMPARATOR,
            f"ordered by {self.comparator!r}: shards are cut in the order of {COMPARATOR!r} alone",
        )
        for text in (self.filter_policy, self.prefix_extractor):
            _require(text is None or _is_plain(text), f"not a name: {text!r}")
        for at, shard in enumerate(self.shards):
            _check_shard(f"shard {at}", shard)
        _check_bounds([shard.first for shard in self.shards])
        paths = {shard.path for shard in self.shards}
        _require(len(paths) == len(self.shards), "two shards have one path")

    def encode(self) -> _Bytes:
        """The document, the same bytes for the same content; ``ValueError`` as :meth:`check`."""
        self.check()
        fields = {"format": FORMAT, **self._asdict()}
        fields["shards"] = [_shard_fields(shard) for shard in self.shards]
        head = json.dumps(fields, indent=1).removesuffix("\n}").encode("ascii")
        return head + _seal(head)

    @classmethod
    def decode(cls, data: _Bytes, url: str) -> VersionDocument:
        """The document in ``data``, an object's whole content; ``url`` is for messages.

        :class:`~lsmkv.errors.CorruptionError` if any byte is not as it was written, if the format
        is a newer one, or if the content cannot be: names that leave the set's directory, bounds
        that do not rise.
        """
        try:
            document = _decode(data)
            document.check()
        except ValueError as error:
            raise CorruptionError(f"not a version of a shard set: {error}", url) from error
        return document


def version_name(number: int) -> str:
    """The name of a version's object.

    >>> version_name(17)
    'versions/00000017.json'
    """
    return f"versions/{number:08d}.json"


def parse_version_name(name: str) -> int | None:
    """The number in a version's name; ``None`` for any other name.

    >>> parse_version_name("versions/00000017.json"), parse_version_name("versions/17.json")
    (17, None)
    """
    match = _VERSION_NAME.fullmatch(name)
    number = int(match[1]) if match else 0
    return number if number and version_name(number) == name else None


def _seal(head: bytes) -> bytes:
    return f',\n "sha256": "{sha256(head).hexdigest()}"\n}}\n'.encode("ascii")


_SEAL_SIZE = len(_seal(b""))


def _shard_fields(shard: ShardEntry) -> dict[str, Any]:
    return {
        "path": shard.path,
        **json_field("first", shard.first),
        "pairs": shard.pairs,
        "meta": shard.meta._asdict(),
        "files": [file._asdict() for file in shard.files],
    }


def _decode(data: bytes) -> VersionDocument:
    head = data[:-_SEAL_SIZE]
    _require(data[-_SEAL_SIZE:] == _seal(head), "its SHA-256 does not match: damaged, or cut off")
    fields = parse_json_object(head + b"}")
    number = _take(fields, "format", int)
    _require(number <= FORMAT, f"its format is {number}: it was written by a newer lsmkv")
    _require(number == FORMAT, f"there is no format {number}")
    shards = _take(fields, "shards", list)
    document = VersionDocument(
        number=_take(fields, "number", int),
        nonce=_take(fields, "nonce", str),
        build=_take(fields, "build", str),
        created=_take(fields, "created", str),
        comparator=_take(fields, "comparator", str),
        filter_policy=_take(fields, "filter_policy", str, type(None)),
        prefix_extractor=_take(fields, "prefix_extractor", str, type(None)),
        shards=tuple(map(_decode_shard, shards)),
    )
    _done(fields)
    return document


def _decode_shard(fields: object) -> ShardEntry:
    fields = _object(fields)
    shard = ShardEntry(
        path=_take(fields, "path", str),
        first=take_field(fields, "first"),
        pairs=_take(fields, "pairs", int),
        meta=_decode_file(_take(fields, "meta", dict)),
        files=tuple(map(_decode_file, _take(fields, "files", list))),
    )
    _done(fields)
    return shard


def _decode_file(fields: object) -> StoredFile:
    fields = _object(fields)
    file = StoredFile(
        _take(fields, "name", str), _take(fields, "size", int), _take(fields, "sha256", str)
    )
    _done(fields)
    return file


def _object(fields: object) -> dict[str, object]:
    _require(isinstance(fields, dict), f"not an object of JSON: {fields!r}")
    assert isinstance(fields, dict)
    return fields


def _take(fields: dict[str, object], name: str, *types: type) -> Any:
    _require(name in fields, f"{name} is missing")
    value = fields.pop(name)
    _require(type(value) in types, f"{name} is {value!r}")
    return value


def _done(fields: dict[str, object]) -> None:
    _require(not fields, f"unknown fields: {', '.join(map(repr, fields))}")


def _check_shard(which: str, shard: ShardEntry) -> None:
    check_object_name(shard.path)
    _require(shard.path.startswith("shards/"), f"{which} is outside shards/: {shard.path!r}")
    for part in shard.path.split("/"):
        _check_component(which, part)
    _require(0 <= shard.pairs <= _LARGEST, f"{which} has {shard.pairs} pairs")
    names = set()
    for _, file in shard.objects():
        _check_component(which, file.name)
        names.add(file.name)
        _require(0 <= file.size <= _LARGEST, f"{which}: {file.name} has {file.size} bytes")
        _require(_SHA256.fullmatch(file.sha256), f"{which}: not a SHA-256: {file.sha256!r}")
    _require(len(names) == 1 + len(shard.files), f"{which} has two files of one name")


def _check_bounds(firsts: list[bytes]) -> None:
    _require(not firsts or firsts[0] == b"", "the first shard does not begin at the empty key")
    for at in range(1, len(firsts)):
        _require(firsts[at - 1] < firsts[at], f"the bound of shard {at} does not rise")


def _check_component(which: str, text: str) -> None:
    plain = _is_plain(text) and "/" not in text and "\\" not in text
    _require(plain and text not in (".", ".."), f"{which}: not a plain name: {text!r}")


def _check_created(created: str) -> None:
    _require(
        datetime.fromisoformat(created).utcoffset() == timedelta(0), f"not in UTC: {created!r}"
    )


def _is_plain(text: str) -> bool:
    return text != "" and text.isprintable()


def _require(condition: object, message: str) -> None:
    if not condition:
        raise ValueError(message)


def utc_now() -> str:
    """The time in the form of ``created``.

    >>> len(utc_now())
    25
    """
    return datetime.now(UTC).isoformat(timespec="seconds")

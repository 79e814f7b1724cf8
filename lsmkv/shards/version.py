r"""Version documents: the contents of a shard set, published as JSON.

A shard set is a series of *versions*, each an object ``versions/00000017.json``.  The highest
number is current.  A version names its shards in key order, and every file of each with its size
and SHA-256.  A shard is a legal LevelDB database in its own directory.  Neither versions nor the
files of shards ever change, so versions may share shards.

The document is ASCII and ends in a seal: the SHA-256 of everything before it.  Abridged::

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

``first`` becomes ``first_base64`` if the key is not UTF-8: :mod:`lsmkv.engine.util.json_fields`.
All later formats, with other numbers, keep the first field and the seal.

Left out: upper bounds (a shard ends where the next begins), orders other than the bytewise one, and
the content of a shard's META.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from operator import attrgetter
from typing import NamedTuple

from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.util.json_fields import parse_json_object
from lsmkv.shards.entry import (
    ShardEntry,
    StoredFile,
    check_component,
    check_shard,
    decode_shard,
    done,
    is_plain,
    require,
    shard_fields,
    take,
)

__all__ = [
    "COMPARATOR",
    "FORMAT",
    "ShardEntry",
    "StoredFile",
    "VersionDocument",
    "parse_version_name",
    "utc_now",
    "version_name",
]

FORMAT = 1
COMPARATOR = "leveldb.BytewiseComparator"
"""The only key order in which shards are cut."""

_TOO_LARGE = 10**18  # a number with more digits than a version's name has
_VERSION_NAME = re.compile(r"versions/([0-9]{8,18})\.json")
_NONCE = re.compile(r"[0-9a-f]{8,64}")

_Bytes = bytes  # VersionDocument has a property of this name


class VersionDocument(NamedTuple):
    """A version of a shard set; its shards are in ascending order of their lower bounds.

    A *draft* lacks ``number``, ``nonce`` and ``created``:
    :func:`lsmkv.shards.building.publish.publish` fills them in.  Costs O(files), except
    ``shard_for``, which costs a binary search.

    >>> import lsmkv.bulk, lsmkv.shards, tempfile
    >>> with tempfile.TemporaryDirectory() as here:
    ...     version = lsmkv.bulk.build([(b"a", b"1"), (b"b", b"2")], here, shards=2)
    >>> version.number, version.pairs, version.shard_for(b"a"), version.shard_for(b"c")
    (1, 2, 0, 1)
    >>> version.bytes == sum(file.size for _, file in version.objects())
    True
    >>> version.check()
    >>> lsmkv.shards.VersionDocument.decode(version.encode(), "a URL, for messages") == version
    True
    """

    number: int
    """From 1."""
    nonce: str
    """Random hexadecimal digits that distinguish a publisher's own document from another's."""
    build: str
    """Names the build; plain text without a slash."""
    created: str
    """The time of its publication: ISO 8601, in UTC."""
    comparator: str
    """The name of the key order: :data:`COMPARATOR`."""
    filter_policy: str | None
    """The name of the filter policy of its tables."""
    prefix_extractor: str | None
    shards: tuple[ShardEntry, ...]

    @property
    def pairs(self) -> int:
        """The number of pairs in all shards."""
        return sum(shard.pairs for shard in self.shards)

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(file.size for shard in self.shards for _, file in shard.objects())

    def shard_for(self, key: _Bytes) -> int:
        """The index of the shard whose range contains ``key``; -1 if there are no shards.

        A binary search in bytewise order, the only key order of shards.
        """
        return bisect_right(self.shards, key, key=attrgetter("first")) - 1

    def objects(self) -> Iterator[tuple[str, StoredFile]]:
        """All files of all shards, with the names of their objects."""
        for shard in self.shards:
            yield from shard.objects()

    def check(self) -> None:
        """Raise ``ValueError`` for a document that no published version can have."""
        require(1 <= self.number < _TOO_LARGE, f"number {self.number} is out of range")
        require(_NONCE.fullmatch(self.nonce), f"not a nonce: {self.nonce!r}")
        check_component("build", self.build)
        _check_created(self.created)
        require(
            self.comparator == COMPARATOR,
            f"ordered by {self.comparator!r}: shards must be in the order of {COMPARATOR!r}",
        )
        for text in (self.filter_policy, self.prefix_extractor):
            require(text is None or is_plain(text), f"not a name: {text!r}")
        for at, shard in enumerate(self.shards):
            check_shard(f"shard {at}", shard)
        _check_bounds([shard.first for shard in self.shards])
        paths = {shard.path for shard in self.shards}
        require(len(paths) == len(self.shards), "two shards have the same path")

    def encode(self) -> _Bytes:
        """The document, the same bytes for the same content.  Raises ``ValueError`` as
        :meth:`check` does."""
        self.check()
        fields = {"format": FORMAT, **self._asdict()}
        fields["shards"] = [shard_fields(shard) for shard in self.shards]
        head = json.dumps(fields, indent=1).removesuffix("\n}").encode("ascii")
        return head + _seal(head)

    @classmethod
    def decode(cls, data: _Bytes, url: str) -> VersionDocument:
        """The document in ``data``, an object's whole content; ``url`` is for messages.

        Raises :class:`~lsmkv.errors.CorruptionError` if a byte was changed, if the format is newer,
        or if the content is invalid: names that leave the set's directory, bounds that do not rise.
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


def _decode(data: bytes) -> VersionDocument:
    head = data[:-_SEAL_SIZE]
    require(data[-_SEAL_SIZE:] == _seal(head), "its SHA-256 does not match: damaged, or cut off")
    fields = parse_json_object(head + b"}")
    number = take(fields, "format", int)
    require(number <= FORMAT, f"its format is {number}: it was written by a newer lsmkv")
    require(number == FORMAT, f"there is no format {number}")
    shards = take(fields, "shards", list)
    document = VersionDocument(
        number=take(fields, "number", int),
        nonce=take(fields, "nonce", str),
        build=take(fields, "build", str),
        created=take(fields, "created", str),
        comparator=take(fields, "comparator", str),
        filter_policy=take(fields, "filter_policy", str, type(None)),
        prefix_extractor=take(fields, "prefix_extractor", str, type(None)),
        shards=tuple(map(decode_shard, shards)),
    )
    done(fields)
    return document


def _check_bounds(firsts: list[bytes]) -> None:
    require(not firsts or firsts[0] == b"", "the first shard does not begin at the empty key")
    for at in range(1, len(firsts)):
        require(
            firsts[at - 1] < firsts[at], f"the bound of shard {at} is not above the one before it"
        )


def _check_created(created: str) -> None:
    require(datetime.fromisoformat(created).utcoffset() == timedelta(0), f"not in UTC: {created!r}")


def utc_now() -> str:
    """The current time in the format of ``created``.

    >>> len(utc_now())
    25
    """
    return datetime.now(UTC).isoformat(timespec="seconds")

"""Shard sets whose files are there but are no databases: for tests of what is published."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from dict_objects import DictObjects

from lsmkv.shards.version import COMPARATOR, ShardEntry, StoredFile, VersionDocument, version_name
from lsmkv.shards.versions import list_versions, read_version

FIRSTS = (b"", b"m")
NAMES = ("META", "CURRENT", "000003.ldb")


def put_file(objects: DictObjects, path: str, name: str) -> StoredFile:
    data = f"{path}/{name}".encode()
    objects.objects[f"{path}/{name}"] = (data, objects.now)
    return StoredFile(name, len(data), sha256(data).hexdigest())


def put_shard(objects: DictObjects, path: str, first: bytes) -> ShardEntry:
    meta, *files = [put_file(objects, path, name) for name in NAMES]
    return ShardEntry(path, first, 1, meta, tuple(files))


def make_draft(
    objects: DictObjects, build: str, firsts: Sequence[bytes] = FIRSTS
) -> VersionDocument:
    """A draft whose files have been put."""
    shards = tuple(
        put_shard(objects, f"shards/{build}/{at:04d}-1", first) for at, first in enumerate(firsts)
    )
    return VersionDocument(0, "", build, "", COMPARATOR, None, None, shards)


def put_version(objects: DictObjects, number: int) -> VersionDocument:
    """A version with its files, put past all interfaces."""
    draft = make_draft(objects, f"build{number}")
    created = "2026-11-26T11:20:00+00:00"
    document = draft._replace(number=number, nonce=f"{number:08x}", created=created)
    objects.objects[version_name(number)] = (document.encode(), objects.now)
    return document


def check_complete(objects: DictObjects) -> list[int]:
    """The numbers of the versions that are there; all their files are, too."""
    for number in (numbers := list_versions(objects)):
        for name, file in read_version(objects, number).objects():
            assert sha256(objects.get(name)).hexdigest() == file.sha256
    return numbers

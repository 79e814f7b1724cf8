"""The file format of a page in the disk cache.

Layout (integers and strings as in :mod:`lsmkv.engine.util.coding`)::

    4 bytes     magic: "lsPg"
    fixed32     masked CRC-32C of all bytes after it
    string      identity of the object, in UTF-8
    varint64    number of the page
    ...         the page's bytes, up to the end of the file

The file's name is the SHA-256 of the bytes between the checksum and the page's bytes.  So a page
under another page's name is rejected, and so is a damaged page.
"""

from __future__ import annotations

import hashlib

from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.util.checksum import masked_crc32c
from lsmkv.engine.util.coding import (
    decode_fixed32,
    decode_varint64,
    encode_fixed32,
    encode_string,
    encode_varint,
    string_place,
)

_MAGIC = b"lsPg"
_SEAL = 8


def page_key(identity: str, number: int) -> bytes:
    """The key of a page: its object's identity and its number."""
    return encode_string(identity.encode()) + encode_varint(number)


def page_name(key: bytes) -> str:
    """The name of a page's file: 64 hexadecimal digits."""
    return hashlib.sha256(key).hexdigest()


def encode_page(key: bytes, data: bytes) -> bytes:
    """The content of a page's file."""
    body = key + data
    return _MAGIC + encode_fixed32(masked_crc32c(body)) + body


def decode_page(content: bytes, key: bytes) -> bytes:
    """The page's bytes.  :class:`CorruptionError` for damage, and for a page of another key."""
    body = _body_of(content)
    if not body.startswith(key):
        raise CorruptionError(
            "a page of another object, or another page of this object", None, _SEAL
        )
    return body[len(key) :]


def check_page(content: bytes, name: str) -> None:
    """Raise :class:`CorruptionError` unless the page is sound and its file has its name."""
    body = _body_of(content)
    _, end = string_place(body, 0)
    _, end = decode_varint64(body, end)
    if page_name(body[:end]) != name:
        raise CorruptionError("a page in a file with another page's name", None, _SEAL)


def _body_of(content: bytes) -> bytes:
    """The bytes that the checksum covers, if it matches."""
    if content[: len(_MAGIC)] != _MAGIC or len(content) < _SEAL:
        raise CorruptionError("not a page of the disk cache", None, 0)
    body = content[_SEAL:]
    if decode_fixed32(content, len(_MAGIC)) != masked_crc32c(body):
        raise CorruptionError("the page's checksum does not match", None, len(_MAGIC))
    return body

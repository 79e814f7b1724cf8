"""Meaning of a failed request to an object store, read from the text of obstore's errors.

obstore's exceptions have no status.  Their text contains the HTTP status and the store's reply.  In
S3's, Google's and Azure's stores the reply has a code::

    ... Server returned non-2xx status code: 403 Forbidden: <Error><Code>ExpiredToken</Code>...
"""

from __future__ import annotations

import errno
import re
from typing import NamedTuple

_STATUS = re.compile(r"status code: (\d{3})([^:\n]*)")
_CODE = re.compile(r"<Code>\s*(\w+)\s*</Code>|\"code\":\s*\"(\w+)\"")
_MESSAGE = re.compile(r"<Message>([^<]+)</Message>|\"message\":\s*\"([^\"]+)\"")
# obstore appends debugging details after this, with the causes of failures below HTTP.
_DEBUG = "Debug source:"
_WHERE = re.compile(
    r"Generic \w+ error: |Error performing \S+ \S+ in [0-9]\S* - "
)  # of no use to readers
_CAUSE = re.compile(
    r"\b(ConnectionRefused|ConnectionReset|BrokenPipe|TimedOut|IncompleteMessage)\b"
)

_EXPIRED = frozenset(("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"))
_WRONG_CREDENTIALS = _EXPIRED | frozenset(
    ("InvalidToken", "InvalidAccessKeyId", "SignatureDoesNotMatch")
)
_NO_BUCKET = frozenset(("NoSuchBucket", "ContainerNotFound", "FilesystemNotFound"))
# They come with status 400, but another attempt may succeed.
_TRANSIENT_CODES = frozenset(("RequestTimeout", "IncompleteBody", "SlowDown"))

_ERRNO_OF_STATUS = {
    301: errno.EINVAL,  # another region's bucket
    307: errno.EBUSY,
    400: errno.EINVAL,
    401: errno.EACCES,
    403: errno.EACCES,
    404: errno.ENOENT,
    405: errno.ENOTSUP,
    408: errno.ETIMEDOUT,
    409: errno.EBUSY,
    412: errno.EBUSY,
    429: errno.EBUSY,
    501: errno.ENOTSUP,
    503: errno.EBUSY,
    504: errno.ETIMEDOUT,
}
_ERRNO_OF_CAUSE = {
    "ConnectionRefused": errno.ECONNREFUSED,
    "ConnectionReset": errno.ECONNRESET,
    "BrokenPipe": errno.EPIPE,
    "TimedOut": errno.ETIMEDOUT,
    "IncompleteMessage": errno.ECONNRESET,
}
# Where a virtual machine asks for credentials if none were given.
_CREDENTIAL_HOSTS = ("169.254.169.254", "169.254.170.2", "metadata.google.internal")
# What can never work, in obstore's words.
_PERMANENT_WORDS = {
    "non-partial response": errno.ENOTSUP,  # a web server that knows no ranges
    "builder error": errno.EINVAL,
    "without LOCATION": errno.EINVAL,  # the wrong region
}


class Reply(NamedTuple):
    """The parts of an error's text."""

    status: int | None
    """The HTTP status, if there was a reply."""
    code: str
    """The store's code, or empty."""
    text: str
    """One line for people."""
    cause: str
    """The failure below HTTP, or empty."""


def read_reply(text: str) -> Reply:
    """Split an error's text into its parts."""
    summary = text.partition(_DEBUG)[0].strip()
    status, code, message = _STATUS.search(summary), _CODE.search(summary), _MESSAGE.search(summary)
    cause = _CAUSE.search(text)
    found = Reply(
        int(status[1]) if status else None,
        (code[1] or code[2]) if code else "",
        "",
        cause[1] if cause and not status else "",
    )
    if status is None:
        line = _WHERE.sub("", summary).splitlines()[0] if summary else ""
        return found._replace(text=f"{line} ({found.cause})" if found.cause else line)
    parts = [
        f"{status[1]}{status[2]}",
        found.code,
        (message[1] or message[2]).strip() if message else "",
    ]
    return found._replace(text=": ".join(part for part in parts if part))


def errno_of(reply: Reply, text: str) -> tuple[int, str]:
    """The ``errno`` of a failed request by the contract of ``ObjectStore``, and its text."""
    if any(host in text for host in _CREDENTIAL_HOSTS) and (reply.status or 400) < 500:
        why = "no credentials were given, and none were found on this machine"
        return errno.EACCES, f"{why}: {reply.text}"
    if reply.code in _EXPIRED:
        return errno.EACCES, f"the credentials have expired: {reply.text}"
    if reply.code in _WRONG_CREDENTIALS or reply.status == 401:
        return errno.EACCES, f"the credentials are missing or wrong: {reply.text}"
    if reply.code in _NO_BUCKET:
        return errno.ENOENT, f"there is no such bucket or container: {reply.text}"
    if reply.code in _TRANSIENT_CODES:
        return errno.EBUSY, reply.text
    if reply.status is not None:
        return _ERRNO_OF_STATUS.get(reply.status, errno.EIO), reply.text
    for words, number in _PERMANENT_WORDS.items():
        if words in text:
            hint = " (is it http:// without the option allow_http?)" if "builder" in words else ""
            return number, reply.text + hint
    return _ERRNO_OF_CAUSE.get(reply.cause, errno.EIO), reply.text


def means_no_bucket(reply: Reply) -> bool:
    """True if the bucket, or Azure's container, does not exist."""
    return reply.code in _NO_BUCKET

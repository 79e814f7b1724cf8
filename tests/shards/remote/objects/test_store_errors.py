"""What the text of an error means, without a store."""

from __future__ import annotations

import errno

import pytest

from lsmkv.shards.remote.objects.store_errors import errno_of, means_no_bucket, read_reply


def a_text(status: str, body: str) -> str:
    """Worded as obstore words it."""
    return (
        "Generic S3 error: Error performing GET http://127.0.0.1:1/bucket/key in 2.7ms - "
        f"Server returned non-2xx status code: {status}: {body}\n\nDebug source:\nGeneric {{ ... }}"
    )


def an_s3_body(code: str, message: str = "said by the store") -> str:
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    )


@pytest.mark.parametrize(
    ("status", "code", "number", "words"),
    [
        ("400 Bad Request", "ExpiredToken", errno.EACCES, "the credentials have expired"),
        ("403 Forbidden", "ExpiredToken", errno.EACCES, "the credentials have expired"),
        ("403 Forbidden", "InvalidAccessKeyId", errno.EACCES, "missing or wrong"),
        ("403 Forbidden", "SignatureDoesNotMatch", errno.EACCES, "missing or wrong"),
        ("401 Unauthorized", "Whatever", errno.EACCES, "missing or wrong"),
        ("403 Forbidden", "AccessDenied", errno.EACCES, "AccessDenied: said by the store"),
        ("404 Not Found", "NoSuchKey", errno.ENOENT, "404 Not Found: NoSuchKey"),
        ("404 Not Found", "NoSuchBucket", errno.ENOENT, "no such bucket"),
        ("404 Not Found", "ContainerNotFound", errno.ENOENT, "no such bucket or container"),
        ("301 Moved Permanently", "PermanentRedirect", errno.EINVAL, "PermanentRedirect"),
        ("400 Bad Request", "InvalidArgument", errno.EINVAL, "InvalidArgument"),
        ("400 Bad Request", "RequestTimeout", errno.EBUSY, "RequestTimeout"),
        ("405 Method Not Allowed", "MethodNotAllowed", errno.ENOTSUP, "405"),
        ("501 Not Implemented", "NotImplemented", errno.ENOTSUP, "501"),
        ("408 Request Timeout", "Slow", errno.ETIMEDOUT, "408"),
        ("429 Too Many Requests", "TooManyRequests", errno.EBUSY, "429"),
        ("500 Internal Server Error", "InternalError", errno.EIO, "InternalError"),
        ("502 Bad Gateway", "Gateway", errno.EIO, "502"),
        ("503 Service Unavailable", "SlowDown", errno.EBUSY, "SlowDown"),
        ("504 Gateway Timeout", "Gateway", errno.ETIMEDOUT, "504"),
    ],
)
def test_a_reply_is_read_by_its_status_and_code(
    status: str, code: str, number: int, words: str
) -> None:
    text = a_text(status, an_s3_body(code))
    reply = read_reply(text)
    assert (reply.status, reply.code) == (int(status[:3]), code)
    found, why = errno_of(reply, text)
    assert (found, words in why) == (number, True)
    assert "127.0.0.1" not in why
    assert means_no_bucket(reply) == ("no such bucket" in words)


def test_a_reply_in_json() -> None:
    """Google's, for example."""
    text = a_text("403 Forbidden", '{"error": {"code": "x1", "message": "Permission denied"}}')
    assert read_reply(text).text == "403 Forbidden: x1: Permission denied"


def test_a_reply_without_words_of_the_store() -> None:
    text = a_text("418 I'm a teapot", "<html>short and stout</html>")
    assert errno_of(read_reply(text), text) == (errno.EIO, "418 I'm a teapot")


@pytest.mark.parametrize(
    ("cause", "number"),
    [
        ("kind: ConnectionRefused", errno.ECONNREFUSED),
        ("kind: ConnectionReset", errno.ECONNRESET),
        ("source: TimedOut", errno.ETIMEDOUT),
        ("hyper::Error(IncompleteMessage)", errno.ECONNRESET),
        ("something new", errno.EIO),
    ],
)
def test_what_failed_below_http_is_read_from_the_debug_text(cause: str, number: int) -> None:
    text = (
        "Generic S3 error: Error performing GET http://h/b/k in 4.0s - HTTP error: error sending "
        f"request\n\nDebug source:\nGeneric {{ store: S3, {cause} }}"
    )
    reply = read_reply(text)
    found, why = errno_of(reply, text)
    assert (reply.status, found) == (None, number)
    assert why.startswith("HTTP error: error sending request")


def test_words_of_what_can_never_be_done() -> None:
    for words, number in {
        "HTTP error: builder error": errno.EINVAL,
        "Received redirect without LOCATION, this": errno.EINVAL,
        "Received non-partial response when range requested": errno.ENOTSUP,
    }.items():
        assert errno_of(read_reply(f"Generic S3 error: {words}"), words)[0] == number
    text = "HTTP error: builder error"
    assert "allow_http" in errno_of(read_reply(text), text)[1]


@pytest.mark.parametrize("host", ["169.254.169.254", "metadata.google.internal"])
@pytest.mark.parametrize(
    ("what", "number"),
    [
        ("HTTP error: error sending request", errno.EACCES),
        ("Server returned non-2xx status code: 404 Not Found: no role", errno.EACCES),
        ("Server returned non-2xx status code: 503 Service Unavailable: later", errno.EBUSY),
    ],
)
def test_a_machine_without_credentials(host: str, what: str, number: int) -> None:
    text = f"Generic S3 error: Error performing PUT http://{host}/latest/api/token in 1ms - {what}"
    found, why = errno_of(read_reply(text), text)
    assert found == number
    assert ("no credentials were given" in why) == (number == errno.EACCES)


def test_an_empty_text() -> None:
    assert errno_of(read_reply(""), "") == (errno.EIO, "")

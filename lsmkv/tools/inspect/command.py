"""``lsmkv inspect``: the command."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
import webbrowser
from collections.abc import Iterator
from typing import Annotated

import typer

from lsmkv.filter_lab import PolicyMaker
from lsmkv.tools.arguments import Stored, is_shard_set
from lsmkv.tools.console import guarded, say, write_line
from lsmkv.tools.inspect.api import Api
from lsmkv.tools.lab.own import load_policy
from lsmkv.tools.shard_sets import open_shard

DEFAULT_PORT = 8731
_EXTRA = ("starlette", "uvicorn")


@guarded
def inspect(
    directory: Stored,
    shard: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Of a shard set: which shard; 0 is the first one."),
    ] = None,
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="The port; 0 takes a free one.")
    ] = DEFAULT_PORT,
    host: Annotated[
        str, typer.Option(metavar="HOST", help="The address to listen on; others need --token.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            envvar="LSMKV_INSPECT_TOKEN",
            show_envvar=False,
            help="Answer only who knows it; it is in the URL that is printed.",
        ),
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A trace, DB(..., trace=FILE), to replay in the lab."),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="FILE[:NAME]",
            help="A Python file with a filter policy of your own, as 'filter-lab' takes it.",
        ),
    ] = None,
    open_page: Annotated[
        bool, typer.Option("--open/--no-browser", help="Open the page in the browser.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="The page's address as JSON, on stdout.")
    ] = False,
) -> None:
    """Show the store as a page in the browser, until Ctrl-C.

    The levels with every table down to its bytes, a Get step by step with and without filters, the
    filters bit by bit and what others would save, the life of the tree from its MANIFEST, and the
    write path on a scratch store in memory. Nothing is written to the store, and no lock is taken:
    it works beside a live writer and follows it, and shows where a damaged store is damaged. Of a
    shard set, one shard of the newest version is shown.

    The page is for this machine alone, unless --host and --token say otherwise. The token is also
    taken from LSMKV_INSPECT_TOKEN, where other users of this machine do not see it.

    JSON: "path", "url". Each view of the page has its data at an address under /api, to which its
    link "JSON" leads.
    """
    if token is not None and len(token) < 8:
        raise ValueError("a token has at least 8 characters")
    if trace is not None:
        os.stat(trace)  # what is wrong with the name is told at once
    own = None if policy is None else load_policy(policy)
    try:
        from lsmkv.tools.inspect.server import listen, serve  # noqa: PLC0415 - takes 0.2 s
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        raise ValueError(
            "inspect needs starlette and uvicorn: pip install '.[tools]' in lsmkv's checkout"
        ) from None
    with _opened(directory, shard, trace, own) as api:
        try:
            listener = listen(host, port, token)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise OSError(error.errno, os.strerror(error.errno or 0), host) from None
            reason = f"port {port} is in use (--port 0 takes a free one)"
            raise OSError(error.errno, reason, host) from None
        with listener:
            url = address(host, listener.getsockname()[1], token)
            if as_json:
                write_line(json.dumps({"path": directory, "url": url}))
                sys.stdout.flush()
            else:
                say(f"{directory} is shown at {url} (Ctrl-C ends it)")
            if open_page:
                webbrowser.open(url)
            serve(api, listener, host, token)


@contextlib.contextmanager
def _opened(
    where: str, shard: int | None, trace: str | None, own: PolicyMaker | None
) -> Iterator[Api]:
    """A store, or a shard of a shard set."""
    with contextlib.ExitStack() as stack:
        if is_shard_set(where):
            path, env = stack.enter_context(open_shard(where, shard or 0))
            yield stack.enter_context(contextlib.closing(Api(path, trace, env, own)))
            return
        if shard is not None:
            raise ValueError(f"{where} is no shard set, so --shard does not go with it")
        yield stack.enter_context(contextlib.closing(Api(where, trace, own=own)))


def address(host: str, port: int, token: str | None) -> str:
    """The URL of the page.

    >>> address("::1", 80, None), address("127.0.0.1", 80, "secret")
    ('http://[::1]:80/', 'http://127.0.0.1:80/?token=secret')
    """
    where = f"[{host}]" if ":" in host else host
    return f"http://{where}:{port}/" + ("" if token is None else f"?token={token}")

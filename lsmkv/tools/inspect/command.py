"""``lsmkv inspect``: the command."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Annotated

import typer

from lsmkv.tools.arguments import Stored, is_shard_set
from lsmkv.tools.console import guarded
from lsmkv.tools.filter_lab import PolicyMaker
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
        typer.Option(metavar="N", min=0, help="The shard of a shard set to show; 0 is the first."),
    ] = None,
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="The port; 0 takes a free one.")
    ] = DEFAULT_PORT,
    host: Annotated[
        str,
        typer.Option(
            metavar="HOST",
            help=("The address to listen on; an address other than loopback needs --token."),
        ),
    ] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            envvar="LSMKV_INSPECT_TOKEN",
            show_envvar=False,
            help="Answer only requests with this token; the printed URL contains it.",
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
            help="A Python file with your filter policy, as for 'filter-lab'.",
        ),
    ] = None,
    open_page: Annotated[
        bool, typer.Option("--open/--no-browser", help="Open the page in the browser.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the page's address as JSON on stdout.")
    ] = False,
) -> None:
    """Show the store as a page in the browser, until Ctrl-C.

    Views: the levels, with every table down to its bytes; a Get step by step, with and without
    filters; the filters bit by bit, and what others would save; the life of the tree from its
    MANIFEST; the write path on a scratch store in memory. Nothing is written to the store, and no
    lock is taken. It works while a writer has the store open, follows the writer, and shows where a
    damaged store is damaged. For a shard set, it shows one shard of the newest version.

    Only this machine can open the page, unless --host and --token are given. The token can also be
    set in LSMKV_INSPECT_TOKEN, where other users of this machine cannot see it.

    JSON: "path", "url". The data of each view is at an address under /api; the view's link "JSON"
    leads there.
    """
    if token is not None and len(token) < 8:
        raise ValueError("a token has at least 8 characters")
    if trace is not None:
        os.stat(trace)  # report a wrong name at once
    own = None if policy is None else load_policy(policy)
    try:
        from lsmkv.tools.inspect.server import announced, serve  # noqa: PLC0415 - takes 0.2 s
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        raise ValueError(
            "inspect needs starlette and uvicorn: pip install '.[tools]' in lsmkv's checkout"
        ) from None
    with (
        _opened(directory, shard, trace, own) as api,
        announced(
            host,
            port,
            directory,
            "is shown at",
            token=token,
            as_json=as_json,
            open_page=open_page,
        ) as listener,
    ):
        serve(api, listener, host, token)


@contextlib.contextmanager
def _opened(
    where: str, shard: int | None, trace: str | None, own: PolicyMaker | None
) -> Iterator[Api]:
    """Open a store, or a shard of a shard set."""
    with contextlib.ExitStack() as stack:
        if is_shard_set(where):
            path, env = stack.enter_context(open_shard(where, shard or 0))
            yield stack.enter_context(contextlib.closing(Api(path, trace, env, own)))
            return
        if shard is not None:
            raise ValueError(f"{where} is not a shard set: --shard needs one")
        yield stack.enter_context(contextlib.closing(Api(where, trace, own=own)))

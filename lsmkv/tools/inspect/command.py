"""``lsmkv inspect``: the command."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from lsmkv.tools.arguments import Stored, is_shard_set
from lsmkv.tools.console import guarded, needing
from lsmkv.tools.filter_lab import PolicyMaker
from lsmkv.tools.inspect.api import Api
from lsmkv.tools.lab.own import load_policy
from lsmkv.tools.options import flag, option
from lsmkv.tools.shard_sets import open_shard

DEFAULT_PORT = 8731


@guarded
def inspect(
    directory: Stored,
    shard: int | None = option(
        None, "N", "The shard of a shard set to show; 0 is the first.", min=0
    ),
    port: int = option(DEFAULT_PORT, "N", "The port; 0 takes a free one.", min=0, max=65535),
    host: str = option(
        "127.0.0.1",
        "HOST",
        "The address to listen on; an address other than loopback needs --token.",
    ),
    token: str | None = option(
        None,
        "TEXT",
        "Answer only requests with this token; the printed URL contains it.",
        envvar="LSMKV_INSPECT_TOKEN",
        show_envvar=False,
    ),
    trace: str | None = option(None, "FILE", "A trace, DB(..., trace=FILE), to replay in the lab."),
    policy: str | None = option(
        None, "FILE[:NAME]", "A Python file with your filter policy, as for 'filter-lab'."
    ),
    open_page: bool = flag("Open the page in the browser.", "--open/--no-browser"),
    as_json: bool = flag("Print the page's address as JSON on stdout.", "--json"),
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
    with needing("inspect", "starlette", "uvicorn", extra="tools"):
        from lsmkv.tools.inspect.server import announced, serve  # noqa: PLC0415 - takes 0.2 s
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

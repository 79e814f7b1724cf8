"""A server that Redis clients talk to, on a store in LevelDB's files: ``docs/serve.md``.

It needs hiredis, and takes uvloop where it is there: the extra ``server``.
"""

from __future__ import annotations

from lsmkv.server.server import DEFAULT_PORT, Server

__all__ = ["DEFAULT_PORT", "Server"]

"""A server for Redis clients, on a store in LevelDB's files: see ``docs/serve.md``.

It needs hiredis, for scripts lupa, and uses uvloop if it is installed.  The extra ``server``
installs all three.
"""

from __future__ import annotations

from lsmkv.server.moving.moves import Moved, export_resp, import_redis
from lsmkv.server.server import DEFAULT_PORT, Server

__all__ = ["DEFAULT_PORT", "Moved", "Server", "export_resp", "import_redis"]

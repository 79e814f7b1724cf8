"""plyvel: LevelDB, through the API that lsmkv has too."""

from __future__ import annotations

from lsmkv.tools.bench.leveldb import LevelDBEngine


class PlyvelEngine(LevelDBEngine):
    """``plyvel``."""

    def __init__(self) -> None:
        super().__init__("plyvel")
        self.version += f" (LevelDB {self._module.__leveldb_version__})"

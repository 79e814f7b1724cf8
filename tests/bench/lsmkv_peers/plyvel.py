"""plyvel: LevelDB, through the API that lsmkv has too."""

from __future__ import annotations

from typing import Any

from lsmkv.tools.bench.leveldb import LevelDBEngine


class PlyvelEngine(LevelDBEngine):
    """``plyvel``."""

    def __init__(self, **reading: Any) -> None:
        super().__init__("plyvel", **reading)
        self.version += f" (LevelDB {self._module.__leveldb_version__})"


class CheckingPlyvelEngine(PlyvelEngine):
    """``plyvel+crc``: it verifies each block that it reads, as lsmkv does, which plyvel's reads do
    not by default."""

    def __init__(self) -> None:
        super().__init__(verify_checksums=True)

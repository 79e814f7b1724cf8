"""lsmkv.shared.system.sharing: what a directory has whose store processes share."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.shared.system.local import place_of


def test_directories_of_the_local_file_system_alone_can_be_shared() -> None:
    with pytest.raises(TypeError, match="MemoryDirectory"):
        place_of(MemoryEnv().open_directory("/db", create=True))


def test_one_of_several_claims_the_start_of_an_owner(tmp_path: Path) -> None:
    one, other = (place_of(LocalEnv().open_directory(str(tmp_path))) for _ in range(2))
    assert one.is_writable()
    assert one.claim_start()
    assert not other.claim_start()
    one.end_start()
    assert other.claim_start()
    other.end_start()

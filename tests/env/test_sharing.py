"""lsmkv.env.sharing: what a directory has whose store processes share."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsmkv.env.local import LocalDirectory, LocalEnv
from lsmkv.env.local_sharing import SHARES
from lsmkv.env.memory import MemoryEnv
from lsmkv.env.sharing import SharingDirectory


def test_only_directories_of_the_local_file_system_can_be_shared() -> None:
    assert issubclass(LocalDirectory, SharingDirectory)
    assert not isinstance(MemoryEnv().open_directory("/db", create=True), SharingDirectory)


@pytest.mark.skipif(not SHARES, reason="this system shares no store")
def test_one_of_several_claims_the_start_of_an_owner(tmp_path: Path) -> None:
    one, other = (LocalEnv().open_directory(str(tmp_path)) for _ in range(2))
    assert isinstance(one, SharingDirectory)
    assert isinstance(other, SharingDirectory)
    assert one.is_writable()
    assert one.claim_start()
    assert not other.claim_start()
    one.end_start()
    assert other.claim_start()
    other.close()
    assert one.claim_start()
    one.close()

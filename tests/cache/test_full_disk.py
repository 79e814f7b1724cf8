"""A file system that takes no more, for a cache that processes share: files may not grow."""

from __future__ import annotations

import pytest
from processes import python

from lsmkv.shared.system.local import SHARES

_SCRIPT = """
import logging, resource, signal, sys
import lsmkv
logging.getLogger("lsmkv").setLevel("CRITICAL")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with lsmkv.Cache(sys.argv[1], on_error=sys.argv[2], compression=None) as cache:
    cache["first"] = 1
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, most))
    stored = 0
    try:
        while cache.set(stored, bytes([stored]) * 50_000):
            stored += 1
        assert sys.argv[2] == "skip"
    except lsmkv.IOError:
        assert sys.argv[2] == "raise"
    assert stored > 2
    assert cache["first"] == 1
    assert all(cache[number] == bytes([number]) * 50_000 for number in range(stored))
    assert stored not in cache
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    assert cache.set("later", bytes(50_000)) and len(cache["later"]) == 50_000
    assert len(cache) == stored + 2
    assert cache.check() == []
with lsmkv.Cache(sys.argv[1]) as cache:
    assert cache["first"] == 1
    assert cache.check() == []
print("done")
"""


@pytest.mark.skipif(not SHARES, reason="processes cannot share a store here")
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_a_full_disk(tmp_path: object, on_error: str) -> None:
    assert python(_SCRIPT, f"{tmp_path}/cache", on_error).stdout == "done\n"

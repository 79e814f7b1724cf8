"""lsmkv.shared.system: by what processes share a store."""

from __future__ import annotations

import pytest

from lsmkv import LocalEnv, MemoryEnv
from lsmkv.shared.system.local import PAGES, SOCKETS
from lsmkv.shared.system.sharing import SharingEnv
from lsmkv.shared.system.system import LOCAL, system_of


class Elsewhere(SharingEnv, MemoryEnv):
    sockets = object()
    pages = object()


def test_without_an_env_it_is_the_operating_system() -> None:
    assert system_of(None) is LOCAL
    assert (LOCAL.sockets, LOCAL.pages) == (SOCKETS, PAGES)


def test_an_env_that_shares_stores_has_its_own() -> None:
    env = Elsewhere()
    system = system_of(env)
    assert (system.env, system.sockets, system.pages) == (env, env.sockets, env.pages)


@pytest.mark.parametrize("env", [MemoryEnv(), LocalEnv(), "disk"])
def test_any_other_is_refused(env: object) -> None:
    with pytest.raises(ValueError, match="env"):
        system_of(env)

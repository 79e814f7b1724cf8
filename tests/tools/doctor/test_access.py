"""lsmkv.tools.doctor.access: who can lock a store, or join it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import lsmkv
from lsmkv.shared.system.local import SHARES
from lsmkv.tools.doctor.access import access_of, remarks_on_access

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it has no such modes")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    lsmkv.DB(tmp_path / "store", create_if_missing=True).close()
    return tmp_path / "store"


def test_a_store_belongs_to_its_user(store: Path) -> None:
    found = access_of(str(store))
    user = os.geteuid()
    assert [str(one) for one in found] == [f"LOCK 0600: user {user}"]
    assert list(remarks_on_access(found)) == []
    assert access_of(str(store / "none")) == ()


@pytest.mark.skipif(not SHARES, reason="processes cannot share a store here")
def test_a_store_that_is_shared(store: Path) -> None:
    with lsmkv.SharedDB(store):
        user = os.geteuid()
        names = [f"LOCK 0600: user {user}", f"SHARED 0600: user {user}"]
        assert [str(one) for one in access_of(str(store))] == names


@pytest.mark.parametrize(
    ("mode", "who"), [(0o644, "all users"), (0o660, "and the group can"), (0o666, "all users")]
)
def test_others_can_lock(store: Path, mode: int, who: str) -> None:
    (store / "LOCK").chmod(mode)
    (advice,) = remarks_on_access(access_of(str(store)))
    assert who in advice.what
    assert f"{mode:04o}" in advice.what
    assert "chmod 600 LOCK" in advice.do


def test_second_names(store: Path, tmp_path: Path) -> None:
    (store / "SHARED").touch(mode=0o600)
    for name in ("LOCK", "SHARED"):
        os.link(store / name, tmp_path / name)
    what = [advice.what for advice in remarks_on_access(access_of(str(store)))]
    assert what == [
        "LOCK has 2 names (hard links): it is not written",
        "SHARED has 2 names (hard links): no process shares the store",
    ]

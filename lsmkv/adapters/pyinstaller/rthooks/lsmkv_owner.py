"""Runs in a frozen program before its own script: is this the process that owns a store?"""

import sys

if getattr(sys, "frozen", False):  # not where a test imports every file
    sys.lsmkv_owner = True  # type: ignore[attr-defined]  # so shared/system/detached.py may start it
    if sys.argv[1:2] == ["--lsmkv-owner"]:
        from lsmkv.shared.system.detached import run_frozen

        run_frozen(sys.argv[4])

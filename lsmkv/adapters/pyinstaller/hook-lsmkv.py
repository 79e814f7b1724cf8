"""PyInstaller's hook of lsmkv: the modules that a program may need, which compiled ones hide."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from PyInstaller.utils.hooks import collect_data_files, collect_submodules

_LEFT_OUT = ("lsmkv.adapters", "lsmkv.course", "lsmkv.testing", "lsmkv.tools")
"""Rooms that import other libraries, or belong to the command: a program names them itself."""


def _is_part(name: str) -> bool:
    return not name.startswith(_LEFT_OUT)


hiddenimports: list[str] = collect_submodules("lsmkv", filter=_is_part)
hiddenimports += [name for name in ("lsmkv__mypyc", "sortedcontainers") if find_spec(name)]
datas: Any = collect_data_files("lsmkv.server")

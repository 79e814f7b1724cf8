"""Other releases of the package that is tested: the same source under other numbers."""

from __future__ import annotations

from pathlib import Path

import lsmkv
from lsmkv.shared.system import release

_PACKAGE = Path(lsmkv.__file__).parent
_NAMES = release.__name__.split(".")[1:]


def made_release(place: Path, number: str) -> tuple[str, ...]:
    """The command before one that is to run with that release, whose files are below ``place``."""
    source, made = _PACKAGE, place / number / "lsmkv"
    for name in _NAMES:
        made.mkdir(parents=True)
        for one in source.iterdir():
            if one.name not in (name, f"{name}.py", "__pycache__"):
                (made / one.name).symlink_to(one)
        source, made = source / name, made / name
    made.with_suffix(".py").write_text(f'RELEASE = "{number}"\n', encoding="utf-8")
    return "env", f"PYTHONPATH={place / number}"

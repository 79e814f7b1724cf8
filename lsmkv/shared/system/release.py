"""The release of this package, as the processes of a shared store compare it (``handover.py``).

``lsmkv.__version__`` is what was installed.  Looking that up takes 30 ms, and a source tree has
none.
"""

from __future__ import annotations

RELEASE = "0.2.0"
"""As ``pyproject.toml`` has it.  No constant: compiled modules look it up here when they run."""

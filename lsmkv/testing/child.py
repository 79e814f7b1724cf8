"""The process in which simulations run: it installs the simulated objects before it imports the
engine.  ``simulation.py`` starts it through ``lsmkv.env.interpreted``; ``world.py`` does the runs.
"""

from __future__ import annotations

import importlib
from typing import Any

from lsmkv.env.interpreted import import_package
from lsmkv.testing.primitives import install


def main(request: dict[str, Any]) -> Any:
    """Do what :func:`lsmkv.testing.simulate` asks for."""
    install()
    import_package()
    # The package imports it late, and each run takes place in a copy: each would import it again.
    importlib.import_module("lsmkv.stats")
    return importlib.import_module("lsmkv.testing.world").answer(request)

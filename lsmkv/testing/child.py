"""The process in which simulations run: it installs the simulated objects before it imports the
engine.  ``simulation.py`` starts it through ``lsmkv.testing.interpreted``; ``world.py`` does the
runs.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from lsmkv.testing.interpreted import import_package
from lsmkv.testing.primitives import install


def main(request: dict[str, Any]) -> Any:
    """Carry out a request of :func:`lsmkv.testing.simulate`."""
    install()
    import_package()
    # What the engine imports late is imported now.  Each run takes place in a copy, which would
    # import it again; and the scheduler does not see a thread that waits for another's import.
    engine = importlib.import_module("lsmkv.engine.db")
    for module in pkgutil.walk_packages(engine.__path__, "lsmkv.engine.db."):
        importlib.import_module(module.name)
    importlib.import_module("lsmkv.engine.stats")
    return importlib.import_module("lsmkv.testing.world").answer(request)

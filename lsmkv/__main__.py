"""``python -m lsmkv``: the same as the ``lsmkv`` command."""

from __future__ import annotations

import sys

from lsmkv.tools.cli import main

if __name__ == "__main__":
    sys.exit(main())

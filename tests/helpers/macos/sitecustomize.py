"""Python imports this at its start where this folder is on the path: see ``macos_rules.py``."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
import macos_rules

sys.path.pop()
macos_rules.install()
